"""Random scripts of early answers give the same rows in every variant of a run."""

from __future__ import annotations

from random import Random

from hypothesis import given, note, settings
from hypothesis import strategies as st

from millstream.testing import Variant, run_text
from tests.scripts.prods import random_prods, with_answers
from tests.tries import tries

VARIANTS = (
    Variant(cut="1"),
    Variant(cut="random:3", shards=3),
    Variant(shards=2, restart=True),
    Variant(shards=2, cut="random:4", restart=True),
)


@given(st.integers(0, 1 << 30), st.sampled_from(VARIANTS))
@settings(max_examples=tries(60), deadline=None)
def test_prods(seed: int, variant: Variant) -> None:
    text = with_answers(random_prods(Random(seed)))
    outcome = run_text(text, variant)
    if not outcome.passed:
        note(text)
    assert outcome.passed, "\n".join(outcome.failures)
