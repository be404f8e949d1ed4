"""A run of the mixture: one program, disturbed at random moments, and what must hold afterwards.

| disturbance | | then |
|---|---|---|
| `kill` | SIGKILL to the program, with or without its JVM | it is started again |
| `stop` | SIGTERM | it ends in order, and is started again |
| `add`, `drop` | a query is started, from now or from the beginning; one is dropped | |
| `disk` | the disk of the checkpoint is full for a while | the program may end; then it is started again |
| `fail` | the sink of two queries raises for a while | the same |
| `slow` | each write to the sink takes long for a while | |

The rows of the queries must be those of an undisturbed run, each as often. A query that was dropped, or that started
later, has some of the rows of the same query in the undisturbed run; one that read from the beginning to the end has
all of them. The memory of the processes, and what they hold in `/dev/shm`, must not grow. It is judged in a last, calm
part of the run, in which the program is not ended (`memory`).
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from millstream.errors import OptionError
from millstream_bench.soak.comparison import difference
from millstream_bench.soak.mixture.disk import SmallDisk
from millstream_bench.soak.mixture.memory import YOUNG, Memory
from millstream_bench.soak.mixture.program import EXTRA, FAILS, MEMORYLESS, QUERIES, WAITS, statement
from millstream_bench.soak.mixture.supervised import Supervised

Report = Callable[[str], None]
DISTURBANCES = ("kill", "stop", "add", "drop", "disk", "fail", "slow")
MOST_EXTRA = 3
"""Queries that run beside those of the start at a time."""
GENTLE, PAUSE = ("add", "drop", "fail", "slow"), 12.0
"""Disturbances that a program survives, and seconds between them while memory is judged."""


@dataclass(frozen=True, slots=True)
class Site:
    """The streams: they last `seconds` and then `calm` at `rate` events a second. `master`: Spark's, or none. In the
    calm part nothing ends the program, so that its memory can be judged."""

    seconds: int = 120
    rate: int = 1000
    master: str = "local[2]"
    calm: int = 0


@dataclass(slots=True)
class Extra:
    """A query that was added: which of `EXTRA`, and whether all of its rows must be there."""

    kind: str
    whole: bool
    running: bool = True


@dataclass(slots=True)
class Mixture:
    """`folder` receives checkpoints, results and logs; those of a run that was right are removed."""

    folder: Path
    report: Report
    site: Site
    seed: int = 0
    limit: float = 600.0
    """Seconds after which a run has failed."""
    held: float = 4.0
    """Seconds that a full disk, a failing or a slow sink lasts."""
    young: float = YOUNG
    """Seconds of a life whose memory is not judged."""
    _done: int = 0
    _random: random.Random = field(init=False)
    _wanted: dict[str, pl.DataFrame] = field(default_factory=dict)
    _extra: dict[str, Extra] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def run(self, count: int) -> bool:
        """Run undisturbed, then with `count` disturbances; return whether everything held."""
        self._allow_for_starts(count)
        self._undisturbed()
        faults = self._disturbed(count)
        for fault in faults:
            self.report(f"mixture: {fault}; see {self.folder}")
        if not faults:
            done = f"{self._done} of {count} disturbances, seed {self.seed}"
            self.report(f"mixture: {done}: the output is that of the undisturbed run")
            shutil.rmtree(self.folder)
        return not faults

    def _allow_for_starts(self, count: int) -> None:
        """Lengthen the streams, which do not wait for a program that starts: half of the disturbances may end it."""
        if self.site.master == "none":
            return
        program, begun = (
            Supervised(self.folder / "trial", 5 * self.site.rate, self.site.rate, "1", self.site.master),
            time.monotonic(),
        )
        program.start()
        try:
            program.await_life(self.limit)
        finally:
            program.kill()
        starts = (count // 2 + 1) * (time.monotonic() - begun)
        self.site = replace(self.site, seconds=self.site.seconds + int(starts))
        self.report(f"mixture: {starts:.0f} s for starts, {self.site.seconds} s in all")

    def _undisturbed(self) -> None:
        """Run as fast as it goes, with all queries from the start."""
        folder = self.folder / "undisturbed"
        program = self._program(folder, "max", "none")
        for name, select in EXTRA.items():
            program.command(statement(name, select, folder, start="beginning"))
        program.start()
        if not program.finish(self.limit):
            raise OptionError("M6051", "the undisturbed run did not end", detail=program.said())
        self._wanted = {name: rows_of(folder / "output" / name) for name in (*QUERIES, *EXTRA)}
        rows = ", ".join(f"{name} {self._wanted[name].height:,}" for name in QUERIES)
        self.report(f"mixture: undisturbed: {rows} rows")

    def _program(self, folder: Path, speed: str, master: str) -> Supervised:
        events = (self.site.seconds + self.site.calm) * self.site.rate
        return Supervised(folder, events, self.site.rate, speed, master)

    def _disturbed(self, count: int) -> list[str]:
        folder = self.folder / "disturbed"
        rounds = -(-count // len(DISTURBANCES))  # each kind once, then each kind again
        kinds = [kind for _ in range(rounds) for kind in self._random.sample(DISTURBANCES, len(DISTURBANCES))][:count]
        with SmallDisk(folder / "checkpoint", self.report if "disk" in kinds else lambda _: None) as disk:
            program = self._program(folder, "1", self.site.master)
            memory = Memory(program, self.young)
            try:
                program.start()
                for number, kind in enumerate(kinds):
                    pause = self.site.seconds / (count + 1) * self._random.uniform(0.4, 1.2)
                    program.watch(pause, memory.sample)
                    if kind != "kill" or self._random.random() < 0.7:  # some kills hit a start
                        program.await_life(self.limit, memory.sample)
                    if program.ended_well():
                        self.report(f"mixture: the streams ended before disturbance {number + 1}")
                        break
                    said = getattr(self, f"_{kind}")(program, disk)
                    self._done += 1
                    self.report(f"mixture {number + 1}/{count}: {said}")
                self._calm(program, disk, memory)
                ended = program.finish(self.limit, memory.sample)
            finally:
                program.kill()
            memory.close()
            if most := memory.most():
                self.report(f"mixture: {program.starts} starts; most memory: {most}")
            if judged := memory.judged():
                self.report("mixture: memory of the longest life, at first and at last:\n  " + "\n  ".join(judged))
            elif self.site.calm and ended:
                return ["no life of the program was long enough to judge its memory"]
            found = [] if ended else [f"it did not end: {program.said()}"]
            return found or [*self._differences(folder / "output"), *memory.faults()]

    def _calm(self, program: Supervised, disk: SmallDisk, memory: Memory) -> None:
        """Let one life of the program last, with disturbances that it survives."""
        end = time.monotonic() + self.site.calm
        while time.monotonic() < end and not program.watch(PAUSE, memory.sample):
            said = getattr(self, f"_{self._random.choice(GENTLE)}")(program, disk)
            self.report(f"mixture, calm: {said}")

    # --- disturbances -----------------------------------------------------------------------------------------------

    def _kill(self, program: Supervised, _: SmallDisk) -> str:
        alone = self._random.random() < 0.3
        program.kill(alone=alone)
        program.start()
        return "killed" if alone else "killed with all its processes"

    def _stop(self, program: Supervised, _: SmallDisk) -> str:
        begun = time.monotonic()
        program.signal(signal.SIGTERM)
        program.wait(30)
        taken = time.monotonic() - begun
        program.start()
        return f"stopped by SIGTERM in {taken:.1f} s"

    def _add(self, program: Supervised, disk: SmallDisk) -> str:
        if sum(extra.running for extra in self._extra.values()) >= MOST_EXTRA:  # what runs would take ever more memory
            return self._drop(program, disk)
        kind = self._random.choice([*EXTRA])
        start = self._random.choice(("now", "beginning")) if kind in MEMORYLESS else "beginning"
        name = f"{kind}_{len(self._extra)}"
        self._extra[name] = Extra(kind, start == "beginning")
        program.command(statement(name, EXTRA[kind], program.folder, start))
        return f"query {name} added, start = {start}"

    def _drop(self, program: Supervised, disk: SmallDisk) -> str:
        running = [name for name, extra in self._extra.items() if extra.running]
        if not running:
            return self._add(program, disk)
        name = self._random.choice(running)
        self._extra[name].whole = self._extra[name].running = False
        program.command(f"DROP QUERY IF EXISTS {name}")
        return f"query {name} dropped"

    def _disk(self, program: Supervised, disk: SmallDisk) -> str:
        if not disk.mounted:
            return "no full disk: this user cannot mount one"
        begun = time.monotonic()
        with disk.full():
            ended = program.wait(3 * self.held)  # it notices when it writes
        taken = time.monotonic() - begun
        program.watch(0)
        return f"a full disk for {taken:.1f} s; the program {'ended' if ended else 'went on'}"

    def _fail(self, program: Supervised, _: SmallDisk) -> str:
        with _flag(program.folder / FAILS):
            ended = program.wait(self.held)
        program.watch(0)
        return f"a sink that fails for {self.held:.0f} s; the program {'ended' if ended else 'went on'}"

    def _slow(self, program: Supervised, _: SmallDisk) -> str:
        with _flag(program.folder / WAITS):
            program.wait(self.held)
        return f"a slow sink for {self.held:.0f} s"

    # --- results ----------------------------------------------------------------------------------------------------

    def _differences(self, output: Path) -> list[str]:
        found = {name: difference(rows_of(output / name), self._wanted[name]) for name in QUERIES}
        for name, extra in self._extra.items():
            found[name] = difference(rows_of(output / name), self._wanted[extra.kind], whole=extra.whole)
        return [f"query {name}: {text}" for name, text in found.items() if text]


class _flag:
    """A file that exists inside a `with`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        self._path.touch()

    def __exit__(self, *_: object) -> None:
        self._path.unlink()


def rows_of(folder: Path) -> pl.DataFrame:
    """The rows in a folder of results."""
    files = sorted(folder.glob("*.parquet")) if folder.exists() else []
    return pl.concat([pl.read_parquet(file) for file in files]) if files else pl.DataFrame()


def run_mixture(count: int, folder: Path, report: Report, *, seed: int, site: Site, young: float = YOUNG) -> bool:
    """Disturb a run `count` times; return whether everything held."""
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    limit = max(600.0, site.calm)  # a slow machine falls behind in the calm part
    return Mixture(folder, report, site, seed, limit, young=young).run(count)
