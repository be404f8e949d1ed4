"""The time of a mill: its clock, heartbeats, and what silent streams promise to operators that wait.

On a virtual clock operators are told the time they wait for before it moves on (`catch_up`); on the machine's clock a
pacer looks after them (`pace`).
"""

from __future__ import annotations

from collections.abc import Callable

from millstream.algebra.clock import Clock, VirtualClock
from millstream.algebra.types import MICROS
from millstream.algebra.upstream import TimeRequest
from millstream.config import Options
from millstream.control.mill.connectors import Connectors
from millstream.control.mill.feeds import Feeds
from millstream.control.mill.placement import Placements
from millstream.physical.wire.records import Promise, Send

ON_DEMAND = ("demand", "punctuation")


class Timekeeper:
    """`noted` is called when streams have promised something that a recovered mill must know. `at_once`: batches cost
    so little that operators are told the time whenever they wait."""

    def __init__(
        self,
        clock: Clock,
        options: Options,
        feeds: Feeds,
        placements: Placements,
        connectors: Connectors,
        noted: Callable[[], None],
        *,
        at_once: bool,
    ) -> None:
        self._clock, self._options, self._feeds, self._placements = clock, options, feeds, placements
        self._connectors, self._noted, self._at_once = connectors, noted, at_once
        self._settled = -1  # the clock when operators were last asked what they wait for
        self.next_beat = self._beat_after(0)

    @property
    def wall(self) -> bool:
        """Whether the clock moves by itself."""
        return not isinstance(self._clock, VirtualClock)

    def reach(self, now: int) -> None:
        """Move a virtual clock on."""
        if isinstance(self._clock, VirtualClock):
            self._clock.advance(max(0, now - self._clock.now()))

    def _beat_after(self, now: int) -> int:
        """When the next heartbeat is due: at multiples of its period."""
        period = round(self._options.heartbeat * MICROS)
        return now // period * period + period

    def reconsider(self) -> None:
        """The period may be shorter now."""
        self.next_beat = min(self.next_beat, self._beat_after(self._clock.now()))

    def advance(self, micros: int) -> None:
        """Let system time pass; heartbeats that fall into it are sent, and idle operators ask for time."""
        target = self._clock.now() + micros
        period = round(self._options.heartbeat * MICROS)
        while self._options.ets == "heartbeat" and self.next_beat <= target:
            self.reach(self.next_beat)
            self._promise(self._feeds.times([*self._feeds.sources]), beat=True)
            self.next_beat += period
        self.reach(target)
        self.next_beat = max(self.next_beat, self._beat_after(self._clock.now()))
        self.catch_up()
        self._noted()

    def _promise(self, times: dict[str, int], *, beat: bool = False) -> None:
        if times and self._placements.groups:
            self._placements.tell(Promise(self._placements.mill, self._clock.now(), times, beat))
            self._noted()

    def catch_up(self, *, skewed: bool = False) -> None:
        """On a virtual clock, tell operators the time they wait for; `skewed`: what they are told may depend on when
        they ask."""
        moved = self._clock.now() != self._settled
        if not self.wall and (self._at_once or (self._options.ets in ON_DEMAND and (moved or skewed))):
            self.sync()

    def sync(self) -> None:
        """Wait until the jobs have worked off all that was fed and no operator waits for time that could be told."""
        told = False
        while self._placements.groups:
            self._placements.work_off()
            self._settled = self._clock.now()
            # A clock that moves by itself would give a new promise for ever: there is one, or the pacer gives it.
            if self._options.ets not in ON_DEMAND or (self.wall and (told or not self._at_once)):
                return
            times = self._feeds.times(sorted(self._placements.asked() - self._connectors.names()))
            if not times:
                return
            self._promise(times)
            told = True

    def pace(self, *, beat: bool = False) -> None:
        """Tell operators that wait the time, if a stream can promise any; with `beat`, tell all of them."""
        if any(not job.settled() for job in self._placements.jobs()):
            return
        connected = self._connectors.names()
        asked = set(self._feeds.sources) if beat else self._placements.asked()
        able = {name for name in asked & connected if self._connectors.can_promise(name)}
        if able:
            self._placements.tell(Send(self._placements.mill, TimeRequest(beat), streams=tuple(sorted(able))))
        self._promise(self._feeds.times(sorted(asked - connected)), beat=beat)
