"""Stream-table join against its reference."""

from __future__ import annotations

from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.expression import Binary, Column
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.schema import TS, Attribute, Schema, TimeKind
from millstream.algebra.types import Type
from millstream.runtime.join.table_join import TableJoin
from tests.reference.evaluate import evaluate
from tests.reference.table_join import joined
from tests.runtime.driving import Row
from tests.runtime.ports import LEFT, arrivals, cuts, run, steps
from tests.tries import tries

TABLE = Schema.of(("k", Type.INT), ("name", Type.VARCHAR), ("x", Type.BIGINT))
OUTPUT = Schema(
    (*(Attribute(f"s.{a.name}", a.type) for a in LEFT), *(Attribute(f"t.{a.name}", a.type) for a in TABLE)),
    TimeKind.EXTERNAL,
    "s.ts",
)
RESIDUAL = Binary(Type.BOOLEAN, "<", Column(Type.BIGINT, "s.x"), Column(Type.BIGINT, "t.x"))
small = st.sampled_from([0, 1, 2, None])
tables = st.lists(st.fixed_dictionaries({"k": small, "name": st.sampled_from(["a", "b"]), "x": small}), max_size=5)


def combine(row: Row, other: Row) -> Row:
    left = {f"s.{name}": value for name, value in row.items() if name != TS}
    return left | {f"t.{name}": other.get(name) for name in TABLE.names} | {TS: row[TS]}


@settings(max_examples=tries(60))
@given(
    arrivals(ordered=True, others=("x",)),
    cuts,
    tables,
    st.sampled_from([(), (("k", "k"),), (("k", "k"), ("x", "x"))]),
    st.sampled_from([None, RESIDUAL]),
    st.booleans(),
)
def test_against_the_reference(given: Any, cut: Any, table: Any, keys: Any, residual: Any, outer: bool) -> None:
    polars = {name: dtype for name, dtype in TABLE.polars.items() if name != TS}
    operator = TableJoin(LEFT, TABLE, OUTPUT, pl.DataFrame(table, schema=polars), keys, residual, outer=outer)
    trace = run(operator, steps(given, [LEFT], False, None, cut), [LEFT])
    rows = [element for _, element in given if isinstance(element, dict)]

    def holds(row: Row) -> bool | None:
        return True if residual is None else evaluate(residual, row)

    assert trace.rows == [made for row in rows for made in joined(row, table, keys, holds, outer, combine)]
    patterns = [element for _, element in given if isinstance(element, Pattern)]
    assert trace.punctuations == [p.rename({name: f"s.{name}" for name in LEFT.names}) for p in patterns]
