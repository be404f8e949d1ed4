"""Every kind of windows against the interval definition, alone and in an aggregate; two kinds are not built in: each is
one class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.punctuation.restriction import Restriction, above, below, between, equal
from millstream.algebra.schema import FOREVER
from millstream.algebra.types import Type
from millstream.algebra.window_patterns import ends_within, panes_of, starts_of, times_of
from millstream.algebra.windower import Hopping, Time, Windower, tumbling
from millstream.logical import two_levels
from millstream.logical.nodes import pane_aggregate, window_aggregate
from millstream.logical.nodes.scan import Scan
from millstream.runtime.aggregate.pane_aggregate import PaneAggregate
from millstream.runtime.aggregate.window_aggregate import WindowAggregate
from millstream.runtime.operator.contract import Input, Operator
from tests.runtime.aggregate.test_window_aggregate import READINGS
from tests.runtime.driving import Element, cuts, drive, elements, steps
from tests.tries import tries

SPAN = range(-250, 250)


@dataclass(frozen=True)
class Shifted(Hopping):
    """Hopping windows whose ends are some time after the multiples of the slide."""

    by: int

    @property
    def panes(self) -> Shifted:
        pane = Hopping(self.range, self.slide).panes.length
        return Shifted(pane, pane, self.by)

    def closed(self, bound: Time) -> Time:
        return Hopping.closed(self, bound - self.by) + self.by

    def last(self, time: Time) -> Time:
        return self.closed(time + self.range)


@dataclass(frozen=True)
class Cumulative(Windower):
    """Each `size` begins anew, and ends again and again."""

    every: int
    times: int
    of_one_length = False

    @property
    def step(self) -> int:
        return self.every

    @property
    def length(self) -> int:
        return self.step * self.times

    @property
    def panes(self) -> Hopping:
        return tumbling(self.step)

    def closed(self, bound: Time) -> Time:
        return bound // self.step * self.step

    def last(self, time: Time) -> Time:
        return time // self.length * self.length + self.length

    def start(self, end: Time) -> Time:
        return (end - 1) // self.length * self.length

    def closed_start(self, end: Time) -> Time:
        return end // self.length * self.length - self.length

    def spelled(self, length: Callable[[int], str]) -> str:
        return f"RANGE {length(self.length)} STEP {length(self.step)}"


small = st.integers(1, 12)
families = st.one_of(
    st.builds(Hopping, small, small),
    st.builds(Shifted, small, small, st.integers(-9, 30)),
    st.builds(Cumulative, small, st.integers(1, 4)),
)


def holding(windows: Windower, time: int) -> list[int]:
    """The ends of the windows that hold a time, found by their intervals."""
    return [end for end in ends_of(windows) if windows.start(end) <= time < end]


def ends_of(windows: Windower) -> list[int]:
    return [end for end in SPAN if windows.closed(end) == end]


@settings(max_examples=tries(100))
@given(families, st.integers(-60, 60), st.integers(0, 30))
def test_methods_agree(windows: Windower, time: int, more: int) -> None:
    ends = ends_of(windows)
    assert np.diff(ends).tolist() == [windows.step] * (len(ends) - 1)
    assert [*windows.ends(*windows.assign(time))] == holding(windows, time)
    assert windows.closed(time) == max(end for end in ends if end <= time)
    assert windows.following(time) == min(end for end in ends if end > time)
    assert windows.last(time) == max(end for end in ends if windows.start(end) <= time)
    assert windows.most == max(len(holding(windows, each)) for each in range(100))
    assert windows.length == max(end - windows.start(end) for end in ends)
    borders = {*ends_of(windows.panes)}
    assert borders.issuperset(ends) and borders.issuperset(map(windows.start, ends[50:]))
    times = np.array([time, time + more])
    places, found = windows.each(*windows.assign(times))
    assert [found[places == place].tolist() for place in (0, 1)] == [holding(windows, int(each)) for each in times]
    later = [windows.start(end) for end in ends if end > windows.closed(time)]
    assert windows.closed_start(windows.closed(time)) == max(
        start for end in ends if (start := windows.start(end)) < min(later)
    )


ranges = st.one_of(
    st.integers(-60, 60).map(equal),
    st.builds(below, st.integers(-60, 60), st.booleans()),
    st.builds(above, st.integers(-60, 60), st.booleans()),
    st.builds(between, st.integers(-60, 0), st.integers(1, 60), st.booleans(), st.booleans()),
)


@settings(max_examples=tries(100))
@given(families, ranges)
def test_restrictions_of_ends_and_times(windows: Windower, restriction: Restriction) -> None:
    ends, times, panes = ends_of(windows), times_of(restriction, windows), panes_of(restriction, windows)
    for time in range(-90, 90):
        known = all(map(restriction.matches, holding(windows, time)))
        assert not times.matches(time) or known
        assert times.matches(time) == panes.matches(windows.panes.following(time))
        if known and holding(windows, time) and restriction.values != (time,):
            assert times.matches(time) or restriction.is_value
    within = ends_within((-20, 40), windows)
    for end in ends[50:-50]:
        assert within.matches(end) == (windows.start(end) >= -20 and end <= 40)
    if not within.is_empty:
        starts = starts_of(within, windows)
        for end in ends[50:-50]:
            assert within.matches(end) or not starts.matches(windows.start(end))


def operators(windows: Windower, kind: str) -> Sequence[Operator]:
    calls = (AggregateCall("n", "COUNT", None, Type.BIGINT), AggregateCall("s", "SUM", "v", Type.BIGINT))
    scan = Scan("s", READINGS)
    if kind == "over panes":
        low = pane_aggregate.PaneAggregate(scan, windows.panes, ("g",), calls)
        top = window_aggregate.WindowAggregate(low, windows, ("g",), calls, over_panes=True)
        return PaneAggregate(**low.parameters()), WindowAggregate(**top.parameters())
    with patch.object(two_levels, "MOST_SPREAD", 0 if kind == "in panes" else 1 << 40):
        return (WindowAggregate(**window_aggregate.WindowAggregate(scan, windows, ("g",), calls).parameters()),)


@pytest.mark.parametrize("kind", ["in windows", "in panes", "over panes"])
@settings(max_examples=tries(25))
@given(windows=families, items=elements(), cut=cuts)
def test_aggregates(windows: Windower, items: list[Element], cut: list[bool], kind: str) -> None:
    found = drive([*steps(items, cut, READINGS, "ts"), Input(bound=FOREVER)], *operators(windows, kind))
    counts: Counter[tuple[int, int, int | None]] = Counter()
    for item in items:
        if isinstance(item, dict):
            counts.update((windows.start(end), end, item["g"]) for end in holding(windows, item["ts"]))
    assert {(row["window_start"], row["window_end"], row["g"]): row["n"] for row in found.rows} == counts
