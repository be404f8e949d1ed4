"""Hears from Spark when a batch is done: its own account of the batch, and the moment to tell whoever wants to know.

For Spark it is a `StreamingQueryListener`. It is no subclass of PySpark's class of that name, which asks the JVM for
every value of an event one by one, the metrics of the state store included; this one takes an event as JSON.

Spark calls from a thread of its own, after the batch has been committed, and does not wait for an answer. So a slow
callback holds up the next calls and no batch; it then hears of a later batch, and of none twice. One that raises is
logged and called again.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from millstream.control.observe.progress import Progress, running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.control.job.base import Job
    from millstream.control.mill.base import Mill

OnProgress = Callable[[Progress], object]
LOG = logging.getLogger("millstream")


class BatchListener:
    """Tells the jobs of a mill what Spark reports of them, and callbacks how the queries fare."""

    def __init__(self, mill: Mill) -> None:
        self._mill = mill
        self._callbacks: list[OnProgress] = []
        self._told: dict[str, int] = {}
        self._spark: SparkSession | None = None
        self._wrapped: Any = None

    def attach(self, spark: SparkSession) -> None:
        """Listen to the queries of a session, if that has not been done yet."""
        if self._spark is None:
            self._spark = spark
            spark.streams.addListener(self)

    @property
    def _jlistener(self) -> Any:
        """What PySpark registers, and takes out again."""
        if self._wrapped is None and self._spark is not None:
            wrapper = self._spark._jvm.org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper
            self._wrapped = wrapper(self)
        return self._wrapped

    def detach(self) -> None:
        spark, self._spark = self._spark, None
        if spark is not None:
            with suppress(Exception):  # the session may have been stopped by whoever made it
                spark.streams.removeListener(self)

    def add(self, callback: OnProgress) -> Callable[[], None]:
        """Call this after every batch, for each query; what comes back ends it."""
        self._callbacks.append(callback)

        def remove() -> None:
            with suppress(ValueError):
                self._callbacks.remove(callback)

        return remove

    def hear(self, report: Mapping[str, Any]) -> None:
        """Take Spark's report on a batch."""
        job = self._job(report["name"])
        if job is None:
            return
        job.report = dict(report)
        self.hear_local(job)

    def hear_local(self, job: Job) -> None:
        """A job has done a batch."""
        if self._callbacks:
            for progress in list(running(self._mill, job)):
                self._tell(progress)

    def _job(self, name: str | None) -> Job | None:
        return next((job for job in self._mill.jobs.all() if job.name == name), None)

    def _tell(self, progress: Progress) -> None:
        if self._told.get(progress.query, -1) >= progress.batch:
            return
        self._told[progress.query] = progress.batch
        for callback in list(self._callbacks):
            try:
                callback(progress)
            except Exception:
                LOG.exception("a callback on the progress of query '%s' has failed", progress.query)

    # --- what Spark calls -------------------------------------------------------------------------------------------

    def onQueryProgress(self, event: Any) -> None:
        try:
            progress = event.progress()
            if self._job(progress.name()) is not None:
                self.hear(json.loads(progress.json()))
        except Exception:
            LOG.exception("a report of Spark has been lost")

    def _ignore(self, _: Any) -> None:
        pass

    onQueryStarted = onQueryIdle = onQueryTerminated = _ignore

    class Java:
        implements = ["org.apache.spark.sql.streaming.PythonStreamingQueryListener"]
