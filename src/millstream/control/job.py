"""A Spark job that hosts mills: it reads the control log, runs the shards, and delivers what they put out.

The job's Spark plan never changes: one source, and one stateful stage or several in a row, with an exchange by shard
before each. What it runs is in the log.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

from millstream.algebra import values
from millstream.algebra.punctuation import Punctuations
from millstream.control.adopted import packed, routes_of
from millstream.control.session import QUERY_SETTINGS
from millstream.errors import MillstreamError, OptionError
from millstream.physical.codec import decode
from millstream.physical.control_log import ControlLog
from millstream.physical.durable import SegmentFiles
from millstream.physical.hashing import spread
from millstream.physical.post import INPUT, OUTPUT, PUNCTUATIONS, ROWS
from millstream.physical.records import Ask, Feed, OpenGroup, Promise, Record, RequestPunctuation
from millstream.physical.reports import read_report
from millstream.physical.stage import Status
from millstream.physical.topology import Route
from millstream.whole_file import write_whole

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

__all__ = ["Job", "Tenant"]

PASSING = (Feed, Promise, Ask, RequestPunctuation)
"""Records that nobody needs once shards have heard them."""
REPEATABLE = 4
"""Of so many batches at the end the records are kept; Spark repeats one at most."""
COMMIT_SECONDS = 10.0
"""For how long a job that stops waits for Spark to commit what has been delivered."""
COMPACT_AFTER = 16_000_000
"""Bytes by which a log may grow before it is compacted."""


class Stopped(Exception):
    """A batch that nobody has seen anything of is given up; it is done anew after the next start."""


class Tenant(Protocol):
    """A mill that a job hosts."""

    name: str

    def deliver(self, job: Job, label: int, query: str, element: pl.DataFrame | Punctuations) -> None: ...
    def heard(self, job: Job, label: int, status: Status) -> None: ...
    def finish_batch(self, job: Job, batch: int) -> None: ...
    def outputs_state(self, job: Job) -> dict[str, dict[str, object]]: ...


@dataclass(frozen=True, slots=True)
class LastBatch:
    """`seconds`: from the call for its results until they were delivered; `written`: bytes of state that its shards
    wrote; `ended`: when it was delivered, in seconds since the epoch."""

    batch: int = -1
    seconds: float = 0.0
    rows: int = 0
    written: int = 0
    ended: float = 0.0

    @property
    def rows_per_second(self) -> float:
        return self.rows / self.seconds if self.seconds else 0.0


class Job:
    def __init__(
        self, spark: SparkSession, checkpoint: Path, *, shards: int, stages: int = 1, cached: bool = True
    ) -> None:
        self.spark, self.checkpoint, self.cached = spark, checkpoint, cached
        self.id, self.shards, self.stages = _identity(checkpoint, shards, stages)
        self.log = ControlLog(checkpoint / "control.log", writable=True)
        self.tenants: dict[int, Tenant] = {}
        self._known: dict[str, Tenant] = {}
        """Who owns a label."""
        self.position = 0
        """How far the log has been worked off."""
        self.last = LastBatch()
        self.rows_in = 0
        """Rows read by the job itself since it was opened."""
        self.batches, self.seconds = 0, 0.0
        """Batches delivered since it was opened, and how long they took."""
        self.report: dict[str, Any] | None = None
        """Spark's own report on the last batch that the listener has heard of."""
        self.frames: dict[str, DataFrame] = {}
        """The DataFrames that the job reads, by the name of their stream."""
        self.routes: dict[str, Route] = {}
        """Who gets them, as the running Spark plan has it."""
        self._needed = 0
        self._groups = max((r.group for r in self.log.read(0, self.log.end()) if isinstance(r, OpenGroup)), default=0)
        self._last_batch = -1
        self._reached: deque[int] = deque(maxlen=REPEATABLE)
        """How far the log had been worked off after each of the last batches."""
        self._query: StreamingQuery | None = None
        self._stopping = False
        """Whether no more batches are to be delivered."""
        self._delivering: int | None = None
        """The thread that delivers a batch."""
        self._changed = threading.Condition()
        self._failure: BaseException | None = None
        self._lifecycle = threading.RLock()
        self._appending = threading.Lock()

    def append(self, record: Record, *, concerns: bool = True) -> int:
        """Write a record to the log. `concerns`: some shard will hear of it, so that one can wait for it."""
        with self._appending:
            end = self.log.append(record)
            if concerns:
                self._needed = end
            return end

    def allot(self, count: int, tenant: Tenant) -> tuple[int, tuple[int, ...]]:
        """A number for a new group, and labels for its shards, which belong to the tenant from now on."""
        with self._lifecycle:
            self._groups += 1
            labels = spread(count, self.shards, set(self.tenants))
            self.admit(labels, tenant)
            return self._groups, labels

    def admit(self, labels: Iterable[int], tenant: Tenant) -> None:
        """Let shards belong to a tenant, who takes the place of any other of that name."""
        self.tenants |= dict.fromkeys(labels, tenant)
        self._known[tenant.name] = tenant

    @property
    def name(self) -> str:
        """The name of its Spark query."""
        return f"millstream-{self.id}"

    @property
    def running(self) -> bool:
        return self._query is not None and self._query.isActive

    def start(self) -> None:
        with self._lifecycle:
            if not self.running:
                self._start()

    def reroute(self, mill: str) -> None:
        """Take note of who gets the DataFrames; a running job is started again if that has changed."""
        with self._lifecycle:
            before, self.routes = self.routes, routes_of(self.log, mill)
            if self.running and before != self.routes:
                self.restart()

    @property
    def complete(self) -> bool:
        """Whether all DataFrames are there that the job reads."""
        return self.routes.keys() <= self.frames.keys()

    def _start(self) -> None:
        for name, value in QUERY_SETTINGS.items():
            self.spark.conf.set(name, value)
        self.spark.conf.set("spark.sql.shuffle.partitions", str(self.shards))
        self._failure, self._stopping = None, False
        writer = self.frame().writeStream.outputMode("append").foreachBatch(self._receive)
        writer = writer.option("checkpointLocation", str(self.checkpoint / "spark")).queryName(self.name)
        self._query = writer.start()

    def frame(self) -> DataFrame:
        """The job's Spark plan: pages in, pages out."""
        from millstream.physical.entry import FORMAT, LazyStage, PageSource

        self.spark.dataSource.register(PageSource)
        reader = self.spark.readStream.format(FORMAT).option("log", str(self.log.path))
        pages = reader.option("parallelism", str(self.spark.sparkContext.defaultParallelism)).load()
        for name, route in self.routes.items():
            pages = pages.unionAll(packed(self.frames[name], route))
        for number in range(self.stages):
            stage = LazyStage(self.id, number, self.stages, cached=self.cached)
            schema = OUTPUT if number + 1 == self.stages else INPUT
            pages = pages.groupBy("shard").transformWithState(stage, schema, "Append", "None")
        return pages

    def stop(self) -> None:
        with self._changed:
            self._stopping = True
        query, self._query = self._query, None
        if query is not None:
            self._settle(query)
            query.stop()

    def _settle(self, query: StreamingQuery) -> None:
        """Until Spark has committed the batch that was delivered last, which the next job would deliver again."""
        deadline = time.monotonic() + COMMIT_SECONDS
        while not self._committed() and time.monotonic() < deadline and query.isActive:
            time.sleep(0.01)

    def _committed(self) -> bool:
        if self._delivering not in (None, threading.get_ident()):
            return False
        return self._last_batch < 0 or (self.checkpoint / "spark" / "commits" / str(self._last_batch)).exists()

    def restart(self) -> None:
        """Stop the Spark query and go on from its checkpoint."""
        with self._lifecycle:
            self.stop()
            self.start()

    def close(self) -> None:
        self.stop()
        self.log.close()
        SegmentFiles(self.id).clear()

    def wait(self, position: int, timeout: float = 120.0) -> None:
        """Until the log has been worked off up to a position."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while self.position < position:
                self.check()
                if not self._changed.wait(0.2) and time.monotonic() > deadline:
                    raise OptionError("M6050", f"the Spark job has not caught up within {timeout:.0f} s")

    def places(self) -> dict[str, Any]:
        """How far the job has read its streams, by mill and name."""
        progress: Any = self.report
        if progress is None and self._query is not None:
            progress = self._query.lastProgress
        if progress is None:
            return {}
        held = progress["sources"][0]["endOffset"]
        offset = json.loads(held) if isinstance(held, str) else held
        made: dict[str, Any] = json.loads(offset["streams"]) if offset else {}
        return made

    def reports(self) -> list[dict[str, Any]]:
        """Spark's own reports on the batches of this start, as far as it keeps them."""
        return [] if self._query is None else [json.loads(report.json) for report in self._query.recentProgress]

    def settled(self) -> bool:
        """Whether everything in the log has been worked off."""
        return self.position >= self._needed

    def check(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._lifecycle.acquire(blocking=False):  # unless it is being restarted
            try:
                if self._query is not None and not self._query.isActive:
                    raise failure(self._query)
            finally:
                self._lifecycle.release()

    def _receive(self, frame: DataFrame, batch: int) -> None:
        try:
            self._deliver(frame, batch)
        except Exception as error:
            if self._query is not None:  # it is not being stopped
                self._failure = explained(error)
            raise
        finally:
            self._delivering = None

    def _deliver(self, frame: DataFrame, batch: int) -> None:
        """Take a batch of pages from the shards. A batch that was delivered before a restart is not delivered twice."""
        again = batch <= self._last_batch
        position, told = self.position, False
        served: dict[int, Tenant] = {}
        begun, written = time.monotonic(), 0
        taken: Counter[tuple[int, str, int]] = Counter()
        words: list[tuple[Tenant, int, Status]] = []
        made = frame.toArrow()
        with self._changed:
            if self._stopping:
                raise Stopped
            self._delivering = threading.get_ident()
        for label, query, kind, page in zip(
            *(column.to_pylist() for column in made.columns[:3]), made["page"], strict=True
        ):
            tenant = self.tenants.get(label)
            if tenant is None:
                continue
            served[id(tenant)] = tenant
            if kind not in (ROWS, PUNCTUATIONS):
                status: Status = values.decode(page.as_buffer(), "the status of a shard")
                position = max(position, status.position)
                for stream, count in status.rows_in.items():
                    taken[id(tenant), stream, status.group] += count
                written += status.written
                words.append((tenant, label, status))
            elif not again:
                element = decode(page.as_buffer()) if kind == ROWS else values.decode(page.as_buffer())
                told = told or kind == PUNCTUATIONS
                tenant.deliver(self, label, query, element)
        rows = _distinct(taken)
        if not again:
            for tenant in served.values():
                tenant.finish_batch(self, batch)
            if told:
                self._save_outputs(batch)
        for tenant, label, status in words:  # that a stream has ended is heard when its last results are out
            tenant.heard(self, label, status)
        with self._changed:
            self._last_batch = max(batch, self._last_batch)
            self.position = position
            self._reached.append(position)
            self.rows_in += rows
            self.last = LastBatch(batch, time.monotonic() - begun, rows, written, time.time())
            self.batches, self.seconds = self.batches + 1, self.seconds + self.last.seconds
            self._changed.notify_all()
        self._compact()

    def _compact(self) -> None:
        """Drop what shards have heard from a log that has grown: not who runs what, and not what Spark may repeat."""
        if len(self._reached) < REPEATABLE or self.log.size < self.log.compacted + COMPACT_AFTER:
            return
        heard = self._reached[0]
        with self._appending:
            self.log.compact(lambda position, record: position > heard or not isinstance(record, PASSING))

    def _save_outputs(self, batch: int) -> None:
        """Keep what later punctuations depend on, for this batch and the one before it."""
        folder = self.checkpoint / "outputs"
        folder.mkdir(exist_ok=True)
        held = {name: tenant.outputs_state(self) for name, tenant in [*self._known.items()]}
        write_whole(folder / str(batch), values.encode(held))
        for old in sorted((path for path in folder.iterdir() if path.name.isdigit()), key=lambda p: int(p.name))[:-3]:
            old.unlink()

    def outputs_state(self, tenant: str) -> dict[str, dict[str, object]]:
        """What was kept of a tenant's outputs by the last batch that will not be delivered again: Spark has committed
        it, or it was delivered by this job before Spark was started anew."""
        done = [int(path.name) for path in (self.checkpoint / "spark" / "commits").glob("[0-9]*")]
        kept = [int(path.name) for path in (self.checkpoint / "outputs").glob("[0-9]*")]
        fit = [batch for batch in kept if batch <= max([self._last_batch, *done])]
        if not fit:
            return {}
        path = self.checkpoint / "outputs" / str(max(fit))
        held: dict[str, dict[str, dict[str, object]]] = values.decode(path.read_bytes(), f"'{path}'")
        return held.get(tenant, {})


def _distinct(taken: Counter[tuple[int, str, int]]) -> int:
    """How many rows came, where several groups of shards may have read the same stream."""
    most: dict[tuple[int, str], int] = {}
    for (tenant, stream, _), count in taken.items():
        most[tenant, stream] = max(most.get((tenant, stream), 0), count)
    return sum(most.values())


def failure(query: StreamingQuery) -> Exception:
    """What has ended a query, in a form worth showing."""
    error: Any = query.exception()
    return OptionError("M6051", "the Spark query has ended") if error is None else explained(error)


def explained(error: BaseException) -> Exception:
    """An error of Spark's as the error of Millstream's that it carries, if it does."""
    if isinstance(error, MillstreamError):
        return error
    text = str(error).strip()
    if (found := read_report(text)) is not None:
        return found
    said = text.partition("\n\n=== Streaming Query ===")[0].partition("\n=== Streaming Query ===")[0].splitlines()
    hint = "Start again with the same checkpoint, and it goes on where it was."
    return OptionError("M6051", said[0] if said else type(error).__name__, detail="\n".join(said[1:]), hint=hint)


def _identity(checkpoint: Path, shards: int, stages: int) -> tuple[str, int, int]:
    """The job of a checkpoint: its name, and the numbers of shards and stages it was begun with."""
    path = checkpoint / "job.json"
    if path.exists():
        try:
            held: dict[str, Any] = json.loads(path.read_text())
            values.check_format(held.get("format"), f"'{path}'")
            return held["id"], held["shards"], held["stages"]
        except (ValueError, KeyError, AttributeError) as error:
            raise values.unversioned(f"'{path}'") from error
    checkpoint.mkdir(parents=True, exist_ok=True)
    made = uuid.uuid4().hex[:12]
    held = {"format": values.FORMAT, "id": made, "shards": shards, "stages": stages}
    write_whole(path, json.dumps(held).encode(), durable=True)
    return made, shards, stages
