"""The counts of derived streams that divert rows: how many fit, and how many are in `name__bad`.

The shards count where a query reads the stream or its companion. Several queries read the same rows, from the batch on
in which they start: the one that has read most has the count. When it stops, the count goes on from where it was; the
difference to the queries that are left is kept here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from millstream.control.reports import Reported
from millstream.errors import MillstreamError
from millstream.logical.nodes.divert import Divert
from millstream.logical.plan import Plan

if TYPE_CHECKING:
    from millstream.control.mill.base import Mill

Judged = tuple[int, int]
"""Numbers of rows that fit, and of those that do not."""
_NONE: Judged = 0, 0


class DivertedRows(Reported):
    stem = "divert"

    def __init__(self, mill: Mill) -> None:
        super().__init__(mill)
        self.before: dict[str, Judged] = {}
        """Rows that no query which runs now has counted, by stream."""

    def counts(self, stream: str) -> Judged:
        """The rows of a derived stream, as the shards have last reported them."""
        return _sum(self.before.get(stream, _NONE), self._reported(stream, list(self._mill.queries)))

    def all_counts(self, stream: str) -> dict[str, int]:
        """Numbers of rows of a derived stream: those of its stream whose values fit, none late, those in its companion.
        They count since a query has read the stream or its companion."""
        if not self._mill.time.wall:
            self._mill.report_all()
        accepted, bad = self.counts(stream)
        return {"accepted": accepted, "late": 0, "bad": bad}

    def leave(self, query: str) -> None:
        """Note the counts of the streams that a query diverts rows of, before it stops."""
        streams = diverted_streams(self._mill.queries[query].plan)
        if not streams:
            return
        self._mill.report_all()
        others = [name for name in self._mill.queries if name != query]
        for stream in streams:
            left = self._reported(stream, others)
            counted = self.counts(stream)
            self.before[stream] = counted[0] - left[0], counted[1] - left[1]
        self._mill.journal.note("diverted", dict(self.before))

    def forget(self, relation: str) -> None:
        if self.before.pop(relation, None) is not None:
            self._mill.journal.note("diverted", dict(self.before))

    def _reported(self, stream: str, queries: Iterable[str]) -> Judged:
        """The rows that the shards of these queries have counted: in each group of shards, on any of its nodes."""
        groups: defaultdict[tuple[str, int, str], dict[int, Judged]] = defaultdict(dict)
        for name in queries:
            try:
                job, reports = self._mill.job(name), self._mill.reports(name)
            except (MillstreamError, KeyError):  # it has just been stopped
                continue
            for part, number, status in reports:
                for node in status.nodes.get(part.name, ()):
                    of, fit, unfit = status.summaries.get(self.stem, {}).get(node, ("", 0, 0))
                    if of == stream:
                        groups[job.id, part.group.group, node][number] = fit, unfit
        sums = [_sum(*shards.values()) for shards in groups.values()]
        return max(sums, default=_NONE, key=sum)


def diverted_streams(plan: Plan) -> set[str]:
    """The streams that a plan diverts rows of."""
    return {part.stream for part in plan.walk() if isinstance(part, Divert)}


def _sum(*counts: Judged) -> Judged:
    return sum(fit for fit, _ in counts), sum(unfit for _, unfit in counts)
