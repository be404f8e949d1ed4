"""The task of a contestant and its measurement."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from millstream.errors import OptionError
from millstream_bench.spark.throughput.data import EventFiles
from millstream_bench.spark.throughput.workloads import Workload


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options, the same for every contestant."""

    files_per_batch: int = 2
    """With half a million events a file, about a million rows a batch."""
    warm_up: int = 12
    """Batches before the measurement."""
    cores: int = 2

    def check(self, data: EventFiles) -> None:
        batches = data.files // self.files_per_batch
        if batches <= self.warm_up:
            message = f"a warm-up of {self.warm_up} batches leaves nothing to measure: there are {batches}"
            raise OptionError("M6002", message, hint="Take more events or a shorter warm-up.")


@dataclass(frozen=True, slots=True)
class Batch:
    """One micro-batch; moments are seconds since the epoch."""

    rows: int
    started: float
    ended: float
    state_rows: int | None = None
    """Rows held by stateful operators afterwards, if known."""
    cpu_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Measurement:
    """The steady state, after the warm-up and before the end of the stream."""

    rows: int
    wall_s: float
    cpu_s: dict[str, float]
    """By kind of process."""
    answers: dict[str, int]
    """Over the whole stream, warm-up and last window included."""
    batches: list[Batch] = field(default_factory=list)
    """All batches, in order."""
    note: str = ""
    """The variant, if there are several."""
    whole_cpu_s: float = 0.0
    """Of the whole process, from its start to its end."""

    @property
    def rows_per_s(self) -> float:
        return self.rows / self.wall_s

    @property
    def rows_per_cpu_s(self) -> float:
        return self.rows / sum(self.cpu_s.values())


class Contestant(Protocol):
    """An engine that can run the workloads over the files, closing ones included."""

    @property
    def name(self) -> str:
        """`millstream`, or a name that begins with `spark`."""

    def run(self, workload: Workload, data: EventFiles, options: RunOptions) -> Measurement: ...


def steady(batches: list[Batch], warm_up: int) -> list[Batch]:
    """The batches to measure: without the first `warm_up` and without those that only close the stream.

    >>> batches = [Batch(100, t, t + 1.0) for t in range(4)] + [Batch(1, 4, 4.1), Batch(0, 4.1, 4.2)]
    >>> [batch.started for batch in steady(batches, 2)]
    [2, 3]
    """
    most = max((batch.rows for batch in batches), default=0)
    full = [batch for batch in batches if batch.rows > most // 2]
    return full[warm_up:]
