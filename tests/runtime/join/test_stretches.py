"""Stretches of partners cut by time, against every pair looked at."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.schema import FOREVER, NEVER
from millstream.runtime.join import stretches
from millstream.runtime.join.stretches import Near, by_number
from tests.tries import tries

KEYS = 4
stamps = st.integers(0, 9) | st.sampled_from([NEVER, NEVER + 1, FOREVER - 1, FOREVER])
tuples = st.lists(st.tuples(st.integers(0, KEYS - 1), stamps), min_size=1, max_size=15)
reach = st.none() | st.integers(0, 4) | st.just(FOREVER)


@settings(max_examples=tries(600), deadline=None)
@given(tuples, tuples, st.booleans(), reach, reach)
def test_against_every_pair(probe, partner, in_order, older, newer):
    if in_order:
        partner = sorted(partner, key=lambda row: row[1])
    (asked, times), (known, held) = (
        np.array(list(zip(*rows, strict=True)), dtype=np.int64) for rows in (probe, partner)
    )
    made = Near(times, held, older, newer).cut(by_number(known, asked, KEYS))
    pairs = [
        (i, j)
        for i, (key, at) in enumerate(probe)
        for j, (other, then) in enumerate(partner)
        if key == other and (older is None or at - then <= older) and (newer is None or then - at <= newer)
    ]
    assert list(zip(*(rows.tolist() for rows in made.pairs()), strict=True)) == pairs
    assert int(made.count.sum()) == len(pairs)


@settings(max_examples=tries(200), deadline=None)
@given(tuples, tuples, st.integers(1, 20))
def test_portions_are_the_pairs_a_few_at_a_time(probe, partner, most):
    made = by_number(np.array([key for key, _ in partner]), np.array([key for key, _ in probe]), KEYS)
    with patch.object(stretches, "MOST_PAIRS", most):
        portions = list(made.portions())
    for side, rows in enumerate(made.pairs()):
        assert np.concatenate([portion[side] for portion in portions]).tolist() == rows.tolist()
    assert all(len(rows) <= most or len({*rows.tolist()}) == 1 for rows, _ in portions)


def test_a_reach_beyond_all_times_is_none():
    made = Near(np.array([5]), np.array([NEVER, FOREVER]), 1 << 70, 1 << 70).cut(
        by_number(np.array([0, 0]), np.array([0]), 1)
    )
    assert made.count.tolist() == [2]
