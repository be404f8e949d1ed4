"""The prods that queries have of their own: at marks of time, and for the tuples of another stream.

They are injected on the driver, where fed streams enter, and so have the same place among the tuples on every shard and
at any cut. Streams that the jobs read have theirs in the shards (`physical/shard/prodding.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import polars as pl

from millstream.algebra.early import query_prod
from millstream.algebra.element import Element, Page
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import Restriction, equal
from millstream.algebra.schedule import Schedule
from millstream.algebra.schema import NEVER, TS
from millstream.algebra.types import MICROS
from millstream.algebra.window import WINDOW_END
from millstream.ingest.marks import cuts, pieces
from millstream.ingest.source import StreamSource
from millstream.logical.early import asked_of_topmost, topmost
from millstream.logical.nodes.prodder import Prodder
from millstream.logical.nodes.scan import Scan
from millstream.logical.plan import Plan
from millstream.physical.wire.records import Feed

if TYPE_CHECKING:
    from millstream.control.mill.base import Mill
    from millstream.control.mill.running_query import RunningQuery

Elements = list[tuple[str, Element]]


class Prodders:
    def __init__(self, mill: Mill) -> None:
        self._mill = mill
        self._ticked = mill.clock.now()
        self.warned: set[str] = set()
        """The warnings about prods that have been logged."""

    def _running(self) -> Iterator[tuple[RunningQuery, Prodder]]:
        placed = self._mill.placements.of
        for query in list(self._mill.queries.values()):
            if query.prodder is not None and query.name in placed and query.failure is None:
                yield query, query.prodder

    # --- marks of the stream's time ---------------------------------------------------------------------------------

    def cut(self, source: StreamSource, stream: str, arrived: Iterable[Any]) -> Iterator[tuple[list[Any], Elements]]:
        """Yield arrivals of a stream, cut where its queries prod themselves, with the prods behind each piece."""
        own = [(query, made) for query, each in self._running() if (made := _by_time(each, stream)) is not None]
        time = source.schema.time
        if not own or time is None:
            yield [*arrived], []
            return
        arrivals, before = source.gathered(arrived), source.known
        found = [(cut, query) for query, schedule in own for cut in cuts(arrivals, time, before, schedule)]
        found.sort(key=lambda each: each[0][:2])
        for piece, places in pieces(arrivals, [cut for cut, _ in found]):
            prods: Elements = []
            for cut, query in found:
                if any(cut is place for place in places):
                    prods += self.elements(query.name, _ended(query, cut.end), cut.time)
            yield [piece], prods

    # --- tuples of another stream -----------------------------------------------------------------------------------

    def by_tuples(self, elements: Elements) -> Elements:
        """Return fed elements, with the prods that their tuples are for other queries behind them."""
        own = [(query, each.by) for query, each in self._running() if each.by]
        if not own:
            return elements
        made: Elements = []
        for stream, element in elements:
            made.append((stream, element))
            for query, by in own if isinstance(element, Page) else ():
                if stream == by:
                    assert isinstance(element, Page)
                    for pattern in _patterns(query, element.frame):
                        made += self.elements(query.name, pattern)
        return made

    def elements(self, query: str, pattern: Pattern, time: int = NEVER) -> Elements:
        """The copies of a prod of a query, for all streams that its parts read; the pattern is over the output of its
        topmost aggregate. `time`: that of the mark; NEVER: the time that the streams have reached."""
        streams = read_streams(part.started.plan for part in self._mill.placements.of[query].parts)
        if time == NEVER:
            sources = self._mill.feeds.sources
            time = max((sources[stream].known for stream in streams if stream in sources), default=NEVER)
        prod = query_prod(pattern, query).at(time)
        return [(stream, prod) for stream in streams]

    # --- system time ------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Take the marks up to now for passed: they were asked for before a restart, or lie in the time that the mill
        was down."""
        self._ticked = self._mill.clock.now()

    def tick(self) -> None:
        """Prod the queries that prod themselves by system time, if a mark has passed since the last call."""
        before, now = self._ticked, self._mill.clock.now()
        self._ticked = max(before, now)
        for query, each in self._running():
            schedule = each.schedule
            if schedule is None or not schedule.system or now <= before:
                continue
            unit = each.input.schema.unit
            first, last = before * unit // MICROS, now * unit // MICROS
            for mark, end in schedule.passed(first, last, last):
                self.send(query.name, _ended(query, end), NEVER if end is None else mark)

    def send(self, query: str, pattern: Pattern, time: int = NEVER) -> None:
        """Prod a query at once, behind everything fed so far."""
        feed = Feed(self._mill.name, self._mill.clock.now(), tuple(self.elements(query, pattern, time)))
        self._mill.placements.append(feed, self._mill.placements.of[query].job)


def read_streams(parts: Iterable[Plan]) -> list[str]:
    """The streams that the parts of a query read, but for those that one part sends to another."""
    scans = dict.fromkeys(scan.id for part in parts for scan in part.walk() if isinstance(scan, Scan))
    return [str(stream) for stream in scans if not stream.exchanged]


def _by_time(prodder: Prodder, stream: str) -> Schedule | None:
    """The schedule by the time of a stream; None if there is none."""
    schedule = prodder.schedule
    named = any(isinstance(part, Scan) and part.stream == stream for part in prodder.walk())
    return schedule if named and schedule is not None and not schedule.system else None


def _ended(query: RunningQuery, end: int | None) -> Pattern:
    """A pattern over the output of a query's topmost aggregate for the window that ends at a time; None: for all."""
    top = topmost(query.plan)
    if end is None or top is None:
        return Pattern()
    type_ = top.schema.type_of(WINDOW_END).polars
    return Pattern.of({WINDOW_END: equal(pl.Series([end], dtype=pl.Int64).cast(type_)[0])})


def _patterns(query: RunningQuery, rows: pl.DataFrame) -> Iterator[Pattern]:
    """What tuples ask a query for: those of its columns that they have, with these values."""
    columns = [name for name in rows.columns if name != TS and name in query.plan.schema]
    for row in rows.select(columns).iter_rows(named=True) if columns else ({} for _ in range(rows.height)):
        asked: dict[str, Restriction] = {name: equal(held) for name, held in row.items() if held is not None}
        pattern = asked_of_topmost(query.plan, Pattern.of(asked))
        if pattern is not None:
            yield pattern
