"""Window aggregates, one-level and paned, against the worked examples and the tuple-at-a-time reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.punctuation.restriction import below, equal
from millstream.algebra.schema import FOREVER, NEVER, TS, Schema, TimeKind
from millstream.algebra.types import Type
from millstream.algebra.values import decode, encode
from millstream.algebra.window import PANE_END
from millstream.algebra.windower import Hopping
from millstream.logical.nodes import pane_aggregate, window_aggregate
from millstream.logical.nodes.scan import Scan
from millstream.runtime.aggregate import state as group_state
from millstream.runtime.aggregate.pane_aggregate import PaneAggregate
from millstream.runtime.aggregate.window_aggregate import WindowAggregate
from millstream.runtime.operator.contract import Input, Operator
from tests.reference.window_aggregate import WindowAggregateReference
from tests.runtime.driving import Element, bag, cuts, drive, elements, frame, steps
from tests.tries import tries

IN_ORDER = Schema.of(
    ("ts", Type.BIGINT), ("g", Type.BIGINT), ("v", Type.BIGINT), ("w", Type.BIGINT), kind=TimeKind.EXTERNAL, time="ts"
)
READINGS = replace(IN_ORDER, ordered=False)
CALLS = (
    ("n", "COUNT", None, Type.BIGINT),
    ("c", "COUNT", "v", Type.BIGINT),
    ("s", "SUM", "v", Type.BIGINT),
    ("a", "AVG", "v", Type.DOUBLE),
    ("lo", "MIN", "v", Type.BIGINT),
    ("hi", "MAX", "w", Type.BIGINT),
)


def regular(
    schema: Schema,
    range_: int | None,
    slide: int | None,
    group: Sequence[str],
    calls: Any,
    attribute: str | None = None,
) -> WindowAggregate:
    named = tuple(AggregateCall(*call) for call in calls)
    windows = None if range_ is None else Hopping(range_, slide or range_)
    return WindowAggregate(
        **window_aggregate.WindowAggregate(Scan("s", schema), windows, tuple(group), named, attribute).parameters()
    )


def paned(
    schema: Schema, range_: int, slide: int, group: Sequence[str], calls: Any, attribute: str | None = None
) -> tuple[PaneAggregate, WindowAggregate]:
    named = tuple(AggregateCall(*call) for call in calls)
    windows, group = Hopping(range_, slide), tuple(group)
    low = pane_aggregate.PaneAggregate(Scan("s", schema), windows.panes, group, named, attribute)
    above = None if attribute is None else PANE_END
    top = window_aggregate.WindowAggregate(low, windows, group, named, above, over_panes=True)
    return PaneAggregate(**low.parameters()), WindowAggregate(**top.parameters())


def reference(items: Sequence[Element], **parameters: Any) -> WindowAggregateReference:
    made = WindowAggregateReference(calls=tuple(AggregateCall(*call) for call in CALLS), **parameters)
    for item in items:
        if isinstance(item, dict):
            made.tuple_(item)
        elif isinstance(item, Pattern):
            made.punctuation(item)
        else:
            made.bound(item)
    return made


ranges = st.sampled_from([1, 2, 3, 5, 7, 10, 12, 30])


@settings(max_examples=tries(80))
@given(elements(), cuts, ranges, ranges, st.sampled_from([(), ("g",), ("g", "v")]))
def test_regular_and_paned_equal_the_reference(
    items: list[Element], cut: list[bool], range_: int, slide: int, group: tuple[str, ...]
) -> None:
    expected = reference(items, range=range_, slide=slide, group=group)
    inputs = steps(items, cut, READINGS, "ts")
    one = regular(READINGS, range_, slide, group, CALLS)
    got = drive(inputs, one)
    assert got.bags() == (bag(expected.rows), Counter(expected.punctuations))
    assert one.waiting() == bool(expected.state)
    assert one.state_rows() == len(expected.state)
    low, top = paned(READINGS, range_, slide, group, CALLS)
    in_panes = drive(inputs, low, top)
    assert in_panes.bags() == got.bags()
    one_by_one = drive(steps(items, [True], READINGS, "ts"), regular(READINGS, range_, slide, group, CALLS))
    assert got.progress == in_panes.progress == one_by_one.progress


@settings(max_examples=tries(30))
@given(elements(), cuts, ranges, ranges)
def test_windows_on_another_attribute_close_by_patterns_on_it_only(
    items: list[Element], cut: list[bool], range_: int, slide: int
) -> None:
    expected = reference(items, range=range_, slide=slide, group=("g",), attribute="w")
    inputs = steps(items, cut, READINGS, "ts")
    one = regular(READINGS, range_, slide, ("g",), CALLS, "w")
    assert not one.timed
    got = drive(inputs, one)
    assert got.bags() == (bag(expected.rows), Counter(expected.punctuations))
    assert drive(inputs, *paned(READINGS, range_, slide, ("g",), CALLS, "w")).bags() == got.bags()


@settings(max_examples=tries(30))
@given(elements(), cuts, st.sampled_from([(), ("g",), ("g", "v"), ("ts",)]))
def test_without_a_window_groups_close_by_patterns(
    items: list[Element], cut: list[bool], group: tuple[str, ...]
) -> None:
    expected = reference(items, range=None, slide=1, group=group)
    one = regular(READINGS, None, None, group, CALLS)
    got = drive(steps(items, cut, READINGS, "ts"), one)
    assert got.bags() == (bag(expected.rows), Counter(expected.punctuations))
    assert one.state_rows() == len(expected.state)
    one_by_one = drive(steps(items, [True], READINGS, "ts"), regular(READINGS, None, None, group, CALLS))
    assert got.progress == one_by_one.progress


@settings(max_examples=tries(20))
@given(elements(), cuts, ranges, ranges)
def test_a_snapshot_after_every_step_changes_nothing(
    items: list[Element], cut: list[bool], range_: int, slide: int
) -> None:
    inputs = steps(items, cut, READINGS, "ts")
    expected = drive(inputs, regular(READINGS, range_, slide, ("g",), CALLS)).bags()
    rows: list[Any] = []
    punctuations: list[Pattern] = []
    stored: dict[int, pl.DataFrame] = {}
    scalars: bytes | None = None
    for step in inputs:
        operator = regular(READINGS, range_, slide, ("g",), CALLS)
        table = operator.tables()["groups"]
        for segment in stored.values():
            table.append(segment)
        if scalars is not None:
            operator.restore_scalars(decode(scalars))
        output = operator.process([step])
        rows += [] if output.rows is None else output.rows.to_dicts()
        punctuations += [] if output.punctuations is None else output.punctuations.patterns()
        stored = {0: operator.tables()["groups"].frame()}
        scalars = encode(operator.scalars())
    assert (bag(rows), Counter(punctuations)) == expected


SENSORS = Schema.of(
    ("ts", Type.BIGINT),
    ("sensor", Type.BIGINT),
    ("speed", Type.BIGINT),
    ("volume", Type.BIGINT),
    kind=TimeKind.EXTERNAL,
    time="ts",
)
FIGURE = [
    (211, 1, 54, 25), (215, 1, 55, 20), (216, 2, 50, 30), 220,
    (230, 2, 51, 20), (235, 1, 54, 35), (234, 2, 50, 20), 240,
    (245, 1, 56, 25),
]  # fmt: skip
MORE = [*FIGURE, (255, 2, 54, 35), 260, (265, 1, 55, 26)]
TOTAL = (("total", "SUM", "volume", Type.BIGINT),)


def page_of(*readings: tuple[Any, ...]) -> pl.DataFrame:
    """Tuples (ts, sensor, volume) as a page."""
    return frame(SENSORS, [dict(zip(SENSORS.polars, (t, s, 1, v, t), strict=True)) for t, s, v in readings])


def feed(operators: Sequence[Operator], items: Sequence[Any]) -> tuple[list[Any], list[str]]:
    """Run tuples and time bounds (`[<= v]`) one by one; rows and punctuations without the window's start."""
    made = [
        dict(zip((*SENSORS.names, TS), (*item, item[0]), strict=True))
        if isinstance(item, tuple)
        else (Pattern.of(ts=below(item, True)) if isinstance(item, int) else item)
        for item in items
    ]
    trace = drive(steps(made, [True], SENSORS, "ts"), *operators)
    rows = [tuple(v for k, v in row.items() if k not in ("window_start", TS)) for row in trace.rows]
    return rows, [str(pattern) for pattern in trace.punctuations if "window_start" not in pattern.attributes]


