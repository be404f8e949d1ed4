"""Frames handled column by column are what Polars makes of them, and what goes in stays as it is."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from millstream.runtime.operator import frames
from millstream.runtime.operator.frames import pick, stack, take, where
from tests.tries import tries

rows = st.lists(st.tuples(st.none() | st.integers(-3, 3), st.none() | st.text("ab", max_size=20), st.booleans()))
SCHEMA = {"n": pl.Int64, "s": pl.String, "b": pl.Boolean}


def frame(made: list[tuple[object, ...]]) -> pl.DataFrame:
    return pl.DataFrame(made, schema=SCHEMA, orient="row")


@settings(max_examples=tries(100), deadline=None)
@given(rows, st.randoms())
def test_rows_and_columns(made, random):
    given_ = frame(made)
    mask = np.array([random.random() < 0.5 for _ in made], dtype=np.bool_)
    places = np.array([random.randrange(len(made)) for _ in made], dtype=np.int64)
    assert_frame_equal(where(given_, mask), given_.filter(pl.Series(mask)))
    assert_frame_equal(where(given_, pl.Series(mask)), given_.filter(pl.Series(mask)))
    assert_frame_equal(take(given_, places), given_[places.tolist()])
    assert_frame_equal(pick(given_, ["b", "n"]), given_.select("b", "n"))
    assert_frame_equal(given_, frame(made))


@settings(max_examples=tries(100), deadline=None)
@given(st.lists(rows, min_size=1, max_size=4), st.sampled_from([3, 1 << 16]))
def test_one_after_the_other(parts, most):
    given_ = [frame(part) for part in parts]
    usual, frames.ONE_CHUNK_ROWS = frames.ONE_CHUNK_ROWS, most
    try:
        made = stack(given_)
    finally:
        frames.ONE_CHUNK_ROWS = usual
    assert_frame_equal(made, pl.concat(given_))
    assert made.height > most or made.n_chunks() == 1
    if len(given_) > 1:
        made.extend(made.clone())
    for part, before in zip(given_, parts, strict=True):
        assert_frame_equal(part, frame(before))
