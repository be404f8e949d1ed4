"""The parts of a checkpoint, which name each other, so that one that is missing, short or older is refused.

| part | names |
|---|---|
| `driver.log`, with every note | each job: the end of its control log, and its last batch |
| `batches.log` of a job, with every batch | the batch and its end; the ends of `control.log` and `driver.log` |
| `batches.log`, as they come and go | the files in `spool/` and `parked/` |
| each file in `spool/` and `parked/` | its place in the job, with the batch or the shard |
| the state of a job (`state.db`, or Spark's offsets and commits) | the last batch that is committed |

Each part has the mark of what it is of: `driver.log` that of the checkpoint, which is random, those of a job the digest
of `job.json`, which has the mark of the checkpoint. So a part of another checkpoint, or of another job, is refused.

A part is on disk before another one names it, and a batch is in `batches.log` before any sink has its results and
before it is committed. So a process that ends at any moment leaves a part that is further than the others say, never
one that is behind. A file is named once it is on disk, and no longer before it is removed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from millstream.algebra.values import HINT, decode, encode, record
from millstream.control.job.identity import FILE, read_identity
from millstream.errors import InputError, OptionError
from millstream.physical.wire.control_log import ControlLog
from millstream.physical.wire.records import Files, Reached, Remember

DRIVER = "driver.log"
CREATED = ("job.json", "control.log", "batches.log")
"""The files of a job, in the order in which they are created; its state follows."""
STATES = ("state.db", "spark")
LOST = {
    DRIVER: "It has the statements, tables and options of the checkpoint.",
    "job.json": "It has the id of the job, and its numbers of shards and stages.",
    "control.log": "It has the queries of the job, and the rows fed to them.",
    "batches.log": "It has the input of the batch that may have begun; without it rows could be lost or doubled.",
    "state.db": "It has what the queries hold.",
    "spark": "It has what the queries hold, and how far the streams were read.",
    "spool": "It has results of query '{}' that its sink has not taken.",
    "parked": "It has what query '{}', which has failed, holds until it starts again.",
}
"""What is lost with a part."""
_JOB_LOST = "It has a job: what its queries hold, and how far streams were read."
KEPT = 4
"""Number of last batches that a log keeps when it is compacted; Spark replays at most one."""
GROWTH = 1_000_000
"""Bytes by which the log may grow before it is compacted."""
NONE = Reached(-1, "", 0, 0)
"""The note of a job that has run no batch."""


def lacking(path: Path, what: str = "is missing", lost: str = "") -> InputError:
    """The error of a checkpoint that lacks a part."""
    return InputError("M5024", f"'{path}' {what}", detail=lost or LOST.get(path.name, LOST["spark"]), hint=HINT)


def behind(path: Path, found: str, named: str, cause: str = "It is cut off, or an older copy.") -> InputError:
    """The error of a part that is behind what another one says."""
    lost = LOST.get(path.name, LOST["spark"])
    return InputError("M5025", f"'{path}' {found}, but {named}", detail=f"{cause} {lost}", hint=HINT)


def _ends(batch: int) -> str:
    """
    >>> _ends(3), _ends(-1)
    ('ends with batch 3', 'has no batch')
    """
    return f"ends with batch {batch}" if batch >= 0 else "has no batch"


def foreign(path: Path, other: Path, cause: str = "", lost: str = "") -> InputError:
    """The error of a part that is of another checkpoint, or of another job, than `other`."""
    cause = cause or "One of them is of another checkpoint or job, or has been changed."
    detail = f"{cause} {lost or LOST.get(path.name, LOST['spark'])}"
    return InputError("M5027", f"'{path}' and '{other}' do not belong together", detail=detail, hint=HINT)


def check_parts(folder: Path, *, named: bool = False) -> None:
    """Raise InputError if a job's folder lacks a file that was created before one that it has. `named`: the driver's
    log names the job, so all of them were created."""
    if folder.exists() and not folder.is_dir():
        raise lacking(folder, "is no folder", _JOB_LOST)
    *has, state, spark = [whole(folder / name) for name in (*CREATED, *STATES)]
    has.append(state or spark)
    needed = len(CREATED) if named else max((at for at, found in enumerate(has) if found), default=0)
    for name, found in zip(CREATED[:needed], has, strict=False):
        if not found:
            raise lacking(folder / name, "is empty" if (folder / name).exists() else "is missing")


def check_checkpoint(log: ControlLog) -> None:
    """Raise InputError if a checkpoint lacks its driver's log, or a job that the log names, or if one of them is behind
    what the other says. Nothing is written."""
    folder, driver, held = log.path.parent, log.path, sorted(log.path.parent.glob("job-*"))
    if not whole(driver):
        if held:
            raise lacking(driver, "is empty" if driver.exists() else "is missing")
        return
    last, end = log.last(), log.end()
    for name, (control, number) in (last.jobs if isinstance(last, Remember) else {}).items():
        if not (folder / name).exists():
            raise lacking(folder / name, lost=_JOB_LOST)
        check_parts(folder / name, named=True)
        _check_marks(folder / name, log)
        if (found := ControlLog(folder / name / "control.log").end()) < control:
            raise _short(folder / name / "control.log", found, f"'{driver}' names", control)
        noted = _reached(folder / name)
        if noted.number < number:
            path = folder / name / "batches.log"
            raise behind(path, _ends(noted.number), f"'{driver}' names batch {number}")
    for job in held:
        check_parts(job)
        _check_marks(job, log)
        noted = _reached(job)
        if end < noted.driver:
            raise _short(driver, end, f"batch {noted.number} of {job.name} began at", noted.driver)
        mark = ControlLog(job / "batches.log").mark
        for place, (query, files) in noted.files.items():
            for path in (job / place / name for name in names(files)):
                _check_file(path, LOST[path.parts[-3]].format(query), mark)
        spooled = (path for path in (job / "spool").glob("*/*") if path.name.isdigit())
        newest = max(spooled, key=lambda path: int(path.name), default=None)
        if newest is not None and int(newest.name) > noted.number:
            named = f"'{newest}' has results of batch {newest.name}"
            raise behind(job / "batches.log", _ends(noted.number), named)


def _check_marks(job: Path, driver: ControlLog) -> None:
    """Raise InputError if the logs are not those of the job and the checkpoint. The job judges its state."""
    path = job / FILE
    if not path.exists():
        return
    identity = read_identity(job)
    if identity.checkpoint != driver.mark.hex():
        raise foreign(path, driver.path)
    if identity.folder != job.name:
        raise foreign(path, job)
    for log in (ControlLog(job / name) for name in CREATED[1:]):
        if whole(log.path) and log.mark != identity.mark:
            raise foreign(log.path, path)


def names(files: Files) -> Iterator[str]:
    """The names of files, one by one."""
    for each in files:
        yield from (each,) if isinstance(each, str) else map(str, range(each[0], each[1] + 1))


@record("placed")
class Placed:
    """The encoded content of a file in `spool/` or `parked/`, with the mark of its job and its place there."""

    mark: bytes
    place: str
    content: bytes


def place_of(path: Path) -> str:
    return "/".join(path.parts[-3:])


def placed(held: Any, path: Path, mark: bytes) -> bytes:
    """What is written to a file in `spool/` or `parked/` of a job."""
    return encode(Placed(mark, place_of(path), encode(held)))


def content(path: Path, mark: bytes, query: str) -> Any:
    """What a file in `spool/` or `parked/` has; raise InputError if it was written for another place or job. Files of
    earlier releases do not say so."""
    data, lost = path.read_bytes(), LOST[path.parts[-3]].format(query)
    _check_place(found := decode(data, f"'{path}'"), path, mark, lost)
    return decode(found.content, f"'{path}'") if isinstance(found, Placed) else found


def _check_place(found: Any, path: Path, mark: bytes, lost: str) -> None:
    if isinstance(found, Placed) and (found.mark, found.place) != (mark, place_of(path)):
        job = "" if found.mark == mark else " of another job"
        cause = f"It was written as '{found.place}'{job}."
        raise foreign(path, path.parents[2] / FILE, cause, lost)


def _check_file(path: Path, lost: str, mark: bytes) -> None:
    """Raise InputError if a file that has an encoded value is missing, is not whole, or is of another place or job."""
    if not whole(path):
        raise lacking(path, "is empty" if path.exists() else "is missing", lost)
    try:
        found = decode(path.read_bytes(), f"'{path}'")
    except InputError as error:
        if error.code == "M5020":
            raise
        raise lacking(path, "is cut off, or damaged", lost) from error
    _check_place(found, path, mark, lost)


def _short(path: Path, end: int, named: str, wanted: int) -> InputError:
    return behind(path, f"ends at position {end}", f"{named} position {wanted}")


def _reached(job: Path) -> Reached:
    """The last note of a job's batches."""
    path = job / "batches.log"
    last = ControlLog(path).last() if whole(path) else None
    return last if isinstance(last, Reached) else NONE


