"""The capacity of running queries: the most state that they hold and the longest delay of their results, by the periods
of their streams (`contract.capacity`) and the highest rates measured since the connection was opened: of streams, and
of the results of joins that other state of a query holds.

A query whose state passes its bound is reported once (M5066) if the bound follows from declared periods (EVERY) alone:
a stream does not punctuate as it declares. A bound that rests on the time of events says no such thing: that time may
move more slowly than the clock.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from millstream.algebra.types import MICROS
from millstream.control.mill.contracts import declared, informed
from millstream.control.observe.losses import losses
from millstream.errors import InputError, MillstreamError
from millstream.logical.contract.accordance import accordance
from millstream.logical.contract.capacity import Capacity, capacity, measured, results
from millstream.logical.contract.offers import Declarations
from millstream.logical.plan import Plan

if TYPE_CHECKING:
    from millstream.control.mill.base import Mill
    from millstream.control.mill.running_query import RunningQuery
    from millstream.control.observe.progress import Progress

LOG = logging.getLogger("millstream")
CHECKED = 1.0
"""Seconds between two checks."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most state rows and bytes, and seconds after which the results of a tuple are emitted; None: unknown."""

    rows: int | None = None
    bytes: int | None = None
    delay: float | None = None


class PeakRate:
    """The highest rate of a stream: rows per second, over a second at least.

    >>> rate = PeakRate(0)
    >>> rate.add(500_000, 100), rate.add(2_000_000, 300), rate.add(12_000_000, 400)
    (100.0, 150.0, 150.0)
    """

    def __init__(self, begun: int) -> None:
        self._at, self._rows, self.peak = begun, 0, 0.0

    def add(self, now: int, rows: int) -> float:
        """Take the number of rows so far; return the highest rate."""
        passed = now - self._at
        self.peak = max(self.peak, (rows - self._rows) / max(1.0, passed / MICROS))
        if passed >= MICROS:
            self._at, self._rows = now, rows
        return self.peak


class Capacities:
    def __init__(self, mill: Mill) -> None:
        self._mill, self._begun = mill, mill.clock.now()
        self._rates: dict[str, PeakRate] = {}
        self._results: dict[tuple[str, str], PeakRate] = {}
        """Of queries and kinds of operators."""
        self.recovered: set[str] = set()
        """Queries that were recovered, and whose state has not been seen yet."""
        self._before: dict[str, int] = {}
        """State rows of recovered queries, which came at rates that are not known."""
        self._known: dict[str, tuple[Plan, Declarations, Capacity | None]] = {}

    def rates(self) -> dict[str, float]:
        """Measure, and return the highest rate of each stream."""
        now = self._mill.clock.now()
        for stream, held in losses(self._mill).items():
            self._rates.setdefault(stream, PeakRate(self._begun)).add(now, held.accepted)
        return {stream: rate.peak for stream, rate in self._rates.items()}

    def results(self, name: str, emitted: Mapping[str, int]) -> dict[str, float]:
        """Measure, and return the highest rates of the results of a query's operators, by kind."""
        now = self._mill.clock.now()
        for kind, rows in emitted.items():
            self._results.setdefault((name, kind), PeakRate(self._begun)).add(now, rows)
        return {results(kind): self._results[name, kind].peak for kind in emitted}

    def of(self, name: str) -> Capacity | None:
        """The capacity of a running query; None if it has no accordance."""
        plan, declarations = informed(self._mill, self._mill.query(name).plan), declared(self._mill)
        held = self._known.get(name)
        if held is None or held[0] != plan or held[1] != declarations:
            root = accordance(plan, declarations)
            found = None if root.refused is not None else capacity(root, declarations)
            held = self._known[name] = (plan, declarations, found)
        return held[2]

    def bounds(self, name: str, state: tuple[int, int], batch_seconds: float, emitted: Mapping[str, int]) -> Bounds:
        """Return the bounds of a query, given rows and bytes of its state and the results so far by kind of operator.
        The size of a row is measured; what a batch takes meanwhile is added."""
        found, rates = self.of(name), self.rates()
        if found is None:
            return Bounds()
        if rates and any(map(measured, chain.from_iterable(found.growth.values()))):
            rates |= self.results(name, emitted)
        state_rows, state_bytes = state
        rows = found.rows(rates)
        if rows is None or not rates:
            return Bounds(delay=found.delay)
        most = round(rows + sum(rates.values()) * batch_seconds) if rows else 0
        if state_rows and name in self.recovered:
            self.recovered.discard(name)
            self._before[name] = state_rows
        if state_rows <= most:
            self._before.pop(name, None)
        most += self._before.get(name, 0)
        return Bounds(most, round(most * state_bytes / state_rows) if state_rows else None, found.delay)


class CapacityWatch:
    """Warns of queries whose state passes its bound."""

    def __init__(self, mill: Mill) -> None:
        self._mill, self._checked = mill, 0.0
        self._told: dict[str, RunningQuery] = {}
        """The queries warned of; one of the same name may be created later."""
        self._checking = threading.Lock()

    def check(self) -> None:
        """Warn of the queries whose state has passed its bound, at most once a second."""
        if time.monotonic() < self._checked + CHECKED or self._mill.options.contracts == "off":
            return
        with self._checking:
            self._checked = time.monotonic()
            self.look()

    def look(self) -> None:
        """Compare the state of all queries with their bounds."""
        from millstream.control.observe.progress import running

        self._mill.capacities.rates()
        for progress in running(self._mill):
            most, query = progress.bounds.rows, self._mill.queries.get(progress.query)
            if query is None or most is None or progress.state_rows <= most or self._told.get(query.name) is query:
                continue
            if (found := self._mill.capacities.of(query.name)) is not None and found.due:
                self._told[query.name] = query
                LOG.warning("%s", _report(progress))


def _report(progress: Progress) -> MillstreamError:
    message = f"the state of query '{progress.query}' passes its bound"
    detail = f"It holds {progress.state_rows:,} rows, at most {progress.bounds.rows:,} by the periods of its streams."
    late = "a stream punctuates later than its EVERY declares; query.progress() shows which"
    hint = f"{late}, or its time moves more slowly than the clock"
    return InputError("M5066", message, detail=detail, hint=hint)
