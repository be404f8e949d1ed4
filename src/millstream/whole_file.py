"""Files that are there whole, or not at all, whenever the process or the machine stops."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TEMPORARY = ".millstream-"
"""How the names of files begin that are not whole yet."""


@contextmanager
def drafted(path: Path, *, durable: bool = False) -> Iterator[Path]:
    """Make or replace a file: write it under the hidden name that this yields; it is renamed at the end. With `durable`
    it outlasts the machine's crash, too."""
    draft = path.with_name(f"{TEMPORARY}{path.name}.tmp")
    try:
        yield draft
        if durable:
            force_to_disk(draft)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    if durable:
        force_to_disk(path.parent)


def write_whole(path: Path, data: bytes, *, durable: bool = False) -> None:
    with drafted(path, durable=durable) as draft:
        draft.write_bytes(data)


def force_to_disk(path: Path) -> None:
    """Make a file's content last; or the names in a folder, those just given and those just removed."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
