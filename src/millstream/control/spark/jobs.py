"""The Spark jobs of one checkpoint folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from millstream.control.job.jobs import Jobs
from millstream.control.spark.job import SparkJob

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SparkJobs(Jobs):
    def __init__(self, spark: SparkSession, folder: Path, *, shards: int, cached: bool = True) -> None:
        self.spark, self.cached = spark, cached
        super().__init__(folder, shards=shards)

    def _new_job(self, folder: Path | None, *, shards: int, stages: int) -> SparkJob:
        assert folder is not None
        return SparkJob(self.spark, folder, shards=shards, stages=stages, cached=self.cached)
