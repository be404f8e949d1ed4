"""Metrics for Prometheus, read from the connection at each scrape. In process a scrape while a batch runs gets the
numbers from before that batch, which are kept at most once a second; else nothing runs between scrapes.

    server = serve(connection, 9464)      # http://127.0.0.1:9464/metrics

`docs/metrics.md` lists the metrics. Counters of operators and streams are part of the shards' state and survive a
restart. Counters of jobs and of delivered rows start at 0 when a connection is opened.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from millstream.algebra.types import MICROS
from millstream.control.connection import Connection
from millstream.control.job.base import Job
from millstream.control.job.jobs import LocalJobs
from millstream.control.job.local import LocalJob
from millstream.control.mill.base import Mill
from millstream.control.observe.progress import OperatorProgress, durations, running
from millstream.control.observe.stream_progress import stream_progress
from millstream.errors import OptionError
from millstream.runtime.engine.gate import GuardReading

Labels = tuple[str, ...]
Family = tuple[type[CounterMetricFamily] | type[GaugeMetricFamily], str, str, Callable[[Any], float | None]]
"""A metric: kind, name, help, and the function that reads its value from a subject; None: the subject has no sample."""
KEPT = 1.0
"""Seconds for which the metrics that are kept before a batch are new enough."""
NAMED = 3
"""The most patterns in the name of a guard."""
COUNTER, GAUGE = CounterMetricFamily, GaugeMetricFamily

OF_OPERATORS: tuple[Family, ...] = (
    (COUNTER, "operator_rows_in", "Tuples received.", lambda o: o.reading.tuples_in),
    (COUNTER, "operator_rows_out", "Tuples emitted.", lambda o: o.reading.tuples_out),
    (COUNTER, "operator_rows_late", "Tuples that are late: of a closed key, or for PACE.", lambda o: o.reading.late),
    (COUNTER, "operator_rows_disclaimed", "Tuples that guards have dropped.", lambda o: o.reading.disclaimed),
    (GAUGE, "operator_guards", "Patterns of guards.", lambda o: sum(g.count for g in o.reading.tests)),
    (COUNTER, "operator_feedback", "Feedback received.", lambda o: o.reading.told),
    (COUNTER, "operator_feedback_stopped", "Feedback that stopped there.", lambda o: o.reading.stopped),
    (COUNTER, "operator_punctuations_in", "Punctuations received.", lambda o: o.reading.punctuations_in),
    (COUNTER, "operator_punctuations_out", "Punctuations emitted.", lambda o: o.reading.punctuations_out),
    (COUNTER, "operator_steps", "Execution steps.", lambda o: o.reading.steps),
    (COUNTER, "operator_seconds", "Time spent in execution steps.", lambda o: o.reading.seconds),
    (GAUGE, "operator_state_rows", "Tuples or groups held.", lambda o: o.reading.state),
    (GAUGE, "operator_rows_aside", "Tuples held that wait behind newer ones.", lambda o: o.reading.aside),
    (COUNTER, "operator_rows_shed", "Tuples that EXPENSIVE has dropped to keep up.", lambda o: o.reading.shed),
    (GAUGE, "operator_state_bytes", "Approximate memory of the state.", lambda o: o.state_bytes),
    (GAUGE, "operator_buffered_rows", "Tuples that wait at the inputs.", lambda o: o.reading.buffered),
)
OF_GUARDS: tuple[Family, ...] = (
    (GAUGE, "guard_patterns", "Patterns of the guard.", lambda g: g.count),
    (GAUGE, "guard_values", "Values and ranges in these patterns.", lambda g: g.values),
    (COUNTER, "guard_rows_tested", "Tuples that the guard has tested.", lambda g: g.tested),
    (COUNTER, "guard_rows_dropped", "Tuples that the guard has dropped.", lambda g: g.dropped),
    (GAUGE, "guard_asleep", "1 if the guard tests no tuples for a while, else 0.", lambda g: float(g.asleep)),
)
OF_STREAMS: tuple[Family, ...] = (
    (GAUGE, "rows_behind", "Rows known to wait.", lambda s: s.behind),
    (
        COUNTER,
        "stream_punctuations_undeclared",
        "Punctuations that conform to no declared template.",
        lambda s: s.conduct.strange,
    ),
    (COUNTER, "stream_promises_broken", "Rows that match a punctuation before them.", lambda s: s.conduct.broken),
    (
        GAUGE,
        "stream_punctuation_overdue_seconds",
        "Time by which punctuation with EVERY is overdue.",
        lambda s: max((seconds for _, seconds in s.conduct.overdue), default=0.0),
    ),
    (GAUGE, "stream_newest_event_timestamp_seconds", "The newest event time seen.", lambda s: s.newest),
    (COUNTER, "stream_rows_skipped", "Rows that the source has left out: unwanted.", lambda s: s.skipped.rows),
    (COUNTER, "stream_rows_tested", "Rows compared with patterns of unwanted rows.", lambda s: s.skipped.tested),
    (COUNTER, "stream_row_groups_skipped", "Row groups left out by their statistics.", lambda s: s.skipped.groups),
    (COUNTER, "stream_row_groups_read", "Row groups read to find unwanted rows.", lambda s: s.skipped.groups_read),
    (COUNTER, "stream_column_chunks_skipped", "Columns of row groups not read.", lambda s: s.skipped.chunks),
    (COUNTER, "stream_column_chunks_read", "Columns of row groups read.", lambda s: s.skipped.chunks_read),
    (GAUGE, "stream_guards", "Patterns of rows that no reader wants.", lambda s: len(s.unwanted)),
    (GAUGE, "stream_guards_asleep", "1 if the source tests no rows for a while, else 0.", lambda s: float(s.asleep)),
    (GAUGE, "event_lag_seconds", "The wall clock minus the newest event time seen.", lambda s: s.lag),
)
OF_JOBS: tuple[Family, ...] = (
    (GAUGE, "job_up", "1 if the job runs, else 0.", lambda job: float(_up(job))),
    (COUNTER, "batches", "Batches delivered.", lambda job: job.batches),
    (COUNTER, "busy_seconds", "Time spent in batches.", lambda job: job.seconds),
    (COUNTER, "job_rows", "Rows read by the job or fed to it.", lambda job: job.rows_in),
)
OF_BATCHES: tuple[Family, ...] = (
    (GAUGE, "batch_seconds", "The last batch: time.", lambda batch: batch.seconds),
    (GAUGE, "batch_rows", "The last batch: rows read.", lambda batch: batch.rows),
    (GAUGE, "state_bytes_written", "The last batch: bytes of state written.", lambda batch: batch.written),
    (GAUGE, "batch_end_timestamp_seconds", "Time of the last delivery.", lambda batch: batch.ended),
)
BOUND: Family = (GAUGE, "query_state_rows_bound", "The most state rows, if known.", lambda q: q.bounds.rows)
ROWS_OUT: Family = (COUNTER, "query_rows_out", "Rows that the sink has taken.", lambda q: q.rows_out)
FAILED: Family = (GAUGE, "query_failed", "1 if the query has failed, else 0.", lambda q: float(q.failure is not None))
FINISHED: Family = (GAUGE, "query_finished", "1 if its LIMIT is out, else 0.", lambda q: float(q.finished is not None))
OF_ANSWERS: tuple[Family, ...] = (
    (COUNTER, "early_answers_compared", "Early answers compared with their final ones.", lambda a: a.count),
    (GAUGE, "early_accuracy_average", "Their accuracy on average, in percent.", lambda a: a.mean),
    (GAUGE, "early_accuracy_worst", "The worst accuracy, in percent.", lambda a: a.worst),
)
LEAD: Family = (
    GAUGE,
    "early_lead_seconds",
    "Time from a prod to the end of the window.",
    lambda q: q.lead,
)
SPOOLED: tuple[Family, ...] = (
    (GAUGE, "sink_failing", "1 if the sink of the query fails, else 0.", lambda o: float(o.trouble is not None)),
    (GAUGE, "sink_spooled_rows", "Rows that wait for the sink of the query.", lambda o: o.spool.rows),
    (GAUGE, "sink_spooled_bytes", "Their size.", lambda o: o.spool.bytes),
)
CLOCK: Family = (
    GAUGE,
    "clock_ahead_seconds",
    "How far the time of streams is ahead of the machine's clock, which has gone back.",
    lambda clock: clock.ahead / MICROS,
)
SHARDS: Family = (GAUGE, "shard_seconds", "Time that a shard worked in the last batch.", float)
ROWS: Family = (COUNTER, "stream_rows", "Rows that have arrived.", float)
OF_TABLES: tuple[Family, ...] = (
    (GAUGE, "table_rows", "Rows in the table.", lambda counts: counts["accepted"]),
    (
        COUNTER,
        "table_rows_bad",
        "Rows that did not fit and were not written.",
        lambda counts: counts["bad"],
    ),
)
PHASES: Family = (GAUGE, "batch_phase_seconds", "The last batch: time per phase, as Spark reports it.", float)


class MillCollector(Collector):
    def __init__(self, mill: Mill) -> None:
        self._mill = mill
        self._kept: list[Metric] | None = None
        self._kept_at = 0.0
        """When they were kept before a batch; 0: they are to be kept before the next one."""

    def keep(self) -> None:
        """Keep the metrics for scrapes while a batch runs."""
        if time.monotonic() > self._kept_at + KEPT:
            with suppress(Exception):  # metrics stop no batch
                self._kept, self._kept_at = list(self._read()), time.monotonic()

    def collect(self) -> list[Metric]:
        busy = any(isinstance(job, LocalJob) and job.busy for job in self._mill.jobs.all())
        if not busy or self._kept is None:
            self._kept = list(self._read())
        self._kept_at = 0.0  # later ones are never from before these
        return self._kept

    def _counts(self, table: str) -> dict[str, int]:
        return self._mill.written.counts(table, fresh=False)

    def _read(self) -> Iterator[Metric]:
        queries, streams = list(running(self._mill)), list(stream_progress(self._mill).values())
        operators = [((q.query, o.name, str(o.shard)), o) for q in queries for o in q.operators]
        yield from _filled(OF_OPERATORS, ("query", "operator", "shard"), operators)
        yield from _filled(OF_GUARDS, ("query", "operator", "shard", "input", "guard"), list(_guards(operators)))
        yield from _filled((ROWS_OUT, BOUND), ("query",), [((q.query,), q) for q in queries])
        answers = [(q.query, q.accuracy) for q in queries if q.accuracy.all.count]
        both = [((name, which), getattr(held, which)) for name, held in answers for which in ("all", "last")]
        yield from _filled(OF_ANSWERS, ("query", "answers"), both)
        yield from _filled((LEAD,), ("query",), [((q.query,), q) for q in queries])
        started = [((name,), query) for name, query in [*self._mill.queries.items()]]
        yield from _filled((FAILED, FINISHED), ("query",), started)
        outlets = [((name,), outlet) for name, outlet in [*self._mill.deliveries.outlets.items()]]
        yield from _filled(SPOOLED, ("query",), outlets)
        shards = [((q.query, str(number)), seconds) for q in queries for number, seconds in enumerate(q.shards)]
        yield from _filled((SHARDS,), ("query", "shard"), shards)
        rows = [((s.name, what), getattr(s, what)) for s in streams for what in ("accepted", "late", "bad")]
        yield from _filled((ROWS,), ("stream", "outcome"), rows)
        yield from _filled(OF_STREAMS, ("stream",), [((s.name,), s) for s in streams])
        tables = [((table.name,), self._counts(table.name)) for table in self._mill.catalog.tables]
        yield from _filled((CLOCK,), (), [((), self._mill.clock)])
        yield from _filled(OF_TABLES, ("table",), tables)
        jobs = self._mill.jobs.all()
        yield from _filled(OF_JOBS, ("job",), [((job.title,), job) for job in jobs])
        yield from _filled(OF_BATCHES, ("job",), [((job.title,), job.last) for job in jobs if job.batches])
        phases = [((job.title, phase), taken) for job in jobs for phase, taken in durations(job).items()]
        yield from _filled((PHASES,), ("job", "phase"), phases)


def _guards(operators: Iterable[tuple[Labels, OperatorProgress]]) -> Iterator[tuple[Labels, GuardReading]]:
    """The guards of operators; a guard is named by its first patterns."""
    for labels, operator in operators:
        for number, test in enumerate(operator.reading.tests):
            more = ", …" if test.count > NAMED else ""
            yield (*labels, str(number), ", ".join(test.patterns[:NAMED]) + more), test


def _filled(families: Iterable[Family], labels: Labels, subjects: Iterable[tuple[Labels, Any]]) -> Iterator[Metric]:
    for kind, name, text, value in families:
        family = kind(f"millstream_{name}", text, labels=labels)
        for names, subject in subjects:
            if (sample := value(subject)) is not None:
                family.add_metric(names, sample)
        yield family


def _up(job: Job) -> bool:
    try:
        return job.running
    except Exception:  # the JVM is gone
        return False


class MetricsServer:
    """`port`: the bound port, even if 0 was requested."""

    def __init__(self, server: WSGIServer, thread: threading.Thread) -> None:
        self._server, self._thread = server, thread
        self.port: int = server.server_port

    def close(self) -> None:
        """Stop listening. A second call does nothing."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join(timeout=5)
        self._server.server_close()


def serve(connection: Connection, port: int, address: str = "127.0.0.1") -> MetricsServer:
    """Serve metrics at this port until the connection is closed. There is no password: the default address admits only
    this machine."""
    registry = CollectorRegistry()
    collector = MillCollector(connection.mill)
    registry.register(collector)
    try:
        server = MetricsServer(*start_http_server(port, address, registry))
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        hint = "use another port, or 0 for any free port"
        raise OptionError("M6060", f"cannot serve metrics at {address}:{port}: {reason}", hint=hint) from error
    if isinstance(connection.mill.jobs, LocalJobs):
        connection.mill.jobs.before_batch.append(collector.keep)
    connection.at_close(server.close)
    return server
