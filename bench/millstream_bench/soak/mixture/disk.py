"""A small disk of its own for a checkpoint, which can be filled: a file system in memory."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

MEGABYTES = 512


class SmallDisk:
    """Mounted at a folder inside a `with`, if this user may mount; otherwise a plain folder."""

    def __init__(self, folder: Path, report: Callable[[str], None]) -> None:
        self.folder, self._report, self.mounted = folder, report, False

    def __enter__(self) -> SmallDisk:
        self.folder.mkdir(parents=True)
        command = ["mount", "-t", "tmpfs", "-o", f"size={MEGABYTES}m,mode=0700", "tmpfs", str(self.folder)]
        try:
            self.mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
        except OSError:
            self.mounted = False
        if not self.mounted:
            self._report("mixture: this user cannot mount a small disk; the disk will not be full")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.mounted:
            subprocess.run(["umount", "--lazy", str(self.folder)], capture_output=True, check=False)

    @contextmanager
    def full(self) -> Iterator[None]:
        """Leave no room on the disk."""
        ballast = self.folder / "ballast"
        try:
            self._fill(ballast)
            yield
        finally:
            ballast.unlink()

    def _fill(self, ballast: Path) -> None:
        with ballast.open("wb", buffering=0) as file:
            for size in (1 << 20, 4096, 1):
                try:
                    while True:
                        os.write(file.fileno(), b"\0" * size)
                except OSError:
                    continue
