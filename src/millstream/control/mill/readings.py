"""Where the streams with a connector stand: the readings of jobs, and what is handed from one reading to the next.

A stream stands at a place, with the state of its source: order, promises, keys, counts. The shards that read it have
that state. A query in a group of shards that does not read the stream yet takes it over from shards that do, or, if
none does, from the last that did. The streams of the mill are held meanwhile, so that place and state belong together.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from millstream.algebra.stream_id import PlaceId, StreamId
from millstream.control.mill.placement import Placements
from millstream.physical.shard.batch import Status
from millstream.physical.wire.records import ForgetStream, Hold, Reading, StartQuery, StopQuery

if TYPE_CHECKING:
    from millstream.control.job.base import Job
    from millstream.control.mill.journal import Journal

Counts = tuple[int, int, int]
"""Numbers of accepted, late and bad rows."""
Stand = tuple[Mapping[str, Any] | None, Mapping[str, Any]]
"""The place in a stream (None: its start), and the state of its source."""
Begin = tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]
"""The place where a reading begins, and the state of the source there; None: a new one."""


class Readings:
    """`at_once`: jobs run batches only while the mill waits for them. `released`: jobs read the mill's streams by
    themselves, except while a stream is handed over; otherwise only while the mill waits for it."""

    def __init__(self, placements: Placements, journal: Journal, *, at_once: bool, released: bool) -> None:
        self._placements, self._journal = placements, journal
        self._at_once, self.released = at_once, released
        self.last: dict[tuple[Job, str], tuple[Reading, int]] = {}
        """The last reading of each stream in each job, and the end of the job's log when it was opened."""
        self.stands: dict[str, Stand] = {}
        """The last known stand of each stream, in the job that has read furthest."""
        self._reported: dict[tuple[Job, str], Stand] = {}
        """The last stand that each job has reported of each stream."""
        self._left: dict[str, tuple[Job, int]] = {}
        """The job that read a stream last, and the end of its log then."""
        self._parts: dict[tuple[Job, str], Mapping[str, Reading]] = {}
        """The readings of recovered parts of queries."""
        self._counted: dict[str, Counts] = {}
        """The counts of a stream when a reader left, which its shards may report only later."""

    # --- opening ----------------------------------------------------------------------------------------------------

    @contextmanager
    def opened(
        self, job: Job, streams: Iterable[str], begins: Mapping[str, Begin] = MappingProxyType({})
    ) -> Iterator[dict[str, Reading]]:
        """The readings of these streams for a new query in a job; the query must be placed inside. `begins`: where new
        readings of declared streams begin, if not where the streams stand."""
        asked: dict[Job, set[str]] = defaultdict(set)
        for stream in streams:
            live = self.live(stream)
            for each in [job] if job in live else live:
                if self._begun(each, stream):
                    asked[each].add(stream)
            if not live and stream in self._left:
                _wait(*self._left[stream])
        mill = self._placements.mill
        asking = [(each, each.append(Hold(mill, True, tuple(sorted(names))))) for each, names in asked.items()]
        try:
            for each, position in asking:
                _wait(each, position)
            own = {stream: begins.get(StreamId.of(stream).base, (None, None)) for stream in streams}
            yield {stream: self._reading(job, stream, begin) for stream, begin in own.items()}
        finally:
            for each in asked if self.released else ():
                each.append(Hold(mill, False))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Read no stream on in jobs that get queries meanwhile."""
        if not self.released:
            yield
            return
        before = {job: job.log.end() for job in self._placements.jobs()}
        self.released = False
        try:
            yield
        finally:
            self.released = True
            for job in self._placements.jobs():
                if job.log.end() > before.get(job, 0):
                    job.append(Hold(self._placements.mill, False))

    def _reading(self, job: Job, stream: str, begin: Begin) -> Reading:
        """The reading of a stream in a job, with the state that new shards take over."""
        if job in self.live(stream):
            reading, _ = self.last[job, stream]
            begun = self._begun(job, stream) and (job, stream) in self._reported
            return replace(reading, state=self._reported[job, stream][1]) if begun else reading
        end = job.log.end()
        reading = Reading(end + 1, *self.stands.get(stream, begin))
        self.last[job, stream] = reading, end
        self._reported.pop((job, stream), None)
        if not self.released:
            job.append(Hold(self._placements.mill, True))
        return reading

    def _begun(self, job: Job, stream: str) -> bool:
        """Return whether a batch of the job may have read the stream since the reading was opened."""
        _, opened = self.last[job, stream]
        return job.position > opened or (job.running and not self._at_once)

    def free_number(self, job: Job, streams: Iterable[str]) -> int:
        """A number for new readings of declared streams in a job that none of their readings has, in any job."""
        known = {*self.stands, *(stream for _, stream in self.last)}
        numbers = count(job.log.end())
        return next(number for number in numbers if known.isdisjoint(str(StreamId(name, number)) for name in streams))

    def live(self, stream: str) -> list[Job]:
        """The jobs that read a stream."""
        placed = self._placements.of.values()
        jobs = (each.job for each in placed if any(stream in part.reads for part in each.parts))
        return [job for job in dict.fromkeys(jobs) if (job, stream) in self.last]

    def leave(self, job: Job, counts: Mapping[str, Counts]) -> None:
        """Note that a query has been stopped in a job, with the counts of the streams that it read."""
        self._left |= dict.fromkeys(counts, (job, job.log.end()))
        self._counted |= counts

    # --- stands -----------------------------------------------------------------------------------------------------

    def note(self, job: Job, statuses: Iterable[Status]) -> None:
        """Take the sources that the shards of a job have reported in a batch."""
        found: dict[tuple[str, int, int], list[Mapping[str, Any]]] = defaultdict(list)
        places: dict[str, Any] = {}
        for status in statuses:
            places |= json.loads(status.places) if status.places else {}
            for stream, (number, state) in status.sources.items():
                found[stream, number, status.group].append(state)
        for (stream, number, _), states in found.items():
            whole = next((state for state in states if len(state) > 1), None)
            reading, _ = self.last.get((job, stream), (Reading(-1), 0))
            if whole is not None and number == reading.number:  # not of a stream that was dropped meanwhile
                counts = tuple(map(sum, zip(*(state["counts"] for state in states), strict=True)))
                place = places.get(str(PlaceId(self._placements.mill, stream, number)), reading.place)
                self._note(job, stream, (readable(place), {**whole, "counts": counts}))
        if found:
            self._journal.note("stands", dict(self.stands))

    def _note(self, job: Job, stream: str, stand: Stand) -> None:
        """Note where a stream stands in a job."""
        self._reported[job, stream] = stand
        known = self.stands.get(stream)
        if known is None or sum(stand[1]["counts"]) >= sum(known[1]["counts"]):
            self.stands[stream] = stand

    def counts(self, stream: str) -> Counts:
        """Numbers of accepted, late and bad rows where a stream was last known to stand."""
        accepted, late, bad = self.stands[stream][1]["counts"] if stream in self.stands else (0, 0, 0)
        return max((accepted, late, bad), self._counted.get(stream, (0, 0, 0)), key=sum)

    def forget(self, stream: str) -> None:
        """Forget a dropped stream."""
        if self._journal.recovering:  # the logs of the jobs and the last note of the journal have what is known now
            return
        running = self._placements.jobs()
        for job in dict.fromkeys([*running, *(job for job, name in self.last if name == stream)]):
            job.append(ForgetStream(self._placements.mill, stream), concerns=job in running)
            self.forget_in(job, stream)
        self._counted.pop(stream, None)
        if self.stands.pop(stream, None) is not None:
            self._journal.note("stands", dict(self.stands))

    def forget_in(self, job: Job, stream: str) -> None:
        """Forget the readings of a dropped stream in a job."""
        self.last.pop((job, stream), None)
        self._reported.pop((job, stream), None)
        job.ledger.forget(self._placements.mill, stream)
        if stream in self._left and self._left[stream][0] is job:
            del self._left[stream]

    # --- recovery ---------------------------------------------------------------------------------------------------

    def find(self, job: Job, record: StartQuery | StopQuery | ForgetStream) -> None:
        """Recover readings from the log of a job, record by record."""
        match record:
            case StartQuery(name=part, readings=readings):
                self._parts[job, part] = readings
                self.last |= {(job, stream): (reading, 0) for stream, reading in readings.items()}
            case StopQuery(name=part):
                self._left |= dict.fromkeys(self._parts.get((job, part), ()), (job, job.log.end()))
            case ForgetStream(name=stream):
                self.forget_in(job, stream)


def readable(place: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """A place from which a stream is read on, also if its source has failed there."""
    if place is None or "failed" not in place:
        return place
    return None if place["at"] is None else {name: value for name, value in place.items() if name != "failed"}


def _wait(job: Job, position: int) -> None:
    if job.applied() < position:
        job.start()
        job.wait(position)
