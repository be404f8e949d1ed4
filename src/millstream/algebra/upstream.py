"""Messages: everything that shards, operators and sources say to each other, by direction.

| direction | message | from → to | carried by |
|---|---|---|---|
| with the data | `Page`, `Punctuations` (`element.py`) | sources → operators → sinks | buffers, and the job |
| against it | `TimeRequest` | an operator that waits → the sources that it waits for | walk, router, control log |
| against it | `PunctuationRequest` | the reader of a query → its joins | control log, router |
| to a shard | records (`physical/wire/records.py`) | driver → shards | control log |
| from a shard | `Status` (`physical/shard/batch.py`) | shard → driver | the job |

An `Upstream` message goes from operator to operator against the arrows of a query graph, at once, carried by one router
(`runtime/engine/upstream.py`). It speaks of the columns of the operator that receives it; an operator that answers it
translates it for its inputs. What an operator does that has no answer of its own, and what passes where several readers
share a buffer, the kind of message says. What reaches a source of the graph is handed to the source, and by the host,
across stages, to the driver.

>>> TimeRequest().unanswered(2).passed
((0, TimeRequest(beat=False)), (1, TimeRequest(beat=False)))
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from millstream.algebra.values import record


@dataclass(frozen=True, slots=True)
class Answer:
    """How an operator answers a message: what it passes on, by port. Beyond what it has done already, it does `then`
    once the operators before it have done theirs and what they emitted has arrived."""

    passed: tuple[tuple[int, Upstream], ...] = ()
    then: Callable[[], None] | None = None


class Upstream(ABC):
    """A message against the data: a frozen dataclass, so that equal messages are one.

    `everywhere`: given to a query, it is handed to all parts of the query at once, in whichever stage they are.
    `remembered`: where several readers share a buffer, what each of them says is kept.
    """

    __slots__ = ()
    everywhere: ClassVar[bool] = False
    remembered: ClassVar[bool] = False

    @abstractmethod
    def unanswered(self, arity: int) -> Answer:
        """The answer of an operator with `arity` inputs that has none of its own for this kind of message."""

    @abstractmethod
    def at_fork(self, others: Sequence[Sequence[Upstream]]) -> Upstream | None:
        """What goes on where several readers share a buffer and one of them sends this. `others`: all messages that
        each other reader has sent, of kinds that are remembered."""

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
    """Promise the time that you can. With `beat` the promise goes to all operators, not only to those that wait."""

    beat: bool = False


@record("punctuation_request")
class PunctuationRequest(_Request):
    """Let the punctuation go that may, whatever the settings of the join say."""

    everywhere: ClassVar[bool] = True
