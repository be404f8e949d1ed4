"""Deliveries: results that jobs hand to a mill, batch by batch, for the outputs of its queries and their sinks.

Jobs deliver from threads of their own while queries start and stop: a delivery finds a query complete, or not at all.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from millstream.algebra.element import Element
from millstream.control.mill.placement import Placement, Placements
from millstream.sinks import Sink, make_sink

if TYPE_CHECKING:
    from millstream.control.job.base import Job
    from millstream.control.mill.base import RunningQuery


class Deliveries:
    """A mill as a tenant of its jobs."""

    def __init__(self, name: str, queries: Mapping[str, RunningQuery], placements: Placements) -> None:
        self.name, self._queries, self._placements = name, queries, placements
        self._sinks: dict[str, Sink] = {}
        self.lock = threading.RLock()
        """Guards outputs and sinks."""

    # --- sinks ------------------------------------------------------------------------------------------------------

    def open_sink(self, query: RunningQuery) -> None:
        """Open the sink of a placed query, if it has one."""
        if query.sink is None:
            return
        options = {option: value for option, value in query.sink_options.items() if option != "connector"}
        job = self._placements.of[query.name].job
        sink = make_sink(query.sink, {**options, "run": job.id} if isinstance(query.sink, str) else options)
        sink.open(query.name, query.plan.schema)
        self._sinks[query.name] = sink

    def close_sink(self, name: str) -> None:
        with self.lock:
            sink = self._sinks.pop(name, None)
            if sink is not None:
                sink.close()

    def close(self) -> None:
        """Close all sinks."""
        for name in [*self._sinks]:
            self.close_sink(name)

    # --- batches ----------------------------------------------------------------------------------------------------

    def deliver(self, label: int, query: str, element: Element) -> None:
        """Take rows or punctuations from a shard."""
        with self.lock:
            for running, placement in self._running(query):
                running.output.deliver(placement.top.labels.index(label), element)

    def finish_batch(self, job: Job, batch: int) -> None:
        """Write a batch to the sinks, after the job has delivered all of it."""
        with self.lock:
            for name, sink in [*self._sinks.items()]:
                for running, placement in self._running(name):
                    if placement.job is job:
                        sink.write(batch, running.output.take_rows(), running.output.take_punctuations())

    def outputs_state(self, job: Job) -> dict[str, dict[str, object]]:
        """State of the outputs in a job that later punctuations depend on, by query."""
        with self.lock:
            found = [pair for name in [*self._queries] for pair in self._running(name)]
            return {running.name: running.output.snapshot() for running, placement in found if placement.job is job}

    def _running(self, name: str) -> list[tuple[RunningQuery, Placement]]:
        """A query with its placement; empty if the query does not run."""
        running, placement = self._queries.get(name), self._placements.of.get(name)
        return [] if running is None or placement is None else [(running, placement)]
