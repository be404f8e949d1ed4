"""State on disk: a table whose segments are memory-mapped Arrow files, each with one bucket of the join key.

A store holds them like the segments of any state table. The files are unnamed, in the system's folder for temporary
files, so that no file outlives the process, however it ends. Dead rows are marked in memory; a file is rewritten when
most of its rows are dead, or merged when its bucket has more than `MOST_FILES` files.
"""

from __future__ import annotations

import mmap
import tempfile
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from copy import deepcopy
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from millstream.algebra.arrays import Integers, Mask
from millstream.runtime.operator.frames import where
from millstream.runtime.state.segments import Places, to_merge
from millstream.runtime.state.table import Changes, StateTable

BUCKET = "__bucket"
MOST_FILES = 4
"""Largest number of files per bucket; beyond it some are merged."""


class Tags:
    """A number for each row of a table, in the order of the rows, which are appended at the end."""

    __slots__ = ("_count", "_room")

    def __init__(self, values: Integers | None = None) -> None:
        self._room: Integers = np.zeros(0, dtype=np.int64) if values is None else values
        self._count = len(self._room)

    @property
    def values(self) -> Integers:
        return self._room[: self._count]

    def append(self, count: int, value: int) -> None:
        end = self._count + count
        if end > len(self._room):
            self._room = np.concatenate([self.values, np.zeros(end, dtype=np.int64)])
        self._room[self._count : end] = value
        self._count = end

    def keep(self, mask: Mask) -> None:
        self._room = self.values[mask]
        self._count = len(self._room)

    def to_value(self) -> tuple[list[int], list[int]]:
        """Return runs of equal numbers: the numbers, and the length of each run."""
        starts = np.flatnonzero(np.diff(self.values, prepend=-1))
        return self.values[starts].tolist(), np.diff(starts, append=self._count).tolist()

    @classmethod
    def from_value(cls, value: tuple[list[int], list[int]]) -> Tags:
        return cls(np.repeat(np.array(value[0], dtype=np.int64), value[1]))


