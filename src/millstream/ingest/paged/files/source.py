"""Files as a stream: all files under a path, each file once, in whatever order and at whatever time they appear.

| | |
|---|---|
| order | by name among the files present when a batch is made; later files belong to later batches |
| a file | must appear whole, by being renamed; it is identified by its name and read once |
| a batch | ends at the limit of rows or files; inside a file only if its format is cut by rows |
| the offset | `seen`: the names of all files begun; `cut`: the file that the batch ends in, and the position; `batch`:
  the files of the batch that ends here, with the range read of each; `anchor`: see `replay`; `number`: counts batches |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from millstream.errors import InputError
from millstream.ingest.paged.files.cuts import cut
from millstream.ingest.paged.files.formats import File, FileSplit, Format, Part
from millstream.ingest.paged.files.listing import Listing
from millstream.ingest.paged.files.seen import SeenFiles
from millstream.ingest.paged.options import FileOptions
from millstream.ingest.paged.replay import Anchor, Replay
from millstream.ingest.paged.split import Offset, Split, how_many

LOOKED_INTO = 256
"""Number of files inspected to estimate the rows waiting; the others are assumed to be like them."""


class FileSource:
    def __init__(self, format_: Format, options: FileOptions, replay: Replay | None) -> None:
        self._format, self._options, self._replay = format_, options, replay
        self._listing = Listing(options.path)
        for name, size in islice(self._listing.find().items(), 1):
            format_.check(self._file(name, size))

    def start(self) -> Offset:
        return {"number": 0, "seen": SeenFiles().write(), "cut": None, "batch": [], "anchor": None}

    def latest(self, offset: Offset, now: int) -> Offset:
        seen = SeenFiles.read(offset["seen"])
        batch = _Batch(self._format, self._options, self._replay, now, offset["anchor"])
        for name, size, first in self._waiting(offset, seen):
            if not batch.take(name, Part(self._file(name, size), first, -1)):
                break
        if not batch.names and batch.anchor == offset["anchor"]:
            return offset
        seen.add(batch.names)
        return {
            "number": offset["number"] + 1,
            "seen": seen.write(),
            "cut": batch.cut or (offset["cut"] if not batch.names else None),
            "batch": batch.taken,
            "anchor": batch.anchor,
        }

    def splits(self, start: Offset, end: Offset, parallelism: int) -> list[Split]:
        if start["number"] == end["number"]:
            return []
        if start["number"] + 1 != end["number"]:
            detail = f"The offsets belong to batches {start['number']} and {end['number']}."
            raise InputError("M5044", "a batch must end at the offset that the source returned", detail=detail)
        parts = [Part(self._file(name, size), first, last) for name, size, first, last in end["batch"]]
        if not parts:
            return []
        total = sum(part.last - part.first for part in parts)
        number = how_many(total, self._format.worth, parallelism)
        return [FileSplit(self._format, made) for made in cut(parts, number, self._format.borders)]

    @property
    def ends(self) -> bool:
        return self._options.once

    @property
    def absent(self) -> str:
        """That there is nothing to read yet, and where it was looked for; empty if there is something."""
        return self._listing.absent

    def ended(self, offset: Offset) -> bool:
        if not self._options.once:
            return False
        return next(self._waiting(offset, SeenFiles.read(offset["seen"])), None) is None

    def behind(self, offset: Offset) -> int:
        """Return an estimate by the files present now."""
        waiting = list(self._waiting(offset, SeenFiles.read(offset["seen"])))
        known = waiting[:LOOKED_INTO]
        rows = sum(self._format.rows(self._file(name, size)) for name, size, _ in known)
        size, rest = sum(size for _, size, _ in known), sum(size for _, size, _ in waiting[LOOKED_INTO:])
        return rows - sum(first for _, _, first in known) + (rows * rest // size if size else 0)

    def _file(self, name: str, size: int) -> File:
        return File(self._listing.path(name), size)

    def _waiting(self, offset: Offset, seen: SeenFiles) -> Iterator[tuple[str, int, int]]:
        """Yield the unread files with size and start; the file that the last batch ended in is first."""
        listed = self._listing.find()
        if offset["cut"] is not None:
            name, size, first = offset["cut"]
            yield name, size, first
        for name, size in listed.items():
            if name not in seen:
                yield name, size, 0


@dataclass(slots=True)
class _Batch:
    """A batch under construction."""

    format: Format
    options: FileOptions
    replay: Replay | None
    now: int
    anchor: Anchor | None
    names: list[str] = field(default_factory=list)
    taken: list[list[str | int]] = field(default_factory=list)
    cut: list[str | int] | None = None
    rows: int = 0

    def take(self, name: str, part: Part) -> bool:
        """Take as much of a file as allowed; return False once the batch is full."""
        if self.rows >= self.options.max_rows_per_trigger or len(self.names) == self.options.max_files_per_trigger:
            return False
        if part.first == 0:
            self.format.check(part.file)
        extent = self.format.extent(part.file)
        last = self._last(Part(part.file, part.first, extent))
        if last is None:
            return False
        self.names.append(name)
        if last > part.first:
            self.taken.append([name, part.file.size, part.first, last])
        if last < extent:
            self.cut = [name, part.file.size, last]
        self.rows += last - part.first if self.format.by_row else self.format.rows(part.file)
        return last == extent

    def _last(self, part: Part) -> int | None:
        """Return the end of what the batch may take of the part; None if nothing."""
        left = self.options.max_rows_per_trigger - self.rows
        if not self.format.by_row and self.names and self.format.rows(part.file) > left:
            return None
        last = min(part.last, part.first + left) if self.format.by_row else part.last
        if self.replay is not None:
            if self.anchor is None and (first := self.format.first_time(part)) is not None:
                self.anchor = [self.now, first]
            if self.anchor is not None:
                last = self.format.released(part._replace(last=last), self.replay.until(self.anchor, self.now))
        return None if last == part.first < part.last else last
