"""Tables with indexes against a plain list of rows."""

from __future__ import annotations

import operator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from millstream.runtime.program.keyed import KeyedTable
from millstream.runtime.program.ordered import Order
from millstream.runtime.program.scalars import ordered
from millstream.runtime.program.table import Table

VALUES = st.sampled_from([None, 1.0, 2.0, 3.0, float("nan"), -0.0])
KEYS = st.sampled_from([None, 1, 2, 3])
ROWS = st.tuples(KEYS, VALUES)
CHANGES = st.one_of(
    st.tuples(st.just("insert"), st.just(0), ROWS),
    st.tuples(st.just("replace"), st.integers(0, 9), ROWS),
    st.tuples(st.just("remove"), st.integers(0, 9), st.none()),
    st.tuples(st.just("clear"), st.just(0), st.none()),
)
COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
INDEXES: list[Any] = [(0,), Order(1, descending=False), Order(1, descending=True)]


@given(st.lists(CHANGES, max_size=25), st.lists(KEYS, max_size=4), st.integers(-1, 4), st.integers(-1, 4))
def test_indexes_follow_the_rows(changes: list[Any], keys: list[Any], limit: int, offset: int) -> None:
    table = Table(INDEXES)
    for change, at, row in changes:
        numbers = list(table.rows)
        if change == "insert":
            table.insert(row)
        elif change == "clear":
            table.clear()
        elif numbers and change == "replace":
            table.replace(numbers[at % len(numbers)], row)
        elif numbers:
            table.remove(numbers[at % len(numbers)])
    rows = list(table)
    for key in {*keys} - {None}:
        assert [*table.indexes[0].all(key)] == [row for row in rows if row[0] == key]
        assert table.indexes[0].has(key) == any(row[0] == key for row in rows)
        assert [table.rows[number] for number, _ in table.indexes[0].numbered(key)] == [*table.indexes[0].all(key)]
    among = [row for row in rows if row[0] is not None and row[0] in keys]
    assert table.matching_among(0, [("x", key) for key in keys], 1) == among
    start = max(offset, 0)
    for index, down in ((1, False), (2, True)):
        meant = ordered([((row[1],), row) for row in rows], (down,))
        first = meant[start : start + max(limit, 0)]
        assert table.indexes[index].first_rows(limit, offset) == first
        assert str(table.indexes[index].first_values(limit, offset)) == str([row[1] for row in first])
        assert table.indexes[index].first_rows(None, None) == meant
        assert table.indexes[index].first() is (meant[0] if meant else None)
        for op, holds in COMPARISONS.items():
            found = {number: row for number, row in table.rows.items() if row[1] is not None and holds(row[1], limit)}
            assert dict(table.indexes[index].beyond(op, limit)) == found
        assert [*table.indexes[index].beyond("<", None)] == []


@given(st.lists(st.tuples(st.sampled_from(["insert", "remove", "clear"]), st.integers(1, 3)), max_size=25))
def test_a_keyed_table_has_the_rows_of_each_key_in_order(changes: list[tuple[str, int]]) -> None:
    table, rows = KeyedTable((0, 1)), list[Any]()
    for change, key in changes:
        if change == "insert":
            row: Any = [key, -key, len(rows) % 2]
            table.insert(row)
            rows.append(row)
        elif change == "clear":
            table.clear()
            rows.clear()
        elif rows:
            table.remove(gone := rows[key % len(rows)])
            rows = [row for row in rows if row is not gone]
        for number in (1, 2, 3):
            same = [row for row in rows if row[0] == number]
            assert [*map(id, table.all((number, -number)))] == [*map(id, same)]
        assert len(table) == len(rows) and sorted(table) == sorted(rows)
