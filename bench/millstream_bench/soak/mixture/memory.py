"""The memory of a supervised program: its processes, and its files in `/dev/shm`.

A process grows while it is young, so each life of the program is judged by itself: after `YOUNG` seconds, the median of
its last samples may not exceed that of the first ones by more than `RATIO` and `SLACK`. The heap of the JVM may reach
its limit, `HEAP`.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

from millstream import scratch
from millstream_bench.soak.mixture.supervised import Supervised
from millstream_bench.soak.processes import Process, descendants

EVERY = 0.5
"""Seconds between two samples."""
YOUNG, FEW = 30.0, 20
"""Seconds after a start without samples; number of samples from which a life is judged."""
RATIO, SLACK, HEAP = 1.3, 64_000_000, 1_000_000_000
PAGE = os.sysconf("SC_PAGE_SIZE")
SHARED, JVM, WORKER = "/dev/shm", "the JVM", "the largest worker"
"""Kinds of memory. Spark starts workers as it needs them, so the largest one is judged, not their sum."""


class Memory:
    """Samples of a program. `faults` says what has grown."""

    def __init__(self, program: Supervised) -> None:
        self._program, self._last, self._left = program, 0.0, 0
        self._samples: defaultdict[tuple[int, str], list[int]] = defaultdict(list)
        """By the number of the start and the kind of memory."""
        self._started: tuple[int, float] = 0, 0.0

    def sample(self) -> None:
        """Take a sample, unless the program is young or the last sample is recent."""
        pid, now, start = self._program.pid, time.monotonic(), self._program.starts
        if self._started[0] != start:
            self._started = start, now
        if pid is None or now < max(self._last + EVERY, self._started[1] + YOUNG):
            return
        self._last = now
        sizes = {"the driver": _resident(pid), JVM: 0, WORKER: 0, SHARED: self._shared()}
        for process in descendants(pid):
            kind = _kind(process)
            sizes[kind] = max(sizes[kind], _resident(process.pid))
        for kind, size in sizes.items():
            self._samples[start, kind].append(size)

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

    def faults(self) -> list[str]:
        found = [f"{self._left:,} bytes are left in {SHARED}"] if self._left else []
        for (_, kind), samples in self._samples.items():
            fault = growth(samples, slack=HEAP if kind == JVM else SLACK)
            found += [f"memory of {kind} grew {fault}"] if fault else []
        return found

    def most(self) -> str:
        """The most memory of each kind that a sample found."""
        kinds = dict.fromkeys(kind for _, kind in self._samples)
        most = {kind: max(max(held) for (_, of), held in self._samples.items() if of == kind) for kind in kinds}
        return ", ".join(f"{kind} {size / 1e6:,.0f} MB" for kind, size in most.items())


def growth(samples: list[int], slack: int = SLACK) -> str:
    """How the samples of a life grow, as text; empty if they do not.

    >>> growth([200_000_000] * 50), growth([200_000_000] * 30 + [500_000_000] * 30)
    ('', 'from 200 MB to 500 MB')
    """
    if len(samples) < FEW:
        return ""
    part = len(samples) // 4
    before, after = statistics.median(samples[:part]), statistics.median(samples[-part:])
    return f"from {before / 1e6:,.0f} MB to {after / 1e6:,.0f} MB" if after > RATIO * before + slack else ""


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
