"""`millstream soak`: kill a running join at random moments and compare its output with an undisturbed run.

| kind | killed (SIGKILL) | then |
|---|---|---|
| `driver` | the program, mostly with its JVM | it is restarted with the same checkpoint |
| `worker` | a Python worker of a task | Spark retries the task |
| | the process of the stream reader | the program stops with an error and is restarted |
| `cluster` | one of the two workers of a cluster on this machine | it is restarted; the program continues |

A run is killed several times before it may finish. Its output must have the same rows, each as often. `mixture` is
another program, disturbed in more ways (`mixture.run`). `memory` is that program with disturbances that it survives,
for half an hour on Spark and as long in process, to see that no process grows. `damage` kills a run once and damages
each part of what it leaves (`soak.damage`).
"""

from __future__ import annotations

import random
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from millstream.errors import OptionError, did_you_mean
from millstream_bench.soak.cluster import LocalCluster
from millstream_bench.soak.comparison import difference
from millstream_bench.soak.damage import run_damages
from millstream_bench.soak.mixture.run import Site, run_mixture
from millstream_bench.soak.program import Run, Workload

KINDS = ("driver", "worker", "cluster")
MIXTURE, MEMORY, DAMAGE = "mixture", "memory", "damage"
CALM = 240
"""Seconds at the end of the mixture in which nothing ends the program."""
SECONDS_EACH = 12
"""Seconds of the mixture per disturbance: a start takes some."""
KILLS_PER_RUN = 5
Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Moment:
    """Moment of a kill: `seconds` after the start of the program, or after a batch was begun or committed."""

    seconds: float
    batch: int | None = None
    done: bool = False

    def __str__(self) -> str:
        if self.batch is None:
            return f"{self.seconds:.1f} s after the start"
        return f"{self.seconds:.2f} s after batch {self.batch} was {'done' if self.done else 'begun'}"


