"""The control log: a durable, append-only file of records, one writer (the driver).

The file begins with a format number, and the mark of the checkpoint or the job that it is of; a file of another format
is refused. A record has a head (its position, its
length, the checksums of its value and of the head) and an encoded value (`algebra.values`). It is written in one piece,
and synced before `append` returns unless the caller can do without. A reader returns whole records only; a torn record
that a crash has left at the end of the file is cut off when the next one is written. Damage anywhere else is an error.

Positions are those of a log from which no record was ever dropped. So a log can be compacted while it is read: a new
file without the dropped records replaces the old one, and all other records keep their positions.
"""

from __future__ import annotations

import os
import struct
import threading
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

from millstream.algebra.values import FORMAT, HINT, check_format, decode, encode, unversioned
from millstream.atomic_file import drafted, write_whole
from millstream.errors import InputError, OptionError
from millstream.physical.wire.records import Record

_START = struct.Struct("<6sHQ16s")
"""At the beginning of the file: the magic bytes, the format, the generation (the number of compactions), the mark."""
_OLDEST = 16
"""Its size before there were marks."""
_MAGIC = b"millog"
_HEAD = struct.Struct("<QIII")
PLACES = 64
"""Number of positions whose place in the file a reader remembers."""
GROWTH = 16_000_000
"""Bytes by which a control log may grow before it is compacted."""


def framed(position: int, data: bytes) -> bytes:
    """A record as written to the file."""
    head = _HEAD.pack(position, len(data), zlib.crc32(data), 0)[:-4]
    return head + struct.pack("<I", zlib.crc32(head)) + data


