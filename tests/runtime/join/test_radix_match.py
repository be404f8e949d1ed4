"""Pairs of equal integers, against every pair looked at."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.runtime.join.radix_match import radix_match
from tests.tries import tries

LIMITS = np.iinfo(np.int64)
near = st.integers(-5, 5)
apart = st.integers(-(1 << 31), (1 << 31) - 1).map(lambda n: n // 97 * 97) | near
anywhere = near | st.sampled_from([LIMITS.min, LIMITS.min + 1, LIMITS.max - 1, LIMITS.max])


@pytest.mark.parametrize("keys", [near, apart, anywhere], ids=["near", "apart", "anywhere"])
@settings(max_examples=tries(200), deadline=None)
@given(st.data())
def test_against_every_pair(keys, data):
    partner, probe = (data.draw(st.lists(keys, min_size=1, max_size=12)) for _ in range(2))
    found = radix_match(np.array(partner, dtype=np.int64), np.array(probe, dtype=np.int64))
    if found is None:
        assert max(partner) - min(partner) >= 1 << 32
        return
    pairs = [(i, j) for i, asked in enumerate(probe) for j, known in enumerate(partner) if asked == known]
    probing, partners = found.pairs()
    assert list(zip(probing.tolist(), partners.tolist(), strict=True)) == pairs


def test_a_long_partner_is_left_to_a_hash_join():
    assert radix_match(np.zeros(1 << 15, dtype=np.int64), np.zeros(2, dtype=np.int64)) is None
