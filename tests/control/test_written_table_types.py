"""A table keeps the types of its columns whatever writes it: a value is cast, or its row refused."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from millstream.algebra.types import Type
from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.errors import MillstreamError
from millstream.lang import ast, parse

VALUES: dict[Type, tuple[Any, str]] = {
    Type.BOOLEAN: (True, "TRUE"),
    Type.INT: (-(1 << 31), "CAST(-2147483648 AS INT)"),
    Type.BIGINT: (1 << 62, "4611686018427387904"),
    Type.REAL: (0.1, "CAST(0.1 AS REAL)"),
    Type.DOUBLE: (1e300, "1e300"),
    Type.DECIMAL: (0.1, "CAST(0.1 AS DECIMAL)"),
    Type.VARCHAR: ("é", "'é'"),
    Type.TIMESTAMP: (datetime.max, "TIMESTAMP '9999-12-31 23:59:59.999999'"),
    Type.DATE: (date.min, "DATE '0001-01-01'"),
    Type.INTERVAL: (timedelta(microseconds=5), "INTERVAL '0.000005' SECOND"),
}
INSERTS = "INSERT INTO {t} (k, v) SELECT k, {value} AS x FROM w"
EMPTY = "INSERT INTO {t} VALUES (1, NULL, 1), (2, NULL, 1); UPDATE {t} SET v = {value}"
WAYS = {
    "inserted": INSERTS,
    "merged": f"{INSERTS} ON CONFLICT DO UPDATE SET v = excluded.v",
    "updated": f"{EMPTY} FROM w WHERE {{t}}.k = w.k",
    "valued": "INSERT INTO {t} (k, v) VALUES (1, {value}), (2, {value})",
    "updated_once": EMPTY,
}
ONCE = ("valued", "updated_once")


def content(mill: LocalMill, table: str) -> pl.DataFrame:
    (select,) = parse(f"SELECT k, v, u FROM {table}")
    assert isinstance(select, ast.SelectStatement)
    return mill.written.select(select.select)


def stored(value: Any, given: Type, wanted: Type) -> list[Any]:
    """The value in a column of the table; nothing if it does not fit."""
    made = pl.Series([value], dtype=given.polars).cast(wanted.polars, strict=False)
    lost = made.null_count() or (wanted is Type.REAL and made.is_infinite().any())
    return [] if lost else made.to_list()


@pytest.mark.parametrize("given", VALUES, ids=lambda type_: type_.value)
def test_every_way_into_a_table_casts_or_refuses(given: Type) -> None:
    value, literal = VALUES[given]
    mill = LocalMill(Options.read(contracts="off"))
    mill.execute(f"CREATE STREAM w (k BIGINT, x {given.value}, ts BIGINT) ORDER BY ts")
    mill.execute("CREATE STREAM r (k BIGINT, ts BIGINT) ORDER BY ts")
    tables: dict[str, tuple[str, Type]] = {}
    for wanted in VALUES:
        for way, statements in WAYS.items():
            table = f"{way}_{wanted.value.lower()}"
            key = "PRIMARY KEY" if way == "merged" else ""
            mill.execute(f"CREATE TABLE {table} (k BIGINT {key}, v {wanted.value}, u INT)")
            try:
                mill.execute(statements.format(t=table, value=literal if way in ("merged", *ONCE) else "x"))
            except MillstreamError as error:
                refused = error.code == "M2095" and way in ONCE and not stored(value, given, wanted)
                assert refused or error.code in ("M2004", "M2006"), str(error)
                continue
            if way == "inserted":
                mill.execute(f"CREATE QUERY q_{table} AS SELECT r.ts, t.v FROM r JOIN {table} t ON r.k = t.k")
            tables[table] = way, wanted
    assert {way for way, wanted in tables.values() if wanted is given} == {*WAYS}
    mill.insert("w", [(1, value, 1)])
    mill = mill.restarted()
    mill.insert("w", [(2, value, 2), (9, None, 9)])
    mill.insert("r", [(1, 2), (2, 2), (3, 9)])
    mill.drain()
    for table, (way, wanted) in tables.items():
        fits = stored(value, given, wanted)
        expected = 2 * (fits or [None] * way.startswith("updated"))
        held = content(mill, table).filter(pl.col("k") < 3).sort("k")
        assert held.schema["v"] == wanted.polars and held["v"].to_list() == expected, table
        if way == "inserted":
            rows = mill.take_rows(f"q_{table}")
            assert rows.schema["v"] == wanted.polars and rows["v"].to_list() == expected, table
            assert mill.counts(table)["bad"] == (0 if fits else 2), table
