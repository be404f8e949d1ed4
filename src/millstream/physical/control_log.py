"""The control log: a durable, append-only file of records, one writer (the driver), positions in bytes.

A record is its length, a checksum and a pickle. It is written in one piece and synced before `append` returns. A reader
takes whole records only; what a crash has left of a torn one is cut off when the log is next opened for writing.
"""

from __future__ import annotations

import os
import pickle
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

from millstream.errors import InputError
from millstream.physical.records import Record

_HEAD = struct.Struct("<II")


class ControlLog:
    """Open with `writable` in one process at a time."""

    def __init__(self, path: Path, *, writable: bool = False) -> None:
        self.path = path
        self._end = 0
        self._file: int | None = None
        if writable:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            os.ftruncate(self._file, self.end())

    def append(self, record: Record) -> int:
        """Write a record; returns the position behind it."""
        assert self._file is not None
        data = pickle.dumps(record)
        os.write(self._file, _HEAD.pack(len(data), zlib.crc32(data)) + data)
        os.fsync(self._file)
        self._end = os.fstat(self._file).st_size
        return self._end

    def end(self) -> int:
        """The position behind the last whole record."""
        try:
            if self.path.stat().st_size > self._end:
                for position, _ in self._frames(self._end):
                    self._end = position
        except FileNotFoundError:
            return 0
        return self._end

    def read(self, start: int, end: int) -> Iterator[Record]:
        """The records between two positions."""
        for position, data in self._frames(start):
            if position > end:
                return
            yield pickle.loads(data)
            if position == end:
                return
        if start < end:
            raise InputError("M5030", f"the control log {self.path} ends before position {end}")

    def _frames(self, start: int) -> Iterator[tuple[int, bytes]]:
        """Whole records from a position on, each with the position behind it."""
        with self.path.open("rb") as file:
            file.seek(start)
            position = start
            while len(head := file.read(_HEAD.size)) == _HEAD.size:
                length, checksum = _HEAD.unpack(head)
                data = file.read(length)
                if len(data) < length or zlib.crc32(data) != checksum:
                    return
                position += _HEAD.size + length
                yield position, data

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
