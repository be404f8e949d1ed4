"""Spark's files in the folder of a job, judged before Spark opens them: what can be mended is, the rest is refused.

| part | if it is missing, empty or damaged |
|---|---|
| `offsets/N` | written anew from `batches.log`; removed if no result of the batch was delivered: it is planned anew |
| `commits/N`, the last one | removed: the batch is repeated, from the state before it |
| `commits/N` and the one before | refused: the state goes on from the last commit |
| `state/`: the files that lead to the last commit | refused |
| `metadata` | written anew: it has the id of the query alone, which is the mark of the job |

A file of which the id is another one is that of another job or checkpoint, and refused.

Spark does not force its files to disk, so a power failure may leave the last ones empty. The notes of `batches.log` are
on disk before results are delivered, so the input of no delivered batch is lost. Beside each file `x` Hadoop keeps
`.x.crc`: the checksums of pieces of 512 bytes.
"""

from __future__ import annotations

import json
import logging
import os
import struct
import uuid
import zipfile
import zlib
from pathlib import Path
from typing import Any

from millstream.algebra.values import HINT
from millstream.atomic_file import write_whole
from millstream.control.job.identity import FILE
from millstream.control.job.parts import KEPT, BatchLog, behind, foreign, lacking
from millstream.errors import InputError

LOG = logging.getLogger("millstream")
PIECE = 512
_HEAD = struct.Struct(">4sI")
STATE_LOST = "Spark rebuilds what a shard holds from it and the files before it."


class SparkFiles:
    def __init__(self, folder: Path, noted: BatchLog) -> None:
        self.folder, self._noted = folder, noted
        self._offsets, self._commits, self._metadata = (folder / name for name in ("offsets", "commits", "metadata"))
        self._id = str(uuid.UUID(bytes=noted.mark))

    def committed(self) -> list[int]:
        return _numbers(self._commits)

    def offset(self, batch: int) -> Any:
        """The end of a batch in the job's own source."""
        path = self._offsets / str(batch)
        if not path.exists():
            return {"log": 0, "now": 0, "streams": "{}"}
        # a line for each source; the first one is the job's own
        _version, _metadata, offset, *_ = path.read_text().splitlines()
        return json.loads(offset)

    def text(self, batch: int) -> str:
        """The offsets of a batch, as Spark has written them."""
        return (self._offsets / str(batch)).read_text()

    def mend(self, end: int) -> None:
        """Mend the files, or raise InputError. `end`: that of the control log."""
        self._check_kinds()
        last, before = [-1, -1, *self.committed()][:-3:-1]
        empty = last >= 0 and self._commit(last) is None
        committed = before if empty else last
        self._noted.check(self.folder, committed, "Its commits are gone, damaged, or an older copy.")
        if committed >= 0 and self._commit(committed) is None:
            raise InputError("M5023", f"'{self._commits / str(committed)}' is damaged", hint=HINT)
        if committed >= 0:
            self._check_state(committed)
        self._mend_offsets(committed, end)
        if empty:
            self._remove_last(self._commits / str(last), "the batch is run again, with the same input")
        if not _sound(self._metadata, "{"):
            self.folder.mkdir(exist_ok=True)
            _remove(self._metadata)
            write_whole(self._metadata, json.dumps({"id": self._id}).encode(), durable=True)

    def _check_kinds(self) -> None:
        """Raise InputError for a folder in place of a file, or a file in place of a folder, or the files of another
        job."""
        folders = [self.folder, self._offsets, self._commits, self.folder / "state"]
        files = [self._metadata, *self._offsets.glob("[0-9]*"), *self._commits.glob("[0-9]*")]
        for path, is_folder in [(path, True) for path in folders] + [(path, False) for path in files]:
            if path.exists() and path.is_dir() != is_folder:
                raise lacking(path, "is a file, not a folder" if is_folder else "is a folder, not a file")
        if _sound(self._metadata, "{") and self._id not in self._metadata.read_text():
            raise foreign(self._metadata, self.folder.with_name(FILE))

    def _mend_offsets(self, committed: int, end: int) -> None:
        for number in range(max(0, self._noted.number - KEPT + 1), self._noted.number + 1):
            note, path = self._noted.of(number), self._offsets / str(number)
            if note is not None and not (_sound_offsets(path) and path.read_text() == note.offset):
                LOG.warning("'%s' is missing or damaged: written anew from 'batches.log'", path)
                self._offsets.mkdir(parents=True, exist_ok=True)
                _remove(path)
                write_whole(path, note.offset.encode(), durable=True)
        begun = max(_numbers(self._offsets), default=-1)
        if begun > self._noted.number and not _sound_offsets(self._offsets / str(begun)):
            self._remove_last(self._offsets / str(begun), "no result of the batch has left it; it is planned anew")
            begun = max(_numbers(self._offsets), default=-1)
        for number in {committed, begun - 1, begun} - {-1, -2}:
            if not _sound_offsets(self._offsets / str(number)):
                raise lacking(self._offsets / str(number), "is missing or damaged")
        if (log := int(self.offset(begun)["log"])) > end:
            path = self.folder.parent / "control.log"
            raise behind(path, f"ends at position {end}", f"batch {begun} began at position {log}")

    def _remove_last(self, path: Path, so: str) -> None:
        LOG.warning("'%s' is empty or damaged, as after a power failure: %s", path, so)
        _remove(path)

    def _commit(self, number: int) -> dict[str, Any] | None:
        """The names of the state after a batch, by operator; None if they are missing or damaged."""
        path = self._commits / str(number)
        try:
            found: dict[str, Any] = json.loads(path.read_text().splitlines()[1])["stateUniqueIds"]
            return found if _sound(path, "v2") else None
        except (OSError, ValueError, LookupError, TypeError):
            return None

    # --- state ------------------------------------------------------------------------------------------------------

    def _check_state(self, last: int) -> None:
        """Raise InputError if a file is missing or cut off that leads to the state after the last commit."""
        for operator, partitions in (self._commit(last) or {}).items():
            folder = self.folder / "state" / operator
            for kind, start in (("_metadata/v2", "v2"), ("_stateSchema/default", "")):
                names = (folder / kind).glob("[0-9]*")
                path = max(names, key=lambda path: int(path.name.partition("_")[0]), default=folder / kind)
                if not path.is_file() or not _sound(path, start):
                    what = "is damaged" if path.is_file() else "is missing"
                    raise lacking(path, what, "Spark reads the state by the schema that it has.")
            for partition in range(len(partitions)):
                self._check_partition(folder, operator, partition, last + 1)

    def _check_partition(self, state: Path, operator: str, partition: int, version: int) -> None:
        """The changelogs of a partition, back to a snapshot or to the beginning."""
        folder = state / str(partition)
        sizes = {entry.name: entry.stat().st_size for entry in os.scandir(folder)} if folder.is_dir() else {}
        while version > 0:
            commit = self._commit(version - 1)
            names = [commit[operator][partition][0]] if commit is not None else []
            stems = [f"{version}_{name}" for name in names] or [
                name.rpartition(".")[0] for name in sizes if name.startswith(f"{version}_")
            ]
            if any(f"{stem}.zip" in sizes for stem in stems):
                _check_snapshot(folder, next(f"{stem}.zip" for stem in stems if f"{stem}.zip" in sizes), sizes)
                return
            changelog = next((f"{stem}.changelog" for stem in stems if f"{stem}.changelog" in sizes), None)
            if changelog is None:
                raise lacking(folder / f"{(stems or [f'{version}_…'])[0]}.changelog", lost=STATE_LOST)
            _check_size(folder, changelog, sizes)
            version -= 1


