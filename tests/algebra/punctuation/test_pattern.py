from __future__ import annotations

from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import NOTHING, below, equal
from millstream.algebra.punctuation.template import class_of
from millstream.algebra.schema import Schema
from millstream.algebra.types import Type
from millstream.algebra.values import decode, encode
from tests.algebra.punctuation.small import DENSE, DENSE_PAGE, PAGE, POINTS, ROWS, all_rows, patterns

two = patterns(("a", "b"))


def matched(pattern: Pattern, rows: list[dict[str, Any]] = DENSE) -> set[int]:
    return {i for i, row in enumerate(rows) if pattern.matches(row)}


@given(two)
def test_match_of_a_page_is_match_of_its_rows(pattern: Pattern) -> None:
    for frame, rows in ((PAGE, ROWS), (DENSE_PAGE, DENSE)):
        expected = [pattern.matches(row) for row in rows]
        assert pattern.match(frame).to_list() == expected
        assert frame.with_columns(pattern.expression().alias("got")).get_column("got").to_list() == expected


def test_match_of_an_empty_page() -> None:
    empty = pl.DataFrame(schema={"a": pl.Int64})
    for pattern in (Pattern(), Pattern.of(a=equal(1)), Pattern.of(a=NOTHING)):
        assert pattern.match(empty).to_list() == []


@given(two, two)
def test_covers_is_inclusion(one: Pattern, other: Pattern) -> None:
    assert one.covers(other) == (matched(other) <= matched(one))


@given(two, two)
def test_intersection(one: Pattern, other: Pattern) -> None:
    both = one.intersect(other)
    assert matched(both) == matched(one) & matched(other)


@given(two)
def test_is_empty(pattern: Pattern) -> None:
    assert pattern.is_empty == (not matched(pattern))
    assert not (pattern.is_empty and matched(pattern, ROWS))


@given(two, st.sampled_from([{"a": "x"}, {"a": "b", "b": "a"}, {"a": "x", "b": "x"}, {"a": "b"}, {}]))
def test_rename_restricts_the_renamed_column(pattern: Pattern, names: dict[str, str]) -> None:
    renamed = pattern.rename(names)
    targets = tuple(sorted({names.get(n, n) for n in ("a", "b")}))
    for row in all_rows(targets, POINTS):
        assert renamed.matches(row) == pattern.matches({n: row[names.get(n, n)] for n in ("a", "b")})


@given(two, two)
def test_equal_patterns_are_equal_values(one: Pattern, other: Pattern) -> None:
    assert (one == other) <= (hash(one) == hash(other))
    assert decode(encode(one)) == one
    if matched(one) == matched(other) != set():
        assert one == other


def test_names_and_classes() -> None:
    schema = Schema.of(("ts", Type.BIGINT), ("a.k", Type.BIGINT), ("v", Type.BIGINT))
    pattern = Pattern.of({"a.k": equal(3)}, ts=below(5))
    assert pattern.attributes == {"ts", "a.k"}
    assert [class_of(pattern.get(name)) for name in schema.names] == ["+", "#", "-"]
    assert pattern.get("v").is_any
    assert repr(pattern) == "Pattern([a.k = 3, ts < 5])"
