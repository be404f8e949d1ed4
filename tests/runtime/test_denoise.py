"""Denoising against the reference, tuple at a time, and the worked examples; emission times of every mode."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.schema import FOREVER, TS, Schema, TimeKind
from millstream.algebra.types import Type
from millstream.algebra.values import decode, encode
from millstream.logical.nodes import denoise as node
from millstream.logical.nodes.scan import Scan
from millstream.runtime.denoise import Denoise
from millstream.runtime.operator.contract import Input
from tests.reference import plan as reference
from tests.reference.rfid import ALGORITHMS
from tests.reference.test_rfid import READINGS as TABLE
from tests.runtime.driving import Row, cuts, frame, steps
from tests.tries import tries

SCHEMA = Schema.of(("ts", Type.BIGINT), ("tag", Type.BIGINT), ("n", Type.BIGINT), kind=TimeKind.EXTERNAL, time="ts")
MODES = {"EAGER": "eager", "LAZY": "lazy", "UNORDERED": "baseline"}


def operator(range_: int, threshold: int, mode: str) -> Denoise:
    made = node.Denoise(Scan("s", SCHEMA), ("tag",), range_, threshold, mode)
    return Denoise(**made.parameters())


def row(number: int, ts: int, tag: int | None) -> Row:
    return {"ts": ts, "tag": tag, "n": number, TS: ts}


@st.composite
def readings(draw: st.DrawFn) -> list[Row]:
    times = sorted(draw(st.lists(st.integers(0, 30), max_size=30)))
    return [row(number, ts, draw(st.sampled_from([0, 1, 2, None]))) for number, ts in enumerate(times)]


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=tries(40))
@given(items=readings(), cut=cuts, range_=st.integers(0, 9), threshold=st.integers(1, 4))
def test_equals_the_reference_and_is_restored_at_every_cut(
    mode: str, items: list[Row], cut: list[bool], range_: int, threshold: int
) -> None:
    plan = node.Denoise(Scan("s", SCHEMA), ("tag",), range_, threshold, mode)
    expected = [item["n"] for item, _ in reference.denoise(plan, [(item, item[TS]) for item in items])]
    found: list[int] = []
    stored: Any = None
    for step in [*steps(items, cut, SCHEMA, "ts"), Input(bound=FOREVER)]:
        one = operator(range_, threshold, mode)
        if stored is not None:
            table, scalars = stored
            one.tables()["window"].append(table)
            one.restore_scalars(decode(scalars))
        output = one.process([step])
        found += [] if output.rows is None else output.rows["n"].to_list()
        stored = one.tables()["window"].frame(), encode(one.scalars())
        times = one.tables()["window"].frame()[TS]
        assert (times >= (step.rows[TS].max() if step.rows is not None else step.bound) - range_).all()
    assert found == expected if mode != "UNORDERED" else Counter(found) == Counter(expected)
    assert one.output_bound([FOREVER]) == FOREVER and not one.waiting() and not one.state_rows()


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=tries(40))
@given(items=readings(), range_=st.integers(0, 9), threshold=st.integers(1, 4))
def test_emission_times_are_those_of_the_algorithm(mode: str, items: list[Row], range_: int, threshold: int) -> None:
    """Tuple by tuple. Where timestamps are equal, eager may be earlier: it goes by position."""
    expected = ALGORITHMS[MODES[mode]](range_, threshold).run([(item["ts"], item["tag"]) for item in items])
    one = operator(range_, threshold, mode)
    found = []
    for item in items:
        output = one.process([Input(frame(SCHEMA, [item]), None, item[TS])])
        rows = [] if output.rows is None else output.rows.rows(named=True)
        found += [(item["ts"], made["tag"], made["ts"]) for made in rows]
    meant = [made for made in expected if made[0] < ALGORITHMS["eager"].end]
    distinct = len({item["ts"] for item in items}) == len(items)
    if distinct or mode != "EAGER":
        assert Counter(found) == Counter(meant)
    else:
        assert {made[1:] for made in meant} <= {made[1:] for made in found}


@pytest.mark.parametrize(
    ("mode", "at"),
    [("LAZY", {1250: 2, 2300: 14}), ("EAGER", {800: 1, 1250: 5, 2300: 10}), ("UNORDERED", {700: 6, 800: 6})],
)
def test_the_worked_example(mode: str, at: dict[int, int]) -> None:
    one, found = operator(1000, 6, mode), Counter[int]()
    for number, (ts, tag) in enumerate([*TABLE, (1250, 99), (2300, 99)]):
        output = one.process([Input(frame(SCHEMA, [row(number, ts, tag)]), None, ts)])
        found[ts] += 0 if output.rows is None else output.rows.height
    assert {ts: count for ts, count in found.items() if ts in at} == at and found.total() == 16


def test_several_keys_and_texts() -> None:
    schema = Schema.of(("a", Type.VARCHAR), ("b", Type.DOUBLE), ("ts", Type.BIGINT), kind=TimeKind.EXTERNAL, time="ts")
    one = Denoise(schema, ("a", "b"), 5, 2, "EAGER")
    keys = [("x", 1.0), ("x", 2.0), (None, 1.0), ("x", None), ("x", 1.0), (None, 1.0), ("y", None)]
    page = frame(schema, [{"a": a, "b": b, "ts": n, TS: n} for n, (a, b) in enumerate(keys)])
    output = one.process([Input(page, None, FOREVER)])
    assert output.rows is not None and output.rows["ts"].to_list() == [0, 2, 4, 5]
