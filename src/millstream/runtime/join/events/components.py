"""The components of a punctuated join. The registry decides which of them run when the monitor raises an event.

| component | task |
|---|---|
| State Purge | purges the tuples that punctuation has closed since the last purge |
| State Relocation | moves the largest buckets to disk |
| Disk Join | finds the pairs that the memory join has missed |
| Index Build | counts stored tuples for punctuation that is not indexed yet |
| Propagation | joins closed tuples on disk with their partners, then emits punctuation that no stored tuple matches |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl

from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.join_rules import Component, Condition
from millstream.runtime.join.disk.relocation import Relocation
from millstream.runtime.join.events.monitor import Monitor, registry_for
from millstream.runtime.join.settings import JoinSettings
from millstream.runtime.join.side import JoinSide
from millstream.runtime.operator.propagation import NO_PUNCTUATIONS


class JoinComponents:
    """`propagate` returns the punctuation that may be emitted."""

    def __init__(
        self, sides: Sequence[JoinSide], disk: Relocation | None, propagate: Callable[[], Punctuations]
    ) -> None:
        self._sides, self._disk, self._propagate = sides, disk, propagate
        self.monitor = Monitor(JoinSettings())
        self.registry = registry_for(self.monitor.settings)
        self._found: list[pl.DataFrame] = []
        self._released: list[Punctuations] = []

    def configure(self, settings: JoinSettings) -> None:
        self.monitor.settings = settings
        self.registry = registry_for(settings)
        for side in self._sides:
            side.index_by(settings.index)

    def due(self) -> bool:
        """True if events may be raised although no punctuation has arrived."""
        return self.monitor.watchful or self._freed()

    def unfinished(self) -> bool:
        """True if a step without input would act."""
        monitor, disk = self.monitor, self._disk
        if monitor.overdue or (monitor.settings.propagation == "eager" and self._freed()):
            return True
        return disk is not None and disk.active and self._holds(Condition.ACTIVATION_REACHED)

    def awaits_time(self) -> bool:
        """True if punctuation will be emitted once enough time has passed."""
        return self.monitor.settings.propagation == "time" and self._freed()

    def act(self, count: int, time: int, *, empty: bool) -> tuple[list[pl.DataFrame], Punctuations]:
        """Raise the events of a step with `count` punctuations and run their listeners; returns owed pairs, and
        punctuation."""
        self._found, self._released = [], []
        for event in self.monitor.events(count, time, empty=empty, freed=self._freed, full=self._full):
            for rule in self.registry:
                if rule.event is event and self._holds(rule.condition):
                    for component in rule.listeners:
                        self._run(component)
        return self._found, Punctuations.concat(self._released) if self._released else NO_PUNCTUATIONS

    def _run(self, component: Component) -> None:
        disk = self._disk
        match component:
            case Component.STATE_PURGE:
                for side in self._sides:
                    side.purge()
                if disk is not None and any(side.on_leave is not None for side in self._sides):
                    self._found += disk.finish()
            case Component.STATE_RELOCATION if disk is not None:
                self._found += disk.relocate(self.monitor.settings.memory_limit)
            case Component.DISK_JOIN if disk is not None:
                self._found += disk.catch_up()
            case Component.INDEX_BUILD:
                for side in self._sides:
                    side.build_index()
            case Component.PROPAGATION:
                if disk is not None and self._anything_waits():
                    self._found += disk.finish()
                self._released.append(self._propagate())

    def _holds(self, condition: Condition) -> bool:
        match condition:
            case Condition.UNUSED_PUNCTUATION:
                return any(side.unused for side in self._sides)
            case Condition.ALL_USED:
                return not any(side.unused for side in self._sides)
            case Condition.ACTIVATION_REACHED:
                return self._disk is not None and self._disk.missing >= max(1, self.monitor.settings.activation)
        return True

    def _freed(self) -> bool:
        """True if punctuation may have become free."""
        if self._sides[0].freed or self._sides[1].freed:
            return True
        return self._disk is not None and self._disk.closed and self._anything_waits()

    def _anything_waits(self) -> bool:
        return any(side.waiting for side in self._sides)

    def _full(self) -> bool:
        return self._disk is not None and self._disk.in_memory() > self.monitor.settings.memory_limit
