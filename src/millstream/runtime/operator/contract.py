"""The contract between operators and the host that drives them (the in-process engine, the Spark stage host).

An operator is a plain object. It is handed the input of one step and returns its output; it has no clock, no globals
and no knowledge of scheduling. On a grammatical stream all tuples of a step may be taken before all its punctuations
without changing the results, so an operator sees whole columns of both and purges once per step.

| method | is handed |
|---|---|
| `process` | tuples and punctuations of all inputs, and how far their time has advanced |
| `meet` | an element that keeps its position, after all tuples of its input before it and before those after it |
| `early` | early rows, to compute on and not to keep, after all tuples before their prod (`algebra/early.py`) |
| `missing` | a notice of shed tuples (`algebra/shed.py`) |
| `answer` | a message against the data |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import polars as pl

from millstream.algebra.early import Prod
from millstream.algebra.element import Element
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import FOREVER, NEVER, TS, Schema
from millstream.algebra.shed import ANYTHING, Shed
from millstream.algebra.upstream import Answer, Upstream
from millstream.errors import PlanError
from millstream.runtime.expression.overflow import EXCEEDS
from millstream.runtime.state.table import StateTable

if TYPE_CHECKING:
    from millstream.runtime.operator.registry import Site


class Ahead(NamedTuple):
    """What is known of a port behind the tuples that wait there: the time that its input has reached, and the tuples,
    in pages."""

    time: int
    pages: Callable[[], list[pl.DataFrame]]


@dataclass(frozen=True, slots=True)
class Input:
    """The input of one port in one step: rows (with the hidden timestamp), then punctuations, and the time bound: no
    later tuple on this port has a timestamp below it (the port's time-stamp register). `ahead`: in a step without rows,
    if tuples wait, for an operator that looks ahead."""

    rows: pl.DataFrame | None = None
    punctuations: Punctuations | None = None
    bound: int = NEVER
    ahead: Ahead | None = None


@dataclass(frozen=True, slots=True)
class Output:
    """The output of one step: a notice of shed tuples, rows, punctuations that hold for all later output, then elements
    that keep their position. `upstream`: messages against the data, each with the port whose producer receives it.
    `abandoned`: patterns over its output that no later result matches, since it has given up what would lead to one;
    its inputs may omit that. `exceeding`: results that do not fit their types, as a column of reasons for each result
    column and NULL for results that fit; they are an error if a reader uses them."""

    rows: pl.DataFrame | None = None
    punctuations: Punctuations | None = None
    elements: tuple[Element, ...] = ()
    upstream: tuple[tuple[int, Upstream], ...] = ()
    abandoned: tuple[Pattern, ...] = ()
    exceeding: pl.DataFrame | None = None
    shed: Shed | None = None


NOTHING = Output()


class Operator(ABC):
    """One node of a query graph.

    `arity`      number of input ports.
    `merges`     true: the engine hands over rows of all ports in timestamp order only (ordered union, window join on
                 ordered streams, sequences); such an operator is idle-waiting-prone. False: rows are handed over as
                 they arrive, one port at a time.
    `tie_order`  for a merging operator: the order of ports among equal timestamps, or None if it does not matter.
                 A row is handed over only if no row that precedes it can still arrive.
    `timed`      true: the passing of time alone makes it act (window aggregate), so it is called with a raised bound
                 even if no rows arrive, and counts as idle-waiting-prone with one input.
    `looks_ahead` true: a merging operator that purges by the time behind the tuples that wait for it.
    `passes_early` true: it holds no tuples, so that `process` does not keep early rows.
    `row_wise`   true: what it emits for a tuple depends on no other tuple of its input.
    `answers`    true: it answers prods with the results so far.
    `sends_early` true: early rows that reach it are for an operator in a later stage that answers.
    `late`       number of tuples that it has counted as late.
    `holds_results` true: the tuples that it holds are results but for computed columns, so that feedback drops those
                 that match whether or not its inputs may omit them.
    `pruned`     number of tuples held that feedback has dropped.
    `aside`      number of tuples held that wait behind newer ones.
    `shed`       number of tuples that it has dropped to keep up.
    `guards_itself` true: it drops the tuples that it disclaims, and counts them; its ports need no guards.
    """

    arity: ClassVar[int] = 1
    schema: Schema
    merges: bool = False
    tie_order: tuple[int, ...] | None = None
    timed: bool = False
    looks_ahead: bool = False
    passes_early: ClassVar[bool] = False
    row_wise: ClassVar[bool] = False
    answers: bool = False
    sends_early: bool = False
    late: int = 0
    holds_results: bool = False
    pruned: int = 0
    aside: int = 0
    shed: int = 0
    guards_itself: bool = False

    @classmethod
    def at(cls, site: Site, parameters: Mapping[str, Any]) -> Operator:
        """Return a new operator at a site, with the parameters of its node."""
        del site
        return cls(**parameters)

    @abstractmethod
    def process(self, inputs: Sequence[Input]) -> Output:
        """Take one step. `inputs` has one entry per port, possibly empty."""

    def meet(self, port: int, element: Element) -> Output:  # noqa: ARG002
        """Process an element that keeps its position."""
        raise PlanError("M3091", f"{type(self).__name__} does not take a {type(element).__name__} among its tuples")

    def early(self, rows: Sequence[pl.DataFrame | None], prod: Prod) -> pl.DataFrame | None:  # noqa: ARG002
        """Return what the operator would emit for these early rows, by port, and keep nothing of them. One that
        `answers` is asked without any, too."""
        reader = self if self.passes_early else deepcopy(self)
        if self.merges:
            rows = [None if each is None else each.sort(TS, maintain_order=True) for each in rows]
        return reader.process([Input(each) for each in rows]).rows

    @property
    def owes(self) -> bool:
        """True if it has put off finding results of the tuples that it has, or acts on prods that an operator behind it
        answers; `early` is then called without rows too."""
        return False

    def passed(self, prod: Prod, arrived: Prod) -> Prod:  # noqa: ARG002
        """Return a prod to pass on, in terms of the output; `prod` has the names of copied columns already."""
        return prod

    def missing(self, port: int, shed: Shed, passed: Shed) -> Shed:  # noqa: ARG002
        """Return what may be missing, or wrong, of the output if tuples of an input were shed; `passed` has the names
        of copied columns already."""
        return passed if self.row_wise or self.passes_early else ANYTHING

    def take_shed(self) -> Shed | None:
        """Return the notice of the tuples that it has shed since the last call; None if there are none."""
        return None

    def answer(self, message: Upstream) -> Answer:
        """Answer a message against the data: the messages to pass on, by input."""
        return message.unanswered(self.arity)

    def disclaim(self, pattern: Pattern, omitted: Sequence[Pattern | None]) -> None:  # noqa: B027 - optional
        """Drop held tuples that only lead to results that match the pattern; `omitted`: the tuples of each input that
        do not arrive from now on. Results that match may still be emitted: readers drop them."""

    def watch(self, pattern: Pattern) -> tuple[Pattern, ...]:  # noqa: ARG002
        """Give up what leads only to results that match the pattern, now and in later steps: a result that matches once
        matches until it is emitted. Return the patterns that it has given up now."""
        return ()

    def unwatch(self, covers: Callable[[Pattern], bool]) -> bool:  # noqa: ARG002
        """Forget the watched patterns that are covered; return whether there were any."""
        return False

    def uses(self, rows: pl.DataFrame, column: str) -> pl.Series:
        """Return a mask of the rows of which it would use a value of the column that does not fit its type. A column of
        marks has these rows (`runtime/expression/overflow`)."""
        return rows.get_column(EXCEEDS + column)

    def waiting(self) -> bool:
        """Return whether the operator holds back results that only the passing of time releases."""
        return False

    def needs(self) -> int:
        """Return the time that its inputs have to reach before a waiting operator releases its next result; FOREVER if
        it does not know."""
        return FOREVER

    def unfinished(self) -> bool:
        """Return whether it has deferred work that a step without input would do."""
        return False

    def work(self, *, allowed: bool) -> bool:  # noqa: ARG002
        """Allow the work that it limits per batch, or forbid it again; return whether a step without input would do
        some. The host allows it once a batch, when all input has been taken."""
        return False

    def pending(self) -> int:
        """Return the number of tuples that wait for such work: another batch has to follow."""
        return 0

    def output_bound(self, bounds: Sequence[int]) -> int:
        """Return a lower bound on the timestamps of later output, given the ports' bounds."""
        return min(bounds)

    def tables(self) -> Mapping[str, StateTable]:
        """Return the state tables, by name. Together with `scalars` they are all of the operator's state."""
        return {}

    def scalars(self) -> dict[str, Any]:
        """Return small state (bounds, punctuation sets), as values (`algebra.values`)."""
        return {}

    def restore_scalars(self, values: Mapping[str, Any]) -> None:  # noqa: B027 - most operators have none
        """Restore the values that `scalars` returned."""

    def state_rows(self) -> int:
        """Return the number of tuples (groups, for an aggregate) that the operator holds."""
        return sum(len(table) for table in self.tables().values())

    @property
    def idle_waiting_prone(self) -> bool:
        return self.merges or self.timed or self.arity > 1
