"""A SELECT over tables, which runs as Python, and one over a stream, which runs on columns, agree; and with DuckDB
but for `EXCEPTIONS`. Functions, types and odd values are all combined: more than 40,000 values."""

from __future__ import annotations

import math
import re
from datetime import date, datetime, timedelta
from functools import cache
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
WRITTEN = ["2024-02-29T12:34:56.5Z", "2024-02-29 12:34", "2024-02-29T23:34:56-08", "2024-02-29 00:10:00.25+05:30"]
VALUES: dict[str, tuple[Type, list[Any]]] = {
    "b": (Type.BOOLEAN, [True, False]),
    "i": (Type.INT, [0, 1, -1, 2, 7, -12345, 1000, 31, -(1 << 31), (1 << 31) - 1]),
    "l": (Type.BIGINT, [0, 1, -1, 3, 86399, -(1 << 31) - 1, (1 << 53) + 1, -(1 << 63), (1 << 63) - 1, 10**18]),
    "r": (Type.REAL, [*NUMBERS, 3.4028234663852886e38, 1e-45, 16777216.0]),
    "d": (Type.DOUBLE, [*NUMBERS, 0.49999999999999994, 2.675, 4503599627370497.5, 1e300, -1e308, 5e-324]),
    "s": (
        Type.VARCHAR,
        ["", "a", "Ab", " x ", "ß", "é%_", "日本", "12", "-12.7", "1e3", "true", "2024-02-30", "nan", *WRITTEN],
    ),
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
        columns.append(
            pl.Series(f"{name}2", [held[(n // len(held) + 7 * n) % len(held)] for n in range(ROWS)], type_.polars)
        )
    return pl.DataFrame(columns)


PAGE = page()
COLUMNS = ", ".join(f"{name}{n} {type_.value}" for name, (type_, _) in VALUES.items() for n in ("", "2"))
CATALOG = catalog_of(f"CREATE STREAM s (ts BIGINT, {COLUMNS}) ORDER BY ts; CREATE TABLE q ({COLUMNS})")
ALL = [*"bilrdstyw"]
OF_NUMBERS = ["-{0}", "ABS({0})", "SIGN({0})", "FLOOR({0})", "CEIL({0})", "ROUND({0})", "ROUND({0}, 1)"]
OF_NUMBERS += ["ROUND({0}, -2)", "SQRT({0})", "LN({0})", "EXP({0})"]
OF_PAIRS = ["{0} + {1}", "{0} - {1}", "{0} * {1}", "{0} / {1}", "{0} % {1}", "MOD({0}, {1})", "POWER({0}, {1})"]
PAIRS = [("i", "i2"), ("l", "l2"), ("r", "r2"), ("d", "d2"), ("i", "l"), ("r", "d"), ("d", "l"), ("d", "0.1")]
BY_CONSTANT = [f"POWER({{0}}, {n})" for n in (0.5, 2, 0, -1, 1, 3, -0.5)] + [
    f"POWER({n}, {{0}})" for n in (2, 0, 1, -0.5)
]
BY_CONSTANT += [f"MOD({{0}}, {n})" for n in (3, -3, 0, 0.5)] + [f"MOD({n}, {{0}})" for n in (7, -7, 0, 0.5)]
BY_CONSTANT += ["ROUND({0}, 0)", "ROUND({0}, 3)", "ROUND({0}, NULL)"]
BY_CONSTANT += [f"{name}({{0}}, {n})" for name in ("COALESCE", "GREATEST", "LEAST", "NULLIF") for n in (0, -0.5)]
BY_CONSTANT += [
    "{0} * 0.5",
    "{0} / 3",
    "3 / {0}",
    "{0} - 0.5",
    "1 - {0}",
    "0 - {0}",
    "{0} + 0",
    "0.0 + {0}",
    "{0} - 0",
    "{0} * -1",
    "{0} % 3",
    "GREATEST(0.5, {0})",
]
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
TEXTS += [
    "CONCAT(s, 'é')",
    "CONCAT('a', s, 'b')",
    "REPLACE('aAb', s, s2)",
    "REPLACE(s, 'a', '')",
    "SUBSTRING('aébc', i, 2)",
]
TEXTS += [
    "LTRIM(s, ' a')",
    "RTRIM(s, 'b')",
    "SUBSTRING(s, -2, l)",
    "s LIKE '%_'",
    "s LIKE s2",
    "s LIKE 'A%'",
    "s IN ('a', 'x', NULL)",
]
TIMES = [f"EXTRACT({part} FROM {x})" for part in ("DAY", "HOUR", "MINUTE", "SECOND", "EPOCH") for x in "tyw"]
TIMES += [f"EXTRACT({part} FROM {x})" for part in ("YEAR", "MONTH") for x in "ty"]
TIMES += ["SECOND(t)", "MINUTE(w)", "t + w", "t - w", "w + t", "t - t2", "y - y2", "y + w", "w + w2", "w - w2", "-w"]
TIMES += ["y + i", "y - i", "w * d", "w * i", "w / d", "w / w2", "t + INTERVAL '1' DAY"]
CHOICES = ["CASE WHEN b THEN i ELSE l END", "CASE WHEN d > 1 THEN d WHEN d < 0 THEN r END", "IF(b, s, s2)", "IF(b, i)"]
CHOICES += ["b AND b2", "b OR b2", "NOT b", "b IS NULL", "d IN (0.5, 1, i)", "i BETWEEN i2 AND l", "NULLIF(d, r)"]
CHOICES += ["COALESCE(i, d)", "GREATEST(r, i)", "LEAST(d, r, l)", "CASE WHEN ABS(i) > 5 AND b THEN -i END", "i = l"]
CONSTANTS = [
    "ROUND(2.5, i)",
    "ROUND(-1e300, l)",
    "CAST(1e300 AS REAL)",
    "CAST(0.1 AS REAL)",
    "MOD(2.5, 0.1)",
    "2.5 % 0.1",
    "CAST('12.7' AS INT)",
]
CONSTANTS += ["EXP(1000)", "POWER(10, 400)", "CAST(0.1 AS REAL) + 0", "ROUND(2.5)", "CAST(1e30 AS BIGINT)"]
EXPRESSIONS = [
    *(form.format(x) for form in OF_NUMBERS for x in "ilrd"),
    *(form.format(*pair) for form in OF_PAIRS for pair in PAIRS),
    *(form.format(x) for form in BY_CONSTANT for x in "ilrd"),
    *(f"{x} {op} {x}2" for op in ("=", "<>", "<", "<=", ">", ">=") for x in ALL if x != "b" or op in ("=", "<>")),
    *(f"{name}({x}, {x}2)" for name in ("COALESCE", "GREATEST", "LEAST", "NULLIF") for x in ALL),
    *(f"CAST({x} AS {VALUES[y][0].value})" for x, wanted in CASTS.items() for y in wanted),
    *TEXTS,
    *TIMES,
    *CHOICES,
    *CONSTANTS,
]


@cache
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


def differing(one: pl.Series, other: pl.Series, *, zeros: bool = True) -> pl.Series:
    """Where two columns differ, but for the last digits of a fraction. `zeros`: 0.0 is not -0.0."""
    if one.dtype.is_float() or other.dtype.is_float():
        a, b = (each.cast(pl.Float64).to_numpy() for each in (one, other))
        close = np.isclose(a, b, rtol=1e-12 if one.dtype == pl.Float64 else 1e-6, atol=0, equal_nan=True)
        signs = zeros & (np.signbit(a) != np.signbit(b)) & (a == 0)
        return pl.Series(~close | signs) | (one.is_null() != other.is_null())
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


IN_UTC = "make_timestamp(EPOCH_US(TRY_CAST(s AS TIMESTAMPTZ)))"
WHOLE_SECONDS, FRACTIONS = "'%Y-%m-%d %H:%M:%S'", "'%Y-%m-%d %H:%M:%S.%f'"
EXCEPTIONS = [
    (r"SQRT\((.)\)", r"CASE WHEN \1 >= 0 THEN SQRT(\1) END", "NULL outside the domain of a function, not NaN"),
    (r"LN\((.)\)", r"CASE WHEN \1 > 0 THEN LN(\1) END", "the same, not -inf"),
    (
        r"EXP\((.+)\)",
        r"CASE WHEN isfinite(EXP(\1)) OR NOT isfinite(CAST(\1 AS DOUBLE)) THEN EXP(\1) END",
        "NULL where no DOUBLE is the result of finite arguments",
    ),
    (
        r"POWER\((.+), (.+)\)",
        r"CASE WHEN isfinite(POWER(\1, \2)) OR NOT isfinite(CAST(\1 AS DOUBLE)) OR NOT isfinite(CAST(\2 AS DOUBLE)) "
        r"THEN POWER(CAST(\1 AS DOUBLE), \2) END",
        "the same",
    ),
    (r"SIGN\(([rd])\)", r"CASE WHEN isnan(\1) OR \1 = 0 THEN \1 ELSE SIGN(\1) END", "NaN of NaN, -0.0 of -0.0"),
    (r"([^w]\S*) / (\S+)", r"CAST(\1 AS DOUBLE) / NULLIF(\2, 0)", "NULL for a divisor of 0; always a DOUBLE"),
    (r"(?:MOD\()?([il]\b) ?[%,] ([il]2?)\)?", r"CAST(\1 AS HUGEINT) % NULLIF(\2, 0)", "0 for the least integer and -1"),
    (r"(?:MOD\()?([-rd\d]\S*) ?[%,] ([^)]+)\)?", r"CAST(\1 AS DOUBLE) % NULLIF(\2, 0)", "NULL for a divisor of 0"),
    (r"i ([-+*]) i2", r"CAST(i AS BIGINT) \1 i2", "the sum of two INTs is a BIGINT"),
    (r"(FLOOR|CEIL)\(l\)", "l", "an integer stays an integer"),
    (r"ROUND\(([il])(?:, 1)?\)", r"\1", "the same"),
    (r"CAST\(([rd]|.*e30) AS (INT|BIGINT)\)", r"CAST(TRUNC(\1) AS \2)", "a cast drops the fraction"),
    (r"CAST\((s|'.*') AS (INT|BIGINT)\)", r"CAST(TRUNC(CAST(\1 AS DOUBLE)) AS \2)", "the same"),
    (
        r"CAST\(t AS (INT|BIGINT)\)",
        r"CAST((EPOCH_US(t) - (EPOCH_US(t) % 1000000 + 1000000) % 1000000) // 1000000 AS \1)",
        "seconds since the epoch",
    ),
    (r"CAST\(t AS DOUBLE\)", "EPOCH_US(t) / 1e6", "the same"),
    (
        r"CAST\(s AS TIMESTAMP\)",
        f"COALESCE({IN_UTC}, make_timestamp(CAST(TRY_CAST(s AS DOUBLE) * 1e6 AS BIGINT)))",
        "an offset counts; a number of seconds too",
    ),
    (r"CAST\(s AS DATE\)", f"CAST({IN_UTC} AS DATE)", "an offset counts"),
    (r"CAST\(d AS VARCHAR\)", "REPLACE(CAST(d AS VARCHAR), 'nan', 'NaN')", "another spelling"),
    (
        r"CAST\(t AS VARCHAR\)",
        f"CASE WHEN EPOCH_US(t) % 1000000 = 0 THEN strftime(t, {WHOLE_SECONDS}) ELSE strftime(t, {FRACTIONS}) END",
        "six digits of a fraction",
    ),
    (r"UPPER\(s\)", "REPLACE(UPPER(s), 'ẞ', 'SS')", "as Unicode says"),
    (r"CONCAT\(s, s2\)", "s || s2", "NULL if one is NULL"),
    (r"SUBSTRING\((s|'.*'), i, 2\)", r"SUBSTRING(\1, CASE i WHEN 0 THEN 1 ELSE i END, 2)", "position 0 means 1"),
    (r"EXTRACT\(SECOND FROM t\)", "EXTRACT(MICROSECOND FROM t) / 1e6", "with its fraction, as in Spark"),
    (
        r"(t \+ INTERVAL.*)",
        r"CASE WHEN YEAR(\1) BETWEEN 1 AND 9999 THEN \1 END",
        "the years 1 to 9999",
    ),
    (r"GREATEST\(r, i\)", "GREATEST(CAST(r AS DOUBLE), i)", "an INT and a REAL are DOUBLEs together"),
    (r"IF\(b, i\)", "CASE WHEN b THEN i END", "an IF without ELSE"),
]
"""Where DuckDB differs by design: a pattern, what it is asked instead, and what Millstream does."""
INCOMPARABLE = [
    (r".*\bw\b.*|.*AS INTERVAL\)", "DuckDB has months and days in intervals"),
    (r"y [-+] i", "its TRY does not catch a date out of range"),
    (r"[ty] - [ty]2", "the same"),
    (r"CAST\([ilrd] AS TIMESTAMP\)", "it has no such cast"),
    (r"CAST\(r AS VARCHAR\)", "its exponents begin later"),
    (r"CONCAT\(.*'.*", "it skips NULLs"),
    (r"r [-*+] \S*|[01][.0]* [-+] [ri]|i \* -1", "what a REAL or an INT becomes with a constant"),
    (r"ROUND\(.*, [il]\)", "its number of digits is a constant"),
    (r"SUBSTRING\(s, -2, l\)", "a negative length counts back"),
]


def of_duckdb(text: str) -> str:
    """The expression in DuckDB; empty if there is none."""
    if any(re.fullmatch(pattern, text) for pattern, _ in INCOMPARABLE):
        return ""
    return next((re.sub(pattern, asked, text) for pattern, asked, _ in EXCEPTIONS if re.fullmatch(pattern, text)), text)


def test_duckdb_agrees() -> None:
    database = duckdb.connect()
    database.execute("SET disabled_optimizers = 'common_subexpressions'")  # it takes them out of TRY
    database.register("q", PAGE.to_arrow())
    asked = {text: of_duckdb(text) for text in EXPRESSIONS if of_duckdb(text)}
    items = ", ".join(f'TRY({written}) AS "{text}"' for text, written in asked.items())
    found = database.sql(f"SELECT {items} FROM q").pl()
    for text in asked:
        type_, values, fails = over_stream(text)
        wrong = differing(found[text].cast(type_.polars), values.set(fails, None), zeros=False)
        assert not wrong.any(), (text, values.filter(wrong)[:3], found.filter(wrong)[text][:3])
