"""Queries that end by themselves: a query with LIMIT is taken out of its job when all its rows are out.

Shards report that the output of a query is complete (`Status.finished`). The thread that delivers the batch
notes it in the journal, after the rows are delivered, and writes to the control log that all shards stop the query. The
query stays known, with the rows that were not taken yet, until it is dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from millstream.errors import BindError
from millstream.lang.spelling import spelled

if TYPE_CHECKING:
    from millstream.control.job.base import Job
    from millstream.control.mill.base import Mill
    from millstream.physical.shard.batch import Status

LOG = logging.getLogger("millstream")


class Endings:
    def __init__(self, mill: Mill) -> None:
        self._mill = mill
        self._reported: dict[tuple[str, int], None] = {}
        """The top parts of queries that are complete, by query and shard."""

    def has(self, name: str) -> bool:
        """Return whether a query has ended."""
        return self._mill.query(name).finished is not None

    def take(self, job: Job, batch: int, reports: Iterable[tuple[int, Status]]) -> None:
        """Take out the queries whose output is complete on all shards of their topmost part."""
        complete = {(part, label) for label, status in reports for part in status.finished}
        for name, placement in [*self._mill.placements.of.items()] if complete else ():
            query, top = self._mill.queries.get(name), placement.parts[0]
            if query is None or query.failure is not None or query.finished is not None or placement.job is not job:
                continue
            if not any(part.finite for part in query.plan.walk()):
                continue  # a stream that has ended may be read again
            labels = {label for part, label in complete if part == top.name and label in top.group.labels}
            self._reported |= dict.fromkeys((name, label) for label in labels)
            if labels and all((name, label) in self._reported for label in top.group.labels):
                self._note(name, batch)

    def _note(self, name: str, batch: int) -> None:
        self._mill.journal.note("finished", (name, batch))  # before the shards can know: see recovery
        self._mill.placements.halt(name, {*self._mill.failures.of(), *self._of(), name})
        self._mill.queries[name].finished = batch  # from now on the mill may forget its placement
        LOG.info("query '%s' has emitted all its rows in batch %d", name, batch)

    def _of(self) -> list[str]:
        return [name for name, query in [*self._mill.queries.items()] if query.finished is not None]

    def settle(self) -> None:
        """Forget the placements of queries that have ended, and close their sinks, unless rows wait for them."""
        for name in self._of() if not self._mill.journal.recovering else ():
            if name in self._mill.placements.of:
                self._mill.unplace(name)
            outlet = self._mill.deliveries.outlets.get(name)
            if outlet is not None and not outlet.spool:
                self._mill.deliveries.close_sink(name)

    def check(self, name: str) -> None:
        """Raise an error if a query has ended and has no operators any more."""
        if self.has(name) and self._mill.query(name).name not in self._mill.placements.of:
            hint = f"DROP QUERY {spelled(name)} and create it again to start anew"
            raise BindError("M2107", f"query '{name}' has ended: all rows of its LIMIT are out", hint=hint)
