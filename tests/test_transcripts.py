"""Every transcript, in every variant that must not change results. The command line runs the plain variant."""

from pathlib import Path

import pytest

from millstream.testing import Variant, run_text
from tests.paths import TRANSCRIPTS

FILES = sorted(TRANSCRIPTS.rglob("*.transcript"))
VARIANTS = {
    "tuple by tuple": Variant(cut="1"),
    "three shards, cut": Variant(shards=3, cut="random:5"),
    "restarted": Variant(restart=True, cut="random:3"),
    "depth first": Variant(options=(("strategy", "dfs"), ("page_rows", 1)), cut="random:7"),
    "breadth first": Variant(options=(("strategy", "bfs"),), cut="random:2"),
    "batches of two": Variant(options=(("strategy", "batch:2"), ("page_rows", 1))),
}


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS.keys())
@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(TRANSCRIPTS).with_suffix("")))
def test_transcript(path: Path, variant: Variant) -> None:
    outcome = run_text(path.read_text(), variant, path.stem)
    assert outcome.passed, "\n".join(outcome.failures)
