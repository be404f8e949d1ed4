"""Every transcript on Spark: two shards, random cuts, restarts, state read back from the store."""

import pytest
from pyspark.sql import SparkSession
from tests.paths import TRANSCRIPTS

from millstream.testing.runner import Variant
from millstream.testing.spark import run_paths_on_spark

pytestmark = pytest.mark.xdist_group("spark")


@pytest.mark.parametrize(
    ("variant", "cached", "places", "count"),
    [(Variant(shards=2, cut="random:4"), True, "", 75), (Variant(shards=2), False, "sequence", 3)],
    ids=["two shards, random cuts", "sequences, no cache"],
)
@pytest.mark.timeout(600)
def test_transcripts_on_spark(spark: SparkSession, variant: Variant, cached: bool, places: str, count: int) -> None:
    outcomes = run_paths_on_spark(spark, [TRANSCRIPTS / places], variant, cached=cached)
    failures = [f"{outcome.name}: {failure}" for outcome in outcomes for failure in outcome.failures]
    assert not failures, "\n".join(failures)
    assert len(outcomes) > count
