"""The owner of a checkpoint folder: one process, or one connection of a process, at a time.

The owner holds a lock of the operating system on the file `owner.lock`, which names it: process, host, since when. The
lock ends with the process, however that ends. Where a file system has no locks, a warning says that nothing keeps a
second process away.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import socket
import weakref
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from millstream.errors import OptionError

try:
    import fcntl
except ImportError:  # pragma: no cover - not on this system
    fcntl = None  # type: ignore[assignment]

LOG = logging.getLogger("millstream")
FILE = "owner.lock"
_HELD: weakref.WeakSet[Ownership] = weakref.WeakSet()


class Ownership:
    """Makes the folder, if there is none, and takes it; raises OptionError if another one has it."""

    def __init__(self, folder: Path) -> None:
        path = folder / FILE
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a+b", buffering=0)
        except OSError as error:
            message = f"checkpoint '{folder}' cannot be used: {error.strerror or error}"
            hint = "a checkpoint is a folder that this process may write to"
            raise OptionError("M6062", message, hint=hint) from error
        try:
            self._lock(folder)
            self._name_holder()
        except BaseException:
            self._file.close()
            raise
        _HELD.add(self)

    def _lock(self, folder: Path) -> None:
        try:
            if fcntl is None:
                raise OSError(errno.ENOSYS, "this system has no file locks")
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _refusal(folder, self._file) from None
        except OSError as error:
            reason = error.strerror or error
            LOG.warning("checkpoint '%s' cannot be locked (%s): do not let two processes use it", folder, reason)

    def _name_holder(self) -> None:
        self._file.truncate(0)
        since = datetime.now(UTC).isoformat(sep=" ", timespec="seconds")
        holder = {"process": os.getpid(), "host": socket.gethostname(), "since": since}
        self._file.write(json.dumps(holder).encode())

    def release(self) -> None:
        if not self._file.closed:
            self._file.truncate(0)
            self._file.close()

    def _leave(self) -> None:
        """In a forked process: close the file and leave the lock to the parent."""
        self._file.close()


def check_unowned(folder: Path) -> None:
    """Raise OptionError if another process or connection has the folder."""
    if folder.exists():
        Ownership(folder).release()


def _refusal(folder: Path, file: Any) -> OptionError:
    file.seek(0)
    try:
        holder = json.load(file)
        number, host, since = holder["process"], holder["host"], holder["since"]
    except (ValueError, KeyError, TypeError):  # it has the lock, and has not written yet
        return OptionError("M6070", f"checkpoint '{folder}' is in use", hint="stop the process that uses it")
    if (number, host) == (os.getpid(), socket.gethostname()):
        who, hint = f"this process ({number} on {host})", "close the connection or the mill that has it"
    else:
        who, hint = f"process {number} on {host}", "stop that process, or use another checkpoint folder"
    return OptionError("M6070", f"checkpoint '{folder}' is in use by {who}, since {since}", hint=hint)


def _leave_all() -> None:
    for held in _HELD:
        held._leave()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_all)
