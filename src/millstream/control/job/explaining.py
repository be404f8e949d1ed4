"""Errors that stop a job, as errors of Millstream: one message, without the stack of Spark's JVM."""

from __future__ import annotations

import errno
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from millstream.algebra.values import HINT
from millstream.errors import InputError, MillstreamError, OptionError
from millstream.physical.failure.transport import read_report

OF_DISKS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EACCES, errno.EPERM)
"""Errors of the operating system that a disk is the cause of."""
_SQLITE = {
    "database or disk is full": errno.ENOSPC,
    "disk I/O error": errno.EIO,
    "attempt to write a readonly database": errno.EROFS,
}
_REASONS = _SQLITE | {os.strerror(number): number for number in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)}
_CLASS = re.compile(r"^: |^(?:Caused by: )?(?:[\w$]+\.)+(?=\w+: )")
_DAMAGE = re.compile(r"\[(?:CANNOT_LOAD_STATE_STORE|STREAMING_CHECKPOINT|STATE_STORE)|Checksum ?[Ee]|Incomplete log")
"""What Spark says of a checkpoint of which a part is missing or damaged."""
MOST = 5
"""Lines of Spark's error that are kept as the detail."""


def explained(error: BaseException, folder: Path | None = None) -> Exception:
    """The error that stopped a job as one of Millstream's; if Spark's error carries one, that one. `folder`: that of
    the job."""
    if isinstance(error, MillstreamError):
        return error
    text = str(error).strip()
    if (found := read_report(text)) is not None:
        return found
    if (reason := _disk_reason(error, text)) and folder is not None:
        return unwritable(folder.parent, reason)
    lines = _told(text.partition("\n=== Streaming Query ===")[0])
    if folder is not None and _DAMAGE.search(text):
        message = f"Spark cannot read '{folder / 'spark'}': {lines[0]}"
        hint = f"If it fails again: {HINT[0].lower()}{HINT[1:]}"
        return InputError("M5026", message, detail="\n  ".join(lines[1:MOST]), hint=hint)
    hint = "Start again with the same checkpoint; it continues where it stopped."
    first = lines[0] if lines else type(error).__name__
    return OptionError("M6051", first, detail="\n  ".join(lines[1:MOST]), hint=hint)


@contextmanager
def writing(checkpoint: Path | None) -> Iterator[None]:
    """Turn the failure to write to a checkpoint into an error of Millstream."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        if checkpoint is None or not (reason := _disk_reason(error, str(error))):
            raise
        raise unwritable(checkpoint, reason) from error


def unwritable(checkpoint: Path, reason: str) -> OptionError:
    """The error of a checkpoint that cannot be written while queries run."""
    message = f"cannot write to the checkpoint '{checkpoint}': {reason}"
    full = reason == os.strerror(errno.ENOSPC)
    detail = "The disk of the checkpoint is full, or that of temporary files." if full else ""
    hint = f"{'make room' if full else 'mend the disk'}, then start again; it continues where it stopped"
    return OptionError("M6062", message, detail=detail, hint=hint)


def _disk_reason(error: BaseException, text: str) -> str:
    """What is wrong with a disk, if that is the cause of an error; else empty."""
    if isinstance(error, OSError) and error.errno in OF_DISKS:
        return os.strerror(error.errno)
    return next((os.strerror(number) for said, number in _REASONS.items() if said in text), "")


def _told(text: str) -> list[str]:
    """The lines of an error that tell something, the first cause first, without the stack of the JVM.

    >>> _told("An error occurred while calling o1.x.\\n: a.b.SparkException: failed\\n\\tat a.b.C\\n"
    ...       "Caused by: java.io.IOException: reset\\n\\tat d.E\\n\\t... 64 more")
    ['IOException: reset', 'SparkException: failed']
    >>> _told("one\\ntwo"), _told("")
    (['one', 'two'], [])
    """
    lines = [line for line in text.splitlines() if line.strip() and not re.match(r"\s+(at |\.\.\. \d+ more)", line)]
    if not any(line.startswith("Caused by: ") for line in lines):
        return [_CLASS.sub("", line) for line in lines]
    causes = [line for line in lines if _CLASS.match(line)]
    return list(dict.fromkeys(_CLASS.sub("", line.removeprefix(": ")).strip() for line in reversed(causes)))