class Soak:
    """`folder` receives checkpoints, results and logs; those of a run with wrong output are kept."""

    def __init__(
        self, folder: Path, report: Report, *, seed: int = 0, seconds: float = 300, load: Workload | None = None
    ) -> None:
        self.folder, self._report, self._seconds = folder, report, seconds
        self._random = random.Random(seed)
        self._load = load or Workload()
        self.wanted: pl.DataFrame | None = None
        """Output of an undisturbed run; None: run one."""
        self._start, self._pace = 8.0, 0.5
        """Estimated seconds of a start and of a batch."""
        self._runs = self._count = 0

    def run(self, kind: str, kills: int) -> bool:
        """Kill `kills` times; return whether all outputs were right."""
        if self.wanted is None:
            self.wanted = self._undisturbed()
        with LocalCluster() if kind == "cluster" else nullcontext() as cluster:
            right = True
            while kills > 0:
                told, good = self.disturb([kind] * min(KILLS_PER_RUN, kills), cluster)
                right, kills = right and good, kills - told
                if not told:
                    break
            return right

    def _undisturbed(self) -> pl.DataFrame:
        run = self._open("undisturbed", "local[2]")
        begun = time.monotonic()
        run.start()
        try:
            run.wait_for_commit(self._seconds)
            self._start = time.monotonic() - begun
            finished = run.finish(self._seconds)
        finally:
            run.close()
        if not finished:
            raise OptionError("M6051", "the undisturbed run did not end", detail=run.said())
        taken, batches = time.monotonic() - begun, run.begun()
        self._pace = (taken - self._start) / max(1, batches)
        rows = run.rows()
        self._report(f"undisturbed: {rows.height:,} rows of {batches + 1} batches in {taken:.1f} s")
        shutil.rmtree(run.folder)
        return rows

    def _open(self, name: str, master: str) -> Run:
        return Run(self.folder / name, self._load, master)

    def disturb(self, kinds: Sequence[str], cluster: LocalCluster | None = None) -> tuple[int, bool]:
        """Run with these kills; return the number of kills and whether the output is right."""
        self._runs += 1
        run = self._open(f"{kinds[0]}-{self._runs}", cluster.url if cluster is not None else "local[2]")
        run.start()
        try:
            told = self._kills(run, kinds, cluster)
            finished = run.finish(self._seconds)
        finally:
            run.close()
        fault = self._fault(run) if finished else f"it did not end: {run.said()}"
        if fault:
            self._report(f"run {self._runs}: {fault}; see {run.folder}")
        else:
            self._report(f"run {self._runs}: {told} kills, the output is that of the undisturbed run")
            shutil.rmtree(run.folder)
        return told if finished else 0, not fault

    def _kills(self, run: Run, kinds: Sequence[str], cluster: LocalCluster | None) -> int:
        """Kill a run in these ways until it ends; return the number of kills."""
        starting = [kind == "driver" and self._random.random() < 0.25 for kind in kinds]
        for number, kind in enumerate(kinds):
            moment = self._moment(run, len(kinds) - number)
            if starting[number]:
                moment = Moment(self._random.uniform(0, self._start))
            if not self._await(run, moment):
                return number
            at, when = run.where(), time.monotonic()
            hit = self._kill(run, kind, cluster)
            self._count += 1
            if number + 1 < len(kinds) and starting[number + 1]:
                how = "killed again while it starts"
            elif run.wait_for_commit(self._seconds):
                how = f"went on in {time.monotonic() - when:.1f} s"
            else:
                self._report(f"kill {self._count}: {moment} ({at}), {hit}; it does not go on")
                return number + 1
            self._report(f"kill {self._count}: {moment} ({at}), {hit}; {how}")
        return len(kinds)

    def _moment(self, run: Run, left: int) -> Moment:
        """A random moment: within a batch, or between two."""
        ahead = max(1, (self._load.batches - run.begun()) // (left + 1))
        batch = run.begun() + self._random.randint(1, 2 * ahead - 1)
        if self._random.random() < 0.3:
            return Moment(self._random.uniform(0, 0.1), batch, done=True)
        return Moment(self._random.uniform(0, self._pace), batch)

    def _await(self, run: Run, moment: Moment) -> bool:
        """Wait for a moment; return False if the run ends first."""
        deadline = time.monotonic() + self._seconds
        while moment.batch is not None and (run.done() if moment.done else run.begun()) < moment.batch:
            if run.exited() or time.monotonic() > deadline:
                return False
            time.sleep(0.005)
        time.sleep(moment.seconds)
        return not run.exited()

    def _kill(self, run: Run, kind: str, cluster: LocalCluster | None) -> str:
        """Kill a process and restart it where Spark does not; return its description."""
        if kind == "driver":
            alone = self._random.random() < 0.3
            run.kill(alone=alone)
            run.start()
            return "driver killed" if alone else "driver and JVM killed"
        if cluster is not None:
            return cluster.kill(self._random)
        workers = run.workers()
        if not workers:
            return "no worker there to kill"
        pid, name = self._random.choice(workers)
        run.signal(pid, signal.SIGKILL)
        return f"{name} killed"

    def _fault(self, run: Run) -> str:
        """Describe the difference between the output of a run and the right one; empty if there is none."""
        assert self.wanted is not None
        return difference(run.rows(), self.wanted)


def run_soak(
    what: Sequence[str] | None,
    kills: int,
    folder: Path,
    report: Report,
    *,
    seed: int,
    seconds: float,
    minutes: int = 30,
) -> bool:
    """Kill `kills` times for each kind, or disturb the mixture as often; return whether all outputs were right."""
    for kind in what or ():
        if kind not in (known := (*KINDS, MIXTURE, MEMORY, DAMAGE)):
            raise OptionError("M6024", f"there is no '{kind}' to kill", hint=did_you_mean(kind, known))
    place = folder.absolute() / time.strftime("%Y%m%d-%H%M%S")
    soak, right = Soak(place, report, seed=seed, seconds=seconds), []
    for kind in what or KINDS:
        if kind == MIXTURE:
            site = Site(seconds=SECONDS_EACH * kills, calm=CALM)
            right.append(run_mixture(kills, place / MIXTURE, report, seed=seed, site=site))
        elif kind == MEMORY:
            for master in ("local[2]", "none"):
                report(f"memory: {minutes} minutes " + ("in process" if master == "none" else "on Spark"))
                site = Site(seconds=0, master=master, calm=60 * minutes)
                right.append(run_mixture(0, place / MEMORY, report, seed=seed, site=site, young=20 * minutes))
        elif kind == DAMAGE:
            right.append(run_damages(place / DAMAGE, report, seconds))
        else:
            right.append(soak.run(kind, kills))
    report("no difference" if all(right) else f"there are differences; see {place}")
    return all(right)
