from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import given

from millstream.algebra.punctuation.restriction import ANY, NOTHING, Restriction, above, below, between, equal, one_of
from millstream.algebra.punctuation.template import class_of
from millstream.algebra.values import decode, encode
from tests.algebra.punctuation.small import INTEGERS, POINTS, restrictions


def matched(restriction: Restriction, values: list[Any] = POINTS) -> set[Any]:
    return {value for value in values if restriction.matches(value)}


@given(restrictions)
def test_only_any_matches_null(restriction: Restriction) -> None:
    assert restriction.matches(None) == restriction.is_any


@given(restrictions)
def test_the_expression_agrees_with_matches_and_is_never_null(restriction: Restriction) -> None:
    for values, dtype in ((INTEGERS, pl.Int64), (INTEGERS, pl.Int32), (POINTS, pl.Float64)):
        frame = pl.DataFrame({"x": pl.Series(values, dtype=dtype)})
        got = frame.with_columns(restriction.expression(pl.col("x")).alias("got")).get_column("got")
        assert got.to_list() == [restriction.matches(value) for value in values]


@given(restrictions, restrictions)
def test_covers_is_inclusion(one: Restriction, other: Restriction) -> None:
    assert one.covers(other) == (matched(other) <= matched(one))


@given(restrictions, restrictions)
def test_intersect_is_intersection(one: Restriction, other: Restriction) -> None:
    both = one.intersect(other)
    assert matched(both) == matched(one) & matched(other)
    assert both == other.intersect(one)
    assert both.is_empty == (not matched(both))


@given(restrictions)
def test_the_value_comes_back(restriction: Restriction) -> None:
    assert decode(encode(restriction)) == restriction


@pytest.mark.parametrize(
    ("restriction", "class_"),
    [
        (ANY, "-"),
        (NOTHING, None),
        (equal(1), "#"),
        (one_of([1, 2]), None),
        (below(1), "+"),
        (below(1, closed=True), "+"),
        (above(1), None),
        (between(1, 2), None),
        (between(1, 1), "#"),
        (between(None, 3), "+"),
        (between(None, None), "-"),
    ],
)
def test_class(restriction: Restriction, class_: str | None) -> None:
    assert class_of(restriction) == class_


@pytest.mark.parametrize("absent", [None, float("nan")])
def test_what_compares_with_nothing_matches_nothing(absent: Any) -> None:
    made = [equal(absent), below(absent), above(absent), one_of([absent])]
    assert all(restriction is NOTHING or restriction == NOTHING for restriction in made)
    assert one_of([absent, 3]) == equal(3)


@pytest.mark.parametrize(
    "restriction", [below(2), above(2), between(1, 3), equal(2.0), one_of([1, 2]), one_of([1.0, 2])]
)
def test_nan_matches_no_comparison(restriction: Restriction) -> None:
    values = [float("nan"), 2.0, None, float("inf"), float("-inf"), 2.5]
    got = pl.DataFrame({"x": values}).select(restriction.expression(pl.col("x"))).to_series().to_list()
    assert got == [restriction.matches(value) for value in values]
    assert got[0] is False


def test_integers_beyond_the_precision_of_floats_stay_apart() -> None:
    big = 2**53
    frame = pl.DataFrame({"x": [big, big + 1, big + 2]})
    assert frame.select(one_of([big, big + 2]).expression(pl.col("x"))).to_series().to_list() == [True, False, True]


@pytest.mark.parametrize(
    "values",
    [
        ["", "B", "a", "ä", "😀", "ﬀ"],
        [False, True],
        [datetime(1960, 1, 1), datetime(2024, 1, 2, 3, 4, 5), datetime(2024, 1, 2, 3, 4, 5, 1)],
        [date(1960, 1, 1), date(2024, 1, 1), date(2024, 1, 2)],
        [timedelta(seconds=-1), timedelta(), timedelta(microseconds=1)],
    ],
)
def test_other_types_compare_alike_in_python_and_in_polars(values: list[Any]) -> None:
    column = [*values, None]
    frame = pl.DataFrame({"x": column})
    for low in values:
        made = [equal(low), below(low), below(low, True), above(low), above(low, True), one_of([low, values[0]])]
        made += [between(low, high, closed, not closed) for high in values for closed in (True, False)]
        for restriction in made:
            got = frame.with_columns(restriction.expression(pl.col("x")).alias("got")).get_column("got")
            assert got.to_list() == [restriction.matches(value) for value in column], restriction


COVERAGE = """
    *  =u  <u  ≤u  >u  ≥u
*   1  1   1   1   1   1
=v  0  =   0   0   0   0
<v  0  <   ≤   <   0   0
≤v  0  ≤   ≤   ≤   0   0
>v  0  >   0   0   ≥   >
≥v  0  ≥   0   0   ≥   ≥
"""


def test_the_coverage_table() -> None:
    forms: dict[str, Any] = {
        "*": lambda _: ANY,
        "=": equal,
        "<": below,
        "≤": lambda v: below(v, closed=True),
        ">": above,
        "≥": lambda v: above(v, closed=True),
    }
    holds: dict[str, Any] = {
        "1": lambda u, v: True,
        "0": lambda u, v: False,
        "=": lambda u, v: u == v,
        "<": lambda u, v: u < v,
        "≤": lambda u, v: u <= v,
        ">": lambda u, v: u > v,
        "≥": lambda u, v: u >= v,
    }
    head, *lines = COVERAGE.strip("\n").splitlines()
    for line in lines:
        own, *cells = line.split()
        for other, cell in zip(head.split(), cells, strict=True):
            for u in range(3):
                for v in range(3):
                    assert forms[own[0]](v).covers(forms[other[0]](u)) == holds[cell](u, v), (own, other, u, v)
