"""Folding by pane and group, in every way it is done, against plain dictionaries."""

from __future__ import annotations

from random import Random
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.aggregate.reduction import GREATEST, LEAST, Operation, Reduction
from millstream.algebra.schema import TS
from millstream.algebra.types import Type
from millstream.algebra.windower import tumbling
from millstream.runtime.aggregate import dense, pane_fold
from millstream.runtime.aggregate.dense import Places
from millstream.runtime.aggregate.pane_fold import PaneFold
from tests.tries import tries

CALLS = (
    AggregateCall("n", "COUNT", None, Type.BIGINT),
    AggregateCall("c", "COUNT", "x", Type.BIGINT),
    AggregateCall("s", "SUM", "x", Type.BIGINT),
    AggregateCall("a", "AVG", "x", Type.DOUBLE),
    AggregateCall("lo", "MIN", "x", Type.INT),
    AggregateCall("hi", "MAX", "t", Type.TIMESTAMP),
    AggregateCall("f", "SUM", "y", Type.DOUBLE),
)
KEYS: dict[str, list[Any]] = {
    "dense": [-1, 0, 1, 2],
    "sparse": [-(1 << 62), 5, 1 << 62],
    "with NULL": [1, 2, None],
    "text": ["a", "b", "c"],
}
PARTIALS = [made for call in CALLS for made in call.reductions()]
MERGES = [made for call in CALLS for made in call.merges()]


def frame(random: Random, size: int, keys: list[Any], nulls: bool, in_order: bool) -> pl.DataFrame:
    times = [random.randint(-30, 30) for _ in range(size)]
    return pl.DataFrame(
        {
            TS: sorted(times) if in_order else times,
            "k": [random.choice(keys) for _ in range(size)],
            "x": pl.Series(
                [random.choice([3, -7, 40, *([None] if nulls else [])]) for _ in range(size)], dtype=pl.Int32
            ),
            "y": [random.choice([0.5, -2.25, 8.0]) for _ in range(size)],
        }
    ).with_columns(pl.col(TS).cast(pl.Datetime("us")).alias("t"))


def expected(page: pl.DataFrame, pane: int, group: list[str]) -> list[tuple[Any, ...]]:
    members: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in page.to_dicts():
        members.setdefault(((row[TS] // pane + 1) * pane, *(row[name] for name in group)), []).append(row)
    made = []
    for key, rows in members.items():
        known = [row["x"] for row in rows if row["x"] is not None]
        least = min(known, default=None)
        high = sum(value >> 32 for value in known)
        sums = sum(known) if known else None, high, float(sum(known)), len(known)
        fractions = sum(row["y"] for row in rows)
        made.append((*key, len(rows), len(known), *sums, least, max(row["t"] for row in rows), fractions))
    return made


def same(found: pl.DataFrame, group: list[str], rows: list[tuple[Any, ...]]) -> bool:
    names = ["end", *group, *(made.name for made in PARTIALS)]
    return sorted(map(str, found.select(names).rows())) == sorted(map(str, rows))


@settings(max_examples=tries(150))
@given(
    st.randoms(use_true_random=True),
    st.sampled_from([1, 3, 40]),
    st.sampled_from(sorted(KEYS)),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1, 7, 100]),
    st.sampled_from([["k"], []]),
    st.sampled_from([(1, 4), (2048, 4), (1, 0), (2048, 0), (2048, 1000)]),
)
def test_every_way_folds_alike(
    random: Random,
    size: int,
    kind: str,
    nulls: bool,
    in_order: bool,
    pane: int,
    group: list[str],
    limits: tuple[int, int],
) -> None:
    page = frame(random, size, KEYS[kind], nulls, in_order)
    rows = expected(page, pane, group)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pane_fold, "SLICE_ROWS", limits[0])
        patch.setattr(pane_fold, "SPAN", limits[1])
        patch.setattr(dense, "SPAN", limits[1])
        assert same(PaneFold(pl.col(TS), tumbling(pane), group, PARTIALS, "end")(page), group, rows)
        cut = random.randint(0, size)
        fold = PaneFold(pl.col(TS), tumbling(pane), group, PARTIALS, TS, least=True)
        pieces = [fold(piece) for piece in (page.head(cut), page.slice(cut)) if piece.height]
        for made, piece in zip(pieces, [p for p in (page.head(cut), page.slice(cut)) if p.height], strict=True):
            assert made.height == len(expected(piece, pane, group))
            assert set(made[TS]) <= set(piece[TS])
            assert made[TS].is_sorted() or not in_order
        merged = PaneFold(pl.col(TS), tumbling(pane), group, MERGES, "end")(pl.concat(pieces))
        assert same(merged, group, rows)


def test_keys_without_places() -> None:
    page = pl.DataFrame({"k": [1, 2, 9], "w": [1, 2, 90], "n": [1, None, 2], "f": [1.0, 2.0, 3.0]})
    assert Places.of(page, ["k"]) is not None
    assert all(Places.of(page, group) is None for group in (["w"], ["n"], ["f"], ["k", "w"], []))
    assert Places.of(page.clear(), ["k"]) is None


@pytest.mark.parametrize("operation", [LEAST, GREATEST])
def test_the_least_of_fractions_is_left_to_others(operation: Operation) -> None:
    page = pl.DataFrame({"k": [1, 1], "x": [float("nan"), 2.0]})
    assert dense.dense(page, Places.of(page, ["k"]), [Reduction("m", operation, "x", pl.Float64())]) is None
    found = PaneFold(pl.col(TS), tumbling(5), ["k"], [Reduction("m", operation, "x", pl.Float64())], "end")
    assert found(page.with_columns(pl.lit(1).alias(TS)))["m"].to_list() == [2.0]
