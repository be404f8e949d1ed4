"""Denoising and duplicate merging of RFID readings, tuple at a time, as the algorithms are written down.

A reading is no noise if some window that ends at a reading of its key, and holds it, has at least `threshold` readings
of the key. Each algorithm is fed readings in the order of time, and ends with `flush`; `out` has `(at, reading)`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import ClassVar


@dataclass(eq=False)
class Reading:
    key: Hashable
    ts: int
    noise: bool = True


@dataclass
class Denoise(ABC):
    window: int
    threshold: int
    held: deque[Reading] = field(default_factory=deque)
    out: list[tuple[int, Reading]] = field(default_factory=list)
    end: ClassVar[int] = 1 << 62

    @abstractmethod
    def take(self, x: Reading) -> None: ...

    @abstractmethod
    def flush(self) -> None:
        """The end of the stream: what is no noise and not yet out."""

    def run(self, readings: Iterable[tuple[int, Hashable]]) -> list[tuple[int, Hashable, int]]:
        """What is emitted: when, the key and its time; at the end of the stream as `end`."""
        for ts, key in readings:
            self.take(Reading(key, ts))
        self.flush()
        return [(at, reading.key, reading.ts) for at, reading in self.out]


@dataclass
class Baseline(Denoise):
    """Counts by a scan; what is no noise goes out at once, so not in the order of time."""

    def take(self, x: Reading) -> None:
        self.held.append(x)
        while self.held[0].ts < x.ts - self.window:
            self.held.popleft()
        same = [reading for reading in self.held if reading.key == x.key]
        if len(same) >= self.threshold:
            for reading in same:
                if reading.noise:
                    reading.noise = False
                    self.out.append((x.ts, reading))

    def flush(self) -> None:
        self.held.clear()


@dataclass
class BaselineOrdered(Denoise):
    """Counts by a scan; a reading goes out when it leaves the window."""

    def take(self, x: Reading) -> None:
        self.held.append(x)
        self._expire(x.ts - self.window, x.ts)
        same = [reading for reading in self.held if reading.key == x.key]
        if len(same) >= self.threshold:
            for reading in same:
                reading.noise = False

    def _expire(self, before: int, now: int) -> None:
        while self.held and self.held[0].ts < before:
            reading = self.held.popleft()
            if not reading.noise:
                self.out.append((now, reading))

    def flush(self) -> None:
        self._expire(self.end, self.end)


@dataclass
class Lazy(Denoise):
    """Counters a key; the readings of a key that are no noise precede those that may still be. Goes out on expiry."""

    counts: Counter[Hashable] = field(default_factory=Counter)

    def take(self, x: Reading) -> None:
        self.held.append(x)
        self.counts[x.key] += 1
        self._expire(x.ts - self.window, x.ts)
        if self.counts[x.key] >= self.threshold:
            for reading in reversed(self.held):
                if reading.key == x.key:
                    if not reading.noise:
                        break
                    reading.noise = False

    def _expire(self, before: int, now: int) -> None:
        while self.held and self.held[0].ts < before:
            reading = self.held.popleft()
            if not reading.noise:
                self.out.append((now, reading))
            self.counts[reading.key] -= 1
            if not self.counts[reading.key]:
                del self.counts[reading.key]

    def flush(self) -> None:
        self._expire(self.end, self.end)


@dataclass
class Eager(Denoise):
    """As lazy, but whatever precedes the first reading that may still be noise goes out at once."""

    counts: Counter[Hashable] = field(default_factory=Counter)
    first_noise: Reading | None = None

    def take(self, x: Reading) -> None:
        if self.first_noise is None:
            self.first_noise = x
        self.held.append(x)
        self.counts[x.key] += 1
        seeking = self._expire(x.ts - self.window, x.ts)
        count = self.counts[x.key]
        if count < self.threshold and not seeking:
            return
        for reading in self.held:
            if count >= self.threshold and reading.key == x.key and reading.noise:
                if not seeking and reading is self.first_noise:
                    seeking, self.first_noise = True, None
                reading.noise = False
                if seeking or (self.first_noise is not None and reading.ts < self.first_noise.ts):
                    self.out.append((x.ts, reading))
            elif not reading.noise and seeking:
                self.out.append((x.ts, reading))
            elif seeking and reading.noise:
                seeking, self.first_noise = False, reading
                if count < self.threshold:
                    break

    def _expire(self, before: int, now: int) -> bool:
        """Drop readings that leave the window; return whether the first noise was among them."""
        seeking = False
        while self.held and self.held[0].ts < before:
            reading = self.held.popleft()
            if not seeking and reading.noise:
                seeking, self.first_noise = True, None
            elif seeking and not reading.noise:
                self.out.append((now, reading))
            self.counts[reading.key] -= 1
            if not self.counts[reading.key]:
                del self.counts[reading.key]
        return seeking

    def flush(self) -> None:
        self._expire(self.end, self.end)


ALGORITHMS: dict[str, type[Denoise]] = {
    "baseline": Baseline,
    "ordered baseline": BaselineOrdered,
    "lazy": Lazy,
    "eager": Eager,
}


def merged(readings: Iterable[tuple[int, Hashable]], max_distance: int) -> list[tuple[int, Hashable]]:
    """Without duplicates: a reading within `max_distance` of the one before it of the same key, itself dropped or
    not."""
    last: dict[Hashable, int] = {}
    out = []
    for ts, key in readings:
        if key not in last or ts - last[key] > max_distance:
            out.append((ts, key))
        last[key] = ts
    return out
