"""Every transcript on Spark: two shards, state read back from the store; a sample also with restarts.

`make soak` cuts all of them at random, and restarts all of them after every batch.
"""

import pytest
from pyspark.sql import SparkSession
from tests.paths import TRANSCRIPTS

from millstream.testing.runner import Variant
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
    ("variant", "cached", "places", "count"),
    [(Variant(shards=2), True, "", 75), (Variant(shards=2, cut="random:4"), False, "sequence", 3)],
    ids=["two shards", "sequences, no cache, random cuts"],
)
@pytest.mark.timeout(1800)
def test_transcripts_on_spark(spark: SparkSession, variant: Variant, cached: bool, places: str, count: int) -> None:
    outcomes = run_paths_on_spark(spark, [TRANSCRIPTS / places], variant, cached=cached)
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
