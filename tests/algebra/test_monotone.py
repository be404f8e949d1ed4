"""Monotone expressions, against their values."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.expression import Column, Expression
from millstream.algebra.monotone import Monotone, first_of_each, monotone, rising
from millstream.logical.nodes.project import Project
from millstream.runtime.expression.evaluate import to_polars
from tests.logical.sample import bind, catalog_of
from tests.tries import tries

CATALOG = catalog_of("CREATE STREAM s (i BIGINT, j INT, x DOUBLE, t TIMESTAMP, d DATE, name VARCHAR) ORDER BY i")
STRICT = ["i", "i + 3", "3 + i", "i - 4", "i * 2", "2 * i - 1", "j + 1", "CAST(j AS BIGINT)", "- (- i)", "1 - (2 - i)"]
STRICT += [
    "t + INTERVAL '5' SECOND",
    "INTERVAL '5' SECOND + t",
    "t - INTERVAL '1' DAY",
    "CAST(d AS TIMESTAMP)",
    "d + 1",
]
STRICT += ["t - TIMESTAMP '2000-01-01 00:00:00'", "CAST(t AS VARCHAR)", "CAST(d AS VARCHAR)"]
WEAK = ["i / 10", "FLOOR(i / 10)", "CEIL(x)", "ROUND(x)", "ROUND(x, 1)", "x * 3", "x + 0.1", "CAST(i AS DOUBLE)"]
WEAK += ["CAST(x AS BIGINT)", "CAST(t AS DATE)", "CAST(t AS BIGINT)", "YEAR(t)", "i / -2 * -1", "EXTRACT(EPOCH FROM t)"]
WEAK += ["INTERVAL '1' DAY * j", "CAST(CAST(t AS DATE) AS VARCHAR)", "SUBSTRING(CAST(t AS VARCHAR), 1, 13)"]
FALLING = ["-i", "5 - i", "i * -2", "i / -2"]
NEITHER = [
    "i % 5",
    "i + j",
    "i * i",
    "i * 0",
    "CAST(i AS VARCHAR)",
    "SUBSTRING(CAST(t AS VARCHAR), 6, 2)",
    "ABS(i)",
    "i * NULL",
]
NEITHER += ["CASE WHEN i > 0 THEN i ELSE 0 END", "MONTH(t)", "2 / x", "COALESCE(i, 1)", "7", "LENGTH(name)"]


def bound(text: str) -> Expression:
    plan = bind(f"SELECT {text} AS e FROM s", CATALOG)
    assert isinstance(plan, Project)
    return plan.items[0][1]


@pytest.mark.parametrize("text", [*STRICT, *WEAK, *FALLING])
@settings(max_examples=tries(40))
@given(numbers=st.lists(st.integers(-(7 * 10**5), 10**6), min_size=2, max_size=20))  # dates of the year 1 and later
def test_values_follow_the_column(text: str, numbers: list[int]) -> None:
    expression = bound(text)
    found = monotone(expression)
    assert found is not None
    (column,) = (part for part in _columns(expression))
    values = pl.Series(column.name, sorted(numbers), dtype=pl.Int64)
    if column.type.polars.is_float():
        values = values / 4
    elif column.type.polars == pl.Date:
        values = values // 2  # the years 1 to 9999
    elif column.type.polars == pl.Datetime("us"):
        values = values * 977_777_777
    page = pl.DataFrame([values.cast(column.type.polars)])
    results = page.select(to_polars(expression)).to_series().to_physical().to_list()
    pairs = list(zip(values.to_list(), results, strict=True))
    for (one, first), (other, second) in pairwise(pairs):
        assert first <= second if found.rises else first >= second
        assert not found.strict or one == other or first != second


def _columns(expression: Expression) -> list[Any]:
    own = [expression] if isinstance(expression, Column) else []
    return [*own, *(column for child in expression.children() for column in _columns(child))]


def test_kinds() -> None:
    assert all((found := monotone(bound(text))) is not None and found.rises and found.strict for text in STRICT)
    assert all((found := monotone(bound(text))) is not None and found.rises and not found.strict for text in WEAK)
    assert all((found := monotone(bound(text))) is not None and not found.rises for text in FALLING)
    assert [text for text in NEITHER if monotone(bound(text)) is not None] == []


def test_the_first_rising_item_counts() -> None:
    items = tuple((f"c{place}", bound(text)) for place, text in enumerate(["-i", "i / 2", "i + 1", "x"]))
    found = rising(items, {"i", "j"})
    assert [rises.name for rises in found] == ["c1", "c2"]
    first, others = first_of_each(found, {"j"})
    assert ({name: rises.name for name, rises in first.items()}, [rises.name for rises in others]) == (
        {"i": "c1"},
        ["c2"],
    )
    assert first_of_each(found, {"i"}) == ({}, found)
    assert monotone(items[2][1]) == Monotone("i")