class ControlLog:
    """Open with `writable` in one process at a time. Threads may read it side by side. A new file has the given
    mark, or a random one."""

    def __init__(self, path: Path, *, writable: bool = False, mark: bytes = b"") -> None:
        self.path = path
        self._end = 0
        self._places: dict[int, int] = {}
        """Positions in the log, with their places in the file of this generation."""
        self._generation = -1
        self._placing = threading.Lock()
        self._file: int | None = None
        self._torn: int | None = None
        """Where the first record that is appended begins: a torn one is cut off."""
        self._compacted = 0
        """The size of the file after it was last compacted."""
        self._decoded: dict[int, Record] | None = None
        self.growth = GROWTH
        """Bytes by which it may grow before it is compacted."""
        if writable:
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists() or not path.stat().st_size:
                start = _START.pack(_MAGIC, FORMAT, 0, mark or os.urandom(16))
                write_whole(path, start, durable=True, private=True)
            end = self.end()
            self._file = self._open()
            self._torn = self._places[end] if end else _START.size

    def _open(self) -> int:
        return os.open(self.path, os.O_RDWR | os.O_APPEND)

    @property
    def grown(self) -> bool:
        """True if the log should be compacted."""
        return self.path.stat().st_size > self._compacted + self.growth

    @property
    def mark(self) -> bytes:
        """The mark of the checkpoint or the job that it is of; empty if there is no file."""
        if not self.path.exists():
            return b""
        with self.path.open("rb") as file:
            return self._check(file.read(_START.size))[1]

    def append(self, record: Record, *, synced: bool = True) -> int:
        """Write a record; return the position behind it. On a full disk nothing of it stays in the file. Without
        `synced` it reaches the disk with the next record."""
        assert self._file is not None
        data = encode(record)
        position = self._end + _HEAD.size + len(data)
        if self._torn is not None:
            os.ftruncate(self._file, self._torn)
            self._torn = None
        size = os.fstat(self._file).st_size
        try:
            left = memoryview(framed(position, data))
            while left:  # a disk that is nearly full takes a part
                left = left[os.write(self._file, left) :]
            if synced:
                os.fsync(self._file)
        except OSError as error:
            os.ftruncate(self._file, size)
            message = f"cannot write to the checkpoint '{self.path.parent}': {error.strerror}"
            hint = "make room, then try again; what has stopped continues where it stopped when it starts again"
            raise OptionError("M6062", message, hint=hint) from error
        self._end = position
        return position

    def end(self) -> int:
        """The position behind the last whole record."""
        if self._file is None or not self._end:
            for position, _ in self._frames(self._end):
                self._end = position
        return self._end

    def read(self, start: int, end: int) -> Iterator[Record]:
        """The records between two positions that have not been dropped."""
        if start >= end:
            return
        for position, data in self._frames(start):
            if position > end:
                return
            yield self._record(data)
            if position == end:
                return
        if self.end() < end:
            raise InputError("M5030", f"the control log {self.path} ends before position {end}", hint=HINT)

    def numbered(self) -> Iterator[tuple[int, Record]]:
        """All records that have not been dropped, with their positions."""
        return ((position, self._kept(position, data)) for position, data in self._frames(0))

    def last(self) -> Record | None:
        """The last record; None if there is none."""
        frames = deque(self._frames(0), maxlen=1)
        return self._kept(*frames[0]) if frames else None

    def keep_decoded(self) -> None:
        """Keep the records that `numbered` yields in memory: for a program that recovers many mills from one log."""
        self._decoded = {}

    def _kept(self, position: int, data: bytes) -> Record:
        if self._decoded is None:
            return self._record(data)
        if position not in self._decoded:
            self._decoded[position] = self._record(data)
        return self._decoded[position]

    def compact(self, needed: Callable[[int, Record], bool]) -> None:
        """Drop the records that are not needed. The last record stays: it has the end position."""
        assert self._file is not None
        with drafted(self.path, durable=True, private=True) as draft, draft.open("wb") as file:
            file.write(_START.pack(_MAGIC, FORMAT, self._generation + 1, self.mark))
            for position, data in self._frames(0):
                if position == self._end or needed(position, self._record(data)):
                    file.write(framed(position, data))
        os.close(self._file)
        self._file, self._torn = self._open(), None
        with self._placing:
            self._generation, self._places = self._generation + 1, {}
        if self._decoded is not None:
            self._decoded = {}
        self._compacted = self.path.stat().st_size

    def _frames(self, start: int) -> Iterator[tuple[int, bytes]]:
        """The encoded records behind a position, each with its own position."""
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            return
        with file:
            generation, _ = self._check(file.read(_START.size))
            place = self._place(generation, start)
            file.seek(place)
            while len(head := file.read(_HEAD.size)) == _HEAD.size:
                position, length, checksum, own = _HEAD.unpack(head)
                sound = zlib.crc32(head[:-4]) == own
                data = file.read(length) if sound else b""
                if sound and len(data) < length:  # the last record is torn, or is being written
                    return
                if not sound or zlib.crc32(data) != checksum:
                    if sound and not file.read(1):
                        return
                    raise InputError("M5023", f"the control log {self.path} is damaged at byte {place}", hint=HINT)
                place += _HEAD.size + length
                self._remember(position, place, generation)
                if position > start:
                    yield position, data

    def _record(self, data: bytes) -> Record:
        record: Record = decode(data, f"a record of the control log {self.path}")
        return record

    def _check(self, start: bytes) -> tuple[int, bytes]:
        """Return the generation of the file, and its mark; raise InputError if it is not of this format."""
        what = f"the control log {self.path}"
        padded = start.ljust(_START.size, b"\0")  # older formats have a shorter start
        _, found, generation, mark = _START.unpack(padded)
        if len(start) < _OLDEST or not start.startswith(_MAGIC):
            raise unversioned(what)
        check_format(found, what)
        if len(start) < _START.size:
            raise unversioned(what)
        return int(generation), bytes(mark)

    def _place(self, generation: int, position: int) -> int:
        """The place in the file to read from for the records behind a position."""
        with self._placing:
            if generation != self._generation:
                self._generation, self._places = generation, {}
            return self._places.get(position, _START.size)

    def _remember(self, position: int, place: int, generation: int) -> None:
        with self._placing:
            if generation == self._generation:  # not compacted while this file was read
                self._places[position] = place
                if len(self._places) > PLACES:
                    del self._places[next(iter(self._places))]

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
