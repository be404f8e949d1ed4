from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.algebra.punctuation import column_order
from millstream.algebra.punctuation.column_order import Keys
from millstream.algebra.punctuation.lookup import Lookup

INT64 = st.one_of(st.integers(-20, 20), st.integers(-(2**63), 2**63 - 1))


@given(st.lists(INT64, min_size=1, max_size=60, unique=True), st.lists(INT64, max_size=60))
def test_find_is_index(keys: list[int], others: list[int]) -> None:
    asked = [*others, *keys]
    found = Lookup(np.array(keys, dtype=np.int64)).find(np.array(asked, dtype=np.int64))
    assert found.tolist() == [keys.index(value) if value in keys else -1 for value in asked]


@given(st.lists(st.integers(-3, 3), min_size=1), st.lists(st.one_of(st.none(), st.integers(-4, 4)), max_size=9))
def test_all_ways_to_find_agree(values: list[int], asked: list[int | None]) -> None:
    """Few or many rows; integers, floats, texts."""
    for convert, dtype in ((int, pl.Int64), (float, pl.Float64), (str, pl.String)):
        own = [convert(value) for value in values]
        others = [None if value is None else convert(value) for value in asked] * 5
        keys = Keys(pl.Series(own, dtype=dtype))
        code_of = dict(zip(own, keys.codes.tolist(), strict=True))
        assert sorted(set(code_of.values())) == list(range(len(keys))) == list(range(len(set(own))))
        for column in (others[: len(asked)], others):
            assert keys.find(pl.Series(column, dtype=dtype)).tolist() == [code_of.get(value, -1) for value in column]


def test_integers_are_found_among_floats_and_the_other_way_round() -> None:
    assert Keys(pl.Series([1, 2])).find(pl.Series([2.0, 1.5, float("nan")])).tolist() == [1, -1, -1]
    assert Keys(pl.Series([1.5, 2.0])).find(pl.Series([2, 1])).tolist() == [1, -1]


def test_texts_that_hash_alike_get_another_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    def weak(texts: pl.Series, seed: int) -> np.ndarray[Any, Any]:
        lengths = texts.str.len_chars() if seed < 2 else texts.hash(seed)
        return lengths.fill_null(0).to_numpy().astype(np.uint64).view(np.int64)

    monkeypatch.setattr(column_order, "_hashes", weak)
    assert Keys(pl.Series(["a", "bb"])).find(pl.Series(["b", "bb", None, "a"])).tolist() == [-1, 1, -1, 0]
    keys = Keys(pl.Series(["a", "b", "a"]))
    assert keys.codes[0] == keys.codes[2] != keys.codes[1]
    assert keys.find(pl.Series(["b", "a", "c", None])).tolist() == [*keys.codes[[1, 0]], -1, -1]
