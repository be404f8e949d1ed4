"""Pairs of row numbers against brute force, by every way of finding them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.schema import Attribute, Schema
from millstream.algebra.types import Type
from millstream.runtime.join.index import Equality, find_integers
from millstream.runtime.join.stretches import Stretches
from tests.tries import tries

EXTREME = (1 << 63) - 1
integers = st.one_of(st.integers(0, 6), st.integers(1000, 1400), st.sampled_from([-EXTREME - 1, EXTREME, 1 << 61, -1]))
columns = st.one_of(
    st.lists(integers, max_size=12),
    st.lists(integers, max_size=12).map(sorted),
    st.lists(integers, max_size=12, unique=True),
    st.lists(st.integers(0, 40), max_size=12, unique=True),
)


def brute(partner: list[Any], probe: list[Any]) -> list[tuple[int, int]]:
    return [(i, j) for i, a in enumerate(probe) for j, b in enumerate(partner) if a is not None and a == b]


@settings(max_examples=tries(300))
@given(columns, columns)
def test_integers(partner: list[int], probe: list[int]) -> None:
    found = find_integers(np.array(partner, dtype=np.int64), np.array(probe, dtype=np.int64))
    if found is not None:
        pairs = found.pairs() if isinstance(found, Stretches) else found
        assert list(zip(*(rows.tolist() for rows in pairs), strict=True)) == brute(partner, probe)
    else:
        assert partner != sorted(partner)


LEFT = Schema.of(("k", Type.BIGINT), ("t", Type.VARCHAR))
RIGHT = Schema.of(("k", Type.INT), ("t", Type.VARCHAR))
OUTPUT = Schema(tuple(Attribute(f"{p}.{a.name}", a.type) for p, s in (("a", LEFT), ("b", RIGHT)) for a in s))
small = st.one_of(st.none(), st.integers(0, 4))
fractions = st.lists(st.sampled_from([None, 0.0, -0.0, 1.5, math.nan]), max_size=3)
rows = st.lists(st.tuples(small, st.sampled_from(["x", "y", None])), max_size=8)


@settings(max_examples=tries(150))
@given(rows, rows, st.booleans(), st.sampled_from([(), ("k",), ("t",), ("k", "t")]))
def test_keys_of_all_kinds(left: Any, right: Any, probing_left: bool, keys: tuple[str, ...]) -> None:
    equality = Equality.of(LEFT, RIGHT, OUTPUT, [(key, key) for key in keys])
    frames = (
        pl.DataFrame(left, schema={"a.k": pl.Int64, "a.t": pl.String}, orient="row"),
        pl.DataFrame(right, schema={"b.k": pl.Int32, "b.t": pl.String}, orient="row"),
    )
    found = equality.match(*frames, probing_left=probing_left)
    places = [LEFT.index(key) for key in keys]
    pairs = [
        (i, j)
        for i, a in enumerate(left)
        for j, b in enumerate(right)
        if all(a[p] is not None and a[p] == b[p] for p in places)
    ]
    if not probing_left:
        pairs.sort(key=lambda pair: (pair[1], pair[0]))
    assert list(zip(*(made.tolist() for made in found), strict=True)) == pairs


@settings(max_examples=tries(150))
@given(fractions, fractions, st.booleans())
def test_fractions(left: list[float | None], right: list[float | None], probing_left: bool) -> None:
    equality = Equality([("a", "b")], [None])
    frames = (
        pl.DataFrame({"a": pl.Series(left, dtype=pl.Float64)}),
        pl.DataFrame({"b": pl.Series(right, dtype=pl.Float64)}),
    )
    found = equality.match(*frames, probing_left=probing_left)
    pairs = {
        (i, j)
        for i, a in enumerate(left)
        for j, b in enumerate(right)
        if a is not None and b is not None and (a == b or (math.isnan(a) and math.isnan(b)))
    }
    assert set(zip(*(made.tolist() for made in found), strict=True)) == pairs
