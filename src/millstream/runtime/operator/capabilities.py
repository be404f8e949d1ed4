"""What an operator can do beyond its contract: one class for each ability.

An operator that has an ability inherits its class beside `Operator`. Engine, hosts and planner ask for the ability,
never for an operator. What each step needs is looked up once, when a node is made.

| an operator that | is a |
|---|---|
| works on each tuple alone; keeps none | `RowWise`; `HoldsNothing` |
| computes early rows in its own way; answers prods; acts on prods; rewrites them | `TakesEarly`; `AnswersProds`; `ActsOnProds`; `RewritesProds` |
| drops what feedback disclaims; gives up groups; needs no guards | `Disclaims`; `Watches`; `GuardsItself` |
| sheds tuples; knows what its output lacks | `Sheds`; `LacksShed` |
| holds results until time passes; punctuation until all shards have it | `AwaitsTime`; `AwaitsShards` |
| purges by the time behind waiting tuples | `LooksAhead` |
| defers work; limits its work per batch | `Defers`; `WorksOffBudget` |
| lets elements keep their position; answers messages; uses values that do not fit | `KeepsPosition`; `AnswersMessages`; `UsesValues` |
| counts tuples; reports to the driver | `Counts`; `Reports` |
"""  # noqa: E501 - a row of a table

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from millstream.algebra.early import Prod
from millstream.algebra.element import Element
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import FOREVER, TS
from millstream.algebra.shed import ANYTHING, Shed
from millstream.algebra.upstream import Answer, Upstream
from millstream.runtime.operator.contract import Input, Operator, Output

if TYPE_CHECKING:
    from millstream.runtime.engine.statistics import Counters

# --- tuples -------------------------------------------------------------------------------------------------------


class RowWise(ABC):  # noqa: B024 - a fact about the operator
    """What it emits for a tuple depends on no other tuple of its input: its output lacks what its input lacks."""


class HoldsNothing(RowWise):
    """It also keeps no tuple, so that `process` keeps no early rows."""


class UsesValues(ABC):
    """It may leave a value unused that does not fit its type. Others use all values that reach them."""

    @abstractmethod
    def uses(self, rows: pl.DataFrame, column: str) -> pl.Series:
        """Return a mask of the rows of which it would use a value of the column that does not fit its type. A column of
        marks has these rows (`runtime/expression/overflow`)."""


class KeepsPosition(ABC):
    """Elements keep their position among its tuples."""

    @abstractmethod
    def meet(self, port: int, element: Element) -> Output:
        """Process an element, after all tuples of its input before it and before those after it."""


class Counts(ABC):
    """It counts tuples for progress and metrics."""

    @abstractmethod
    def counts(self) -> Mapping[str, int]:
        """Return numbers of tuples: `late`; held and dropped by feedback (`pruned`); held behind newer ones (`aside`);
        `shed`."""


class Reports(ABC):  # noqa: B024 - it has one of the two
    """It reports to the driver, by its stem: the driver's side is the module of that stem (`control/reports`). What it
    returns are values (`algebra.values`)."""

    def report(self) -> Any:
        """Return what the driver needs after a batch; None: nothing."""
        return None

    def summary(self, counters: Counters) -> Any:  # noqa: ARG002
        """Return what progress and metrics show, given the counters of its node; None: nothing."""
        return None


# --- prods (algebra/early.py) -------------------------------------------------------------------------------------


class TakesEarly(ABC):
    """It computes early rows in a way of its own. Others process them in a copy (`early_results`)."""

    @abstractmethod
    def early(self, rows: Sequence[pl.DataFrame | None], prod: Prod) -> pl.DataFrame | None:
        """Return what the operator would emit for these early rows, by port, after all tuples before their prod; keep
        nothing of them."""


class AnswersProds(TakesEarly):
    """If it `answers`, it answers prods with the results so far, or is the way to an operator of a later stage that
    does: `early` is called without rows too."""

    answers: bool = False


class ActsOnProds(TakesEarly):
    """If it `owes`, it has put off finding results of its tuples, or acts on prods that an operator behind it answers:
    for these, `early` is called without rows too."""

    @property
    @abstractmethod
    def owes(self) -> bool: ...


class RewritesProds(ABC):
    """It passes a prod on in terms of its output."""

    @abstractmethod
    def passed(self, prod: Prod, arrived: Prod) -> Prod:
        """Return the prod to pass on; `prod` has the names of copied columns already."""


def answers(operator: Operator) -> bool:
    """Return whether an operator answers prods."""
    return isinstance(operator, AnswersProds) and operator.answers


def early_results(operator: Operator, rows: Sequence[pl.DataFrame | None]) -> pl.DataFrame | None:
    """Return what an operator would emit for early rows; a copy processes them if the operator would keep them."""
    reader = operator if isinstance(operator, HoldsNothing) else deepcopy(operator)
    if operator.merges:
        rows = [None if each is None else each.sort(TS, maintain_order=True) for each in rows]
    return reader.process([Input(each) for each in rows]).rows


