"""The memory of a supervised program: its processes, and its files in `/dev/shm`.

A process grows while it is young: workers start, each loads what it needs, caches fill. So each life of the program is
judged by itself, from `young` seconds after its first batch on, and each process in it that lasts as long: the median
of the last third of its samples may not exceed that of the first by more than `RATIO` and a slack. What is measured:

| | slack | |
|---|---|---|
| memory of a process (RSS) | 24 MB | the JVM may fill its heap up to its limit |
| blocks that its Python objects take | 10,000 | also those the collector does not know (`probe`) |
| objects of the JVM that are live after a collection | 24 MB | if the JDK has `jcmd` |
| files in `/dev/shm` | 24 MB | |
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from millstream import scratch
from millstream_bench.soak.mixture.supervised import Supervised
from millstream_bench.soak.processes import Process, descendants

EVERY, COLLECTED = 0.5, 15.0
"""Seconds between two samples, and between two collections of the JVM's heap."""
YOUNG, LONG = 90.0, 60.0
"""Seconds after the first batch without samples; seconds of samples from which a process is judged."""
RATIO = 1.05
PAGE = os.sysconf("SC_PAGE_SIZE")


class Measure(NamedTuple):
    name: str
    slack: int
    unit: str = "MB"

    def text(self, size: float) -> str:
        return f"{size / 1e6:,.1f} MB" if self.unit == "MB" else f"{size:,.0f} {self.unit}"


DRIVER, WORKER = Measure("the driver", 24_000_000), Measure("a worker", 24_000_000)
JVM, LIVE = Measure("the JVM", 1_000_000_000), Measure("the JVM's live objects", 24_000_000)
SHARED = Measure("/dev/shm", 24_000_000)
BLOCKS = {one: Measure(f"the objects of {one.name}", 10_000, "blocks") for one in (DRIVER, WORKER)}


class Series(NamedTuple):
    """What is measured of a process, in one life of the program."""

    start: int
    of: Measure
    pid: int


class Sample(NamedTuple):
    moment: float
    batch: int
    size: int


class Memory:
    """Samples of a program. `faults` says what has grown."""

    def __init__(self, program: Supervised, young: float = YOUNG) -> None:
        self._program, self._young, self._last, self._collected, self._left = program, young, 0.0, 0.0, 0
        self._samples: defaultdict[Series, list[Sample]] = defaultdict(list)
        self._lives, self._since = 0, 0.0
        """The start that has delivered a batch, and when it was seen."""

    def sample(self) -> None:
        """Take a sample, unless the program is young or the last sample is recent."""
        pid, now, start = self._program.pid, time.monotonic(), self._program.starts
        if self._lives != start and self._program.alive():
            self._lives, self._since = start, now
        if pid is None or self._lives != start or now < max(self._last + EVERY, self._since + self._young):
            return
        self._last = now
        batch, sizes = self._program.batch(), {(SHARED, 0): self._shared()}
        for kind, process in [(DRIVER, pid), *((_kind(below), below.pid) for below in descendants(pid))]:
            sizes[kind, process] = _resident(process)
            if kind in BLOCKS and (blocks := self._program.blocks(process)):
                sizes[BLOCKS[kind], process] = blocks
            if kind == JVM and now > self._collected + COLLECTED and (live := _live(process)):
                self._collected, sizes[LIVE, process] = now, live
        for (kind, process), size in sizes.items():
            if size or kind == SHARED:
                self._samples[Series(start, kind, process)].append(Sample(now, batch, size))

    def close(self) -> None:
        """Note what is left in `/dev/shm` after the end."""
        scratch.sweep()
        self._left = self._shared()

    def _shared(self) -> int:
        """Bytes in shared memory that belong to the program's jobs."""
        total = 0
        for job in (self._program.folder / "checkpoint" / "mill").glob("job-*/job.json"):
            with suppress(OSError, ValueError, KeyError):
                name = json.loads(job.read_text())["id"]
                for folder in scratch.SHARED.glob(f"millstream-*-{name}"):
                    total += sum(_size(path) for path in folder.rglob("*"))
        return total

    def judged(self) -> list[str]:
        """How each process changed over the longest life that was long enough; empty if none was."""
        lives = {series.start: held for series, held in self._samples.items() if series.of == SHARED}
        longest = max(lives, key=lambda start: lives[start][-1].moment - lives[start][0].moment, default=0)
        changes = {one: Change.of(held) for one, held in self._samples.items() if one.start == longest}
        return [f"{one.of.name}: {change.text(one.of)}" for one, change in changes.items() if change and change.after]

    def faults(self) -> list[str]:
        found = [f"{self._left:,} bytes are left in {SHARED.name}"] if self._left else []
        for series, samples in self._samples.items():
            change = Change.of(samples)
            if change and change.grows(series.of):
                found.append(f"memory of {series.of.name} grew: {change.text(series.of)}")
        return found

    def most(self) -> str:
        """The most memory of each kind that a sample found."""
        most: dict[Measure, int] = {}
        for series, held in self._samples.items():
            most[series.of] = max(most.get(series.of, 0), *(sample.size for sample in held))
        return ", ".join(f"{kind.name} {kind.text(size)}" for kind, size in most.items())


class Change(NamedTuple):
    """The medians of the first and the last third of the samples of a process, and the batches between them."""

    before: float
    after: float
    batches: float

    @classmethod
    def of(cls, samples: list[Sample]) -> Change | None:
        """None if the process did not last long enough to be judged."""
        if not samples or samples[-1].moment - samples[0].moment < LONG:
            return None
        part = max(len(samples) // 3, 1)
        first, last = samples[:part], samples[-part:]
        before, after = (statistics.median(sample.size for sample in some) for some in (first, last))
        begun, ended = (statistics.median(sample.batch for sample in some) for some in (first, last))
        return cls(before, after, ended - begun)

    def grows(self, of: Measure) -> bool:
        """
        >>> rising = [Sample(n, n, 200_000_000 + n * 800_000) for n in range(90)]
        >>> Change.of(rising).grows(WORKER), Change.of([Sample(n, n, 200_000_000) for n in range(90)]).grows(WORKER)
        (True, False)
        """
        return self.after > RATIO * self.before + of.slack

    def text(self, of: Measure) -> str:
        """
        >>> Change(212_000_000, 260_000_000, 60).text(WORKER)
        '212.0 MB → 260.0 MB, 800.0 MB in 1,000 batches'
        """
        each = f", {of.text((self.after - self.before) / self.batches * 1000)} in 1,000 batches" if self.batches else ""
        return f"{of.text(self.before)} → {of.text(self.after)}{each}"


def _live(pid: int) -> int:
    """Bytes of the objects in the heap of a JVM after a collection; 0 if that cannot be known."""
    with suppress(OSError, ValueError, IndexError, subprocess.SubprocessError):
        command = ["jcmd", str(pid), "GC.class_histogram"]
        said = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
        return int(said.split()[-1])
    return 0


def _kind(process: Process) -> Measure:
    return JVM if process.command.split(" ", 1)[0].endswith("java") else WORKER


def _resident(pid: int) -> int:
    """Bytes of memory of a process."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    return 0


def _size(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_size
    return 0
