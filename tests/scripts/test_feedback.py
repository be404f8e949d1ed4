"""Random scripts of feedback: what is emitted is that of the reference without the rows that are not wanted, in every
variant of a run."""

from __future__ import annotations

from random import Random

from hypothesis import given, note, settings
from hypothesis import strategies as st

from millstream.testing import Variant, run_text
from tests.scripts.feedback import random_feedback
from tests.scripts.record import recorded
from tests.tries import tries

VARIANTS = (
    Variant(cut="random:3"),
    Variant(shards=2, cut="random:5"),
    Variant(shards=3, options=(("page_rows", 2),)),
    Variant(shards=2, cut="random:4", restart=True),
)


@given(st.integers(0, 1 << 30), st.sampled_from(VARIANTS))
@settings(max_examples=tries(80), deadline=None)
def test_feedback(seed: int, variant: Variant) -> None:
    text, answers = recorded(random_feedback(Random(seed)))
    note(text)
    answers.check()
    outcome = run_text(text, variant)
    assert outcome.passed, "\n".join(outcome.failures)