def whole(path: Path) -> bool:
    """Return whether a part is there, and not empty; raise InputError for a folder in place of a file, or a file in
    place of a folder."""
    if not path.exists():
        return False
    if path.is_dir() != (path.name in ("spark", "spool", "parked")):
        raise lacking(path, "is a folder, not a file" if path.is_dir() else "is a file, not a folder")
    return path.is_dir() or path.stat().st_size > 0


class BatchLog:
    """The batches of a job. `driver` returns the end of the driver's log."""

    def __init__(self, folder: Path, control: ControlLog) -> None:
        self._control = control
        self.driver: Callable[[], int] = lambda: 0
        self._noted: list[tuple[int, Reached]]
        self._closed = False
        self._noting = threading.Lock()
        self.mark = control.mark
        self._log = ControlLog(folder / "batches.log", writable=True, mark=self.mark)
        self._log.growth = GROWTH
        self._keep((at, note) for at, note in self._log.numbered() if isinstance(note, Reached))
        if self.last is not None and control.end() < self.last.log:
            raise _short(control.path, control.end(), f"batch {self.number} began at", self.last.log)

    @property
    def last(self) -> Reached | None:
        return self._noted[-1][1] if self._noted else None

    @property
    def _files(self) -> Mapping[str, tuple[str, Files]]:
        return (self.last or NONE).files

    @property
    def number(self) -> int:
        return -1 if self.last is None else self.last.number

    def of(self, number: int) -> Reached | None:
        """The last note of a batch."""
        return next((note for _, note in reversed(self._noted) if note.number == number), None)

    def outputs(self, last: int) -> Mapping[str, Any]:
        """The state of the outputs after the latest batch up to `last`."""
        found = (note for _, note in reversed(self._noted) if note.outputs is not None and note.number <= last)
        return getattr(next(found, None), "outputs", None) or {}

    def begin(self, number: int, offset: str, *, copies: int = 0, outputs: Mapping[str, Any] | None = None) -> None:
        """Note a batch, before it changes anything."""
        with self._noting:
            self._append(Reached(number, offset, self._control.end(), self.driver(), copies, outputs, self._files))

    def names(self, folder: str) -> set[str]:
        """The files that are named in a folder of the job."""
        return {*names(self._files.get(folder, ("", ()))[1])}

    def name(self, folder: str, query: str, files: Files, *, synced: bool = True) -> None:
        """Name all files in a folder of the job that a query depends on: after one is written (which need not be
        `synced`: a file that is not named is no damage), and before one is removed."""
        with self._noting:
            rest = {name: held for name, held in self._files.items() if name != folder}
            changed = rest | ({folder: (query, files)} if files else {})
            if changed != self._files:
                self._append(replace(self.last or NONE, outputs=None, files=changed), synced=synced)

    def _append(self, note: Reached, *, synced: bool = True) -> None:
        self._keep([*self._noted, (self._log.append(note, synced=synced), note)])
        if self._log.grown:
            kept = {at for at, _ in self._noted}
            self._log.compact(lambda at, _: at in kept)

    def _keep(self, noted: Iterable[tuple[int, Reached]]) -> None:
        """Keep the notes of the last batches, and before them the last one with outputs; of notes of a batch in a row
        the last one, and those with outputs."""
        kept: list[tuple[int, Reached]] = []
        for at, note in noted:
            if kept and kept[-1][1].number == note.number and kept[-1][1].outputs is None:
                kept.pop()
            kept.append((at, note))
        first = kept[-1][1].number - KEPT + 1 if kept else 0
        whole = [held for held in kept if held[1].number < first and held[1].outputs is not None]
        self._noted = whole[-1:] + [held for held in kept if held[1].number >= first]

    def check(self, state: Path, committed: int, cause: str) -> None:
        """Raise InputError if the state of the job, which has the last committed batch, is behind, or this log is."""
        if committed > self.number:
            raise behind(self._log.path, _ends(self.number), f"'{state}' has batch {committed}")
        if committed < self.number - 1:
            found = f"has batch {committed}" if committed >= 0 else "has no batch"
            raise behind(state, found, f"batch {self.number - 1} was committed", cause)

    def check_copies(self, state: Path, copies: int) -> None:
        """Raise InputError if the database file is older than its write-ahead file."""
        if self.last is not None and copies < self.last.copies:
            named = f"batch {self.number} was begun with copy {self.last.copies}"
            raise behind(state, f"is copy {copies} of its write-ahead file", named, "It is an older copy.")

    def close(self) -> None:
        """Note how far the other logs are, if they are further than with the last batch."""
        if self._closed:
            return
        self._closed = True
        log, driver = self._control.end(), self.driver()
        last = self.last or NONE
        with suppress(OptionError):  # a full disk
            if (last.log, last.driver) != (log, driver):
                self._append(replace(last, log=log, driver=driver, outputs=None))
        self._log.close()
