"""Folders that live as long as a process: in shared memory, and among the temporary files.

The name of a folder has its owner: `millstream-<namespace>-<pid>-<start>-…`, with the process's start in clock ticks
since the machine's. Processes of one id in two namespaces, or one after the other, have folders of different names. The
owner of what Spark's Python workers write is their JVM.

Folders are closed to other users (0700). One that was not created here is used only if this user owns it and no other
can enter it. A folder is removed when its owner ends; what a killed owner has left, `sweep` removes.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

LOG = logging.getLogger("millstream")
SHARED = Path("/dev/shm")
PROCESSES = Path("/proc")
NAMED = re.compile(r"millstream-(\d+)-(\d+)-(\d+)-.")
WORKERS = {b"pyspark.daemon", b"pyspark.worker"}
"""Modules that Spark's Python workers run."""


class Owner(NamedTuple):
    """`space`: the namespace of its process id."""

    space: int
    pid: int
    start: int

    def __str__(self) -> str:
        return f"{self.space}-{self.pid}-{self.start}"

    @property
    def dead(self) -> bool:
        """True if the process has ended; False also if that cannot be known."""
        return self.space == _space() != 0 and _start(self.pid) != self.start


class _Stat(NamedTuple):
    state: str
    parent: int
    start: int


def _stat(pid: int) -> _Stat | None:
    try:
        # the name of the program, in parentheses, may have blanks in it
        fields = (PROCESSES / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
        return _Stat(fields[0], int(fields[1]), int(fields[19]))
    except (OSError, IndexError, ValueError):
        return None


def _start(pid: int) -> int:
    """The start of a process; 0 if there is none, or none that still runs."""
    found = _stat(pid)
    return 0 if found is None or found.state in "ZX" else found.start


def _space() -> int:
    try:
        return (PROCESSES / "self/ns/pid").stat().st_ino
    except OSError:
        return 0


def owner() -> Owner:
    """The owner of the folders that this process creates."""
    return _owner_of(os.getpid())


@cache
def _owner_of(pid: int) -> Owner:
    while _is_worker(pid) and (found := _stat(pid)) is not None and found.parent > 1:
        pid = found.parent
    return Owner(_space(), pid, _start(pid))


def _is_worker(pid: int) -> bool:
    try:
        return not WORKERS.isdisjoint((PROCESSES / str(pid) / "cmdline").read_bytes().split(b"\0"))
    except OSError:
        return False


def children(pid: int) -> list[int]:
    """The processes that a process has started and that have not ended."""
    found = [int(entry.name) for entry in PROCESSES.iterdir() if entry.name.isdigit()]
    return [one for one in found if (held := _stat(one)) is not None and held.parent == pid and held.state not in "ZX"]


# --- folders ----------------------------------------------------------------------------------------------------------


@contextmanager
def temporary() -> Iterator[Path]:
    """A new folder, removed at the end of the context."""
    with TemporaryDirectory(prefix=f"millstream-{owner()}-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def of_process() -> Path:
    """The folder of this process, removed when it exits."""
    return _of_process(os.getpid())


@cache
def _of_process(pid: int) -> Path:
    folder = Path(tempfile.mkdtemp(prefix=f"millstream-{owner()}-"))

    def remove() -> None:
        if os.getpid() == pid:  # not in a fork
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def shared(name: str) -> Path:
    """The path of the folder with a name that the processes of one owner share, in memory if possible."""
    return _shared_root() / f"millstream-{owner()}-{name}"


def _shared_root() -> Path:
    return SHARED if SHARED.is_dir() else Path(tempfile.gettempdir())


def create_private(folder: Path) -> None:
    """Create a folder, unless it is there; raise PermissionError if others own it or can enter it."""
    folder.mkdir(mode=0o700, exist_ok=True)
    check_private(folder)


def check_private(folder: Path) -> None:
    """Raise OSError if there is no such folder, PermissionError if others own it or can enter it."""
    held = folder.lstat()
    if not stat.S_ISDIR(held.st_mode) or held.st_uid != os.geteuid() or held.st_mode & 0o077:
        raise PermissionError(f"{folder} is not a folder of this user alone")


# --- removal ----------------------------------------------------------------------------------------------------------


def remove_shared(name: str) -> None:
    """Remove the shared folders of that name, of any owner."""
    for folder, _ in _folders():
        if folder.parent == _shared_root() and folder.name.endswith(f"-{name}"):
            shutil.rmtree(folder, ignore_errors=True)


def remove_own() -> None:
    """Remove all folders of this process."""
    for folder, held in _folders():
        if held == owner():
            shutil.rmtree(folder, ignore_errors=True)


def sweep() -> list[Path]:
    """Remove the folders of processes that have ended; return them."""
    found = [folder for folder, held in _folders() if held.dead]
    for folder in found:
        shutil.rmtree(folder, ignore_errors=True)
    return found


def sweep_aside() -> None:
    """Sweep in a thread, and log what was removed."""

    def run() -> None:
        for folder in sweep():
            LOG.info("removed %s, which a process that has ended left behind", folder)

    threading.Thread(target=run, name="millstream-sweep", daemon=True).start()


def _folders() -> Iterator[tuple[Path, Owner]]:
    """The folders of this user, with their owners."""
    for root in {_shared_root(), Path(tempfile.gettempdir())}:
        with suppress(OSError), os.scandir(root) as entries:
            for entry in entries:
                if (named := NAMED.match(entry.name)) and entry.is_dir(follow_symlinks=False):
                    with suppress(OSError):
                        if entry.stat(follow_symlinks=False).st_uid == os.geteuid():
                            yield root / entry.name, Owner(*map(int, named.groups()))
