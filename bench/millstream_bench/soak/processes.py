"""The descendants of a process, read from `/proc`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple


class Process(NamedTuple):
    pid: int
    parent: int
    command: str


def descendants(pid: int) -> list[Process]:
    """All processes below a process, nearest first."""
    children: dict[int, list[Process]] = {}
    for process in _all():
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    waiting = [pid]
    for parent in waiting:
        found += children.get(parent, [])
        waiting += [process.pid for process in children.get(parent, [])]
    return found


def _all() -> list[Process]:
    made = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError, ValueError):
                # The name of the program, in parentheses, may have blanks in it.
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                made.append(Process(int(folder.name), int(fields[1]), command))
    return made
