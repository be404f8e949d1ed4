"""Every transcript, in some of the variants that must not change results; `make fuzz` runs it in all of them."""

from pathlib import Path

import pytest

from millstream.testing import Variant, run_text
from millstream.testing.runner import LOCAL, LocalHost
from tests.paths import TRANSCRIPTS
from tests.tries import SHARE, rotated

FILES = sorted(TRANSCRIPTS.rglob("*.transcript"))
VARIANTS = {
    "plain": Variant(),
    "tuple by tuple": Variant(cut="1"),
    "three shards, cut": Variant(shards=3, cut="random:5"),
    "restarted": Variant(restart=True, cut="7" if SHARE < 1 else "random:3"),
    "depth first": Variant(options=(("strategy", "dfs"), ("page_rows", 1)), cut="random:7"),
    "breadth first": Variant(options=(("strategy", "bfs"),), cut="random:2"),
    "batches of two": Variant(options=(("strategy", "batch:2"), ("page_rows", 1))),
    "no cached state": Variant(shards=3, cut="random:9"),
}


@pytest.mark.parametrize(
    ("path", "variant"),
    rotated(FILES, list(VARIANTS), keep=2),
    ids=lambda case: case if isinstance(case, str) else str(case.relative_to(TRANSCRIPTS).with_suffix("")),
)
def test_transcript(path: Path, variant: str) -> None:
    host = LocalHost(cached=False) if variant == "no cached state" else LOCAL
    outcome = run_text(path.read_text(encoding="utf-8-sig"), VARIANTS[variant], path.stem, host)
    assert outcome.passed, "\n".join(outcome.failures)
