"""Transcripts on Spark: samples of this turn on two shards, without cached state, and with restarts.

`make soak` runs all of them: cut at random, and restarted after every batch.
"""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.paths import TRANSCRIPTS
from tests.tries import chosen

from millstream.testing.runner import Variant, transcripts
from millstream.testing.spark import run_paths_on_spark

FILES = transcripts([TRANSCRIPTS])
SEQUENCES = transcripts([TRANSCRIPTS / "sequence"])
SHORT = [path for path in FILES if path.read_text(encoding="utf-8-sig").count("\n\n") < 10]  # a restart takes seconds


@pytest.mark.parametrize(
    ("files", "variant", "cached"),
    [
        (chosen(FILES, 12), Variant(shards=2), True),
        (chosen(SEQUENCES, 2), Variant(shards=2, cut="random:4"), False),
        (chosen(SHORT, 25), Variant(shards=2, restart=True), True),
    ],
    ids=["two shards", "sequences, no cache, random cuts", "restarted"],
)
@pytest.mark.timeout(1800)
def test_transcripts_on_spark(spark: SparkSession, files: list[Path], variant: Variant, cached: bool) -> None:
    outcomes = run_paths_on_spark(spark, files, variant, cached=cached)
    failures = [f"{outcome.name}: {failure}" for outcome in outcomes for failure in outcome.failures]
    assert not failures, "\n".join(failures)
    assert len(outcomes) == len(files) > 0
