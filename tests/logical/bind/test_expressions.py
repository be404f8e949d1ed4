"""Types of expressions: what operators and functions take, what comes out, where casts go."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import polars as pl
import pytest

from millstream.algebra.types import Type
from millstream.errors import MillstreamError
from millstream.logical.nodes.project import Project
from millstream.runtime.expression.evaluate import to_polars
from tests.logical.sample import bind, catalog_of

CATALOG = catalog_of(
    "CREATE STREAM t (i INT, l BIGINT, r REAL, d DOUBLE, m DECIMAL, s VARCHAR, f BOOLEAN, ts TIMESTAMP, day DATE,"
    " gap INTERVAL)"
)


def bound(text: str) -> tuple[str, Type]:
    plan = bind(f"SELECT {text} AS x FROM t", CATALOG)
    assert isinstance(plan, Project)
    expression = plan.items[0][1]
    return str(expression), expression.type


TYPED = [
    ("i + 1", "(CAST(i AS BIGINT) + 1)", Type.BIGINT),
    ("i + l", "(CAST(i AS BIGINT) + l)", Type.BIGINT),
    ("l + 1.5", "(CAST(l AS DOUBLE) + 1.5)", Type.DOUBLE),
    ("l / 2", "(CAST(l AS DOUBLE) / 2.0)", Type.DOUBLE),
    ("i % 2", "(i % 2)", Type.INT),
    ("mod(l, 2)", "(l % 2)", Type.BIGINT),
    ("r + i", "(CAST(r AS DOUBLE) + CAST(i AS DOUBLE))", Type.DOUBLE),
    ("r * r", "(r * r)", Type.REAL),
    ("-i", "(- i)", Type.INT),
    ("l > 5", "(l > 5)", Type.BOOLEAN),
    ("l > 5.5", "(CAST(l AS DOUBLE) > 5.5)", Type.BOOLEAN),
    ("d = m", "(d = CAST(m AS DOUBLE))", Type.BOOLEAN),
    ("5000000000", "5000000000", Type.BIGINT),
    ("ts + INTERVAL '5' SECOND", "(ts + INTERVAL '5' SECOND)", Type.TIMESTAMP),
    ("INTERVAL '1' DAY + ts", "(INTERVAL '86400' SECOND + ts)", Type.TIMESTAMP),
    ("ts - ts", "(ts - ts)", Type.INTERVAL),
    ("gap * 2", "(gap * 2)", Type.INTERVAL),
    ("gap / gap", "(gap / gap)", Type.DOUBLE),
    ("day + 1", "(day + 1)", Type.DATE),
    ("day + gap", "(CAST(day AS TIMESTAMP) + gap)", Type.TIMESTAMP),
    ("l - INTERVAL '1' MINUTE", "(l - 60)", Type.BIGINT),
    ("ts > '2024-01-02'", "(ts > TIMESTAMP '2024-01-02 00:00:00')", Type.BOOLEAN),
    ("'2024-01-02 03:04:05' < ts", "(TIMESTAMP '2024-01-02 03:04:05' < ts)", Type.BOOLEAN),
    ("day = DATE '2024-01-02'", "(day = DATE '2024-01-02')", Type.BOOLEAN),
    ("ts > day", "(ts > CAST(day AS TIMESTAMP))", Type.BOOLEAN),
    ("ts BETWEEN '2024-01-01' AND ts", "((ts >= TIMESTAMP '2024-01-01 00:00:00') AND (ts <= ts))", Type.BOOLEAN),
    ("s || i", "(s || CAST(i AS VARCHAR))", Type.VARCHAR),
    ("s LIKE 'a%'", "(s LIKE 'a%')", Type.BOOLEAN),
    ("l IN (1, 2, NULL)", "(l IN (1, 2, NULL))", Type.BOOLEAN),
    ("i IN (1, 2.5)", "(CAST(i AS DOUBLE) IN (1.0, 2.5))", Type.BOOLEAN),
    ("l NOT IN (1)", "(NOT (l IN (1)))", Type.BOOLEAN),
    ("f AND NULL", "(f AND NULL)", Type.BOOLEAN),
    ("l IS NULL", "(l IS NULL)", Type.BOOLEAN),
    ("CASE WHEN f THEN 1 ELSE 2.5 END", "CASE WHEN f THEN 1.0 ELSE 2.5 END", Type.DOUBLE),
    ("CASE i WHEN 1 THEN 'a' END", "CASE WHEN (i = 1) THEN 'a' END", Type.VARCHAR),
    ("CASE WHEN f THEN ts ELSE '2024-01-01' END", "CASE WHEN f THEN ts ELSE TIMESTAMP '2024-01-01 00:00:00' END",
     Type.TIMESTAMP),
    ("if(f, 1, l)", "CASE WHEN f THEN 1 ELSE l END", Type.BIGINT),
    ("nullif(i, 0)", "CASE WHEN (i = 0) THEN NULL ELSE i END", Type.INT),
    ("CAST(s AS BIGINT)", "CAST(s AS BIGINT)", Type.BIGINT),
    ("CAST(5 AS DOUBLE)", "5.0", Type.DOUBLE),
    ("NULL + 1", "(NULL + 1)", Type.BIGINT),
    ("abs(i)", "ABS(i)", Type.INT),
    ("round(d, 2)", "ROUND(d, 2)", Type.DOUBLE),
    ("ceiling(d)", "CEIL(d)", Type.DOUBLE),
    ("sqrt(i)", "SQRT(CAST(i AS DOUBLE))", Type.DOUBLE),
    ("power(2, i)", "POWER(2.0, CAST(i AS DOUBLE))", Type.DOUBLE),
    ("upper(trim(s))", "UPPER(TRIM(s))", Type.VARCHAR),
    ("length(s)", "LENGTH(s)", Type.BIGINT),
    ("substring(s, 2, 3)", "SUBSTRING(s, 2, 3)", Type.VARCHAR),
    ("substr(s FROM 2)", "SUBSTRING(s, 2)", Type.VARCHAR),
    ("concat(s, i, 'x')", "CONCAT(s, CAST(i AS VARCHAR), 'x')", Type.VARCHAR),
    ("replace(s, 'a', 'b')", "REPLACE(s, 'a', 'b')", Type.VARCHAR),
    ("coalesce(i, l, 0)", "COALESCE(CAST(i AS BIGINT), l, 0)", Type.BIGINT),
    ("greatest(i, 2)", "GREATEST(i, 2)", Type.INT),
    ("extract(hour FROM ts)", "EXTRACT('HOUR', ts)", Type.BIGINT),
    ("extract(epoch FROM ts)", "EXTRACT('EPOCH', ts)", Type.DOUBLE),
    ("year(day)", "EXTRACT('YEAR', day)", Type.BIGINT),
    ("CASE WHEN f THEN NULL END", "CAST(CASE WHEN f THEN NULL END AS VARCHAR)", Type.VARCHAR),
]  # fmt: skip


@pytest.mark.parametrize(("text", "made", "type_"), TYPED)
def test_types(text: str, made: str, type_: Type) -> None:
    assert bound(text) == (made, type_)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("s > 5", "'>' does not take VARCHAR and INT", "CAST(s AS INT)"),
        ("l = 'abc'", "'=' does not take BIGINT and VARCHAR", "without quotes"),
        ("ts > 5", "'>' does not take TIMESTAMP and INT", "TIMESTAMP '"),
        ("ts > 'soon'", "'soon' is not a TIMESTAMP", "YYYY-MM-DD"),
        ("DATE '2024-13-01' = day", "is not a DATE", ""),
        ("ts + 5", "'+' does not take TIMESTAMP and INT", "INTERVAL '5' SECOND"),
        ("s + 'x'", "'+' does not take VARCHAR and VARCHAR", "||"),
        ("ts + ts", "'+' does not take TIMESTAMP and TIMESTAMP", ""),
        ("l - INTERVAL '1' MILLISECOND", "is not a whole number of seconds", ""),
        ("-s", "'-' needs a number, not VARCHAR", ""),
        ("NOT l", "NOT needs a condition, not BIGINT", "l <> 0"),
        ("f AND i", "AND needs a condition, not INT", ""),
        ("l LIKE 'a'", "'LIKE' does not take BIGINT and VARCHAR", ""),
        ("l IN (1, 'a')", "'=' does not take BIGINT and VARCHAR", ""),
        ("CASE WHEN f THEN 1 ELSE 'a' END", "CASE mixes INT and VARCHAR", "CAST"),
        ("CASE WHEN l THEN 1 END", "WHEN needs a condition", ""),
        ("coalesce(l, f)", "COALESCE mixes BIGINT and BOOLEAN", ""),
        ("CAST(f AS DATE)", "BOOLEAN cannot be cast to DATE", ""),
        ("CAST(l AS NUMBER)", "unknown type NUMBER", ""),
        ("foo(l)", "unknown function 'foo'", ""),
        ("lenght(s)", "unknown function 'lenght'", "'length'"),
        ("abs(s)", "ABS needs a number, not VARCHAR", ""),
        ("abs(l, l)", "ABS takes 1 argument, found 2", ""),
        ("round(d, 1.5)", "integer number of digits", ""),
        ("substring(s)", "SUBSTRING takes 2 to 3 arguments, found 1", ""),
        ("concat()", "CONCAT takes at least 1 argument, found 0", ""),
        ("upper(l)", "UPPER needs a VARCHAR, not BIGINT", "CAST(l AS VARCHAR)"),
        ("extract(hour FROM s)", "EXTRACT needs a TIMESTAMP, not VARCHAR", ""),
        ("extract(year FROM gap)", "an INTERVAL has no YEAR", ""),
        ("upper(DISTINCT s)", "UPPER is not an aggregate", ""),
        ("INTERVAL '0.0000001' SECOND", "a fraction of a microsecond", ""),
    ],
)
def test_errors(text: str, message: str, hint: str) -> None:
    with pytest.raises(MillstreamError) as caught:
        bound(text)
    error = caught.value
    assert message in error.message and hint in error.hint, str(error)
    assert error.line == 1 and error.column is not None and error.column >= 8


def test_conditions_must_be_boolean() -> None:
    with pytest.raises(MillstreamError, match="WHERE needs a condition, not BIGINT"):
        bind("SELECT l FROM t WHERE l", CATALOG)
    with pytest.raises(MillstreamError, match="ON needs a condition, not BIGINT"):
        bind("SELECT x.l FROM t x JOIN t y ON x.l + y.l", CATALOG)


@pytest.mark.parametrize("text", [case[0] for case in TYPED])
def test_the_worker_computes_the_promised_type(text: str) -> None:
    schema = CATALOG.stream("t").schema
    values = (1, 2, 1.5, 2.5, 3.5, "abc", True, datetime(2024, 1, 2, 3), date(2024, 1, 2), timedelta(seconds=5))
    types = {attribute.name: attribute.type.polars for attribute in schema}
    frame = pl.DataFrame([values, (None,) * len(values)], schema=types, orient="row")
    plan = bind(f"SELECT {text} AS x FROM t", CATALOG)
    assert isinstance(plan, Project)
    expression = plan.items[0][1]
    made = frame.select(to_polars(expression).alias("x")).to_series()
    assert made.dtype == expression.type.polars
