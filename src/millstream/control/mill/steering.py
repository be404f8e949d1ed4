"""Queries with `EMIT EARLY WITH ACCURACY`: their lead follows the accuracy of their early answers.

Shards report the windows that they have compared (`Status.judged`). The thread that delivers the batch puts the shards
together, window by window, and changes the lead (`algebra/steering`). So the same windows lead to the same leads on any
number of shards. A new lead counts from the next batch on, hence it depends on the batches where it begins to.
A restart keeps the lead and begins to count anew.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.algebra.schedule import Schedule
from millstream.algebra.steering import STEPS, Steering
from millstream.physical.wire.records import Reschedule

if TYPE_CHECKING:
    from millstream.control.mill.base import Mill
    from millstream.physical.shard.batch import Status

LOG = logging.getLogger("millstream")


class QuerySteering:
    def __init__(self, mill: Mill) -> None:
        self._mill = mill
        self._held: dict[str, Steering] = {}

    def take(self, statuses: Iterable[Status]) -> None:
        """Change the leads of queries by what the shards of a batch have compared."""
        windows: dict[str, dict[int, tuple[int, float, float]]] = {}
        for status in statuses:
            for query, judged in status.judged.items():
                own = windows.setdefault(query, {})
                for end, *numbers in judged:
                    count, share, quality = own.get(end, (0, 0.0, 0.0))
                    own[end] = (count + int(numbers[0]), share + numbers[1], quality + numbers[2])
        for query, found in windows.items():
            self._steer(query, found)

    def _steer(self, name: str, windows: dict[int, tuple[int, float, float]]) -> None:
        query = self._mill.queries.get(name)
        prodder = None if query is None else query.prodder
        if query is None or prodder is None or prodder.schedule is None or not prodder.schedule.accuracy:
            self._held.pop(name, None)
            return
        before = held = self._steering(name, prodder.schedule)
        for end, (count, share, quality) in sorted(windows.items()):
            held = held.seen(end, share / count, quality / count)
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
        if held is not None and (held.target, held.lead, held.slide) == (
            schedule.accuracy,
            schedule.lead,
            schedule.slide,
        ):
            return held
        begun = Steering.begun(schedule.accuracy, schedule.slide, schedule.range)
        return replace(begun, level=-(-schedule.lead * STEPS // schedule.slide))
