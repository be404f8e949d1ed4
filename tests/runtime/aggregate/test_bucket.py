"""Window arithmetic against the worked examples and the interval definition."""

from __future__ import annotations

from datetime import datetime

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.punctuation.restriction import below, between, equal
from millstream.algebra.schema import FOREVER, NEVER
from millstream.algebra.windower import Hopping, tumbling
from millstream.runtime.aggregate.bucket import close_windows, closed_end, drop_idle_bounds, integers, spread
from tests.tries import tries

times = st.integers(-500, 500)
lengths = st.integers(1, 40)


@pytest.mark.parametrize(
    ("time", "range_", "slide", "windows"),
    [
        (211, 60, 20, (10, 12)), (215, 60, 20, (10, 12)), (216, 60, 20, (10, 12)), (230, 60, 20, (11, 13)),
        (235, 60, 20, (11, 13)), (234, 60, 20, (11, 13)), (245, 60, 20, (12, 14)), (255, 60, 20, (12, 14)),
        (265, 60, 20, (13, 15)), (11, 50, 50, (0, 0)), (52, 50, 50, (1, 1)), (30, 50, 20, (1, 3)), (29, 50, 20, (1, 2)),
        (3, 5, 20, (0, -1)), (15, 5, 20, (0, 0)),
    ],
)  # fmt: skip
def test_windows_of_a_tuple_w1(time: int, range_: int, slide: int, windows: tuple[int, int]) -> None:
    ends = tuple((window + 1) * slide for window in windows)
    assert Hopping(range_, slide).assign(time) == ends
    first, last = Hopping(range_, slide).assign(pl.col("t"))
    assert pl.DataFrame({"t": [time]}).select(a=first, b=last).row(0) == ends


def test_windows_closed_by_a_bound_w2() -> None:
    assert [closed_end(bound, tumbling(20)) // 20 - 1 for bound in (220, 240, 239, 19)] == [10, 11, 10, -1]
    assert [closed_end(bound, tumbling(20)) for bound in (NEVER, FOREVER)] == [NEVER, FOREVER]
    batch = Punctuations.of(
        [
            Pattern.of(ts=below(240, True), sensor=equal(1)),
            Pattern.of(ts=below(239)),
            Pattern.of(ts=equal(240)),
            Pattern.of(ts=between(1, 240)),
            Pattern.of(sensor=equal(1)),
            Pattern.of(ts=below(-1)),
        ],
        239,
    )
    closed = close_windows(batch, "ts", Hopping(60, 20), "window_end", pl.Int64())
    assert [str(pattern) for pattern in closed.patterns()] == [
        "[sensor = 1, window_end <= 240]",
        "[window_end <= 220]",
        "[sensor = 1]",
        "[window_end <= -20]",
    ]
    assert closed.progress == 239


def test_bounds_on_timestamps() -> None:
    minute = 60_000_000
    batch = Punctuations.of([Pattern.of(at=below(datetime(1970, 1, 1, 0, 2, 30)))])
    closed = close_windows(batch, "at", tumbling(minute), "window_end", pl.Datetime("us"))
    assert closed.patterns() == [Pattern.of(window_end=below(datetime(1970, 1, 1, 0, 2), True))]


@settings(max_examples=tries(100))
@given(times, lengths, lengths)
def test_a_tuple_lies_in_exactly_its_windows(time: int, range_: int, slide: int) -> None:
    by_interval = [e for e in range(-600, 700) if e % slide == 0 and e - range_ <= time < e]
    windows = Hopping(range_, slide)
    assert [*windows.ends(*windows.assign(time))] == by_interval
    assert bool(by_interval) == pl.select(windows.holds(pl.lit(time))).item()
    end = windows.panes.following(time)
    assert windows.panes.start(end) <= time < end
    assert [e for e in range(-600, 700) if e % slide == 0 and e - range_ < end <= e] == by_interval
    frame = pl.DataFrame({"e": [end], "x": [7]}, schema={"e": pl.Int64(), "x": pl.Int64()})
    assert spread(frame, "e", windows).get_column("e").to_list() == by_interval


@settings(max_examples=tries(100))
@given(times, lengths, lengths)
def test_bounds_on_panes_close_what_bounds_on_time_close(bound: int, range_: int, slide: int) -> None:
    windows = Hopping(range_, slide)
    assert closed_end(closed_end(bound, windows.panes), windows) == closed_end(bound, windows)


def test_times_of_every_type_as_integers() -> None:
    day = 86_400_000_000
    assert integers(pl.Series([1, 2]).cast(pl.Int32).cast(pl.Date)).tolist() == [day, 2 * day]
    assert integers(pl.Series([-1, 2]).cast(pl.Datetime("us"))).tolist() == [-1, 2]
    assert integers(pl.Series([-0.5, 2.0])).tolist() == [-1, 2]
    assert integers(pl.Series([-3, 2])).tolist() == [-3, 2]


def test_bounds_that_pass_no_window_end_are_dropped() -> None:
    bounds = [Pattern.of(ts=below(t, t % 2 == 0)) for t in (5, 9, 10, 11, 19, 12, 40, 31)]
    reaching = drop_idle_bounds(Punctuations.of(bounds, 40), "ts", tumbling(10), 0)
    assert reaching.punctuations.patterns() == [bounds[2], bounds[6]]
    assert reaching.ends is not None and reaching.ends.tolist() == [10, 40]
    assert (reaching.end, reaching.punctuations.progress) == (40, 40)
    other = Pattern.of(ts=below(5), k=equal(1))
    mixed = drop_idle_bounds(Punctuations.of([bounds[0], other]), "ts", tumbling(10), 20)
    assert mixed.punctuations.patterns() == [other] and (mixed.end, mixed.ends) == (20, None)
    assert len(drop_idle_bounds(Punctuations.of(bounds), "ts", tumbling(10), 40).punctuations) == 0
