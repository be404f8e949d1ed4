"""The contract between operators and the host that drives them (the in-process engine, the Spark stage host).

An operator is a plain object. It is handed the input of one step and returns its output; it has no clock, no globals
and no knowledge of scheduling. On a grammatical stream all tuples of a step may be taken before all its punctuations
without changing the results, so an operator sees whole columns of both and purges once per step.

What it can do beyond this contract, it says by its classes (`capabilities`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import polars as pl

from millstream.algebra.element import Element
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import NEVER, Schema
from millstream.algebra.shed import Shed
from millstream.algebra.upstream import Upstream
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
    """

    stem: ClassVar[str] = ""
    """The stem of its node, or the first of several."""
    arity: ClassVar[int] = 1
    schema: Schema
    merges: bool = False
    tie_order: tuple[int, ...] | None = None
    timed: bool = False

    @classmethod
    def at(cls, site: Site, parameters: Mapping[str, Any]) -> Operator:
        """Return a new operator at a site, with the parameters of its node."""
        del site
        return cls(**parameters)

    @abstractmethod
    def process(self, inputs: Sequence[Input]) -> Output:
        """Take one step. `inputs` has one entry per port, possibly empty."""

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