# --- messages against the data, feedback --------------------------------------------------------------------------


class AnswersMessages(ABC):
    """It has an answer of its own to some messages."""

    @abstractmethod
    def answer(self, message: Upstream) -> Answer:
        """Answer a message against the data: the messages to pass on, by input."""


class Disclaims(ABC):
    """It drops held tuples that feedback disclaims. `holds_results`: they are results but for computed columns, so that
    those that match are dropped whether or not its inputs may omit them."""

    holds_results: ClassVar[bool] = False

    @abstractmethod
    def disclaim(self, pattern: Pattern, omitted: Sequence[Pattern | None]) -> None:
        """Drop held tuples that only lead to results that match the pattern; `omitted`: the tuples of each input that
        do not arrive from now on. Results that match may still be emitted: readers drop them."""


class Watches(ABC):
    """It gives up what leads only to results that feedback disclaims, now and in later steps."""

    @abstractmethod
    def watch(self, pattern: Pattern) -> tuple[Pattern, ...]:
        """Watch for results that match the pattern: if one matches now, it still matches when it is emitted. Return the
        patterns that are given up now."""

    @abstractmethod
    def unwatch(self, covers: Callable[[Pattern], bool]) -> bool:
        """Forget the watched patterns that are covered; return whether there were any."""


def answered(operator: Operator, message: Upstream) -> Answer:
    """Return the answer of an operator to a message."""
    return operator.answer(message) if isinstance(operator, AnswersMessages) else message.unanswered(operator.arity)


def disclaim(operator: Operator, pattern: Pattern, omitted: Sequence[Pattern | None], *, results: bool = False) -> None:
    """Let an operator drop what it holds and feedback disclaims; `results`: only if it `holds_results`."""
    if isinstance(operator, Disclaims) and (operator.holds_results or not results):
        operator.disclaim(pattern, omitted)


def unwatch(operator: Operator, covers: Callable[[Pattern], bool]) -> bool:
    """Let an operator forget the watched patterns that are covered; return whether there were any."""
    return isinstance(operator, Watches) and operator.unwatch(covers)


class GuardsItself(ABC):  # noqa: B024 - a fact about the operator
    """It drops the tuples that it disclaims, and counts them; its ports need no guards."""


# --- shed tuples (algebra/shed.py) --------------------------------------------------------------------------------


class Sheds(ABC):
    """It drops tuples to keep up."""

    @abstractmethod
    def take_shed(self) -> Shed | None:
        """Return the notice of the tuples that it has shed since the last call; None if there are none."""


class LacksShed(ABC):
    """It knows what its output lacks. Others lack anything, unless they are `RowWise`."""

    @abstractmethod
    def missing(self, port: int, shed: Shed, passed: Shed) -> Shed:
        """Return what may be missing, or wrong, of the output if tuples of an input were shed; `passed` has the names
        of copied columns already."""


def missing(operator: Operator, port: int, shed: Shed, passed: Shed) -> Shed:
    """Return what may be missing, or wrong, of the output of an operator if tuples of an input were shed."""
    if isinstance(operator, LacksShed):
        return operator.missing(port, shed, passed)
    return passed if isinstance(operator, RowWise) else ANYTHING


# --- time and work ------------------------------------------------------------------------------------------------


class AwaitsTime(ABC):
    """It holds back results that only the passing of time releases."""

    @abstractmethod
    def waiting(self) -> bool:
        """Return whether it holds back any."""

    def needs(self) -> int:
        """Return the time that its inputs have to reach before it releases the next one; FOREVER if it does not
        know."""
        return FOREVER


class AwaitsShards(ABC):
    """It holds punctuation back until all shards have received it."""

    @abstractmethod
    def announce(self, patterns: Iterable[Pattern]) -> None:
        """Note punctuation that another shard has received."""

    @abstractmethod
    def agree(self, patterns: Iterable[Pattern]) -> Punctuations:
        """Return the punctuation among these patterns that has waited: all shards have received it."""


class LooksAhead(ABC):  # noqa: B024 - a fact about the operator
    """If it merges, it purges by the time behind the tuples that wait for it (`Input.ahead`)."""


class Defers(ABC):
    """It defers work."""

    @abstractmethod
    def unfinished(self) -> bool:
        """Return whether a step without input would do some of it."""


class WorksOffBudget(Defers):
    """It limits its work per batch."""

    @abstractmethod
    def work(self, *, allowed: bool) -> bool:
        """Allow the work, or forbid it again; return whether a step without input would do some. The host allows it
        once a batch, when all input has been taken."""

    @abstractmethod
    def pending(self) -> int:
        """Return the number of tuples that wait for it: another batch has to follow."""
