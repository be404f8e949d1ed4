"""Punctuation that each shard of a group receives at a time of its own, and that takes effect when all have it.

After every batch the shards report the punctuation that waits (`runtime/consensus.py`). What some shards of a group
report for an operator is announced to all of them; what all report takes effect by another record, which they apply in
a later batch, all in the same one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING

from millstream.algebra.punctuation.pattern import Pattern
from millstream.control.reports import Reported
from millstream.physical.wire.records import OpenGroup, Received

if TYPE_CHECKING:
    from millstream.control.job.base import Job
    from millstream.control.mill.base import Mill
    from millstream.physical.shard.batch import Status


class Consensus(Reported):
    stem = "consensus"

    def __init__(self, mill: Mill) -> None:
        super().__init__(mill)
        self._written: dict[tuple[Job, int], int] = {}
        """The position in the log behind the last record for each group."""
        self._announced: dict[tuple[Job, int], set[tuple[str, Pattern]]] = {}
        """What has been announced to each group, by operator, and is not received by all."""

    def take(self, job: Job, statuses: Sequence[Status], *, again: bool) -> None:  # noqa: ARG002
        """Write records for the punctuation that all shards of a group have received."""
        for group in self._mill.placements.groups_of(job):
            reports = [job.heard[label] for label in group.labels if label in job.heard]
            if len(reports) == len(group.labels) > 1 and any(map(_received, reports)):
                self._agree(job, group, reports)

    def _agree(self, job: Job, group: OpenGroup, reports: Sequence[Status]) -> None:
        if min(status.position for status in reports) < self._written.get((job, group.group), 0):
            return  # some shard has not applied the last record yet
        key = job, group.group
        announced: set[tuple[str, Pattern]] = set()
        for operator in dict.fromkeys(operator for status in reports for operator in _received(status)):
            received = [_received(status).get(operator, ()) for status in reports]
            by_all = received_by_all(received)
            rest = [p for p in dict.fromkeys(chain(*received)) if not any(each.covers(p) for each in by_all)]
            new = tuple(pattern for pattern in rest if (operator, pattern) not in self._announced.get(key, ()))
            announced |= {(operator, pattern) for pattern in rest}
            if by_all:
                self._written[key] = self._mill.placements.owe(job, Received(group.group, operator, by_all, True))
            if new:
                self._written[key] = self._mill.placements.owe(job, Received(group.group, operator, new, False))
        self._announced[key] = announced


def _received(status: Status) -> dict[str, tuple[Pattern, ...]]:
    return status.reports.get(Consensus.stem, {})


def received_by_all(received: Sequence[Sequence[Pattern]]) -> tuple[Pattern, ...]:
    """Return the patterns of any shard that a pattern of every other shard covers.

    >>> from millstream.algebra.punctuation.restriction import below
    >>> nine, five = Pattern.of(ts=below(9)), Pattern.of(ts=below(5))
    >>> received_by_all([[nine], [five, nine], [nine]])
    (Pattern([ts < 9]), Pattern([ts < 5]))
    >>> received_by_all([[nine], [five]])
    (Pattern([ts < 5]),)
    """
    sets = [frozenset(patterns) for patterns in received]
    candidates = dict.fromkeys(pattern for patterns in received for pattern in patterns)
    return tuple(
        pattern
        for pattern in candidates
        if all(pattern in own or any(other.covers(pattern) for other in own) for own in sets)
    )
