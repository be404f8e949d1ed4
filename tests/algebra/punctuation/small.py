"""Small domains on which every law can be checked by trying all rows."""

from __future__ import annotations

from itertools import product
from typing import Any

import polars as pl
from hypothesis import strategies as st

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import ANY, NOTHING, Restriction, above, below, between, equal, one_of

NAMES = ("a", "b", "c")
CONSTANTS = st.integers(0, 5)
POINTS: list[Any] = [None] + [half / 2 for half in range(-1, 12)]
"""Constants lie on the integers, so the halves between them represent a dense domain."""
INTEGERS: list[Any] = [None, *range(6)]

bounds = st.one_of(st.builds(below, CONSTANTS, st.booleans()), st.builds(above, CONSTANTS, st.booleans()))
comparisons = st.one_of(st.builds(equal, CONSTANTS), st.builds(below, CONSTANTS, st.booleans()), bounds)
restrictions: st.SearchStrategy[Restriction] = st.one_of(
    st.just(ANY),
    st.just(NOTHING),
    comparisons,
    st.builds(one_of, st.lists(CONSTANTS, max_size=4)),
    st.builds(between, CONSTANTS, CONSTANTS, st.booleans(), st.booleans()),
)


def patterns(names: tuple[str, ...] = NAMES, of: st.SearchStrategy[Restriction] = restrictions) -> Any:
    return st.dictionaries(st.sampled_from(names), of, max_size=len(names)).map(Pattern.of)


simple_patterns = patterns(("a", "b"), comparisons)
likely = st.one_of(
    st.builds(lambda v: Pattern.of(a=equal(v)), CONSTANTS),
    st.builds(lambda v: Pattern.of(b=below(v)), CONSTANTS),
    st.builds(lambda v, w: Pattern.of(a=equal(v), b=below(w)), CONSTANTS, CONSTANTS),
    simple_patterns,
    patterns(("a", "b")),
)
"""Mostly shapes that are held as columns, so that several share a group."""


def all_rows(names: tuple[str, ...], values: list[Any]) -> list[dict[str, Any]]:
    return [dict(zip(names, row, strict=True)) for row in product(values, repeat=len(names))]


def page(rows: list[dict[str, Any]], dtype: Any = pl.Int64) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=dict.fromkeys(rows[0], dtype))


ROWS = all_rows(("a", "b"), INTEGERS)
DENSE = all_rows(("a", "b"), POINTS)
PAGE, DENSE_PAGE = page(ROWS), page(DENSE, pl.Float64)