def holds(operator: Operator) -> list[Any]:
    """The groups held, with their totals so far."""
    held = operator.tables()["groups"].frame()
    keys = [name for name in held.columns if not name.startswith("total")]
    return held.group_by(keys).agg(pl.col("total").sum()).sort(keys).rows()


def test_sum_by_sensor_w3() -> None:
    one = regular(SENSORS, 60, 20, ("sensor",), TOTAL)
    rows, punctuations = feed([one], FIGURE)
    assert rows == [(220, 1, 45), (220, 2, 30), (240, 1, 80), (240, 2, 70)]
    assert punctuations == ["[window_end <= 220]", "[window_end <= 240]"]
    held = holds(one)
    assert held == [(260, 1, 105), (260, 2, 70), (280, 1, 60), (280, 2, 40), (300, 1, 25)]
    assert one.state_rows() == 5


def test_paned_sum_w4() -> None:
    low, top = paned(SENSORS, 60, 20, (), TOTAL)
    rows, punctuations = feed([low, top], MORE)
    assert rows == [(220, 75), (240, 150), (260, 210)]
    assert punctuations == ["[window_end <= 220]", "[window_end <= 240]", "[window_end <= 260]"]
    assert holds(low) == [(280, 26)]
    held = holds(top)
    assert held == [(280, 135), (300, 60)]
    one = regular(SENSORS, 60, 20, (), TOTAL)
    assert feed([one], MORE) == (rows, punctuations)
    held = holds(one)
    assert held == [(280, 161), (300, 86), (320, 26)]


