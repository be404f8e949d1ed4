"""The time of a mill: its clock, its heartbeats, and the promises of silent streams to waiting operators.

On a virtual clock, waiting operators get the time before the clock moves on (`catch_up`). On the machine's clock a
pacer provides it (`pace`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from millstream.algebra.clock import VirtualClock
from millstream.algebra.stream_id import StreamId
from millstream.algebra.types import MICROS
from millstream.algebra.upstream import TimeRequest
from millstream.physical.wire.records import Promise, Send

if TYPE_CHECKING:
    from millstream.control.job.base import Job
    from millstream.control.mill.base import Mill

ON_DEMAND = ("demand", "punctuation")


class Timekeeper:
    def __init__(self, mill: Mill) -> None:
        self._mill, self._clock, self._options = mill, mill.clock, mill.options
        self._feeds, self._placements, self._connectors = mill.feeds, mill.placements, mill.connectors
        self._synced = -1
        """The clock at the last `sync`."""
        self.next_beat = self._beat_after(0)

    @property
    def wall(self) -> bool:
        """True if the clock is the machine's."""
        return not isinstance(self._clock, VirtualClock)

    def reach(self, now: int) -> None:
        """Advance the clock to `now`, unless it is past it."""
        self._clock.reach(now)

    def _beat_after(self, now: int) -> int:
        """The time of the next heartbeat: a multiple of the period."""
        period = round(self._options.heartbeat * MICROS)
        return now // period * period + period

    def reconsider(self) -> None:
        """Bring the next heartbeat forward if the period has become shorter."""
        self.next_beat = min(self.next_beat, self._beat_after(self._clock.now()))

    def advance(self, micros: int) -> None:
        """Let system time pass: send the heartbeats that fall due, and answer operators that wait for time."""
        target = self._clock.now() + micros
        period = round(self._options.heartbeat * MICROS)
        while self._options.ets == "heartbeat" and self.next_beat <= target:
            self.reach(self.next_beat)
            self._promise(self._feeds.times([*self._feeds.sources]), beat=True)
            self.next_beat += period
        self.reach(target)
        self._mill.prodders.tick()
        self.tell()
        self.next_beat = max(self.next_beat, self._beat_after(self._clock.now()))
        self.catch_up()
        self._mill.note_sources()

    def tell(self, job: Job | None = None) -> None:
        """Tell the shards of a job, or of all jobs, that read streams themselves a clock that only the mill has."""
        connected = self._connectors.names()
        if not self.wall and any(StreamId.of(stream).declared in connected for stream in self._placements.read()):
            self._placements.append(Promise(self._mill.name, self._clock.now(), {}), job)

    def _promise(self, times: dict[str, int], *, beat: bool = False) -> None:
        if times and self._placements.groups:
            self._placements.append(Promise(self._mill.name, self._clock.now(), times, beat))
            self._mill.note_sources()

    def repeat(self, streams: Iterable[str], job: Job) -> None:
        """Repeat the promises that streams have given: a new query waits for them too."""
        if times := self._feeds.given(streams):
            self._placements.append(Promise(self._mill.name, self._clock.now(), times), job)

    def catch_up(self, *, skewed: bool = False) -> None:
        """On a virtual clock, give waiting operators the time. `skewed`: the time may depend on when they request
        it."""
        moved = self._clock.now() != self._synced
        if not self.wall and (self._mill.jobs.at_once or (self._options.ets in ON_DEMAND and (moved or skewed))):
            self.sync()

    def sync(self) -> None:
        """Wait until the jobs have processed everything fed, and no operator waits for time that could be promised.
        Raise the error of a query that has failed meanwhile if no query is left."""
        self._settle()
        self._mill.failures.settle()
        self._mill.failures.check()

    def _settle(self) -> None:
        promised = False
        while self._placements.groups:
            self._placements.wait()
            self._synced = self._clock.now()
            # The machine's clock would yield new promises for ever: make one promise, or leave it to the pacer.
            if self._options.ets not in ON_DEMAND or (self.wall and (promised or not self._mill.jobs.at_once)):
                return
            times = self._feeds.times(sorted(self._fed(self._placements.requested())))
            if not times:
                return
            self._promise(times)
            promised = True

    def pace(self, *, beat: bool = False) -> None:
        """Give waiting operators the time of the streams that can promise it; with `beat`, the time of all streams."""
        if any(not job.settled() for job in self._placements.jobs()):
            return
        requested = self._placements.read() if beat else self._placements.requested()
        fed = self._fed(set(self._feeds.sources) if beat else requested)
        connected = requested - self._fed(requested)
        able = {name for name in connected if self._connectors.can_promise(StreamId.of(name).declared)}
        if able:
            self._placements.append(Send(self._mill.name, TimeRequest(beat), streams=tuple(sorted(able))))
        self._promise(self._feeds.times(sorted(fed)), beat=beat)

    def go_on(self) -> bool:
        """Cause a batch in each job where an operator has work left that it limits per batch; return whether there is
        one."""
        pending = self._placements.pending()
        for job in pending:
            if job.settled():
                self._placements.append(Promise(self._mill.name, self._clock.now(), {}), job)
        return bool(pending)

    def _fed(self, streams: set[str]) -> set[str]:
        """Those of these streams that the driver feeds."""
        connected = self._connectors.names()
        return {name for name in streams if StreamId.of(name).declared not in connected}
