"""Spark's reports on finished batches, and the callbacks on the progress of queries.

For Spark it is a `StreamingQueryListener`. It is not a subclass of PySpark's class of that name, which fetches every
value of an event from the JVM one by one, the metrics of the state store included; this one takes an event as JSON.

Spark calls it from a thread of its own, after the batch has been committed, and does not wait for it. So a slow
callback delays the next calls and no batch; it may miss batches, and gets none twice. An exception of a callback is
logged, and the callback is called again after the next batch.
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
    """Passes Spark's reports to the jobs of a mill, and the progress of queries to callbacks."""

    def __init__(self, mill: Mill, after_batch: Callable[[], None] = lambda: None) -> None:
        self._mill, self._after_batch = mill, after_batch
        self._callbacks: list[OnProgress] = []
        self._notified: dict[str, int] = {}
        """The last batch reported to callbacks, by query."""
        self._spark: SparkSession | None = None
        self._wrapped: Any = None

    def attach(self, spark: SparkSession) -> None:
        """Listen to the queries of a session, unless already attached."""
        if self._spark is None:
            self._spark = spark
            spark.streams.addListener(self)

    @property
    def _jlistener(self) -> Any:
        """The listener in the JVM, which PySpark registers and removes."""
        if self._wrapped is None and self._spark is not None:
            wrapper = self._spark._jvm.org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper
            self._wrapped = wrapper(self)
        return self._wrapped

    def detach(self) -> None:
        spark, self._spark = self._spark, None
        if spark is not None:
            with suppress(Exception):  # the owner of the session may have stopped it
                spark.streams.removeListener(self)

    def add(self, callback: OnProgress) -> Callable[[], None]:
        """Call a callback after every batch, for each query; return a function that removes it."""
        self._callbacks.append(callback)

        def remove() -> None:
            with suppress(ValueError):
                self._callbacks.remove(callback)

        return remove

    def hear(self, report: Mapping[str, Any]) -> None:
        """Store Spark's report on a batch, and call the callbacks."""
        job = self._job(report["name"])
        if job is None:
            return
        job.report = dict(report)
        self.hear_local(job)

    def hear_local(self, job: Job) -> None:
        """Call the callbacks after a batch of a job."""
        self._after_batch()
        if self._callbacks:
            for progress in list(running(self._mill, job)):
                self._notify(progress)

    def _job(self, name: str | None) -> Job | None:
        return next((job for job in self._mill.jobs.all() if job.name == name), None)

    def _notify(self, progress: Progress) -> None:
        if self._notified.get(progress.query, -1) >= progress.batch:
            return
        self._notified[progress.query] = progress.batch
        for callback in list(self._callbacks):
            try:
                callback(progress)
            except Exception:
                LOG.exception("a callback on the progress of query '%s' has failed", progress.query)

    # --- called by Spark --------------------------------------------------------------------------------------------

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