def _check_snapshot(folder: Path, name: str, sizes: dict[str, int]) -> None:
    """Raise InputError if a snapshot is cut off, or lacks a file that it names."""
    _check_size(folder, name, sizes)
    try:
        with zipfile.ZipFile(folder / name) as packed:
            named = json.loads(packed.read("metadata").partition(b"\n")[2])["sstFiles"]
    except (zipfile.BadZipFile, OSError, ValueError, LookupError) as error:
        raise InputError(
            "M5023", f"'{folder / name}' is damaged", detail=f"{error}. {STATE_LOST}", hint=HINT
        ) from error
    for file in named:
        path = folder / "SSTs" / file["dfsSstFileName"]
        if not path.exists() or path.stat().st_size != file["sizeBytes"]:
            raise lacking(path, "is cut off" if path.exists() else "is missing", STATE_LOST)


def _check_size(folder: Path, name: str, sizes: dict[str, int]) -> None:
    size, checks = sizes[name], sizes.get(f".{name}.crc", 0) - _HEAD.size
    if not size or (checks > 0 and checks != 4 * -(-size // PIECE)):
        raise lacking(folder / name, "is cut off" if size else "is empty", STATE_LOST)


def _numbers(folder: Path) -> list[int]:
    return sorted(int(path.name) for path in folder.glob("[0-9]*") if path.name.isdigit())


def _crc(path: Path) -> Path:
    return path.with_name(f".{path.name}.crc")


def _remove(path: Path) -> None:
    for part in (path, _crc(path)):
        part.unlink(missing_ok=True)


def _sound_offsets(path: Path) -> bool:
    """The offsets of the job's own source are JSON; those of other sources, in the lines behind it, are what they
    like: a number, or a dash."""
    try:
        _version, _metadata, own, *_ = path.read_text(errors="replace").splitlines()
    except (OSError, ValueError):
        return False
    return own.startswith("{") and own.endswith("}") and _sound(path, "v1", "")


def _sound(path: Path, start: str, end: str = "}") -> bool:
    """Return whether a small file is there, begins and ends as it should, and has its checksums."""
    data = path.read_bytes() if path.exists() else b""
    if not (data.startswith(start.encode()) and data.rstrip().endswith(end.encode())):
        return False
    kept = _crc(path).read_bytes() if _crc(path).exists() else b""
    if len(kept) <= _HEAD.size or _HEAD.unpack_from(kept) != (b"crc\0", PIECE):
        return True
    pieces = [zlib.crc32(data[at : at + PIECE]) for at in range(0, len(data), PIECE)]
    return kept[_HEAD.size :] == struct.pack(f">{len(pieces)}I", *pieces)
