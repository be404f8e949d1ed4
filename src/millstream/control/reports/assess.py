"""Queries with `EMIT EARLY WITH ACCURACY`: their lead follows the accuracy of their early answers.

Shards report the windows that they have compared (`Assess.report`). The thread that delivers the batch puts the shards
together, window by window, and changes the lead (`algebra/steering`). So the same windows lead to the same leads on any
number of shards. A new lead counts from the next batch on, hence it depends on the batches where it begins to.
A restart keeps the lead and begins to count anew.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.algebra.qualities import Accuracy
from millstream.algebra.schedule import Schedule
from millstream.algebra.steering import STEPS, Steering
from millstream.control.observe.early_plot import Track, Window, by_window
from millstream.control.reports import Reported, reports_of
from millstream.physical.wire.records import Reschedule

if TYPE_CHECKING:
    from millstream.control.job.base import Job
    from millstream.control.mill.base import Mill
    from millstream.control.reports import PartReport
    from millstream.physical.shard.batch import Status
    from millstream.runtime.aggregate.assess import Judged

LOG = logging.getLogger("millstream")


class EarlyAnswers(Reported):
    stem = "assess"

    def __init__(self, mill: Mill) -> None:
        super().__init__(mill)
        self._held: dict[str, Steering] = {}
        self.tracks: dict[str, Track] = {}
        """Of each query, the windows whose early answers were compared."""

    def take(self, job: Job, statuses: Sequence[Status], *, again: bool) -> None:  # noqa: ARG002
        """Change the leads of queries by what the shards of a batch have compared, and keep track of it."""
        compared: dict[str, list[Judged]] = {}
        for query, judged in reports_of(statuses, self.stem):
            compared.setdefault(query, []).extend(judged)
        self.tracks = {query: track for query, track in self.tracks.items() if query in self._mill.queries}
        for query, found in compared.items():
            windows = by_window(found)
            self.tracks.setdefault(query, Track()).add(windows)
            self._steer(query, windows)

    def accuracy(self, query: str, reports: Sequence[PartReport]) -> Accuracy:
        """How good the early answers of a query were."""
        return sum((accuracy for owner, accuracy in self.summaries(reports) if owner == query), Accuracy())

    def lead(self, query: str) -> float | None:
        """How long before the end of a window a query prods itself; None: it does not, or not by windows."""
        prodder = self._mill.query(query).prodder
        if prodder is None or prodder.schedule is None or prodder.schedule.period:
            return None
        return prodder.schedule.lead / prodder.input.schema.unit

    def lines(self, query: str, reports: Sequence[PartReport]) -> Iterator[str]:
        accuracy, lead = self.accuracy(query, reports), self.lead(query)
        if accuracy.all.count:
            early = "" if lead is None else f", answered {lead:g} before the end of a window"
            yield f"early  accuracy {accuracy.all}; last before final: {accuracy.last}{early}"

    def _steer(self, name: str, windows: dict[int, Window]) -> None:
        query = self._mill.queries.get(name)
        prodder = None if query is None else query.prodder
        if query is None or prodder is None or prodder.schedule is None or not prodder.schedule.accuracy:
            self._held.pop(name, None)
            return
        before = held = self._steering(name, prodder.schedule)
        for end, window in windows.items():
            held = held.seen(end, window.share / window.count, window.quality / window.count)
        self._held[name] = held
        if held.lead == before.lead:
            return
        query.prodder = prodder.altered(schedule=replace(prodder.schedule, lead=held.lead))
        placement = self._mill.placements.of[name]
        self._mill.placements.append(Reschedule(self._mill.name, name, query.prodder.schedule), placement.job)
        self._mill.journal.note("prodder", (name, query.prodder))
        LOG.info("query '%s' answers %d %% of a slide before the end of a window", name, 100 * held.level // STEPS)

    def _steering(self, name: str, schedule: Schedule) -> Steering:
        """The steering of a query; a new one if the query is new or was altered."""
        held = self._held.get(name)
        wanted = schedule.accuracy, schedule.lead, schedule.windows
        if held is not None and (held.target, held.lead, held.windows) == wanted:
            return held
        begun = Steering.begun(schedule.accuracy, schedule.windows)
        return replace(begun, level=-(-schedule.lead * STEPS // schedule.windows.step))