def test_paned_average_merges_sums_and_counts_w15() -> None:
    mean = (("mean", "AVG", "volume", Type.DOUBLE),)
    rows, _ = feed(paned(SENSORS, 60, 20, (), mean), MORE)
    assert rows[-1] == (260, 26.25)


def test_a_punctuation_closes_its_window_and_earlier_ones_w17() -> None:
    one = regular(SENSORS, 5, 1, (), TOTAL)
    rows, punctuations = feed([one], [(0, 1, 1, 7), (3, 1, 1, 5), 5])
    assert rows == [(1, 7), (2, 7), (3, 7), (4, 12), (5, 12)]
    assert punctuations == ["[window_end <= 5]"]
    assert one.state_rows() == 3


def test_group_wise_punctuation_w18() -> None:
    one = regular(SENSORS, 60, 20, ("sensor",), TOTAL)
    pattern = Pattern.of(ts=below(220, True), sensor=equal(1))
    rows, punctuations = feed([one], [*FIGURE[:3], pattern])
    assert rows == [(220, 1, 45)]
    assert punctuations == ["[sensor = 1, window_end <= 220]"]
    held = holds(one)
    assert held == [(220, 2, 30), (240, 1, 45), (240, 2, 30), (260, 1, 45), (260, 2, 30)]


def test_a_slide_aggregate_closes_on_time_alone() -> None:
    one = regular(SENSORS, 10, 10, (), (("n", "COUNT", None, Type.BIGINT),))
    page = page_of((1, 1, 1), (3, 1, 1), (12, 1, 1))
    output = one.process([Input(page, None, 12)])
    assert output.rows is not None and output.rows.rows() == [(0, 10, 2, 9)]
    assert output.punctuations is None and one.waiting()
    assert one.output_bound([12]) == 12
    assert one.process([Input(bound=19)]).rows is None
    later = one.process([Input(bound=20)])
    assert later.rows is not None and later.rows.rows() == [(10, 20, 1, 19)]
    assert not one.waiting()


def test_a_tuple_of_a_closed_window_does_not_open_it_again() -> None:
    one = regular(SENSORS, 20, 20, ("sensor",), TOTAL)
    rows, _ = feed([one], [(1, 1, 0, 5), Pattern.of(sensor=equal(1)), (2, 2, 0, 5), 20])
    assert rows == [(20, 1, 5), (20, 2, 5)]
    late = page_of((3, 2, 1), (25, 1, 1), (26, 2, 1))
    output = one.process([Input(late, None, FOREVER)])
    assert output.rows is not None and output.rows.rows() == [(20, 40, 2, 1, 39)]


def test_nor_does_one_of_a_window_that_time_closed() -> None:
    one = regular(SENSORS, 20, 20, (), TOTAL)
    pages = [page_of((t, 1, 1)) for t in (3, 4, 25)]
    assert one.process([Input(pages[0], None, 20)]).rows is not None
    assert one.process([Input(pages[1], None, 20)]).rows is None
    closed = one.process([Input(pages[2], None, 40)]).rows
    assert closed is not None and closed.rows() == [(20, 40, 1, 39)]


