"""Deliveries: results that jobs hand to a mill, batch by batch, for the outputs of its queries and their sinks.

Jobs deliver from threads of their own while queries start and stop: a delivery finds a query complete, or not at all.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from millstream.algebra.element import Element
from millstream.amounts import amount
from millstream.control.mill.modes import shape_of
from millstream.control.mill.outlet import LOG, Outlet
from millstream.control.mill.placement import Placement, Placements
from millstream.control.mill.spool import Spool
from millstream.physical.shard.batch import Status
from millstream.sinks import DeliveryOptions, Sink, delivery_options, make_sink
from millstream.sinks.files.parquet import ParquetSink

if TYPE_CHECKING:
    from millstream.control.job.base import Job
    from millstream.control.mill.endings import Endings
    from millstream.control.mill.failures import Failures
    from millstream.control.mill.running_query import RunningQuery
    from millstream.control.reports import Reported


def _made(sink: Any, options: Mapping[str, str], job: Job, *, anew: bool) -> tuple[Sink, DeliveryOptions]:
    """The sink of a query in a job, and how results are delivered to it."""
    given = {option: value for option, value in options.items() if option != "connector"}
    delivery, own = delivery_options(given, sink if isinstance(sink, str) else "of the program")
    if isinstance(sink, str):
        own |= {"run": job.id, "anew": str(anew).lower()}
        if job.noted is not None and not anew:
            own["begun"] = str(job.batch)
    return make_sink(sink, own), delivery


class Deliveries:
    """A mill as a tenant of its jobs."""

    def __init__(self, name: str, queries: Mapping[str, RunningQuery], placements: Placements) -> None:
        self.name, self._queries, self._placements = name, queries, placements
        self.note_sources: Callable[[Job, list[Status]], None] = lambda _job, _statuses: None
        """Takes the sources that shards of a job have reported in a batch."""
        self.relay: Callable[[Job], None] = lambda _job: None
        """Passes on what the shards of a job have disclaimed."""
        self.failures: Failures | None = None
        """Takes the failures of queries."""
        self.endings: Endings | None = None
        """Takes the ends of queries."""
        self.reported: Iterable[Reported] = ()
        """Take what operators report."""
        self.outlets: dict[str, Outlet] = {}
        self.undelivered: dict[str, str] = {}
        """What waited for the sinks of queries when they were closed, and why."""
        self.temporary = False
        """True if the checkpoint ends with the process."""
        self.lock = threading.RLock()
        """Guards outputs and sinks."""

    # --- sinks ------------------------------------------------------------------------------------------------------

    def open_sink(self, query: RunningQuery, *, resumed: bool = False, note: Callable[[], None] = lambda: None) -> None:
        """Open the sink of a placed query, if it has one. If the query is `resumed`, what waits for the sink goes
        first, and a sink that cannot be opened is tried again later. `note` is called before the sink gets anything."""
        job = self._placements.of[query.name].job
        spool = Spool(job, query.name)
        if not resumed:
            spool.clear()
        if query.sink is None:  # it had a sink of the program
            for batch in spool.batches():
                query.output.take_up(*spool.get(batch))
                spool.remove(batch)
            note()
            return
        name = query.sink if isinstance(query.sink, str) else "of the program"
        sink, delivery = _made(query.sink, query.sink_options, job, anew=not resumed)
        shape = shape_of(query.plan, sink, name, delivery.mode, named=isinstance(query.sink, str))
        outlet = Outlet(query.name, name, query.plan.schema, sink, delivery, spool, query.count_delivered, shape)
        if resumed:
            outlet.open_later()
        else:
            outlet.open()
        with self.lock:
            note()
            self.outlets[query.name] = outlet

    def check_anew(self, query: str, into: str, options: Mapping[str, str]) -> None:
        """Raise OptionError if the results of a query that is to be replaced would be mixed with those of the new
        one."""
        sink, _ = _made(into, options, self._placements.of[query].job, anew=True)
        if isinstance(sink, ParquetSink):
            sink.check(query)

    def close_sink(self, name: str, *, dropped: bool = False, failed: bool = False) -> None:
        """Close the sink of a query. What still waits for the sink is discarded if the query is `dropped`, and kept for
        its next start if it has `failed`."""
        with self.lock:
            outlet = self.outlets.pop(name, None)
            if outlet is None:
                return
            outlet.close()
            if outlet.spool:
                kept = "kept until the query starts again" if failed else "kept in the checkpoint"
                ends = outlet.spool.volatile or self.temporary
                what = "discarded" if dropped or (ends and not failed) else kept
                waiting = f"{amount(outlet.spool.rows, 'row')} of query '{name}' waiting for its sink: {what}"
                LOG.warning("%s", waiting)
                if not dropped and outlet.spool.rows:
                    self.undelivered[name] = f"{waiting}. {outlet.trouble}."
            if dropped:
                outlet.spool.clear()

    def retry(self) -> None:
        """Try the sinks again that have raised, if their time has come."""
        if any(outlet.trouble for outlet in [*self.outlets.values()]):
            with self.lock:
                for outlet in [*self.outlets.values()]:
                    outlet.retry()

    def waiting(self) -> bool:
        """Return whether results wait for a sink; raise its error if that does not pass by itself."""
        held = [outlet for outlet in [*self.outlets.values()] if outlet.spool]
        for outlet in held:
            if outlet.lasting is not None:
                raise outlet.lasting
        return bool(held)

    def close(self) -> None:
        """Close all sinks."""
        for name in [*self.outlets]:
            self.close_sink(name)

    # --- batches ----------------------------------------------------------------------------------------------------

    def deliver(self, label: int, query: str, element: Element, position: int) -> None:
        """Take rows or punctuations from a shard that has applied the log up to a position."""
        with self.lock:
            for running, placement in self._running(query):
                if position >= placement.since:
                    running.output.deliver(placement.top.labels.index(label), element)

    def finish_batch(self, job: Job, batch: int) -> None:
        """Write a batch to the sinks, after the job has delivered all of it."""
        with self.lock:
            for running, placement in [pair for name in [*self._queries] for pair in self._running(name)]:
                if placement.job is job:
                    running.output.finish_batch()
            for name, outlet in [*self.outlets.items()]:
                for running, placement in self._running(name):
                    if placement.job is job and outlet.last < batch:
                        error = outlet.write(batch, *outlet.take(batch, running.output))
                        if error is not None and self.failures is not None:
                            if job.folder is not None and self.failures.leaves_none([name]):
                                outlet.spool.remove(batch)  # the batch is abandoned, and run again
                                raise error
                            self.failures.note(name, error, batch, spooled=True)
                        outlet.last = batch

    def count(self, job: Job, arrived: Iterable[tuple[int, Mapping[tuple[str, str], int]]]) -> None:
        """Count the rows of a batch for the queries that see them. `arrived`: positions in the log, with the rows
        there, by mill and stream."""
        with self.lock:
            for running, placement in [pair for name in [*self._queries] for pair in self._running(name)]:
                if placement.job is job:
                    streams = [(self.name, stream) for stream in placement.reads]
                    behind = [rows for position, rows in arrived if position >= placement.since]
                    running.rows_in += sum(rows.get(stream, 0) for rows in behind for stream in streams)

    def outputs_state(self, job: Job) -> dict[str, dict[str, object]]:
        """State of the outputs in a job that later punctuations depend on, by query."""
        with self.lock:
            found = [pair for name in [*self._queries] for pair in self._running(name)]
            return {running.name: running.output.snapshot() for running, placement in found if placement.job is job}

    def _running(self, name: str) -> list[tuple[RunningQuery, Placement]]:
        """A query with its placement; empty if the query does not run."""
        running, placement = self._queries.get(name), self._placements.of.get(name)
        if running is None or placement is None or running.failure is not None:
            return []
        return [(running, placement)]
