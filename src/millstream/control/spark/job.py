"""A job that Spark runs.

Its Spark plan never changes: one source, and one stateful stage or several in a row, with an exchange by shard before
each. Only a job that reads DataFrames is restarted, when other shards read them.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.algebra import values
from millstream.algebra.element import Page
from millstream.algebra.python.code import code_of, find_code
from millstream.algebra.python.definition import Definition
from millstream.algebra.python.reference import Reference
from millstream.control.job.base import Job, OutputStates, Result
from millstream.control.job.explaining import explained
from millstream.control.spark.dataframe_source import has_read_dataframes, packed, routes_of
from millstream.control.spark.environment import is_stopped
from millstream.control.spark.files import SparkFiles
from millstream.control.spark.launcher import launched
from millstream.control.spark.session import QUERY_SETTINGS, active
from millstream.errors import OptionError, fresh
from millstream.logical.references import references
from millstream.physical.shard.batch import Status
from millstream.physical.shard.durable import SegmentFiles
from millstream.physical.shard.topology import Route, Topology
from millstream.physical.wire.address import INPUT, OUTPUT, PUNCTUATIONS, ROWS
from millstream.physical.wire.codec import decode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

COMMIT_SECONDS = 4.0
"""Longest time that a stopping job waits for Spark to commit delivered batches."""


class Stopped(Exception):
    """Abandons a batch of which nothing was delivered; the next start runs it again. Spark searches the text of the
    error for an interruption, and logs no failure if it finds one: its pattern overflows the stack on a long text."""

    def __str__(self) -> str:
        return "py4j.protocol.Py4JJavaError: An error occurred while calling stop: java.lang.InterruptedException"


class SparkJob(Job):
    host_name = "Spark"

    def __init__(self, spark: SparkSession, folder: Path, *, shards: int, stages: int = 1, cached: bool = True) -> None:
        super().__init__(folder, shards=shards, stages=stages)
        self.spark, self.checkpoint, self.cached = spark, folder, cached
        assert self.noted is not None
        self._files = SparkFiles(folder / "spark", self.noted)
        self._files.mend(self.log.end())
        self.frames: dict[str, DataFrame] = {}
        """The DataFrames that the job reads, by the name of their stream."""
        self.routes: dict[str, Route] = routes_of(self.log)
        """Their routes in the Spark plan."""
        self._query: StreamingQuery | None = None
        self._stopping = False
        """True once no more batches may be delivered."""
        self._delivering: int | None = None
        """The thread that is delivering a batch."""
        self._failure: BaseException | None = None
        self._code: dict[Reference, Definition] = {}
        """The Python code that its workers have."""

    # --- DataFrames -------------------------------------------------------------------------------------------------

    def adopt(self, frames: dict[str, DataFrame]) -> None:
        """Take DataFrames; restart a running job if one of them, or a route, is another one than before."""
        with self._lifecycle:
            same = all(self.frames.get(name) is frame for name, frame in frames.items())
            self.frames |= frames
            before, self.routes = self.routes, routes_of(self.log)
            if self.running and not (same and before == self.routes):
                self.restart()

    # --- Python code ------------------------------------------------------------------------------------------------

    def require(self, needed: Iterable[Reference], others: Iterable[Reference] = ()) -> None:
        """Send code to the workers with the next start; restart a running job whose workers lack what is needed."""
        from millstream.physical.spark.shipped import can_pack, pack

        new = {reference: code_of(reference) for reference in needed if reference not in self._code}
        if not new:
            return
        pack(new)  # a mistake is reported before the job stops
        more = {reference: code for reference in others if (code := find_code(reference)) and can_pack(code)}
        with self._lifecycle:
            self._code = more | self._code | new
            if self.running:
                self.restart()

    def _gather_code(self) -> bytes:
        """The code that the queries in the log need, and new ones are known to need."""
        from millstream.physical.spark.shipped import pack

        needed = {r: code for r in references(Topology.of(self.log).plans()) if (code := find_code(r)) is not None}
        self._code = needed | self._code
        return pack(self._code)

    def _has_its_frames(self) -> bool:
        """Return whether it can start: a checkpoint with DataFrames needs all of them."""
        if not self.routes and has_read_dataframes(self.log):
            return False  # it runs no query
        return self.routes.keys() <= self.frames.keys()

    # --- life -------------------------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        return self._query is not None and self._query.isActive

    def start(self) -> None:
        with self._lifecycle:
            if not self.running and self._has_its_frames():
                self._start()

    def _start(self) -> None:
        self._failure, self._stopping = None, False
        try:
            writer = self.frame(own=True).writeStream.outputMode("append").foreachBatch(self._receive)
            writer = writer.option("checkpointLocation", str(self.checkpoint / "spark")).queryName(self.name)
            self._query = writer.start()
        except Exception as error:
            raise self._explained(error) from error

    def frame(self, *, own: bool = False) -> DataFrame:
        """The job's Spark plan, from pages to pages. It sets the session settings that a query reads on starting.
        `own`: it runs with the job's own checkpoint."""
        with launched(self.spark):
            return self._frame(own=own)

    def _frame(self, *, own: bool) -> DataFrame:
        from millstream.physical.spark.entry import FORMAT, LazyStage, PageSource

        for setting, value in QUERY_SETTINGS.items():
            self.spark.conf.set(setting, value)
        self.spark.conf.set("spark.sql.shuffle.partitions", str(self.shards))
        with active(self.spark):  # another active session may have a source of this name
            self.spark.dataSource.register(PageSource)
        reader = self.spark.readStream.format(FORMAT).option("log", str(self.checkpoint / "control.log"))
        pages = reader.option("parallelism", str(self.spark.sparkContext.defaultParallelism)).load()
        for name, route in self.routes.items():
            pages = pages.unionAll(packed(self.frames[name], route, str(self.checkpoint) if own else None))
        code = self._gather_code()
        for number in range(self.stages):
            stage = LazyStage(self.id, number, self.stages, code, cached=self.cached)
            schema = OUTPUT if number + 1 == self.stages else INPUT
            pages = pages.groupBy("shard").transformWithState(stage, schema, "Append", "None")
        return pages

    def stop(self) -> None:
        with self._changed:
            self._stopping = True
        query, self._query = self._query, None
        if query is not None and not is_stopped(self.spark):
            # The next start would deliver an uncommitted batch again.
            deadline = time.monotonic() + COMMIT_SECONDS
            while not self._all_committed() and time.monotonic() < deadline and query.isActive:
                time.sleep(0.01)
            query.stop()

    def _all_committed(self) -> bool:
        if self._delivering not in (None, threading.get_ident()):
            return False
        return self._last_batch < 0 or (self.checkpoint / "spark" / "commits" / str(self._last_batch)).exists()

    def applied(self) -> int:
        return self.position or int(self._last_offset()["log"])

    @property
    def time_reached(self) -> int:
        return int(self._last_offset()["now"])

    def _last_offset(self) -> Any:
        """The end of the last committed batch."""
        return self._files.offset(max(self._files.committed(), default=-1))

    def span(self, batch: int) -> tuple[dict[str, Any], dict[str, Any]]:
        before, after = (json.loads(self._files.offset(number)["streams"]) for number in (batch - 1, batch))
        return before, after

    def close(self) -> None:
        super().close()
        SegmentFiles(self.id).clear()

    def wait(self, position: int, timeout: float = 120.0) -> None:
        deadline = time.monotonic() + timeout
        with self._changed:
            while self.position < position:
                self.check()
                if not self._changed.wait(0.2) and time.monotonic() > deadline:
                    raise OptionError("M6050", f"the Spark job has not caught up within {timeout:.0f} s")

    def check(self) -> None:
        if self._failure is not None:
            raise fresh(self._failure)
        if self._lifecycle.acquire(blocking=False):  # unless it is being restarted
            try:
                if self._query is not None and not self._query.isActive:
                    error: Any = self._query.exception()
                    raise OptionError("M6051", "the Spark query has ended") if error is None else self._explained(error)
            finally:
                self._lifecycle.release()

    def _explained(self, error: BaseException) -> Exception:
        cause = explained(error, self.checkpoint)
        if isinstance(cause, OptionError) and cause.code == "M6051" and is_stopped(self.spark):
            hint = "connect() to a new session; with the same checkpoint it continues where it stopped"
            cause = OptionError("M6051", "the Spark session is stopped", hint=hint)
        cause.__cause__ = None if cause is error else error
        return cause

    # --- reports ----------------------------------------------------------------------------------------------------

    def places(self) -> dict[str, Any]:
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
        return [] if self._query is None else [json.loads(report.json) for report in self._query.recentProgress]

    # --- outputs ----------------------------------------------------------------------------------------------------

    def _keep_outputs(self, batch: int, *, changed: bool) -> None:
        assert self.noted is not None
        self.noted.begin(batch, self._files.text(batch), outputs=self._outputs() if changed else None)

    def _kept_outputs(self) -> Mapping[str, OutputStates]:
        assert self.noted is not None
        return self.noted.outputs(max([self._last_batch, *self._files.committed()]))

    # --- batches ----------------------------------------------------------------------------------------------------

    def _receive(self, frame: DataFrame, batch: int) -> None:
        """Deliver a batch of pages from the shards."""
        begun = time.monotonic()
        try:
            pages = frame.toArrow()
            with self._changed:
                if self._stopping:
                    raise Stopped
                self._delivering = threading.get_ident()
            rows = list(zip(*(column.to_pylist() for column in pages.columns[:3]), pages["page"], strict=True))
            self.deliver(batch, _results(rows), _reports(rows), begun)
            return
        except Exception as error:
            if not self._stopping:
                if self._query is not None:
                    self._failure = self._explained(error)
                raise
        finally:
            self._delivering = None
        raise Stopped  # whose text has not the error that the end of the query has caused


def _results(rows: list[Any]) -> Iterator[Result]:
    for label, query, kind, page in rows:
        if kind == ROWS:
            yield label, query, Page(decode(page.as_buffer()))
        elif kind == PUNCTUATIONS:
            yield label, query, values.decode(page.as_buffer())


def _reports(rows: list[Any]) -> Iterator[tuple[int, Status]]:
    for label, _, kind, page in rows:
        if kind not in (ROWS, PUNCTUATIONS):
            yield label, values.decode(page.as_buffer(), "the status of a shard")
