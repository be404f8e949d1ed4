"""The program of the mixture as a process that is started again whenever it ends too early."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from millstream_bench.soak.mixture.program import ALIVE

RESTARTS = 200
PROBE = Path(__file__).parents[1] / "probe"
STEP = 0.05
"""Seconds between two looks at the process."""


class Supervised:
    def __init__(self, folder: Path, events: int, rate: int, speed: str, master: str) -> None:
        self.folder = folder
        self._arguments = [str(folder), str(events), str(rate), speed, master]
        self._process: subprocess.Popen[bytes] | None = None
        self.starts = self._commands = 0
        for name in ("commands", "scratch", "output", "blocks"):
            (folder / name).mkdir(parents=True, exist_ok=True)

    def start(self) -> None:
        """Start the program, in a process group of its own."""
        self.starts += 1
        (self.folder / ALIVE).unlink(missing_ok=True)
        environment = os.environ | {
            "SPARK_LOCAL_DIRS": str(self.folder / "scratch"),
            "POLARS_MAX_THREADS": "1",
            "MILLSTREAM_BLOCKS": str(self.folder / "blocks"),
            "PYTHONPATH": os.pathsep.join(filter(None, (str(PROBE), os.environ.get("PYTHONPATH")))),
        }
        with (self.folder / "said.txt").open("ab") as said:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "millstream_bench.soak.mixture.program", *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env=environment,
                start_new_session=True,
            )

    @property
    def pid(self) -> int | None:
        """The process, while it runs."""
        return None if self._process is None or self._process.poll() is not None else self._process.pid

    def command(self, text: str) -> None:
        """Have the program run a statement."""
        self._commands += 1
        draft = self.folder / "commands" / ".draft"
        draft.write_text(text)
        draft.rename(draft.with_name(f"{self._commands:05}.sql"))

    def signal(self, number: signal.Signals) -> None:
        if (pid := self.pid) is not None:
            os.kill(pid, number)

    def kill(self, *, alone: bool = False) -> None:
        """Kill the program, with or without its other processes, which end when they notice."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                (os.kill if alone else os.killpg)(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def wait(self, seconds: float) -> bool:
        """Wait; return whether the program has ended by then."""
        assert self._process is not None
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self._process.poll() is not None

    def watch(self, seconds: float, look: Callable[[], None] = lambda: None) -> bool:
        """Wait, and start the program again if it has ended with an error; return whether it has ended well."""
        deadline = time.monotonic() + seconds
        while not self.ended_well():
            if self.pid is None:
                if self.starts > RESTARTS:
                    return False
                self.start()
            look()
            if time.monotonic() >= deadline:
                return False
            time.sleep(STEP)
        return True

    def alive(self) -> bool:
        """Whether the program has delivered a batch since its last start."""
        return (self.folder / ALIVE).exists()

    def batch(self) -> int:
        """The last batch that has been delivered since the last start."""
        with suppress(OSError, ValueError):
            return int((self.folder / ALIVE).read_text())
        return 0

    def blocks(self, pid: int) -> int:
        """The memory blocks that the Python objects of a process take; 0 if that is not known."""
        with suppress(OSError, ValueError):
            return int((self.folder / "blocks" / str(pid)).read_text())
        return 0

    def await_life(self, seconds: float, look: Callable[[], None] = lambda: None) -> None:
        """Wait until the program has delivered a batch since its last start, or has ended well."""
        deadline = time.monotonic() + seconds
        while not self.alive() and not self.watch(STEP, look) and time.monotonic() < deadline:
            pass

    def finish(self, seconds: float, look: Callable[[], None] = lambda: None) -> bool:
        """Wait for the end of the streams; return whether it came in time."""
        return self.watch(seconds, look)

    def ended_well(self) -> bool:
        return self._process is not None and self._process.poll() == 0

    def said(self) -> str:
        """The last line printed."""
        lines = (self.folder / "said.txt").read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "nothing was said"
