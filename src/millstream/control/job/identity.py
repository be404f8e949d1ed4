"""The identity of a job, kept in its folder: its id, and the numbers of shards and stages it was created with."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import NamedTuple

from millstream.algebra import values
from millstream.atomic_file import write_whole
from millstream.errors import OptionError

FILE = "job.json"


class Identity(NamedTuple):
    id: str
    shards: int
    stages: int


def identify(folder: Path | None, host: str, shards: int, stages: int) -> Identity:
    """Return the identity of the job in a folder, new if there is none; refuse state kept by another host."""
    new = Identity(uuid.uuid4().hex[:12], shards, stages)
    if folder is None:
        return new
    path = folder / FILE
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        held = {"format": values.FORMAT, "id": new.id, "host": host, "shards": shards, "stages": stages}
        write_whole(path, json.dumps(held).encode(), durable=True)
        return new
    return read_identity(folder, host)


def read_identity(folder: Path, host: str) -> Identity:
    """Return the identity of the job that a folder has."""
    path = folder / FILE
    try:
        held = json.loads(path.read_text())
        values.check_format(held.get("format"), f"'{path}'")
        found = Identity(str(held["id"]), int(held["shards"]), int(held["stages"]))
        if min(found[1:]) < 1:
            raise ValueError("no shards, or no stages")
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise values.unversioned(f"'{path}'") from error
    if held.get("host") != host:
        hint = "run it there, or use another checkpoint folder"
        raise OptionError("M6058", f"the state in {folder} is kept by {held.get('host')}, not by {host}", hint=hint)
    return found