class DiskTable(StateTable):
    """Rows on disk; the schema has the column `BUCKET`. Rows that are read stay in memory only while they are used."""

    def __init__(self, schema: Mapping[str, pl.DataType]) -> None:
        super().__init__(schema)
        self._files: dict[int, mmap.mmap] = {}
        self._alive: dict[int, Mask] = {}
        """Mask of the rows that are alive, for files with dead rows."""
        self._bucket: dict[int, int] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> DiskTable:
        """A copy of the table, over the same files: they are never written again."""
        memo |= {id(mapped): mapped for mapped in self._files.values()}
        made = DiskTable.__new__(DiskTable)
        memo[id(self)] = made
        made.__dict__.update({name: deepcopy(held, memo) for name, held in self.__dict__.items()})
        return made

    def size(self) -> int:
        return 0

    @property
    def buckets(self) -> set[int]:
        """Buckets that have rows on disk."""
        return set(self._bucket.values())

    def append(self, rows: pl.DataFrame, whole: pl.DataFrame | None = None) -> None:  # noqa: ARG002
        for part in rows.partition_by(BUCKET, maintain_order=True) if rows.height else ():
            self._add(self._in_order(part))
        self._compact()

    def look(self, buckets: Collection[int], columns: Collection[str] | None = None) -> tuple[pl.DataFrame, Mask]:
        """Return the rows of these buckets, mapped, and the mask of those alive; nothing is read or copied."""
        keys = [key for key in self._segments if self._bucket[key] in buckets]
        parts = [self._segments[key] for key in keys] or [pl.DataFrame(schema=self.schema)]
        if columns is not None:
            names = [name for name in self._names if name in columns]
            parts = [pl.DataFrame([part.get_column(name) for name in names]) for part in parts]
        alive = [self._alive_of(key) for key in keys]
        return pl.concat(parts), np.concatenate(alive) if alive else np.zeros(0, dtype=np.bool_)

    def take(self, columns: Collection[str], match: Callable[[pl.DataFrame], pl.Series]) -> pl.DataFrame:
        """Remove and return the rows that match by these columns."""
        rows, alive = self.look(self.buckets, columns)
        gone = match(rows).fill_null(False).to_numpy() & alive
        taken: list[pl.DataFrame] = []
        start = 0
        for key in list(self._segments):
            height = self._segments[key].height
            lost = gone[start : start + height]
            start += height
            if lost.any():
                taken.append(where(self._segments[key], lost))
                self._thin(key, ~lost)
        return pl.concat(taken) if taken else pl.DataFrame(schema=self.schema)

    def heights(self) -> dict[int, int]:
        """Return the number of rows of each bucket, dead ones included."""
        heights: dict[int, int] = defaultdict(int)
        for key, bucket in self._bucket.items():
            heights[bucket] += self._segments[key].height
        return heights

    def rest(self) -> None:
        """Release the mapped pages from memory until the next read."""
        for file in self._files.values():
            file.madvise(mmap.MADV_DONTNEED)

    # --- as a state table -------------------------------------------------------------------------------------------

    def frame(self) -> pl.DataFrame:
        rows, alive = self.look(self.buckets)
        return rows if alive.all() else where(rows, alive)

    def replace(self, rows: pl.DataFrame) -> None:
        for key in list(self._segments):
            self._drop(key)
        self.append(rows)

    def purge_below(self, column: str, limit: int) -> int:
        return self.take({column}, lambda rows: rows.get_column(column) < limit).height

    def keep(self, mask: pl.Series) -> None:
        _, alive = self.look(self.buckets, ())
        kept = np.ones(len(alive), dtype=np.bool_)
        kept[alive] = mask.fill_null(False).to_numpy()
        self.take(self._names[:1], lambda _: pl.Series(~kept))

    def changes(self) -> Changes:
        self.track()
        assert self._journal is not None
        return self._journal.take(_Parts(self))

    def restore(self, segments: Mapping[int, pl.DataFrame], gone: Mapping[int, Places]) -> None:
        self._files, self._alive, self._bucket = {}, {}, {}
        super().restore(segments, gone)
        for key, segment in self._segments.items():
            self._map(key, segment)

    # --- segments ---------------------------------------------------------------------------------------------------

    def _alive_of(self, key: int) -> Mask:
        alive = self._alive.get(key)
        return np.ones(self._segments[key].height, dtype=np.bool_) if alive is None else alive

    def _height(self, key: int) -> int:
        return int(np.count_nonzero(self._alive_of(key)))

    def _part(self, key: int) -> pl.DataFrame:
        segment, alive = self._segments[key], self._alive.get(key)
        return segment if alive is None else where(segment, alive)

    def _add(self, segment: pl.DataFrame) -> None:
        key = self._next
        super()._add(segment)
        self._map(key, segment)

    def _map(self, key: int, segment: pl.DataFrame) -> None:
        """Write a segment to a file and map it."""
        with tempfile.TemporaryFile(dir=tempfile.gettempdir()) as file:
            segment.write_ipc(file, compression="uncompressed")
            file.flush()
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        read = pl.from_arrow(pa.ipc.open_file(pa.py_buffer(mapped)).read_all())
        assert isinstance(read, pl.DataFrame)
        self._segments[key], self._files[key] = read, mapped
        self._bucket[key] = int(segment.item(0, BUCKET))
        self._alive.pop(key, None)

    def _thin(self, key: int, kept: Mask) -> None:
        """Remove the rows of a file that are not kept."""
        before = self._alive_of(key)
        alive = before & kept
        count = int(np.count_nonzero(alive))
        if not count:
            self._drop(key)
            return
        if self._journal is not None:
            self._journal.tear(key, alive[before])
        self._count -= int(np.count_nonzero(before)) - count
        self._alive[key] = alive
        if 2 * count < len(alive):
            self._map(key, self._part(key))

    def _compact(self) -> None:
        files = defaultdict(list)
        for key, bucket in self._bucket.items():
            files[bucket].append(key)
        for keys in files.values():
            if len(keys) > MOST_FILES:
                first, end = to_merge([self._segments[key].height for key in keys])
                self._merge(keys[first:end])

    def _merge(self, keys: list[int]) -> None:
        into, *others = keys
        whole = pl.concat([self._part(key) for key in keys], rechunk=True)
        for key in others:
            self._drop(key)
        if self._journal is not None:
            self._journal.put(into)
        self._count += whole.height - self._height(into)
        self._map(into, whole)

    def _drop(self, key: int) -> None:
        height = self._height(key)
        if self._journal is not None:
            self._journal.drop(key)
        self._count -= height
        for held in (self._segments, self._alive, self._bucket, self._files):
            held.pop(key, None)


class _Parts(dict[int, pl.DataFrame]):
    """The segments of a table without their dead rows, each built on access."""

    def __init__(self, table: DiskTable) -> None:
        super().__init__()
        self._table = table

    def __missing__(self, key: int) -> pl.DataFrame:
        return self._table._part(key)
