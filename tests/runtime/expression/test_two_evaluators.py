"""A SELECT over tables, which runs as Python, and one over a stream, which runs on columns, agree; and both with DuckDB,
but for `EXCEPTIONS`. Functions, types and odd values are all combined: more than 40,000 values."""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta
from typing import Any
from unittest.mock import patch

import duckdb
import numpy as np
import polars as pl
import pytest

from millstream.algebra.types import Type
from millstream.errors import OutOfRange
from millstream.lang import ast, parse
from millstream.logical.bind.table.once import bind_once
from millstream.logical.nodes.project import Project
from millstream.runtime.expression.checks import Checks
from millstream.runtime.expression.evaluate import to_polars
from millstream.runtime.program import scalars
from millstream.runtime.program.compile import compiled
from tests.logical.sample import bind, catalog_of

NUMBERS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -0.5, 0.1, -7.25, 100.0, 1e15, math.inf, -math.inf, math.nan]
VALUES: dict[str, tuple[Type, list[Any]]] = {
    "b": (Type.BOOLEAN, [True, False]),
    "i": (Type.INT, [0, 1, -1, 2, 7, -12345, 1000, 31, -(1 << 31), (1 << 31) - 1]),
    "l": (Type.BIGINT, [0, 1, -1, 3, 86399, -(1 << 31) - 1, (1 << 53) + 1, -(1 << 63), (1 << 63) - 1, 10**18]),
    "r": (Type.REAL, [*NUMBERS, 3.4028234663852886e38, 1e-45, 16777216.0]),
    "d": (Type.DOUBLE, [*NUMBERS, 0.49999999999999994, 2.675, 4503599627370497.5, 1e300, -1e308, 5e-324]),
    "s": (Type.VARCHAR, ["", "a", "Ab", " x ", "ß", "é%_", "日本", "12", "-12.7", "1e3", "true", "2024-02-30", "nan"]),
    "t": (
        Type.TIMESTAMP,
        [
            datetime.min,
            datetime.max,
            datetime(1970, 1, 1),
            datetime(1969, 12, 31, 23, 59, 59, 999_999),
            datetime(2024, 2, 29, 12, 34, 56, 789_000),
        ],
    ),
    "y": (Type.DATE, [date.min, date.max, date(1970, 1, 1), date(1969, 12, 31), date(2024, 2, 29)]),
    "w": (Type.INTERVAL, [timedelta(seconds=n) for n in (0, 0.000001, -0.000001, 5, -90061.5, 86400 * 40)]),
}
"""Columns, each with a NULL and a second one (`d2`) that combines every value with every other one."""
ROWS = 160


