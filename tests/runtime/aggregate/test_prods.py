"""Examples of prodding that are no transcripts: the bucket (W1, W2), prodding one level (W19)."""

from __future__ import annotations

import polars as pl
import pytest

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.early import Prod, ends_asked, parse_prod, stream_prod
from millstream.algebra.punctuation.restriction import below, equal
from millstream.algebra.schema import TS, Schema, TimeKind
from millstream.algebra.types import Type
from millstream.algebra.windower import Hopping, tumbling
from millstream.logical.nodes.pane_aggregate import PaneAggregate
from millstream.logical.nodes.scan import Scan
from millstream.logical.nodes.window_aggregate import WindowAggregate
from millstream.logical.plan import Plan
from millstream.physical.plan.operators import ALONE, build
from millstream.runtime.operator.contract import Input, Operator
from millstream.runtime.operator.registry import Site

S = Schema.of(("ts", Type.BIGINT), ("volume", Type.BIGINT), kind=TimeKind.EXTERNAL, time="ts")


@pytest.mark.parametrize(
    ("time", "range_", "slide", "ids"),
    [
        *((t, 60, 20, (10, 12)) for t in (211, 215, 216)),
        *((t, 60, 20, (11, 13)) for t in (230, 235, 234)),
        *((t, 60, 20, (12, 14)) for t in (245, 255)),
        (265, 60, 20, (13, 15)),
        (11, 50, 50, (0, 0)),
        (52, 50, 50, (1, 1)),
        (30, 50, 20, (1, 3)),
        (29, 50, 20, (1, 2)),
        (15, 5, 20, (0, 0)),
    ],
)
def test_w1_windows_of_a_tuple(time: int, range_: int, slide: int, ids: tuple[int, int]) -> None:
    assert Hopping(range_, slide).assign(time) == tuple((wid + 1) * slide for wid in ids)


def test_w1_a_tuple_of_no_window() -> None:
    first, last = Hopping(5, 20).assign(3)
    assert last < first


@pytest.mark.parametrize(("bound", "wid"), [(220, 10), (240, 11), (239, 10), (19, -1)])
def test_w2_windows_of_a_prod(bound: int, wid: int) -> None:
    for closed in (False, True):
        assert ends_asked(below(bound, closed), tumbling(20)) == below((wid + 1) * 20, closed=True)
    assert ends_asked(equal(bound), tumbling(20)) == equal((wid + 1) * 20)


@pytest.mark.parametrize("bound", [240, 259])
def test_w2_groups_stay(bound: int) -> None:
    schema = Schema.of(("ts", Type.BIGINT), ("sensor_id", Type.BIGINT), kind=TimeKind.EXTERNAL, time="ts")
    prod = stream_prod(parse_prod(f"{{<= {bound}, 1}}", schema), schema)
    windows = Hopping(60, 20)
    aggregate = built(WindowAggregate(Scan("s", schema), windows, ("sensor_id",), calls("COUNT", None), early="top"))
    passed = aggregate.passed(prod.renamed({"sensor_id": ("sensor_id",)}), prod)
    assert str(passed) == "{sensor_id = 1, window_end <= 240}" and not passed.lost


@pytest.mark.parametrize(("function", "top_only", "whole"), [("MAX", 55, 55), ("SUM", 107, 206)])
def test_w19_prodding_the_topmost_level_alone(function: str, top_only: int, whole: int) -> None:
    """A prod that only the windows see misses what the panes hold."""
    panes = PaneAggregate(Scan("s", S), tumbling(10), (), calls(function, "volume"), early="release")
    hopping = Hopping(30, 10)
    windows = WindowAggregate(panes, hopping, (), panes.aggregates, over_panes=True, early="top", increments=True)
    below_, above = built(panes), built(windows)
    for rows, bound in (([(104, 55), (113, 52), (125, 45)], 120), ([(126, 54)], 120)):
        frame = pl.DataFrame([(*row, row[0]) for row in rows], schema=["ts", "volume", TS], orient="row")
        made = below_.process([Input(frame, None, bound)])
        above.process([Input(made.rows, made.punctuations, bound)])
    prod = stream_prod(parse_prod("{<= 130, *}", S), S)
    assert answer(above, prod, None) == [(130, top_only)]
    assert answer(above, prod, below_.early([None], prod)) == [(130, whole)]
    assert below_.state_rows() == 0


def answer(operator: Operator, prod: Prod, rows: pl.DataFrame | None) -> list[tuple[int, int]]:
    found = operator.early([rows], prod)
    assert found is not None
    return [(row[1], row[2]) for row in found.rows()]


def calls(function: str, argument: str | None) -> tuple[AggregateCall, ...]:
    return (AggregateCall("value", function, argument, Type.BIGINT),)


def built(plan: Plan) -> Operator:
    return build(plan, Site({}, *ALONE))
