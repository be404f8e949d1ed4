"""Metrics for Prometheus: everything is read from the connection when it is scraped; nothing runs in between.

    server = serve(connection, 9464)      # http://127.0.0.1:9464/metrics

`docs/metrics.md` lists the metrics. Counts of operators and streams are part of the state of the shards, so that they
go on after a restart; those of jobs and of delivered rows begin at nought when a connection is opened.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from millstream.control.base import Mill
from millstream.control.connection import Connection
from millstream.control.job import Job
from millstream.control.progress import Progress, durations, running
from millstream.control.stream_progress import StreamProgress, stream_progress
from millstream.errors import OptionError
from millstream.runtime.engine import NodeStatistics

Labels = tuple[str, ...]
Sample = tuple[Labels, float]
QUERY, OPERATOR, JOB, STREAM = ("query",), ("query", "operator", "shard"), ("job",), ("stream",)


class Watched(Protocol):
    """What metrics are read from."""

    mill: Mill


class MillCollector(Collector):
    def __init__(self, watched: Watched) -> None:
        self._watched = watched

    def collect(self) -> Iterator[Metric]:
        mill = self._watched.mill
        queries, streams = list(running(mill)), list(stream_progress(mill).values())
        yield from _operators(queries)
        yield from _queries(queries)
        yield from _streams(streams)
        yield from _jobs(mill.jobs.all())


class MetricsServer:
    """`port` is where it listens, also if any free one was asked for (0)."""

    def __init__(self, server: WSGIServer, thread: threading.Thread) -> None:
        self._server, self._thread = server, thread
        self.port: int = server.server_port

    def close(self) -> None:
        """Stop listening. May be called twice."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join(timeout=5)
        self._server.server_close()


def serve(connection: Connection, port: int, address: str = "127.0.0.1") -> MetricsServer:
    """Answer Prometheus at this port until the connection is closed. The default address is for this machine alone;
    there is no password, so think before you give another one."""
    server = serve_collector(MillCollector(connection), port, address)
    connection.at_close(server.close)
    return server


def serve_collector(collector: Collector, port: int, address: str) -> MetricsServer:
    registry = CollectorRegistry()
    registry.register(collector)
    try:
        return MetricsServer(*start_http_server(port, address, registry))
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        hint = "take another port, or 0 for any that is free"
        raise OptionError("M6060", f"cannot serve metrics at {address}:{port}: {reason}", hint=hint) from error


# --- families -------------------------------------------------------------------------------------------------------


def _operators(queries: Sequence[Progress]) -> Iterator[Metric]:
    found = [((q.query, o.name, str(o.shard)), o.reading, o.state_bytes) for q in queries for o in q.operators]
    counters: tuple[tuple[str, str, Callable[[NodeStatistics], float]], ...] = (
        ("rows_in", "Tuples taken in.", lambda r: r.tuples_in),
        ("rows_out", "Tuples put out.", lambda r: r.tuples_out),
        ("rows_late", "Tuples taken for late: their key was closed.", lambda r: r.late),
        ("punctuations_in", "Punctuations taken in.", lambda r: r.punctuations_in),
        ("punctuations_out", "Punctuations put out.", lambda r: r.punctuations_out),
        ("steps", "Execution steps.", lambda r: r.steps),
        ("seconds", "Time spent in execution steps.", lambda r: r.seconds),
    )
    for name, text, value in counters:
        samples = [(labels, value(reading)) for labels, reading, _ in found]
        yield _counter(f"operator_{name}", text, OPERATOR, samples)
    held = [(labels, reading.state) for labels, reading, _ in found]
    yield _gauge("operator_state_rows", "Tuples or groups held.", OPERATOR, held)
    sizes = [(labels, size) for labels, _, size in found]
    yield _gauge("operator_state_bytes", "Memory that they take, about.", OPERATOR, sizes)
    waiting = [(labels, reading.buffered) for labels, reading, _ in found]
    yield _gauge("operator_buffered_rows", "Tuples that wait at the inputs after the last batch.", OPERATOR, waiting)


def _queries(queries: Sequence[Progress]) -> Iterator[Metric]:
    rows = [((q.query,), q.rows_out) for q in queries]
    yield _counter("query_rows_out", "Rows delivered.", QUERY, rows)
    shards = [((q.query, str(number)), seconds) for q in queries for number, seconds in enumerate(q.shards)]
    yield _gauge("shard_seconds", "How long a shard worked in the last batch.", ("query", "shard"), shards)


def _streams(streams: Sequence[StreamProgress]) -> Iterator[Metric]:
    rows: list[Sample] = []
    for s in streams:
        rows += [((s.name, "accepted"), s.accepted), ((s.name, "late"), s.late), ((s.name, "bad"), s.bad)]
    yield _counter("stream_rows", "Rows that have come.", ("stream", "outcome"), rows)
    behind = [((s.name,), s.behind) for s in streams if s.behind is not None]
    yield _gauge("rows_behind", "Rows that are known to wait.", STREAM, behind)
    newest = [((s.name,), s.newest) for s in streams if s.newest is not None]
    yield _gauge("stream_newest_event_timestamp_seconds", "The newest event time seen.", STREAM, newest)
    lag = [((s.name,), s.lag) for s in streams if s.lag is not None]
    yield _gauge("event_lag_seconds", "The wall clock minus the newest event time seen.", STREAM, lag)


def _jobs(jobs: Sequence[Job]) -> Iterator[Metric]:
    named = [((job.title,), job) for job in jobs]
    delivered = [(label, job) for label, job in named if job.batches]
    yield _gauge("job_up", "Whether the job runs.", JOB, [(label, float(_up(job))) for label, job in named])
    yield _counter("batches", "Batches delivered.", JOB, [(label, job.batches) for label, job in named])
    yield _counter("busy_seconds", "Time that they took.", JOB, [(label, job.seconds) for label, job in named])
    yield _counter("job_rows", "Rows taken by the shards.", JOB, [(label, job.rows_in) for label, job in named])
    last = [(label, job.last) for label, job in delivered]
    yield _gauge("batch_seconds", "The last batch: time.", JOB, [(label, batch.seconds) for label, batch in last])
    yield _gauge("batch_rows", "The last batch: rows taken.", JOB, [(label, batch.rows) for label, batch in last])
    written = [(label, batch.written) for label, batch in last]
    yield _gauge("state_bytes_written", "The last batch: bytes of state written.", JOB, written)
    ended = [(label, batch.ended) for label, batch in last]
    yield _gauge("batch_end_timestamp_seconds", "When the last batch was delivered.", JOB, ended)
    phases = [((*label, phase), taken) for label, job in named for phase, taken in durations(job).items()]
    yield _gauge("batch_phase_seconds", "The last batch by Spark's own account.", ("job", "phase"), phases)


def _up(job: Job) -> bool:
    try:
        return job.running
    except Exception:  # the JVM is gone
        return False


def _counter(name: str, text: str, labels: Labels, samples: Iterable[Sample]) -> Metric:
    return _filled(CounterMetricFamily(f"millstream_{name}", text, labels=labels), samples)


def _gauge(name: str, text: str, labels: Labels, samples: Iterable[Sample]) -> Metric:
    return _filled(GaugeMetricFamily(f"millstream_{name}", text, labels=labels), samples)


def _filled(family: CounterMetricFamily | GaugeMetricFamily, samples: Iterable[Sample]) -> Metric:
    for labels, value in samples:
        family.add_metric(labels, value)
    return family