def test_rows_come_in_the_order_in_which_they_close() -> None:
    one = regular(SENSORS, 20, 20, ("sensor",), TOTAL)
    page = page_of((30, 2, 1), (10, None, 2), (10, 2, 3), (30, 1, 4), (10, 1, 5))
    closing = [Pattern.of(sensor=equal(2)), Pattern.of(ts=below(40))]
    output = one.process([Input(page, Punctuations.of(closing, 40))])
    assert output.rows is not None
    assert output.rows.select("window_end", "sensor").rows() == [(20, 2), (40, 2), (20, 1), (20, None), (40, 1)]
    assert output.punctuations is not None and output.punctuations.progress == 40


def test_timestamps_and_other_types() -> None:
    schema = Schema.of(
        ("at", Type.TIMESTAMP), ("k", Type.VARCHAR), ("x", Type.INT), ("y", Type.REAL), ("d", Type.DATE),
        kind=TimeKind.EXTERNAL, time="at",
    )  # fmt: skip
    calls = (
        ("s", "SUM", "x", Type.BIGINT), ("r", "SUM", "y", Type.DOUBLE), ("m", "MIN", "k", Type.VARCHAR),
        ("last", "MAX", "at", Type.TIMESTAMP), ("window", "MAX", "d", Type.DATE),
    )  # fmt: skip
    second = 1_000_000
    stamps = [second, 2 * second, 61 * second]
    columns = {"k": ["b", "a", None], "x": [2**31 - 1, 2**31 - 1, 1], "y": [0.5, None, None], "d": [0, 1, None]}
    page = pl.DataFrame({"at": stamps, **columns, TS: stamps}).cast(schema.polars)
    one = regular(schema, 60 * second, 60 * second, (), calls)
    output = one.process([Input(page, Punctuations.of([Pattern.of(at=below(page["at"][2]))], 61 * second))])
    assert output.rows is not None and output.punctuations is not None
    assert output.rows.schema == one.schema.polars
    (row,) = output.rows.to_dicts()
    assert (row["s"], row["r"], row["m"], str(row["last"])) == (2**32 - 2, 0.5, "a", "1970-01-01 00:00:02")
    assert str(row["window_end"]) == "1970-01-01 00:01:00" and row[TS] == 60 * second - 1
    assert str(output.punctuations.patterns()[0]) == "[window_end <= 1970-01-01 00:01:00]"


def test_an_argument_may_be_called_like_the_window() -> None:
    schema = Schema.of(("window_end", Type.BIGINT), ("v", Type.BIGINT), kind=TimeKind.EXTERNAL, time="window_end")
    one = regular(schema, 20, 20, (), (("newest", "MAX", "window_end", Type.BIGINT),))
    page = pl.DataFrame({"window_end": [3, 7], "v": [1, 1], TS: [3, 7]})
    trace = drive([Input(page, Punctuations.of([Pattern.of(window_end=below(20))], 20))], one)
    assert trace.rows == [{"window_start": 0, "window_end": 20, "newest": 7, TS: 19}]


@pytest.mark.parametrize("limit", [1, 3])
def test_folding_often_changes_nothing(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(group_state, "FOLD_ROWS", limit)
    rows, punctuations = feed([regular(SENSORS, 60, 20, ("sensor",), TOTAL)], MORE)
    assert rows[:4] == [(220, 1, 45), (220, 2, 30), (240, 1, 80), (240, 2, 70)]
    assert len(punctuations) == 3


def test_time_does_not_pass_results_that_are_still_held() -> None:
    one = regular(SENSORS, None, None, ("sensor",), TOTAL)
    page = page_of((3, 1, 1), (8, 1, 1), (5, 2, 1))
    output = one.process([Input(page, Punctuations.of([Pattern.of(ts=below(10))], 10))])
    assert output.punctuations is not None and output.punctuations.progress == 5 == one.output_bound([10])
    output = one.process([Input(None, Punctuations.of([Pattern.of(sensor=equal(2))]))])
    assert output.punctuations is not None and output.punctuations.progress == 8
    assert one.output_bound([NEVER]) == NEVER
    closed = one.process([Input(bound=FOREVER)])
    assert closed.rows is not None and closed.rows.rows() == [(1, 2, 8)]
