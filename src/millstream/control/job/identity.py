"""The identity of a job, kept in its folder: its id, the numbers of shards and stages it was created with, and where.

Its digest is the mark of the job, which all its parts have: those of another job, or checkpoint, do not fit."""

from __future__ import annotations

import hashlib
import json
import uuid
from pathlib import Path
from typing import NamedTuple

from millstream.algebra import values
from millstream.atomic_file import write_whole
from millstream.errors import OptionError

FILE = "job.json"
_KINDS = {"id": str, "shards": int, "stages": int, "folder": str, "checkpoint": str}


class Identity(NamedTuple):
    id: str
    shards: int
    stages: int
    folder: str = ""
    checkpoint: str = ""
    """The mark of `driver.log`."""

    @property
    def mark(self) -> bytes:
        return hashlib.sha256(json.dumps(self).encode()).digest()[:16]


def identify(folder: Path | None, host: str, shards: int, stages: int, checkpoint: str = "") -> Identity:
    """Return the identity of the job in a folder, new if there is none; refuse state kept by another host."""
    new = Identity(uuid.uuid4().hex[:12], shards, stages, "" if folder is None else folder.name, checkpoint)
    if folder is None:
        return new
    path = folder / FILE
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        held = {"format": values.FORMAT, "host": host} | new._asdict()
        write_whole(path, json.dumps(held).encode(), durable=True)
        return new
    return read_identity(folder, host)


def read_identity(folder: Path, host: str | None = None) -> Identity:
    """Return the identity of the job that a folder has; refuse state kept by another host than this one."""
    path = folder / FILE
    try:
        held = json.loads(path.read_text())
        values.check_format(held.get("format"), f"'{path}'")
        found = Identity(*(kind(held[name]) for name, kind in _KINDS.items()))
        if min(found.shards, found.stages) < 1:
            raise ValueError("no shards, or no stages")
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise values.unversioned(f"'{path}'") from error
    if host not in (None, held.get("host")):
        hint = "run it there, or use another checkpoint folder"
        raise OptionError("M6058", f"the state in {folder} is kept by {held.get('host')}, not by {host}", hint=hint)
    return found
