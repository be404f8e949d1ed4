"""The memory of a supervised program: its processes, and its files in `/dev/shm`.

A process grows while it is young: workers start, each loads what it needs, caches fill. So each life of the program is
judged by itself, from `YOUNG` seconds after its first batch on: the median of the last third of its samples may not
exceed that of the first by more than `RATIO` and `SLACK`. The JVM may fill its heap up to its limit, `HEAP`; what is
live in it after a collection is judged like the others, if the JDK has `jcmd`.
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

from millstream import scratch
from millstream_bench.soak.mixture.supervised import Supervised
from millstream_bench.soak.processes import Process, descendants

EVERY, COLLECTED = 0.5, 15.0
"""Seconds between two samples, and between two collections of the JVM's heap."""
YOUNG, LONG = 90.0, 60.0
"""Seconds after the first batch without samples; seconds of samples from which a life is judged."""
RATIO, SLACK, HEAP = 1.05, 24_000_000, 1_000_000_000
PAGE = os.sysconf("SC_PAGE_SIZE")
SHARED, JVM, WORKER, LIVE = "/dev/shm", "the JVM", "the largest worker", "the JVM's live objects"
"""Kinds of memory. Spark starts workers as it needs them, so the largest one is judged, not their sum."""


class Memory:
    """Samples of a program. `faults` says what has grown."""

    def __init__(self, program: Supervised) -> None:
        self._program, self._last, self._collected, self._left = program, 0.0, 0.0, 0
        self._samples: defaultdict[tuple[int, str], list[Sample]] = defaultdict(list)
        """By the number of the start and the kind of memory."""
        self._lives, self._since = 0, 0.0
        """The start that has delivered a batch, and when it was seen."""

    def sample(self) -> None:
        """Take a sample, unless the program is young or the last sample is recent."""
        pid, now, start = self._program.pid, time.monotonic(), self._program.starts
        if self._lives != start and self._program.alive():
            self._lives, self._since = start, now
        if pid is None or self._lives != start or now < max(self._last + EVERY, self._since + YOUNG):
            return
        self._last = now
        sizes = {"the driver": _resident(pid), JVM: 0, WORKER: 0, SHARED: self._shared()}
        for process in descendants(pid):
            kind = _kind(process)
            sizes[kind] = max(sizes[kind], _resident(process.pid))
            if kind == JVM and now > self._collected + COLLECTED and (live := _live(process.pid)):
                self._collected, sizes[LIVE] = now, live
        for kind, size in sizes.items():
            self._samples[start, kind].append((now, size))

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

    def judged(self) -> str:
        """How each kind of memory changed over the longest life that was long enough; empty if none was."""
        lives = {start: samples for (start, kind), samples in self._samples.items() if kind == SHARED}
        longest = max(lives, key=lambda start: lives[start][-1][0] - lives[start][0][0], default=0)
        found = {kind: third(samples) for (start, kind), samples in self._samples.items() if start == longest}
        sizes = [
            f"{kind} {before / 1e6:,.1f} → {after / 1e6:,.1f} MB" for kind, (before, after) in found.items() if after
        ]
        return ", ".join(sizes)

    def faults(self) -> list[str]:
        found = [f"{self._left:,} bytes are left in {SHARED}"] if self._left else []
        for (_, kind), samples in self._samples.items():
            fault = growth(samples, slack=HEAP if kind == JVM else SLACK)
            found += [f"memory of {kind} grew {fault}"] if fault else []
        return found

    def most(self) -> str:
        """The most memory of each kind that a sample found."""
        kinds = dict.fromkeys(kind for _, kind in self._samples)
        of = {kind: [size for (_, k), held in self._samples.items() if k == kind for _, size in held] for kind in kinds}
        most = {kind: max(sizes) for kind, sizes in of.items()}
        return ", ".join(f"{kind} {size / 1e6:,.0f} MB" for kind, size in most.items())


Sample = tuple[float, int]
"""A moment, in seconds, and bytes."""


def third(samples: list[Sample]) -> tuple[float, float]:
    """The medians of the first and the last third of the samples of a life; zeros if it was too short to judge."""
    if not samples or samples[-1][0] - samples[0][0] < LONG:
        return 0.0, 0.0
    part = max(len(samples) // 3, 1)
    before, after = ([size for _, size in some] for some in (samples[:part], samples[-part:]))
    return statistics.median(before), statistics.median(after)


def growth(samples: list[Sample], slack: int = SLACK) -> str:
    """How the samples of a life grow, as text; empty if they do not.

    >>> growth([(n, 200_000_000) for n in range(90)]), growth([(n, 200_000_000 + n * 800_000) for n in range(90)])
    ('', 'from 212 MB to 260 MB')
    """
    before, after = third(samples)
    return f"from {before / 1e6:,.0f} MB to {after / 1e6:,.0f} MB" if after > RATIO * before + slack else ""


def _live(pid: int) -> int:
    """Bytes of the objects in the heap of a JVM after a collection; 0 if that cannot be known."""
    with suppress(OSError, ValueError, IndexError, subprocess.SubprocessError):
        command = ["jcmd", str(pid), "GC.class_histogram"]
        said = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
        return int(said.split()[-1])
    return 0


def _kind(process: Process) -> str:
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
