"""Messages: everything that shards, operators and sources send to each other, by direction.

| direction | message | from → to | carried by |
|---|---|---|---|
| downstream | `Page`, `Punctuations` (`element.py`) | sources → operators → sinks | buffers, and the job |
| downstream | `Prod` (`early.py`) | sources → operators → sinks, with early rows | buffers, and the job |
| upstream | `TimeRequest` | an operator that waits → the sources that it waits for | walk, router, control log |
| upstream | `PunctuationRequest` | the reader of a query → its joins | control log, router |
| upstream | `Feedback`, `Withdrawal` (`feedback.py`) | the reader of a query → operators | control log, router |
| to a shard | records (`physical/wire/records.py`) | driver → shards | control log |
| from a shard | `Status` (`physical/shard/batch.py`) | shard → driver | the job |

One router (`runtime/engine/upstream.py`) carries an `Upstream` message from operator to operator, against the arrows of
the query graph, without delay. The message refers to the columns of the operator that receives it; that operator
translates it for its inputs. The kind of message defines the answer of operators that have none of their own, and what
passes a buffer that several readers share. A message that reaches a source of the graph is delivered to the source; the
host forwards it across stages to the driver.

>>> TimeRequest().unanswered(2).passed
((0, TimeRequest(beat=False)), (1, TimeRequest(beat=False)))
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.values import record


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of an operator to a message: the messages that it passes on, by port. `then` runs once the operators
    before it have run theirs and their output has arrived. `abandoned`: patterns over its output that it gives up."""

    passed: tuple[tuple[int, Upstream], ...] = ()
    then: Callable[[], None] | None = None
    abandoned: tuple[Pattern, ...] = ()


class Upstream(ABC):
    """A message that travels against the data: a frozen dataclass, so that equal messages count once.

    `everywhere`: a message for a query is delivered to all parts of the query at once, in whichever stage they are.
    `remembered`: the buffer that a reader reads keeps its messages.
    """

    __slots__ = ()
    everywhere: ClassVar[bool] = False
    remembered: ClassVar[bool] = False

    @abstractmethod
    def unanswered(self, arity: int) -> Answer:
        """The answer of an operator with `arity` inputs that has none of its own for this kind of message."""

    @abstractmethod
    def at_fork(self, others: Sequence[Sequence[Upstream]]) -> Upstream | None:
        """The message to pass on where several readers share a buffer and one of them sends this one; None: nothing.
        `others`: for each other reader, all messages it has sent of kinds that are remembered."""

    def to_all(self, arity: int) -> Answer:
        """The answer that passes the message on, unchanged, to all inputs."""
        return Answer(tuple((port, self) for port in range(arity)))


class _Request(Upstream):
    """A request that any one reader may make and every operator passes on."""

    __slots__ = ()

    def unanswered(self, arity: int) -> Answer:
        return self.to_all(arity)

    def at_fork(self, others: Sequence[Sequence[Upstream]]) -> Upstream | None:  # noqa: ARG002
        return self


@record("time_request")
class TimeRequest(_Request):
    """Asks sources to promise time. With `beat` the promise goes to all operators, not only to those that wait."""

    beat: bool = False


@record("punctuation_request")
class PunctuationRequest(_Request):
    """Asks joins to emit the punctuation that they may emit, whatever their propagation setting."""

    everywhere: ClassVar[bool] = True
