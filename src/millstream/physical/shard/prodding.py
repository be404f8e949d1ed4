"""The prods that queries have of their own, on streams that the job reads: injected by each shard.

All shards know how far time has come at the end of a split, and so pass the same marks. The prod of a mark stands
before the first own row, or punctuation, that is past it. On a stream in order that is the same place on every shard.
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

_EPOCH = datetime(1970, 1, 1)


class Mark(NamedTuple):
    """A mark of time, and the prod of a query there."""

    time: int
    query: str
    prod: Prod


def marks(
    queries: Iterable[StartQuery],
    altered: Mapping[str, Schedule | None],
    stream: str,
    between: tuple[int, int],
    newest: int,
) -> deque[Mark]:
    """The marks of a stream that time passes between two moments, in order. No tuple is newer than `newest`."""
    found: list[Mark] = []
    before, now = between
    for query in queries if before > NEVER else ():
        prodder = _prodder(query.plan, stream)
        schedule = None if prodder is None else altered.get(query.whole, prodder.schedule)
        if prodder is None or schedule is None or schedule.system:
            continue
        # Tuples of other shards may be between two marks of a period: all of them count.
        passed = schedule.every(before, min(now, newest)) if schedule.period else schedule.passed(before, now, newest)
        for time, end in passed:
            pattern = Pattern() if end is None else Pattern.of({WINDOW_END: equal(_time(end, prodder.schema.unit))})
            prod = Prod(f"{query.whole}@{time}", reader=query.whole, pattern=pattern, time=time)
            found.append(Mark(time, query.name, prod))
    return deque(sorted(found, key=lambda mark: mark.time))


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