def page() -> pl.DataFrame:
    columns = []
    for name, (type_, values) in VALUES.items():
        held = [*values, None]
        columns.append(pl.Series(name, [held[n % len(held)] for n in range(ROWS)], type_.polars))
        columns.append(pl.Series(f"{name}2", [held[(n // len(held) + 7 * n) % len(held)] for n in range(ROWS)], type_.polars))
    return pl.DataFrame(columns)


PAGE = page()
COLUMNS = ", ".join(f"{name}{n} {type_.value}" for name, (type_, _) in VALUES.items() for n in ("", "2"))
CATALOG = catalog_of(f"CREATE STREAM s (ts BIGINT, {COLUMNS}) ORDER BY ts; CREATE TABLE q ({COLUMNS})")
ALL = [*"bilrdstyw"]
OF_NUMBERS = ["-{0}", "ABS({0})", "SIGN({0})", "FLOOR({0})", "CEIL({0})", "ROUND({0})", "ROUND({0}, 1)"]
OF_NUMBERS += ["ROUND({0}, -2)", "SQRT({0})", "LN({0})", "EXP({0})"]
OF_PAIRS = ["{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / {1}", "{0} % {1}", "MOD({0}, {1})", "POWER({0}, {1})"]
PAIRS = [("i", "i2"), ("l", "l2"), ("r", "r2"), ("d", "d2"), ("i", "l"), ("r", "d"), ("d", "l"), ("d", "0.1")]
CASTS = {
    "b": "ilsb",
    "i": "ilrdsbtw",
    "l": "ilrdsbtw",
    "r": "ilrdsbtw",
    "d": "ilrdsbtw",
    "s": "bilrdstyw",
    "t": "sytild",
    "y": "sty",
    "w": "swild",
}
TEXTS = ["UPPER(s)", "LOWER(s)", "TRIM(s)", "LTRIM(s)", "RTRIM(s)", "TRIM(s, ' a')", "LENGTH(s)", "CONCAT(s, s2)"]
TEXTS += ["s || s2", "s || i", "REPLACE(s, s2, '-')", "REPLACE(s, 'a', s2)", "SUBSTRING(s, 2)", "SUBSTRING(s, i, 2)"]
TEXTS += ["SUBSTRING(s, -2, l)", "s LIKE '%_'", "s LIKE s2", "s LIKE 'A%'", "s IN ('a', 'x', NULL)"]
TIMES = [f"EXTRACT({part} FROM {x})" for part in ("DAY", "HOUR", "MINUTE", "SECOND", "EPOCH") for x in "tyw"]
TIMES += [f"EXTRACT({part} FROM {x})" for part in ("YEAR", "MONTH") for x in "ty"]
TIMES += ["SECOND(t)", "MINUTE(w)", "t + w", "t - w", "w + t", "t - t2", "y - y2", "y + w", "w + w2", "w - w2", "-w"]
TIMES += ["y + i", "y - i", "w * d", "w * i", "w / d", "w / w2", "t + INTERVAL '1' DAY"]
CHOICES = ["CASE WHEN b THEN i ELSE l END", "CASE WHEN d > 1 THEN d WHEN d < 0 THEN r END", "IF(b, s, s2)", "IF(b, i)"]
CHOICES += ["b AND b2", "b OR b2", "NOT b", "b IS NULL", "d IN (0.5, 1, i)", "i BETWEEN i2 AND l", "NULLIF(d, r)"]
CHOICES += ["COALESCE(i, d)", "GREATEST(r, i)", "LEAST(d, r, l)", "CASE WHEN ABS(i) > 5 AND b THEN -i END", "i = l"]
CONSTANTS = ["CAST(1e300 AS REAL)", "CAST(0.1 AS REAL)", "MOD(2.5, 0.1)", "2.5 % 0.1", "CAST('12.7' AS INT)"]
CONSTANTS += ["EXP(1000)", "POWER(10, 400)", "CAST(0.1 AS REAL) + 0", "ROUND(2.5)", "CAST(1e30 AS BIGINT)"]
EXPRESSIONS = [
    *(form.format(x) for form in OF_NUMBERS for x in "ilrd"),
    *(form.format(*pair) for form in OF_PAIRS for pair in PAIRS),
    *(f"{x} {op} {x}2" for op in ("=", "<>", "<", "<=", ">", ">=") for x in ALL if x != "b" or op in ("=", "<>")),
    *(f"{name}({x}, {x}2)" for name in ("COALESCE", "GREATEST", "LEAST", "NULLIF") for x in ALL),
    *(f"CAST({x} AS {VALUES[y][0].value})" for x, wanted in CASTS.items() for y in wanted),
    *TEXTS,
    *TIMES,
    *CHOICES,
    *CONSTANTS,
]


def over_stream(text: str) -> tuple[Type, pl.Series, pl.Series]:
    """The type of an expression, its values on columns, and where it does not fit."""
    plan = bind(f"SELECT {text} AS e FROM s", CATALOG)
    assert isinstance(plan, Project)
    expression = plan.items[0][1]
    fails = Checks(None, [expression]).failing(PAGE)
    values = PAGE.with_columns(to_polars(expression).alias("e")).get_column("e")
    return expression.type, values, pl.Series(np.zeros(ROWS, np.bool_) if fails is None else fails)


def over_table(text: str) -> tuple[Type, Any, int]:
    """The type of an expression in a SELECT over a table, a function of rows, and how many rows to test: one that is
    computed on a page of one row is slower, and the same."""
    (statement,) = parse(f"SELECT {text} AS e FROM q")
    assert isinstance(statement, ast.SelectStatement)
    with patch.object(scalars, "through_page", wraps=scalars.through_page) as paged:
        program = bind_once(statement.select, CATALOG)
        factory = compiled(program)
    (attribute,), (table,) = factory.INDEXES, program.tables

    def run(rows: pl.DataFrame) -> list[Any]:
        made = factory()
        for row in rows.select(column.name for column in table.columns).rows():
            getattr(made, attribute).insert(row)
        return [value for (value,) in made.iterate()]

    return program.results[0].type, run, 8 if paged.called else ROWS


def differing(one: pl.Series, other: pl.Series) -> pl.Series:
    """Where two columns differ, but for the last digits of a fraction."""
    if one.dtype.is_float() or other.dtype.is_float():
        a, b = (each.cast(pl.Float64).to_numpy() for each in (one, other))
        close = np.isclose(a, b, rtol=1e-12 if one.dtype == pl.Float64 else 1e-6, atol=0, equal_nan=True)
        return pl.Series(~close) | (one.is_null() != other.is_null())
    return one.ne_missing(other)


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_tables_and_streams_agree(text: str) -> None:
    type_, values, fails = over_stream(text)
    type_of_table, run, count = over_table(text)
    assert type_of_table is type_
    step = max(1, ROWS // count) | 1
    fitting = pl.DataFrame({"e": values}).hstack(PAGE).filter(~fails).gather_every(step)
    found = pl.Series(run(fitting), dtype=type_.polars)
    wrong = differing(found, fitting["e"])
    assert not wrong.any(), (found.filter(wrong)[:3].to_list(), fitting.filter(wrong)[:3].rows(named=True))
    for row in PAGE.filter(fails)[:4].iter_slices(1):
        with pytest.raises(OutOfRange):
            run(row)


EXCEPTIONS: dict[str, str] = {}


def of_duckdb() -> pl.DataFrame:
    """The values of all expressions; NULL where DuckDB raises an error."""
    database = duckdb.connect()
    database.register("q", PAGE.to_arrow())
    items = ", ".join(f'TRY({text}) AS "{text}"' for text in EXPRESSIONS if text not in EXCEPTIONS)
    return database.sql(f"SELECT {items} FROM q").pl()


def test_duckdb_agrees() -> None:
    found = of_duckdb()
    failed = {}
    for text in found.columns:
        type_, values, fails = over_stream(text)
        values = values.set(fails, None)
        theirs = found[text]
        try:
            theirs = theirs.cast(type_.polars)
            wrong = differing(theirs, values)
        except Exception as error:
            failed[text] = error
            continue
        if wrong.any():
            failed[text] = [(a, b, r) for a, b, r in zip(values.filter(wrong)[:3], theirs.filter(wrong)[:3], PAGE.filter(wrong)[:3].select([c for c in PAGE.columns if c in text]).rows())]
    for text, why in failed.items():
        print(text, why)
    assert not failed
