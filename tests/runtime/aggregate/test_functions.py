"""Every aggregate function in windows and groups against the reference: any cut, folded often, restored after every
step."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.aggregate import functions
from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.schema import NEVER, TS, Schema, TimeKind
from millstream.algebra.types import Type
from millstream.algebra.values import decode, encode
from millstream.algebra.windower import Hopping
from millstream.logical.nodes import window_aggregate
from millstream.logical.nodes.scan import Scan
from millstream.runtime.aggregate import state
from millstream.runtime.aggregate.window_aggregate import WindowAggregate
from tests.reference.aggregate import MEANT
from tests.reference.window_aggregate import WindowAggregateReference
from tests.runtime.driving import Element, Row, cuts, steps
from tests.tries import tries

SCHEMA = Schema.of(
    ("ts", Type.BIGINT),
    ("g", Type.BIGINT),
    ("v", Type.INT),
    ("x", Type.DOUBLE),
    ("s", Type.VARCHAR),
    ("b", Type.BOOLEAN),
    kind=TimeKind.EXTERNAL,
    time="ts",
)
PARAMETERS: dict[str, tuple[Any, ...]] = {"QUANTILE_CONT": (0.3,), "QUANTILE_DISC": (0.3,), "STRING_AGG": ("; ",)}
ARGUMENTS = {"BOOL_AND": "b", "BOOL_OR": "b", "STRING_AGG": "s", "ARRAY_AGG": "s", "FIRST": "x", "MAX": "s"}


def call(name: str, argument: str | None, **more: Any) -> AggregateCall:
    type_ = Type.BIGINT if argument is None else functions.lookup(name).result_type(SCHEMA.type_of(argument))
    label = f"{name}_{argument}_{'_'.join(more)}"
    return AggregateCall(label, name, argument, type_, PARAMETERS.get(name, ()), **more)


NAMES = tuple(sorted({*MEANT, "COUNT"}))
PLAIN = tuple(call(name, ARGUMENTS.get(name, "v")) for name in NAMES)
FILTERED = (call("COUNT", None, filter="b"), *(call(name, ARGUMENTS.get(name, "x"), filter="b") for name in NAMES))
DISTINCT = tuple(
    call(name, argument := ARGUMENTS.get(name, "v"), distinct=SCHEMA.type_of(argument))
    for name in NAMES
    if not functions.lookup(name).idempotent
)
ODD = (call("COUNT", "s", distinct=Type.VARCHAR, filter="b"), call("SUM", "v", distinct=Type.INT, filter="b"))


def operator(calls: Sequence[AggregateCall], range_: int | None, slide: int | None) -> WindowAggregate:
    windows = None if range_ is None else Hopping(range_, slide or range_)
    node = window_aggregate.WindowAggregate(Scan("s", SCHEMA), windows, ("g",), tuple(calls))
    return WindowAggregate(**node.parameters())


def reading(draw: st.DrawFn) -> Row:
    ts = draw(st.integers(0, 12))
    return {
        "ts": ts,
        "g": draw(st.sampled_from([0, 1, None])),
        "v": draw(st.sampled_from([None, -3, 0, 1, 1, 2, 9])),
        "x": draw(st.sampled_from([None, -0.5, 0.0, 0.5, 1e9, 1e9 + 1])),
        "s": draw(st.sampled_from([None, "", "a", "b", "it's"])),
        "b": draw(st.sampled_from([None, True, False])),
        TS: ts,
    }


@st.composite
def readings(draw: st.DrawFn) -> list[Element]:
    return [reading(draw) for _ in range(draw(st.integers(1, 14)))]


def bag(rows: Sequence[Row]) -> Counter[Any]:
    return Counter(tuple(sorted((name, rough(value)) for name, value in row.items())) for row in rows)


def rough(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    if not isinstance(value, float) or value == 0 or math.isnan(value):
        return value
    return float(f"{value:.7g}") if abs(value) > 1e-3 else 0.0


@pytest.mark.parametrize("calls", [PLAIN, FILTERED, DISTINCT, ODD], ids=["plain", "filtered", "distinct", "both"])
@settings(max_examples=tries(25))
@given(
    items=readings(), cut=cuts, window=st.sampled_from([(5, 5), (6, 2), (3, 5), (None, None)]), limit=st.integers(0, 9)
)
def test_every_function_equals_the_reference(
    calls: tuple[AggregateCall, ...], items: list[Element], cut: list[bool], window: tuple[int, int], limit: int
) -> None:
    range_, slide = window
    expected = WindowAggregateReference(range_, slide or 1, ("g",), calls)
    for item in items:
        assert isinstance(item, dict)
        expected.tuple_(item)
    expected.close_all()
    inputs = steps([*items, 1 << 40], cut, SCHEMA, "ts")
    stored, scalars, rows = pl.DataFrame(), b"", []
    with patch.object(state, "FOLD_ROWS", limit):
        for number, step in enumerate(inputs):
            one = operator(calls, range_, slide)
            if number:
                one.tables()["groups"].append(stored)
                one.restore_scalars(decode(scalars))
            if range_ is None and number == len(inputs) - 1:
                step = type(step)(step.rows, step.punctuations, (1 << 63) - 1)
            output = one.process([step])
            rows += [] if output.rows is None else output.rows.to_dicts()
            assert output.rows is None or output.rows.schema == one.schema.polars
            stored, scalars = one.tables()["groups"].frame(), encode(one.scalars())
            stored = decode(encode(stored))
    assert bag(rows) == bag(expected.rows)
    assert NEVER < 0 and not one.state_rows()


def test_the_variance_of_close_values_far_from_zero() -> None:
    """Sums of squares would lose all digits."""
    spread = call("VAR_POP", "x")
    rows = [{"ts": n, "g": 0, "v": None, "x": 1e9 + n % 2, "s": None, "b": None, TS: n} for n in range(10)]
    one = operator([spread], 100, 100)
    with patch.object(state, "FOLD_ROWS", 0):
        for step in steps([*rows, 100], [True], SCHEMA, "ts"):
            output = one.process([step])
    assert output.rows is not None and output.rows[spread.name].to_list() == pytest.approx([0.25], rel=1e-6)
