"""The processes of a run on Spark: they listen to this machine alone, stop by SIGTERM, and leave nothing behind."""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.tries import chosen

import millstream as ms
from millstream import scratch
from millstream_bench.soak.processes import descendants
from millstream_bench.soak.program import Workload, read_rows

LOAD = Workload(batches=12, step=2000)


class Program:
    """`millstream run` in a process group of its own."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "millstream", "run", str(folder / "run.sql"), "--master", "local[2]"]
        command += ["--checkpoint", str(folder / "checkpoint"), "--log", str(folder / "log"), "--log-format", "json"]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )
        self.owners = {self.process.pid}
        self.until(self.handles_signals)

    def handles_signals(self) -> bool:
        """Return whether Python has started the command: it handles SIGTERM."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        caught = next(line for line in status.splitlines() if line.startswith("SigCgt"))
        return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)

    def until(self, what: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 120
        while not what():
            assert self.process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        self.owners |= {process.pid for process in descendants(self.process.pid)}

    def terminated(self, *, group: bool = False) -> str:
        begun = time.monotonic()
        (os.killpg if group else os.kill)(self.process.pid, signal.SIGTERM)
        said = self.ended()
        assert time.monotonic() - begun < 10 and self.process.returncode == 143, said
        return said

    def ended(self) -> str:
        said, _ = self.process.communicate(timeout=600)
        assert "Traceback" not in said, said
        assert not self.folders()
        return said

    def folders(self) -> list[Path]:
        return [folder for folder, owner in scratch._folders() if owner.pid in self.owners]

    def listening(self) -> set[str]:
        """The addresses at which its processes, and those below it, accept connections."""
        inodes = set()
        for pid in (self.process.pid, *(process.pid for process in descendants(self.process.pid))):
            with suppress(OSError):
                for entry in Path(f"/proc/{pid}/fd").iterdir():
                    with suppress(OSError):
                        inodes.add(str(entry.readlink()))
        return {
            _address(fields[1].partition(":")[0])
            for table in ("tcp", "tcp6")
            for fields in map(str.split, Path(f"/proc/net/{table}").read_text().splitlines()[1:])
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes
        }


def _address(words: str) -> str:
    packed = b"".join(struct.pack("=I", int(words[at : at + 8], 16)) for at in range(0, len(words), 8))
    return socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed)


@pytest.mark.timeout(900)
def test_a_run_is_terminated_and_leaves_nothing(tmp_path: Path) -> None:
    with ms.connect(local=True, shards=2) as mill:
        mill.sql(LOAD.statements(tmp_path / "undisturbed"))
        assert mill.await_end(timeout=120)
    (tmp_path / "run.sql").write_text(LOAD.statements(tmp_path / "output"))
    commits = tmp_path / "checkpoint" / "job-1" / "spark" / "commits"

    for seconds in chosen((1.5, 4.0), 2):  # while Spark starts
        program = Program(tmp_path)
        time.sleep(seconds)
        program.terminated()

    for batch, group in chosen((("2", False), ("4", True)), 2):  # alone, or all its processes, as service managers do
        program = Program(tmp_path)
        program.until((commits / batch).exists)
        assert program.listening() <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"} and program.listening()
        folders = program.folders()
        assert {folder.parent for folder in folders} == {scratch.SHARED, Path(tempfile.gettempdir())}
        assert all(folder.stat().st_mode & 0o777 == 0o700 for folder in folders)
        said = program.terminated(group=group)
        assert group or "stopped after" in said

    program = Program(tmp_path)
    program.until((commits / "5").exists)
    left = program.folders()  # before it dies: any other program that starts sweeps them
    assert left
    os.killpg(program.process.pid, signal.SIGKILL)
    program.process.communicate()

    last = Program(tmp_path)
    assert "all streams have ended" in last.ended() and last.process.returncode == 0
    assert not any(folder.exists() for folder in left)
    assert read_rows(tmp_path / "output").equals(read_rows(tmp_path / "undisturbed"))

    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert {"millstream", "MicroBatchExecution"} <= {line["logger"] for line in lines}
    assert any(line["message"] == "stopped by SIGTERM" for line in lines)
