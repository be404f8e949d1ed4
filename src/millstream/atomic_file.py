"""Files written atomically: complete or absent, whenever the process or the machine stops."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TEMPORARY = ".millstream-"
"""Prefix of the names of incomplete files."""


@contextmanager
def drafted(path: Path, *, durable: bool = False, private: bool = False) -> Iterator[Path]:
    """Create or replace a file: the caller writes it under the hidden name that this yields, and it is renamed at the
    end. With `durable` it also survives a crash of the machine; with `private` only its owner can read it."""
    draft = path.with_name(f"{TEMPORARY}{path.name}.tmp")
    try:
        if private:
            draft.unlink(missing_ok=True)
            draft.touch(mode=0o600)
        yield draft
        if durable:
            force_to_disk(draft)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    if durable:
        force_to_disk(path.parent)


def write_whole(path: Path, data: bytes, *, durable: bool = False, private: bool = False) -> None:
    with drafted(path, durable=durable, private=private) as draft:
        draft.write_bytes(data)


def force_to_disk(path: Path) -> None:
    """Flush a file's content to disk, or the created and removed names of a folder."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
