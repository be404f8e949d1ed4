"""Which row has made an operator fail.

Only asked after a failure. The shard's state is as it was before the batch, so the batch can be tried again on a shard
loaded anew, with less of its input each time: first the shortest beginning that fails is looked for, then the shortest
end of that. What is left is a row, two rows that fail together, or time and punctuation alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import polars as pl

from millstream.algebra.element import Element, Page
from millstream.errors import OperatorError, reason_of
from millstream.physical.failure.description import FAULTS, failure, row_text
from millstream.physical.shard.host import ShardHost
from millstream.physical.wire.records import Feed, Record
from millstream.physical.wire.shard_split import ShardSplit

MOST_SECONDS = 20.0
"""How long to look for it."""


@dataclass(frozen=True, slots=True)
class Told:
    """A record without rows."""

    record: Record
    stream: str | None = None
    rows: pl.DataFrame | None = None

    def feed(self, host: ShardHost, first: int, last: int, end: int | None) -> None:  # noqa: ARG002
        if end is None:
            host.apply(self.record)


@dataclass(frozen=True, slots=True)
class Fed:
    """An element that was fed from the driver."""

    mill: str
    now: int
    stream: str
    element: Element

    @property
    def rows(self) -> pl.DataFrame | None:
        return self.element.frame if isinstance(self.element, Page) else None

    def feed(self, host: ShardHost, first: int, last: int, end: int | None) -> None:
        element = self.element
        if isinstance(element, Page):
            element = Page(element.frame.slice(first, last - first))
        elif end is not None:
            return
        host.apply(Feed(self.mill, self.now, ((self.stream, element),)))


@dataclass(frozen=True, slots=True)
class Read:
    """A part of a stream that the job reads itself."""

    part: ShardSplit
    now: int

    @property
    def stream(self) -> str:
        return self.part.stream

    @property
    def rows(self) -> pl.DataFrame:
        return self.part.rows

    def feed(self, host: ShardHost, first: int, last: int, end: int | None) -> None:
        host.reach(self.now)
        source = host.sources.get(self.stream)
        if source is not None and end != 0:
            whole = end is None and (first, last) == (0, self.rows.height)
            host.take_part(self.part if whole else self.part.cut(first, last, end, source.schema))


Event = Told | Fed | Read


def events(records: Sequence[Record], now: int, parts: Sequence[ShardSplit]) -> Iterator[Event]:
    """What a shard is handed in a batch, in order. Where rows were aggregated before, they are read once more."""
    for record in records:
        if isinstance(record, Feed):
            for stream, element in record.elements:
                yield Fed(record.mill, record.now, stream, element)
        else:
            yield Told(record)
    for part in parts:
        yield Read(part.unfolded(), now)


def find_failing_row(fresh: Callable[[], ShardHost], given: Sequence[Event], error: BaseException) -> OperatorError:
    """The error with what it failed on, as far as that can be found out in a short time."""
    try:
        return _Trial(fresh, given, _as_failure(error)).judge()
    except _TakesTooLong:
        return failure(_as_failure(error), detail="The row was not found in a short time.")


def _as_failure(error: BaseException) -> OperatorError:
    return error if isinstance(error, OperatorError) else OperatorError("source", reason_of(error))


class _TakesTooLong(Exception):
    pass


class _Trial:
    """Rows are counted through all events; each has one place more at its end, for time and punctuation."""

    def __init__(self, fresh: Callable[[], ShardHost], given: Sequence[Event], error: OperatorError) -> None:
        self._fresh, self._given, self._error = fresh, given, error
        self._heights = [0 if event.rows is None else event.rows.height for event in given]
        self._starts = list(accumulate((height + 1 for height in self._heights), initial=0))
        self._deadline = time.monotonic() + MOST_SECONDS
        self._queries: dict[str, tuple[str, ...]] = {}

    def judge(self) -> OperatorError:
        end = self._starts[-1]
        if not self._fails(end):
            return failure(self._error, self._of(), detail="It did not fail when the batch was tried again.")
        end = self._last(0, end, self._fails) + 1
        if self._fails(end, first=end):  # no row of this batch is needed
            return failure(self._error, self._of(), self._on(end - 1))
        first = self._last(0, end, lambda first: not self._fails(end, first=first))
        if first == end - 1 or self._fails(end, first=first, last=first + 1) or not self._is_row(end - 1):
            return failure(self._error, self._of(), *self._at(first))
        _, stream, values = self._at(first)
        detail = f"It fails together with a row of stream {stream} {values}."
        return failure(self._error, self._of(), *self._at(end - 1), detail=detail)

    @staticmethod
    def _last(low: int, high: int, beyond: Callable[[int], bool]) -> int:
        """The last place that is not beyond, where `low` is not and `high` is."""
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if beyond(middle) else (middle, high)
        return low

    def _fails(self, end: int, *, first: int = 0, last: int | None = None) -> bool:
        """Whether the beginning of the batch up to a place fails with no rows but those from `first` to `last`."""
        if time.monotonic() > self._deadline:
            raise _TakesTooLong
        host = self._fresh()
        try:
            for event, start, height in zip(self._given, self._starts, self._heights, strict=False):
                if start >= end:
                    break
                cut = None if end - start > height else end - start
                stop = height if cut is None else cut
                low = min(max(first - start, 0), stop)
                high = stop if last is None else max(low, min(last - start, stop))
                event.feed(host, low, high, cut)
            host.graph.run()
        except FAULTS as error:
            self._error = _as_failure(error)
            self._queries = host.nodes()
            return True
        return False

    def _of(self) -> str:
        """The queries that the operator works for."""
        names = [query for query, nodes in self._queries.items() if self._error.operator in nodes]
        return f" of query {', '.join(names)}" if names else ""

    def _event(self, place: int) -> tuple[Event, int, int]:
        number = max(n for n, start in enumerate(self._starts[:-1]) if start <= place)
        return self._given[number], place - self._starts[number], self._heights[number]

    def _is_row(self, place: int) -> bool:
        _, at, height = self._event(place)
        return at < height

    def _at(self, place: int) -> tuple[str, str, str]:
        event, at, _ = self._event(place)
        assert event.rows is not None and event.stream is not None
        values = row_text(event.rows, at)
        return f" on a row of stream {event.stream} {values}", event.stream, values

    def _on(self, place: int) -> str:
        event, _, _ = self._event(place)
        return "" if event.stream is None else f" on time or punctuation of stream {event.stream}"
