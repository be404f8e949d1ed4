"""Joins whose state is larger than memory: relocation to disk, and the disk join for missed pairs.

| | |
|---|---|
| relocation | the largest buckets of either side move to disk until half of the limit is free |
| memory join | joins only tuples in memory |
| disk join | finds the pairs with one tuple on disk when the other arrived |
| a pair is found | once: not if both were in memory together, nor if both were there when the disk join last ran |
| a closed tuple | stays, in the buffer or on disk, until it has joined its partners on disk, and blocks punctuation |
| progress | stops while pairs are owed: they are older than the tuples that have arrived since |

The disk join probes only with tuples that have arrived since its last run in their bucket, and with closed ones.
Without windows it waits for an event. With windows it runs in every step, so results are in timestamp order, nothing is
owed when tuples leave their window, and progress never stops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.arrays import Integers, Mask
from millstream.algebra.schema import FOREVER, TS
from millstream.runtime.join.disk.side import ARRIVED, SPILLED, DiskPart, Steps
from millstream.runtime.join.disk.table import BUCKET, Tags
from millstream.runtime.join.index import BUCKETS, Equality
from millstream.runtime.join.kernel import JoinKernel
from millstream.runtime.join.side import JoinSide
from millstream.runtime.operator.frames import pick, where
from millstream.runtime.state.table import StateTable

NAMES = ("left", "right")
GROUP_ROWS = 1 << 16
"""Approximate number of tuples on disk that one pass of the disk join reads."""


class Relocation:
    """`at_once`: the disk join runs in every step."""

    def __init__(self, equality: Equality, kernel: JoinKernel, sides: Sequence[JoinSide], *, at_once: bool) -> None:
        self._kernel, self._sides, self._at_once = kernel, sides, at_once
        self._names = [list(side.table.schema) for side in sides]
        self._steps = Steps()
        self._parts = tuple(DiskPart(i, side.table, equality, self._steps) for i, side in enumerate(sides))
        self._parts[0].other, self._parts[1].other = self._parts[1], self._parts[0]
        for side, part in zip(sides, self._parts, strict=True):
            side.disk = part
        self._peak = 0
        """Largest size in memory, in bytes, since memory was last shrunk."""
        self._met: Integers = np.zeros(BUCKETS, dtype=np.int64)
        """Step of the last disk join, per bucket."""
        self._missing: Integers = np.zeros(BUCKETS, dtype=np.int64)
        """Number of tuples that have arrived since then while the other side had some on disk, per bucket."""

    @property
    def active(self) -> bool:
        """True if tuples are on disk."""
        return self._steps.active

    @property
    def missing(self) -> int:
        """Number of tuples that may have missed partners on disk."""
        return int(self._missing.sum()) + sum(len(part.buffer) for part in self._parts) if self.active else 0

    @property
    def closed(self) -> bool:
        """True if punctuation has arrived that may close tuples on disk."""
        return self.active and any(part.closed for part in self._parts)

    @property
    def may_shrink(self) -> bool:
        """True if closed tuples may be on disk or in a buffer."""
        return self.active and any(part.closed or len(part.buffer) for part in self._parts)

    def begin(self, new: Sequence[pl.DataFrame | None]) -> None:
        """Begin a step with these new tuples."""
        if not self.active:
            return
        self._steps.now += 1
        self._steps.owing = True
        for index, rows in enumerate(new):
            if rows is not None:
                on_disk = np.zeros(BUCKETS, dtype=np.bool_)
                on_disk[list(self._parts[1 - index].disk.buckets)] = True
                self._missing += np.bincount(self._parts[index].buckets_of(rows), minlength=BUCKETS) * on_disk

    def keep_up(self) -> list[pl.DataFrame]:
        """Find what the tuples of the step, now stored, have missed, if the step must not owe anything."""
        if not self.active or not self._at_once:
            return []
        found = self.catch_up()
        self._steps.owing = False
        return found

    def in_memory(self) -> int:
        """Approximate size in bytes of the tuples in memory."""
        size = sum(part.memory.size() + part.buffer.size() for part in self._parts)
        self._peak = max(self._peak, size)
        if 2 * size < self._peak:
            self._peak = size
            for part in self._parts:
                part.memory.shrink()
        return size

    def relocate(self, limit: int) -> list[pl.DataFrame]:
        """Move tuples to disk until memory is below the limit; returns the pairs that the disk join found first."""
        for side in self._sides:
            side.purge()
        found = self.finish()
        total = self.in_memory()
        if total <= limit:
            return found
        if not self.active:
            self._steps.now, self._steps.active = 1, True
            for part in self._parts:  # all tuples in memory have met
                part.arrived = Tags(np.zeros(len(part.memory), dtype=np.int64))
        sizes = np.concatenate([_bucket_sizes(part) for part in self._parts])
        largest = np.argsort(-sizes, kind="stable")
        enough = int(np.searchsorted(np.cumsum(sizes[largest]), total - limit // 2)) + 1
        chosen = largest[:enough]
        for index, part in enumerate(self._parts):
            part.spill(set((chosen[chosen // BUCKETS == index] % BUCKETS).tolist()))
            part.memory.shrink()
        self._peak = 0
        self._rest()
        return found

    def finish(self) -> list[pl.DataFrame]:
        """Join closed tuples with their partners on disk, and let them leave."""
        if not self.may_shrink:
            return []
        found: list[pl.DataFrame] = []
        for index, part in enumerate(self._parts):
            leaving, other = part.take_closed(), self._parts[1 - index]
            if not leaving.height:
                continue
            buckets = set(leaving.get_column(BUCKET).unique().to_list())
            found += self._missed(leaving, *other.disk.look(buckets), index)
            for partners in (other.in_memory(), other.buffer.frame()):
                found += self._missed(leaving, partners, None, index)
            self._left(index, leaving)
        self._rest()
        return found

    def catch_up(self) -> list[pl.DataFrame]:
        """Find all missed pairs."""
        found = self.finish()
        if not self._missing.any():
            return found
        memory = [part.in_memory() for part in self._parts]
        held = [rows.get_column(BUCKET).to_numpy() for rows in memory]
        for buckets in self._groups():
            here = [where(rows, np.isin(at, buckets)) for rows, at in zip(memory, held, strict=True)]
            found += self._catch_up(buckets, here)
            self._met[buckets] = self._steps.now
        self._missing[:] = 0
        self._rest()
        return found

    def _groups(self) -> list[list[int]]:
        """Return the buckets with missed pairs, in groups of about `GROUP_ROWS` tuples."""
        heights = [part.disk.heights() for part in self._parts]
        groups: list[list[int]] = []
        room = 0
        for bucket in np.flatnonzero(self._missing).tolist():
            size = heights[0].get(bucket, 0) + heights[1].get(bucket, 0)
            if not groups or size > room:
                groups.append([])
                room = GROUP_ROWS
            groups[-1].append(bucket)
            room -= size
        return groups

    def _catch_up(self, buckets: list[int], memory: Sequence[pl.DataFrame]) -> list[pl.DataFrame]:
        """Join new left tuples with all right ones, then new right tuples with the old left ones. Tuples in memory have
        met each other."""
        found: list[pl.DataFrame] = []
        disk, alive = zip(*(part.disk.look(buckets) for part in self._parts), strict=True)
        fresh = [(self._is_new(on_disk), self._is_new(rows)) for on_disk, rows in zip(disk, memory, strict=True)]
        for side in (0, 1):
            other = 1 - side
            stored, known = (alive[1], None) if side == 0 else (alive[0] & ~fresh[0][0], ~fresh[0][1])
            came = where(disk[side], alive[side] & fresh[side][0])
            found += self._missed(came, disk[other], stored, side)
            found += self._missed(came, memory[other], known, side)
            found += self._missed(where(memory[side], fresh[side][1]), disk[other], stored, side)
        return found

    def _is_new(self, rows: pl.DataFrame) -> Mask:
        """Return the mask of the tuples that have arrived since the last disk join of their bucket."""
        return rows.get_column(ARRIVED).to_numpy() > self._met.take(rows.get_column(BUCKET).to_numpy())

    def _missed(
        self, probe: pl.DataFrame, partners: pl.DataFrame, allowed: Mask | None, side: int
    ) -> list[pl.DataFrame]:
        """Return the pairs not found yet. The probing tuples are of this side, the partners `allowed` of the other."""
        if not probe.height or not partners.height:
            return []
        frames = (probe, partners) if side == 0 else (partners, probe)
        left, right = (pick(frame, names) for frame, names in zip(frames, self._names, strict=True))
        found: list[pl.DataFrame] = []
        for rows in self._kernel.candidates(*frames, probing_left=side == 0):
            if not len(rows[0]):
                continue
            arrived, spilled, time = (
                [frame.get_column(name).to_numpy().take(places) for frame, places in zip(frames, rows, strict=True)]
                for name in (ARRIVED, SPILLED, TS)
            )
            last = np.maximum(*arrived)
            met = self._met.take(probe.get_column(BUCKET).to_numpy()).take(rows[side])
            owed = (last > np.minimum(*spilled)) & (last > met)
            if allowed is not None:
                owed &= allowed.take(rows[1 - side])
            live = self._kernel.live(frames[0], frames[1], rows, (time[0], time[1]))
            if live is not None:
                owed &= live
            if owed.any():
                kept = (rows[0][owed], rows[1][owed]), (time[0][owed], time[1][owed])
                found += self._kernel.results(left, right, *kept)
        return found

    def expire(self, side: int, bound: int) -> None:
        """Purge the tuples on disk that are out of their window, given the other side's bound; all pairs are found."""
        if not self.active:
            return
        part, (column, limit) = self._parts[side], self._sides[side].limit(bound)
        gone = None
        if bound == FOREVER:
            gone = part.take_all()
        elif column is not None:
            gone = part.take_expired(limit)
        if gone is not None and gone.height:
            self._left(side, gone)
            self._rest()

    def _left(self, side: int, rows: pl.DataFrame) -> None:
        self._sides[side].left(pick(rows, self._names[side]))

    def _rest(self) -> None:
        for part in self._parts:
            part.disk.rest()
        if not any(len(part.disk) or len(part.buffer) for part in self._parts):
            self._steps.active = False
            self._steps.now = 0
            self._met[:] = self._missing[:] = 0
            for part in self._parts:
                part.arrived = Tags()

    def tables(self) -> dict[str, StateTable]:
        disk = {f"{name}_disk": part.disk for name, part in zip(NAMES, self._parts, strict=True)}
        return {**disk, **{f"{name}_buffer": part.buffer for name, part in zip(NAMES, self._parts, strict=True)}}

    def to_value(self) -> dict[str, Any] | None:
        if not self.active:
            return None
        return {
            "step": self._steps.now,
            "met": self._met.tolist(),
            "missing": self._missing.tolist(),
            "parts": [part.to_value() for part in self._parts],
        }

    def restore(self, value: Mapping[str, Any] | None) -> None:
        """Restore the value of `to_value`; the tables have been restored before."""
        self._steps.active = value is not None
        if value is not None:
            self._steps.now = value["step"]
            self._met, self._missing = (np.array(value[name], dtype=np.int64) for name in ("met", "missing"))
            for part, held in zip(self._parts, value["parts"], strict=True):
                part.restore(held)


def _bucket_sizes(part: DiskPart) -> Integers:
    """Approximate size in bytes of each bucket in memory."""
    counts = np.bincount(part.buckets_of(part.memory.frame()), minlength=BUCKETS)
    return (counts * (part.memory.size() / max(1, len(part.memory)))).astype(np.int64)
