"""The tasks of a punctuated join beside joining: a monitor raises events, a registry lists their listeners.

| event | raised when |
|---|---|
| PurgeThresholdReach | `purge_threshold` punctuations have arrived since the last purge |
| NewPunctReady | punctuation has arrived |
| StateFull | the tuples in memory exceed the limit |
| StreamEmpty | a step has neither tuples nor punctuation: both inputs are empty |
| PropagateCountReach | count: N punctuations have arrived; eager: always; count and time: both inputs have ended |
| PropagateTimeExpire | the lower bound of both inputs has passed the end of a period |
| PropagateRequest | a reader of the join has requested punctuation |

PropagateCountReach and PropagateTimeExpire are raised only if punctuation may have become free. The events of a step
are raised in this order, for all its punctuations together. A registry is an ordered list of rules. If the event of a
rule is raised and its condition holds, its components run in order. The memory join waits for no event, and closed
tuples are never stored.

>>> [str(rule) for rule in registry_for(JoinSettings(purge_threshold=10, propagation="count", propagation_count=5))]
... # doctest: +NORMALIZE_WHITESPACE
['PurgeThresholdReach: State Purge',
 'StateFull if punctuation is unused: State Purge',
 'StateFull if all punctuation is used: State Relocation',
 'StreamEmpty if activation threshold is reached: Disk Join',
 'PropagateCountReach: Index Build, Propagation',
 'PropagateTimeExpire: Index Build, Propagation',
 'PropagateRequest: Index Build, Propagation']
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from millstream.algebra.schema import FOREVER, NEVER
from millstream.join_rules import Component, Condition, Event, Registry, Rule, listeners_of
from millstream.runtime.join.settings import JoinSettings


def registry_for(settings: JoinSettings) -> Registry:
    """Return the registry of the `listeners`, or by default the one that follows from the other settings."""
    if settings.listeners:
        return listeners_of(settings.listeners)
    eager = settings.index == "eager"
    propagate = (Component.PROPAGATION,) if eager else (Component.INDEX_BUILD, Component.PROPAGATION)
    rules = [
        Rule(Event.PURGE_THRESHOLD_REACH, (Component.STATE_PURGE,)),
        Rule(Event.STATE_FULL, (Component.STATE_PURGE,), Condition.UNUSED_PUNCTUATION),
        Rule(Event.STATE_FULL, (Component.STATE_RELOCATION,), Condition.ALL_USED),
        Rule(Event.STREAM_EMPTY, (Component.DISK_JOIN,), Condition.ACTIVATION_REACHED),
        Rule(Event.PROPAGATE_COUNT_REACH, propagate),
        Rule(Event.PROPAGATE_TIME_EXPIRE, propagate),
        Rule(Event.PROPAGATE_REQUEST, propagate),
    ]
    return (*rules[:1], Rule(Event.NEW_PUNCT_READY, (Component.INDEX_BUILD,)), *rules[1:]) if eager else tuple(rules)


class Monitor:
    """Counts punctuation and raises events."""

    def __init__(self, settings: JoinSettings) -> None:
        self.settings = settings
        self.requested = False
        self._unpurged = self._unpropagated = 0
        self._due = NEVER

    @property
    def watchful(self) -> bool:
        """True if events may be due without punctuation."""
        return self.overdue or self.settings.memory_limit > 0 or self.settings.propagation == "time"

    @property
    def overdue(self) -> bool:
        """True if punctuation has been requested, or a threshold was lowered below what has arrived already."""
        return self.requested or self._unpurged >= self.settings.purge_threshold

    def events(
        self, count: int, time: int, *, empty: bool, freed: Callable[[], bool], full: Callable[[], bool]
    ) -> Iterator[Event]:
        """Yield the events of a step with `count` punctuations. `time` is the lower bound of both inputs. `freed` and
        `full` are called when the events before have been handled."""
        settings = self.settings
        self._unpurged += count
        self._unpropagated += count
        if self._unpurged >= settings.purge_threshold:
            self._unpurged = 0
            yield Event.PURGE_THRESHOLD_REACH
        if count:
            yield Event.NEW_PUNCT_READY
        if settings.memory_limit and full():
            yield Event.STATE_FULL
        if empty:
            yield Event.STREAM_EMPTY
        if self._count_reached(count, time) and freed():
            yield Event.PROPAGATE_COUNT_REACH
        if self._time_expired(time) and freed():
            yield Event.PROPAGATE_TIME_EXPIRE
        if self.requested:
            self.requested = False
            yield Event.PROPAGATE_REQUEST

    def _count_reached(self, count: int, time: int) -> bool:
        mode = self.settings.propagation
        if mode == "count" and count and self._unpropagated >= self.settings.propagation_count:
            self._unpropagated = 0
            return True
        return mode == "eager" or (mode != "request" and time == FOREVER)

    def _time_expired(self, time: int) -> bool:
        """True if a multiple of the period has been passed since the last call."""
        period = self.settings.propagation_period
        if self.settings.propagation != "time" or period <= 0 or time in (NEVER, FOREVER) or time < self._due:
            return False
        first = self._due == NEVER
        self._due = (time // period + 1) * period
        return not first

    def to_value(self) -> tuple[int, int, int, bool]:
        return self._unpurged, self._unpropagated, self._due, self.requested

    def restore(self, value: Any) -> None:
        self._unpurged, self._unpropagated, self._due, self.requested = value
