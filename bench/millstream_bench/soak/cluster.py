"""A Spark cluster on this machine, by `scripts/cluster.sh`; its workers can be killed and restarted."""

from __future__ import annotations

import os
import random
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from millstream.errors import OptionError
from millstream_bench.soak.processes import descendants

PORT = 7177
"""Ports other than those of `make cluster`."""
WORKERS = ("worker-1", "worker-2")


class LocalCluster:
    def __init__(self, root: Path | None = None) -> None:
        self._root = root or Path.cwd()
        self.url = f"spark://127.0.0.1:{PORT}"

    def __enter__(self) -> LocalCluster:
        self._script("start")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._script("stop")

    def kill(self, chance: random.Random) -> str:
        """Kill a worker, with or without its executor, and restart it."""
        name = chance.choice(WORKERS)
        pid = int((self._root / ".cluster" / f"{name}.pid").read_text())
        below = descendants(pid) if chance.random() < 0.5 else []
        for victim in (pid, *(process.pid for process in below)):
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
        self._script("mend")
        return f"{name} killed{' with all it had started' if below else ''}"

    def _script(self, command: str) -> None:
        path = self._root / "scripts" / "cluster.sh"
        if not path.exists():
            raise OptionError("M6021", f"there is no {path}", hint="run it where the repository is")
        environment = os.environ | {"MASTER_PORT": str(PORT)}
        done = subprocess.run(
            ["bash", str(path), command], env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise OptionError("M6023", f"scripts/cluster.sh {command} failed", detail=done.stderr.strip())
