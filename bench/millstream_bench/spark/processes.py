"""CPU seconds of a process and its descendants, separately for driver, JVM and Python workers.

Read from `/proc`. A process that ends adds its time to the one that waits for it, so none is lost; the time seen before
stays with its own kind. A process that outlives its parent is still followed.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from millstream.errors import OptionError

KINDS = ("driver", "jvm", "worker")
Seconds = dict[str, float]

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """One line of `/proc/PID/stat`, times in seconds."""

    pid: int
    parent: int
    name: str
    born: int
    own: float
    """CPU time of its threads."""
    reaped: float
    """CPU time of ended children and their descendants."""


def processes(proc: Path = _PROC) -> dict[int, Process]:
    """All current processes."""
    found = {}
    try:
        names = os.listdir(proc)  # noqa: PTH208 - several times a second, and paths cost more than the rest
    except OSError as error:
        hint = "CPU time of processes is read from /proc, which Linux has."
        raise OptionError("M6021", f"cannot read {proc}: {error.strerror}", hint=hint) from error
    tick = os.sysconf("SC_CLK_TCK")
    for name in names:
        if name.isdigit():
            try:
                with open(f"{proc}/{name}/stat", errors="replace") as file:  # noqa: PTH123
                    found[int(name)] = _parsed(file.read(), tick)
            except OSError:  # it has just ended
                continue
    return found


def _parsed(line: str, tick: int) -> Process:
    """The name is in parentheses and may contain any character.

    >>> line = "7 (a) b) S 3 7 7 0 -1 0 0 0 0 0 250 50 100 0 20 0 1 0 99 0"
    >>> _parsed(line, 100)
    Process(pid=7, parent=3, name='a) b', born=99, own=3.0, reaped=1.0)
    """
    before, after = line.rsplit(")", 1)
    number, name = before.split(" (", 1)
    values = after.split()
    user, system, reaped_user, reaped_system = (int(value) / tick for value in values[11:15])
    return Process(int(number), int(values[1]), name, int(values[19]), user + system, reaped_user + reaped_system)


class Tree:
    """A process with its descendants, as seen at each `update`."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._known: dict[int, Process] = {}
        self._kinds: dict[int, str] = {}
        self._kept: Seconds = dict.fromkeys(KINDS, 0.0)
        """Time of ended processes by kind, less the part that their ancestors include."""

    def update(self, running: Mapping[int, Process]) -> Seconds:
        """CPU seconds so far by kind, given all current processes."""
        here = self._members(running)
        ended = [process for pid, process in self._known.items() if not _same(process, here)]
        growth = {pid: process.reaped - self._reaped(process) for pid, process in here.items()}
        for process in ended:
            spent = process.own + process.reaped
            self._kept[self._kinds[process.pid]] += spent
            heir = self._heir(process, here)
            if heir is not None:
                handed = min(spent, max(growth[heir], 0.0))
                growth[heir] -= handed
                self._kept[self._kinds[heir]] -= handed
        self._known = here
        for pid, process in here.items():
            self._kinds[pid] = self._kind(process)
        total = dict(self._kept)
        for pid, process in here.items():
            total[self._kinds[pid]] += process.own + process.reaped
        return total

    def _members(self, running: Mapping[int, Process]) -> dict[int, Process]:
        children: dict[int, list[int]] = {}
        for pid, process in running.items():
            children.setdefault(process.parent, []).append(pid)
        followed = [pid for pid, process in self._known.items() if _same(process, running)]
        todo, here = [self._root, *followed], dict[int, Process]()
        while todo:
            pid = todo.pop()
            if pid in running and pid not in here:
                here[pid] = running[pid]
                todo += children.get(pid, ())
        return here

    def _reaped(self, process: Process) -> float:
        return self._known[process.pid].reaped if _same(process, self._known) else 0.0

    def _heir(self, process: Process, here: Mapping[int, Process]) -> int | None:
        """The nearest living ancestor."""
        parent = process.parent
        while parent not in here:
            if parent not in self._known:
                return None
            parent = self._known[parent].parent
        return parent

    def _kind(self, process: Process) -> str:
        if process.pid == self._root:
            return "driver"
        if process.name.startswith("java"):
            return "jvm"
        if process.name.startswith("python"):
            return "worker"
        return self._kinds.get(process.parent, "driver")


def _same(process: Process, among: Mapping[int, Process]) -> bool:
    """True if the process lives and its number was not reused."""
    return process.pid in among and among[process.pid].born == process.born


@dataclass(slots=True)
class CpuRecord:
    """CPU seconds by kind at some moments, interpolated linearly between them."""

    moments: list[float] = field(default_factory=list)
    totals: list[Seconds] = field(default_factory=list)

    def add(self, moment: float, total: Seconds) -> None:
        self.moments.append(moment)
        self.totals.append(total)

    def between(self, start: float, end: float) -> Seconds:
        """CPU seconds by kind from one moment to another (seconds since the epoch).

        >>> record = CpuRecord([0.0, 1.0, 2.0], [{"jvm": 0.0}, {"jvm": 1.0}, {"jvm": 3.0}])
        >>> record.between(0.5, 1.5)
        {'jvm': 1.5}
        """
        begin, finish = self._at(start), self._at(end)
        return {kind: finish[kind] - begin[kind] for kind in finish}

    def _at(self, moment: float) -> Seconds:
        import numpy as np

        totals = self.totals[:]
        moments = self.moments[: len(totals)]  # a thread adds to both, to the moments first
        kinds = totals[0] if totals else {}
        return {kind: float(np.interp(moment, moments, [t[kind] for t in totals])) for kind in kinds}


class Sampler:
    """Record the CPU time of a process tree in a thread while the block runs."""

    def __init__(self, root: int, *, every: float = 0.2) -> None:
        self.record = CpuRecord()
        self._tree = Tree(root)
        self._every = every
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._sample()
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()
        self._sample()

    def _sample(self) -> None:
        self.record.add(time.time(), self._tree.update(processes()))

    def _run(self) -> None:
        while not self._stop.wait(self._every):
            self._sample()
