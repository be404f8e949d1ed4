"""The identity of a job, which its folder keeps."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

from millstream.algebra import values
from millstream.atomic_file import write_whole
from millstream.errors import InputError, OptionError


def identity(folder: Path | None, host: str, shards: int, stages: int) -> tuple[str, int, int]:
    """Return a job's id, and the numbers of shards and stages it was created with; refuse state kept by another
    host."""
    new = uuid.uuid4().hex[:12], shards, stages
    if folder is None:
        return new
    path = folder / "job.json"
    if not path.exists():
        if (folder / "control.log").exists():
            raise InputError("M5023", f"'{path}' is missing", hint=values.HINT)
        folder.mkdir(parents=True, exist_ok=True)
        held = {"format": values.FORMAT, "id": new[0], "host": host, "shards": shards, "stages": stages}
        write_whole(path, json.dumps(held).encode(), durable=True)
        return new
    try:
        held = json.loads(path.read_text())
        values.check_format(held.get("format"), f"'{path}'")
        found = str(held["id"]), int(held["shards"]), int(held["stages"])
        if min(found[1:]) < 1:
            raise ValueError("no shards, or no stages")
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise values.unversioned(f"'{path}'") from error
    if held.get("host") != host:
        hint = "run it there, or use another checkpoint folder"
        raise OptionError("M6058", f"the state in {folder} is kept by {held.get('host')}, not by {host}", hint=hint)
    return found
