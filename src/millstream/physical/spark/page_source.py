"""The source of a Spark job: the batches of `wire.reading` as pages by shard.

One Python data source feeds a job. Its process next to the driver reads the log and advances the places in streams;
Spark's tasks read files and generators.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from millstream.algebra.clock import SystemClock
from millstream.algebra.values import encode
from millstream.collection import freeze_once
from millstream.physical.failure.transport import reporting
from millstream.physical.wire.address import CONTROL, SPLIT, address
from millstream.physical.wire.codec import PackedRow, row_batch
from millstream.physical.wire.control_log import ControlLog
from millstream.physical.wire.reading import BatchReader, Offset, SplitWork


class Work(InputPartition):
    """The work of one task: control records to forward, splits to read."""

    def __init__(self, control: list[tuple[int, int, bytes]], splits: list[SplitWork]) -> None:
        self.control, self.splits = control, splits


class PageReader:
    def __init__(self, options: dict[str, str]) -> None:
        self._parallelism = int(options.get("parallelism", "2"))
        self._clock = SystemClock()
        self._batches = BatchReader(ControlLog(Path(options["log"])), self._parallelism)

    def initialOffset(self) -> Offset:
        return self._batches.initial()

    def latestOffset(self, start: Offset, limit: Any) -> Offset:  # noqa: ARG002
        with reporting():
            self._clock.reach(int(start["now"]))
            return self._batches.latest(start, self._clock.now())

    def partitions(self, start: Offset, end: Offset) -> Sequence[Work]:
        with reporting():
            dealt = self._batches.deal(start, end)
        control = [(label, stage, encode(held)) for label, stage, held in dealt.control]
        count = max(1, min(self._parallelism, len(dealt.splits)))
        return [Work(control if task == 0 else [], dealt.splits[task::count]) for task in range(count)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Work)
        rows: list[PackedRow] = []
        for label, stage, page in partition.control:
            shard, seq = address(label, 0, stage)
            rows.append((shard, seq, CONTROL, "", b"", page))
        for work in partition.splits:
            with reporting():
                for label, split in work.packed():
                    rows.append((label, work.seq, SPLIT, work.stream.name, *split.to_bytes()))
        if rows:
            batch = row_batch(rows)
            freeze_once()
            yield batch
