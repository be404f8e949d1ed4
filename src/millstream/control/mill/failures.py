"""Failures of queries: a query that fails is taken out of its job, and the others go on.

Shards report a failure with the batch (`physical.failure.isolation`). The thread that delivers the batch notes it in
the journal and writes to the control log that all shards stop the query; the mill forgets its placement when it next
runs statements. A failure of the last query that runs is not noted: its batch is abandoned and run again by the next
start.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.algebra.stream_id import PlaceId, StreamId
from millstream.amounts import amount
from millstream.control.mill.parking import Parking, Resumption, head_of
from millstream.control.mill.readings import readable
from millstream.control.mill.spool import Spool
from millstream.control.observe.stream_progress import read_counts
from millstream.errors import MillstreamError, advice, fresh
from millstream.lang.spelling import spelled
from millstream.logical.written import touched
from millstream.physical.failure.transport import as_text, read_error
from millstream.physical.shard.topology import scans
from millstream.physical.wire.records import Park

if TYPE_CHECKING:
    from millstream.control.job.base import Job
    from millstream.control.mill.base import Mill
    from millstream.control.mill.running_query import RunningQuery
    from millstream.physical.shard.parking import Parked

LOG = logging.getLogger("millstream")


@dataclass(slots=True)
class Failure:
    """`batch`: the batch that it failed in; `at`: in seconds since the epoch; `counts`: rows of each of its streams
    before; `places`: where its streams are read on, None if one cannot be read again; `told`: whether a call has raised
    it; `spooled`: whether its results of the batch are kept."""

    error: MillstreamError
    batch: int
    at: float
    counts: Mapping[str, int] = field(default_factory=dict)
    places: Mapping[str, Any] | None = None
    told: bool = False
    spooled: bool = False

    @property
    def text(self) -> str:
        """The error in one line."""
        return f"{self.error.code}: {self.error.message}"


class Failures:
    def __init__(self, mill: Mill) -> None:
        self._mill = mill
        self._settling = False

    def of(self) -> dict[str, Failure]:
        """The failed queries."""
        return {name: query.failure for name, query in [*self._mill.queries.items()] if query.failure is not None}

    def among(self, job: Job, label: int, part: str) -> list[str]:
        """The running queries that a part of a query in a shard belongs to."""
        return [
            name
            for name, placement in [*self._mill.placements.of.items()]
            if placement.job is job
            and any(each.name == part and label in each.group.labels for each in placement.parts)
            and name in self._mill.queries
            and self._mill.queries[name].failure is None
        ]

    def reading(self, job: Job, label: int, stream: str) -> list[str]:
        """The running queries that read a stream in a shard."""
        return [
            name
            for name, placement in [*self._mill.placements.of.items()]
            if placement.job is job
            and any(stream in each.reads and label in each.group.labels for each in placement.parts)
            and name in self._mill.queries
            and self._mill.queries[name].failure is None
        ]

    def leaves_none(self, names: Iterable[str]) -> bool:
        """Return whether no query would run without these."""
        queries = [*self._mill.queries.items()]
        running = {name for name, query in queries if query.failure is None and query.finished is None}
        return not running - set(names)

    def note(
        self, name: str, error: MillstreamError, batch: int, *, failing: Iterable[str] = (), spooled: bool = False
    ) -> None:
        """Take a query out; called by the thread that delivers the batch. `failing`: the queries that fail with it.
        `spooled`: its results of the batch are kept."""
        query = self._mill.queries[name]
        sink = query.sink if isinstance(query.sink, str) else "a function or object" if query.sink else "memory"
        rest = "" if self.leaves_none([name, *failing]) else "Other queries go on. "
        again = advice("query.start()", "The same command, with the same --checkpoint,")
        mend = f"{error.hint}. " if error.lasting else ""
        error.hint = f"{mend}{rest}{again} starts it again, DROP QUERY {spelled(name)} removes it."
        error.detail = " ".join(
            filter(None, (error.detail, f"Query {name} failed in batch {batch}; its sink: {sink}."))
        )
        places = self._places(name, batch, spooled=spooled)
        failure = Failure(error, batch, time.time(), self._counts_before(query), places, spooled=spooled)
        held = name, as_text(error), batch, failure.at, dict(failure.counts), places, spooled
        self._mill.journal.note("failed", held)  # before the shards can know: see recovery
        self.park(name, failure)
        self._mill.placements.halt(name, {*self.of(), name})
        query.failure = failure  # from now on the mill may forget its placement
        if rest:  # otherwise a call raises it
            LOG.error("query '%s' failed in batch %d: %s", name, batch, error)

    def _places(self, name: str, batch: int, *, spooled: bool) -> dict[str, Any] | None:
        """Where the streams of a query stood before its results were lost; None if one cannot be read again."""
        placement, query = self._mill.placements.of[name], self._mill.queries[name]
        if touched(query.plan):
            return None  # the tables have been written on
        before, after = placement.job.span(batch)
        places, found = after if spooled else before, dict[str, Any]()
        for part in placement.parts:
            for stream, reading in part.started.readings.items():
                place = places.get(str(PlaceId(self._mill.name, stream, reading.number))) or reading.place
                found[StreamId.of(stream).base] = readable(place)
        return found if found.keys() >= self._streams(query) else None

    # --- what its operators held ------------------------------------------------------------------------------------

    def park(self, name: str, failure: Failure) -> None:
        """Ask the shards for what the operators of a query held where its streams are read on, unless it was done
        before."""
        placement = self._mill.placements.of[name]
        parking = Parking(placement.job, self._mill.name, name)
        if failure.places is None:
            parking.clear()
        elif not placement.parked:
            readings = [pair for part in placement.parts for pair in part.started.readings.items()]
            sources = {StreamId.of(stream).base: reading.state for stream, reading in readings}
            parking.begin(head_of(placement, sources, self._mill.queries[name].output.snapshot()))
            for part in placement.parts:
                placement.job.append(Park(part.group.group, part.name, name, before=not failure.spooled))
            placement.parked = True

    def take_parcels(self, job: Job, label: int, parked: Parked) -> None:
        """Take what operators held in a shard."""
        for query, part, parcel in parked:
            Parking(job, self._mill.name, query).take(label, part, parcel)

    def resumption(self, name: str) -> Resumption | None:
        """What the operators of a failed query held; None if it is not known."""
        for job in self._mill.jobs.all():
            parking = Parking(job, self._mill.name, name)
            if (head := parking.head()) is not None:
                if (parcels := parking.parcels()) is None and job.applied() < job.log.end():  # the next batch has them
                    job.start()
                    job.wait(job.log.end())
                    parcels = parking.parcels()
                return None if parcels is None else Resumption(head, parcels)
        return None

    def unpark(self, name: str) -> None:
        """Forget what the operators of a query held: it has started again, or is dropped."""
        for job in self._mill.jobs.all():
            Parking(job, self._mill.name, name).clear()

    def discard(self, name: str) -> None:
        """Forget what a dropped query held, and what waits for its sink, which is closed already if it has failed."""
        self.unpark(name)
        for job in self._mill.jobs.all():
            Spool(job, name).clear()

    # --- afterwards -------------------------------------------------------------------------------------------------

    def replay(self, name: str, text: str, *noted: Any) -> None:
        """Recover a failure from the journal."""
        batch, at, counts, places, spooled = noted
        if name in self._mill.queries:
            error = read_error(text)
            self._mill.queries[name].failure = Failure(error, batch, at, counts, places, told=True, spooled=spooled)

    def settle(self) -> None:
        """Forget the placements of failed queries, whose parts are stopped, and close their sinks."""
        if self._mill.journal.recovering or self._settling:
            return
        self._settling = True  # to forget a placement, the mill waits for reports, and so comes here again
        try:
            for name in self.of():
                if name in self._mill.placements.of:
                    self._mill.unplace(name)
                    self._mill.deliveries.close_sink(name, failed=True)
        finally:
            self._settling = False

    def check(self, *, told: bool = False) -> None:
        """Raise the error of a failed query if no query runs any more; `told`: also if it was raised before."""
        failures = self.of()
        if failures and not self._settling and self.leaves_none(()):
            for failure in failures.values():
                if told or not failure.told:
                    failure.told = True
                    raise fresh(failure.error)

    def raise_of(self, name: str) -> None:
        """Raise the error of a query, if it has failed."""
        if (failure := self._mill.query(name).failure) is not None:
            raise fresh(failure.error)

    def lines(self) -> list[str]:
        """A line on each failed query, and on each query whose sink fails."""
        lines = [f"query {name} failed in batch {each.batch}: {each.text}" for name, each in self.of().items()]
        outlets = [*self._mill.deliveries.outlets.items()]
        return lines + [f"query {name}: {outlet.trouble}" for name, outlet in outlets if outlet.trouble is not None]

    def missed(self, name: str) -> str:
        """Where a query that starts again goes on, and what it has missed."""
        query = self._mill.queries[name]
        failure = query.failure
        assert failure is not None
        if failure.places is not None:
            where = "after" if failure.spooled else "where"
            began = "" if failure.spooled else " began"
            return f"query '{name}' goes on {where} batch {failure.batch}{began}, and missed no rows"
        now = self._counts(query)
        rows = {stream: count - failure.counts.get(stream, 0) for stream, count in now.items()}
        seconds = time.time() - failure.at
        missed = ", ".join(f"{amount(count, 'row')} of {stream}" for stream, count in rows.items() if count > 0)
        since = f"since batch {failure.batch}, {seconds:,.0f} s ago"
        return f"query '{name}' starts again from now, and missed {missed or 'no rows'} {since}"

    def _streams(self, query: RunningQuery) -> set[str]:
        """The declared streams that a query reads."""
        return {scan.id.base for scan in scans(query.plan)}

    def _counts_before(self, query: RunningQuery) -> dict[str, int]:
        """The rows of each stream of a query in the batches that have been delivered."""
        mill, job = self._mill, self._mill.job(query.name)
        return {
            stream: count if mill.fed(stream) is None else count - job.fed.undelivered(mill.name, stream)
            for stream, count in self._counts(query).items()
        }

    def _counts(self, query: RunningQuery) -> dict[str, int]:
        """The rows that have arrived in each stream of a query."""
        mill, streams = self._mill, sorted(self._streams(query))
        read = read_counts(mill, mill.connectors.names().intersection(streams))
        found: dict[str, int] = {}
        for stream in streams:
            fed = mill.fed(stream)
            found[stream] = fed.accepted if fed is not None else max(read[stream][0], mill.readings.counts(stream)[0])
        return found
