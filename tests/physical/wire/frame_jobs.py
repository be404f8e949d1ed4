"""Jobs in this process that read pages of DataFrames, as Spark's tasks pack them."""

from collections.abc import Iterator
from typing import Any

import polars as pl

from millstream.algebra.upstream import TimeRequest
from millstream.config import Options
from millstream.control.job.jobs import LocalJobs
from millstream.control.job.local import LocalJob
from millstream.control.mill import LocalMill
from millstream.control.spark.dataframe_source import routes_of
from millstream.physical.spark.frame_packing import judged_columns, pack_frame
from millstream.physical.wire.reading import Dealt
from millstream.physical.wire.records import Send
from millstream.physical.wire.shard_split import ShardSplit


class FrameJob(LocalJob):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.given: list[tuple[int, ShardSplit]] = []

    def adopt(self, frames: dict[str, Any]) -> None:
        self.routes = routes_of(self.log)

    def give(self, rows: pl.DataFrame, chunk: int, partition: int = 0) -> None:
        """Pack rows of the stream `s` as Spark's tasks do."""
        route = self.routes["s"]
        columns = tuple(name for name in route.definition.schema.names if name in route.columns)
        read = dict.fromkeys((*columns, *judged_columns(route.definition)))
        cut = rows.with_columns(pl.lit(1).alias("__now")).select(*read, "__now").to_arrow().to_batches(chunk)
        for page in pack_frame(route.definition, columns, tuple(route.targets), partition, iter(cut)):
            for row in page.to_pylist():
                self.given.append((row["shard"], ShardSplit.from_bytes("s", row["head"], row["page"])))

    def _splits(self, dealt: Dealt) -> Iterator[tuple[int, ShardSplit]]:
        yield from super()._splits(dealt)
        given, self.given = self.given, []
        yield from given

    def wait(self, position: int, timeout: float = 120.0) -> None:
        if self.given and position <= self.position:
            position = self.append(Send("main", TimeRequest()))
        super().wait(position, timeout)


class FrameJobs(LocalJobs):
    def _new_job(self, folder: Any, *, shards: int, stages: int) -> FrameJob:
        return FrameJob(folder, shards=shards, stages=stages, clock=lambda: self.clock(), cached=self.cached)


def frame_mill(shards: int) -> LocalMill:
    """A mill whose stream `s` is a DataFrame."""
    mill = LocalMill(Options(shards=shards), jobs=FrameJobs(shards=shards))
    mill.adopt("s", object())
    return mill
