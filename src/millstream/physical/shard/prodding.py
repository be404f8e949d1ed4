"""The prods that queries have of their own, on streams that the job reads: injected by each shard.

The task that reads a split cuts it where time passes marks (`wire/stretches.py`), for all shards at the same tuple.
Rows of several partitions of a DataFrame have no order: they are sorted by time, and the prod of a mark stands before
the first own row, or punctuation, that is past it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np

from millstream.algebra.early import Prod
from millstream.algebra.element import Element, Page
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import equal
from millstream.algebra.schedule import Schedule
from millstream.algebra.schema import NEVER, TS
from millstream.algebra.window import WINDOW_END
from millstream.logical.nodes.prodder import Prodder
from millstream.logical.nodes.scan import Scan
from millstream.logical.plan import Plan
from millstream.physical.wire.records import StartQuery
from millstream.physical.wire.stretches import Passed

_EPOCH = datetime(1970, 1, 1)


class Mark(NamedTuple):
    """A mark of time, and the prod of a query there."""

    time: int
    query: str
    prod: Prod


def by_time(
    queries: Iterable[StartQuery], altered: Mapping[str, Schedule | None], stream: str
) -> Iterator[tuple[StartQuery, Prodder, Schedule]]:
    """Yield the queries that prod themselves by the time of a stream, and when."""
    for query in queries:
        prodder = _prodder(query.plan, stream)
        schedule = None if prodder is None else altered.get(query.whole, prodder.schedule)
        if prodder is not None and schedule is not None and not schedule.system:
            yield query, prodder, schedule


def marks(
    queries: Iterable[tuple[StartQuery, Prodder, Schedule]], passed: Passed, known: int, newest: int
) -> deque[Mark]:
    """The marks that time passes, in order. `known` and `newest`: the time that is known, and that of the newest tuple,
    before the split."""
    found: dict[tuple[int, str], Mark] = {}
    for query, prodder, schedule in queries:
        for grid, known_there, newest_there, reached in passed:
            before = max(known, known_there)
            if grid != schedule.grid or before == NEVER:  # no window has a tuple before the first one
                continue
            for time, end in schedule.passed(before, reached, max(newest, newest_there)):
                pattern = Pattern() if end is None else Pattern.of({WINDOW_END: equal(_time(end, prodder.schema.unit))})
                prod = Prod(f"{query.whole}@{time}", reader=query.whole, pattern=pattern, time=time)
                found[time, query.name] = Mark(time, query.name, prod)
    return deque(sorted(found.values(), key=lambda mark: mark.time))


def placed(elements: Iterable[Element], found: deque[Mark]) -> Iterator[Element | Mark]:
    """Yield elements and marks in their order."""
    for element in elements:
        if isinstance(element, Page):
            yield from _in_page(element, found)
        else:
            while found and element.progress >= found[0].time:
                yield found.popleft()
            yield element
    yield from found


def _in_page(page: Page, found: deque[Mark]) -> Iterator[Element | Mark]:
    times = np.maximum.accumulate(page.frame.get_column(TS).to_numpy())
    start = 0
    while found and found[0].time <= times[-1]:
        row = int(times.searchsorted(found[0].time))
        if row > start:
            yield Page(page.frame.slice(start, row - start))
            start = row
        yield found.popleft()
    yield Page(page.frame.slice(start)) if start else page


def _prodder(plan: Plan, stream: str) -> Prodder | None:
    for part in plan.walk():
        if isinstance(part, Prodder) and any(isinstance(each, Scan) and each.stream == stream for each in part.walk()):
            return part
    return None


def _time(end: int, unit: int) -> int | datetime:
    return end if unit == 1 else _EPOCH + timedelta(microseconds=end)
