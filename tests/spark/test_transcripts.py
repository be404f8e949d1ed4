"""Transcripts on Spark: every third one on two shards, some without cached state, a sample with restarts.

`make soak` runs all of them: cut at random, and restarted after every batch.
"""

import pytest
from pyspark.sql import SparkSession
from tests.paths import TRANSCRIPTS

from millstream.testing.runner import Variant, transcripts
from millstream.testing.spark import run_paths_on_spark

RESTARTED = (
    "aggregate/tumbling",
    "early/w03_windows_of_groups",
    "engine/queries_come_and_go",
    "join/three_streams",
    "feedback/closed_keys",
    "over/out_of_order",
    "sequence/recent",
    "source/late_and_bad",
)

pytestmark = pytest.mark.xdist_group("spark")


@pytest.mark.parametrize(
    ("variant", "cached", "places", "step", "count"),
    [(Variant(shards=2), True, "", 3, 75), (Variant(shards=2, cut="random:4"), False, "sequence", 1, 3)],
    ids=["two shards", "sequences, no cache, random cuts"],
)
@pytest.mark.timeout(1800)
def test_transcripts_on_spark(
    spark: SparkSession, variant: Variant, cached: bool, places: str, step: int, count: int
) -> None:
    outcomes = run_paths_on_spark(spark, transcripts([TRANSCRIPTS / places])[::step], variant, cached=cached)
    failures = [f"{outcome.name}: {failure}" for outcome in outcomes for failure in outcome.failures]
    assert not failures, "\n".join(failures)
    assert len(outcomes) > count


@pytest.mark.timeout(1800)
def test_transcripts_restarted_on_spark(spark: SparkSession) -> None:
    files = [TRANSCRIPTS / f"{name}.transcript" for name in RESTARTED]
    outcomes = run_paths_on_spark(spark, files, Variant(shards=2, restart=True))
    failures = [f"{outcome.name}: {failure}" for outcome in outcomes for failure in outcome.failures]
    assert not failures, "\n".join(failures)
    assert len(outcomes) == len(RESTARTED)
