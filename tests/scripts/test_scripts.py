"""Random scripts give one answer: that of the reference, in every variant of a run."""

from __future__ import annotations

from random import Random

from hypothesis import given, note, settings
from hypothesis import strategies as st

from millstream.testing import Variant, run_text
from tests.scripts.record import recorded
from tests.scripts.script import random_script
from tests.tries import tries

VARIANTS = {
    "cut": Variant(cut="random:3"),
    "two shards": Variant(shards=2, cut="random:5"),
    "three shards": Variant(shards=3, options=(("page_rows", 2),)),
    "restarted": Variant(shards=2, cut="random:4", restart=True),
    "depth first": Variant(cut="2", options=(("strategy", "dfs"), ("page_rows", 1))),
    "breadth first": Variant(cut="random:2", options=(("strategy", "bfs"),)),
    "batches": Variant(shards=2, options=(("strategy", "batch:2"), ("page_rows", 1))),
    "round robin": Variant(shards=2, cut="random:8", options=(("strategy", "rr"),)),
}


@given(st.randoms(use_true_random=False), st.sampled_from(sorted(VARIANTS)))
@settings(max_examples=tries(200), deadline=None)
def test_scripts(chance: Random, variant: str) -> None:
    blocks = random_script(chance)
    note("\n\n".join(blocks))
    text, answers = recorded(blocks)
    answers.check()
    outcome = run_text(text, VARIANTS[variant])
    if not outcome.passed:
        note(text)
    assert outcome.passed, "\n".join(outcome.failures)
