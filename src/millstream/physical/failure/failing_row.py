"""Search for the row that made an operator fail.

It runs only after a failure. The stored state is that before the batch, so the batch can be tried again on a shard
loaded anew, with less of its input each time. The search finds the shortest beginning that fails, then the shortest end
of that. It leaves a row, two rows that fail together, or time and punctuation alone.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import polars as pl

from millstream.algebra.element import Page
from millstream.algebra.stream_id import StreamId
from millstream.errors import OperatorError, reason_of
from millstream.physical.failure.description import FAULTS, failure, queries_of, row_text
from millstream.physical.shard.host import ShardHost
from millstream.physical.wire.records import Feed, Record
from millstream.physical.wire.shard_split import ShardSplit

MOST_SECONDS = 20.0
"""Time limit of a search."""


@dataclass(frozen=True, slots=True)
class Event:
    """A piece of a shard's input: a record, a `Feed` of one element, or a split; the last two with their stream."""

    input: Record | ShardSplit
    now: int
    stream: str | None = None
    rows: pl.DataFrame | None = None

    def replay(self, host: ShardHost, first: int, last: int, end: int | None) -> None:
        """Apply the rows from `first` to `last` alone, with the time of the rows before `end`; None: with all time and
        punctuation."""
        match self.input:
            case ShardSplit() as split:
                host.reach_batch(self.now)
                source = host.sources.get(split.stream)
                if source is not None and end != 0:
                    complete = end is None and (first, last) == (0, split.rows.height)
                    host.take_split(split if complete else split.cut(first, last, end, source.schema))
            case Feed() if self.rows is not None and self.stream is not None:
                page = Page(self.rows.slice(first, last - first))
                host.apply(replace(self.input, elements=((self.stream, page),)))
            case record if end is None:
                host.apply(record)


def events(records: Sequence[Record], now: int, splits: Sequence[ShardSplit]) -> Iterator[Event]:
    """The input of a shard in a batch, in order. Rows that were aggregated before they were sent are read again."""
    for record in records:
        if isinstance(record, Feed):
            for stream, element in record.elements:
                rows = element.frame if isinstance(element, Page) else None
                yield Event(replace(record, elements=((stream, element),)), now, stream, rows)
        else:
            yield Event(record, now)
    for split in splits:
        unfolded = split.unfolded()
        yield Event(unfolded, now, split.stream, unfolded.rows)


def find_failing_row(fresh: Callable[[], ShardHost], given: Sequence[Event], error: BaseException) -> OperatorError:
    """The error with the row that it failed on, if the row is found within `MOST_SECONDS`."""
    try:
        return _Search(fresh, given, _as_failure(error)).run()
    except TimeoutError:
        return failure(_as_failure(error), detail="The row was not found in a short time.")


def _as_failure(error: BaseException) -> OperatorError:
    return error if isinstance(error, OperatorError) else OperatorError("source", reason_of(error))


class _Search:
    """Rows are numbered through all events; each event has one more place at its end, for time and punctuation."""

    def __init__(self, fresh: Callable[[], ShardHost], given: Sequence[Event], error: OperatorError) -> None:
        self._fresh, self._given, self._error = fresh, given, error
        self._heights = [0 if event.rows is None else event.rows.height for event in given]
        self._starts = list(accumulate((height + 1 for height in self._heights), initial=0))
        self._deadline = time.monotonic() + MOST_SECONDS
        self._queries: dict[str, tuple[str, ...]] = {}

    def run(self) -> OperatorError:
        end = self._starts[-1]
        if not self._fails(end):
            return failure(self._error, self._of(), detail="It did not fail when the batch was tried again.")
        end = bisect_left(range(1, end), True, key=self._fails) + 1
        if self._fails(end, first=end):  # no row of this batch is needed
            return failure(self._error, self._of(), self._on(end - 1))
        first = bisect_left(range(1, end), True, key=lambda first: not self._fails(end, first=first))
        if first == end - 1 or self._fails(end, first=first, last=first + 1) or not self._is_row(end - 1):
            return failure(self._error, self._of(), *self._at(first))
        _, stream, values = self._at(first)
        detail = f"It fails together with a row of stream {stream} {values}."
        return failure(self._error, self._of(), *self._at(end - 1), detail=detail)

    def _fails(self, end: int, *, first: int = 0, last: int | None = None) -> bool:
        """Return whether the batch up to a place fails with no rows but those from `first` to `last`."""
        if time.monotonic() > self._deadline:
            raise TimeoutError
        host = self._fresh()
        try:
            for event, start, height in zip(self._given, self._starts, self._heights, strict=False):
                if start >= end:
                    break
                cut = None if end - start > height else end - start
                stop = height if cut is None else cut
                low = min(max(first - start, 0), stop)
                high = stop if last is None else max(low, min(last - start, stop))
                event.replay(host, low, high, cut)
            host.graph.run()
        except FAULTS as error:
            self._error = _as_failure(error)
            self._queries = host.nodes()
            return True
        return False

    def _of(self) -> str:
        """The queries that use the operator."""
        return queries_of(self._error.operator, self._queries)

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
        stream = StreamId.of(event.stream).declared
        return f" on a row of stream {stream} {values}", stream, values

    def _on(self, place: int) -> str:
        event, _, _ = self._event(place)
        return "" if event.stream is None else f" on time or punctuation of stream {StreamId.of(event.stream).declared}"
