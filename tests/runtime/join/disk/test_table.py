"""State on disk behaves like state in memory; a join with more state than memory gives the same answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import FOREVER, TS, Attribute, Schema
from millstream.algebra.types import Type
from millstream.runtime.join.disk.table import BUCKET, DiskTable, Tags
from millstream.runtime.join.settings import JoinSettings
from millstream.runtime.join.window_join import WindowJoin
from millstream.runtime.operator.contract import Input, Output
from millstream.runtime.state.table import StateTable
from tests.runtime.join.test_settings import Stored
from tests.tries import tries

SCHEMA = {"id": pl.Int64(), "text": pl.String(), BUCKET: pl.UInt8()}


def rows(start: int, count: int) -> pl.DataFrame:
    ids = range(start, start + count)
    made = {"id": list(ids), "text": [None if i % 7 == 0 else f"row {i}" for i in ids], BUCKET: [i % 3 for i in ids]}
    return pl.DataFrame(made, schema=SCHEMA)


actions = st.lists(
    st.tuples(st.sampled_from(["append", "append", "keep", "take", "below", "save", "restore"]), st.integers(0, 9)),
    max_size=30,
)


@settings(max_examples=tries(60))
@given(actions)
def test_a_table_on_disk_holds_what_one_in_memory_holds(done: list[tuple[str, int]]) -> None:
    disk, memory, store = DiskTable(SCHEMA), StateTable(SCHEMA), Stored()
    next_id = 0
    for action, number in done:
        match action:
            case "append":
                disk.append(rows(next_id, number))
                memory.append(rows(next_id, number))
                next_id += number
            case "keep":
                disk.keep(disk.frame()["id"] % 10 != number)
                memory.keep(memory.frame()["id"] % 10 != number)
            case "take":
                taken = disk.take({"id"}, lambda part: part["id"] % 5 == number)  # noqa: B023
                gone = memory.frame().filter(pl.col("id") % 5 == number)
                memory.keep(memory.frame()["id"] % 5 != number)
                assert taken.sort("id").equals(gone.sort("id"))
            case "below":
                assert disk.purge_below("id", next_id // 2) == memory.purge_below("id", next_id // 2)
            case "save":
                store.take(disk.changes())
            case "restore":
                store.take(disk.changes())
                disk = DiskTable(SCHEMA)
                store.give(disk)
        assert len(disk) == len(memory) and disk.size() == 0
        assert disk.frame().sort("id").equals(memory.frame().sort("id"))
        assert disk.buckets == set(memory.frame()[BUCKET].unique())
        for bucket in disk.buckets:
            found, alive = disk.look({bucket}, {"id"})
            held = memory.frame().filter(pl.col(BUCKET) == bucket)
            assert found.filter(pl.Series(alive))["id"].sort().equals(held["id"].sort())


def test_a_table_that_is_shrunk_holds_the_same() -> None:
    table = StateTable(SCHEMA)
    table.append(rows(0, 10))
    table.append(rows(10, 10))
    table.keep(table.frame()["id"] % 3 == 0)
    store = Stored()
    store.take(table.changes())
    before = table.frame()
    table.shrink()
    assert table.frame().equals(before) and not table.changes()


def test_tags_follow_their_rows() -> None:
    tags = Tags()
    tags.append(3, 1)
    tags.append(2, 5)
    tags.keep(np.array([True, False, True, True, False]))
    tags.append(1, 6)
    assert tags.values.tolist() == [1, 1, 5, 6]
    assert tags.to_value() == ([1, 5, 6], [2, 1, 1])
    assert Tags.from_value(tags.to_value()).values.tolist() == [1, 1, 5, 6]
    assert Tags.from_value(Tags().to_value()).values.tolist() == []


ORDERS = Schema.of(("k", Type.BIGINT), ("note", Type.VARCHAR))
BOTH = Schema(tuple(Attribute(f"{side}.{a.name}", a.type) for side in "ab" for a in ORDERS))


def page(keys: Any, start: int) -> pl.DataFrame:
    numbers = np.arange(start, start + len(keys))
    made = pl.DataFrame({"k": keys, TS: numbers}).with_columns(
        pl.format("order number {}, with a note", TS).alias("note")
    )
    return made.select(list(ORDERS.polars))


def digest(outputs: list[Output]) -> pl.DataFrame:
    parts = [output.rows.select("a.note", "b.note", TS) for output in outputs if output.rows is not None]
    return pl.concat(parts).sort(pl.all())


def run(memory_limit: int, pages: int, size: int, *, close: bool) -> tuple[WindowJoin, list[Output], int]:
    operator = WindowJoin(ORDERS, ORDERS, BOTH, (("k", "k"),))
    operator.configure(JoinSettings(memory_limit=memory_limit, purge_threshold=2000, index="eager"))
    random = np.random.default_rng(7)
    outputs: list[Output] = []
    held = 0
    for number in range(pages):
        side = number % 2
        low = number * 500 if close else 0
        rows = page(random.integers(low, low + 400_000, size), number * size)
        closed = Punctuations.from_column("k", "=", pl.Series(np.arange(low, low + 500))) if close else None
        inputs = [Input(), Input()]
        inputs[side] = Input(rows, closed)
        outputs.append(operator.process(inputs))
        if close:
            other = [Input(), Input()]
            other[1 - side] = Input(None, closed)
            outputs.append(operator.process(other))
        if number % 10 == 9:
            outputs.append(operator.process([Input(), Input()]))
        held = max(held, operator.state_rows())
    outputs.append(operator.process([Input(bound=FOREVER), Input(bound=FOREVER)]))
    return operator, outputs, held


def test_more_state_than_memory() -> None:
    plain, expected, held = run(0, 20, 10_000, close=False)
    spilled, found, also_held = run(2_000_000, 20, 10_000, close=False)
    assert held == also_held == 200_000
    assert digest(found).equals(digest(expected))
    assert plain.state_rows() == spilled.state_rows() == 0


@pytest.mark.slow
def test_a_million_tuples_with_little_memory() -> None:
    _, expected, _ = run(0, 20, 50_000, close=False)
    operator, found, held = run(16_000_000, 20, 50_000, close=False)
    assert held == 1_000_000
    assert digest(found).equals(digest(expected))
    assert operator.state_rows() == 0


def test_more_state_than_memory_with_punctuation() -> None:
    _, expected, _ = run(0, 16, 4_000, close=True)
    operator, found, _ = run(500_000, 16, 4_000, close=True)
    assert digest(found).equals(digest(expected))
    assert operator.state_rows() == 0
    told = [sorted(map(str, p)) for p in (_told(expected), _told(found))]
    assert told[0] == told[1]


def _told(outputs: list[Output]) -> list[Any]:
    return [
        pattern for output in outputs if output.punctuations is not None for pattern in output.punctuations.patterns()
    ]
