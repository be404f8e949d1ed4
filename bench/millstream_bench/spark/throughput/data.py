"""The events of the benchmark as parquet files, made once and kept.

Each stream is a folder of files; the i-th files of all streams cover the same events and have the same modification
time, so readers that order files by time or by name read them in step. The last file has one row far in the future: it
completes every window, and no answer contains it. A marker with the parameters is written at the end.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import polars as pl

from millstream.errors import OptionError
from millstream_bench.spark.throughput import nexmark

EVENTS = 20_000_000
RATE = 10_000
"""Events per second of event time."""
EVENTS_PER_FILE = 500_000
_ROW_GROUP = 128 * 1024
_MARKER = "complete.json"
_CLOSING = "closing.parquet"
_OLDEST = 1_600_000_000
"""Modification time of the first files; each later one is a second younger. Spark reads files in this order."""

Progress = Callable[[int, int], None]
"""Called with the number of files written and of all files."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The parameters of the files."""

    files: int
    events_per_file: int = EVENTS_PER_FILE
    rate: int = RATE
    seed: int = 42
    layout: int = 1

    @property
    def events(self) -> int:
        return self.files * self.events_per_file


@dataclass(frozen=True, slots=True)
class EventFiles:
    """The files, or as many of the first of them as `length` says."""

    folder: Path
    shape: Shape
    length: int = field(default=0)

    @property
    def files(self) -> int:
        return self.length or self.shape.files

    @property
    def events(self) -> int:
        return self.files * self.shape.events_per_file

    def first(self, files: int) -> EventFiles:
        """The beginning of the stream."""
        return replace(self, length=min(files, self.files))

    def paths(self, stream: str) -> list[Path]:
        """The files with the stream's rows, in order."""
        return [self.folder / stream / _name(index) for index in range(self.files)]

    def closing(self, stream: str) -> Path:
        """The file with the one row that ends the stream."""
        return self.folder / stream / _CLOSING

    def glob(self) -> str:
        """A pattern for the names of these files and of the closing one."""
        if self.files == self.shape.files:
            return "*.parquet"
        return "{" + ",".join([*map(_name, range(self.files)), _CLOSING]) + "}"

    def rows(self, stream: str) -> int:
        """Rows of the stream, without the closing one."""
        return int(pl.scan_parquet(self.paths(stream)).select(pl.len()).collect().item())


def prepare(
    root: Path | None = None,
    events: int = EVENTS,
    *,
    events_per_file: int = EVENTS_PER_FILE,
    seed: int = 42,
    progress: Progress | None = None,
) -> EventFiles:
    """Files with at least `events` events, in a folder of their own under `root`; written if missing."""
    if events < 1 or events_per_file < 1 or events_per_file % nexmark.ROUND:
        hint = f"Events per file are a multiple of {nexmark.ROUND}."
        raise OptionError("M6002", f"cannot write {events} events in files of {events_per_file}", hint=hint)
    shape = Shape(-(-events // events_per_file), events_per_file, seed=seed)
    name = f"nexmark-{shape.files}x{events_per_file}" + ("" if seed == 42 else f"-{seed}")
    found = EventFiles((root or _cache()) / name, shape)
    if not _complete(found):
        _write(found, progress)
    return found


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "millstream"


def _name(index: int) -> str:
    return f"part-{index:05}.parquet"


def _complete(data: EventFiles) -> bool:
    try:
        return bool(json.loads((data.folder / _MARKER).read_text()) == asdict(data.shape))
    except (OSError, ValueError):
        return False


def _write(data: EventFiles, progress: Progress | None) -> None:
    shape = data.shape
    (data.folder / _MARKER).unlink(missing_ok=True)
    for stream in nexmark.STREAMS:
        (data.folder / stream).mkdir(parents=True, exist_ok=True)
    for index, age in enumerate(range(_OLDEST, _OLDEST + shape.files)):
        first, last = index * shape.events_per_file, (index + 1) * shape.events_per_file
        for stream in nexmark.STREAMS:
            rows = nexmark.table(stream, first, last, rate=shape.rate, seed=shape.seed)
            _put(rows, data.folder / stream / _name(index), age)
        if progress is not None:
            progress(index + 1, shape.files)
    for stream in nexmark.STREAMS:
        _put(nexmark.closing(stream, shape.events, rate=shape.rate), data.closing(stream), _OLDEST + shape.files)
    (data.folder / _MARKER).write_text(json.dumps(asdict(shape)))


def _put(rows: pl.DataFrame, path: Path, age: int) -> None:
    rows.write_parquet(path, compression="snappy", row_group_size=_ROW_GROUP)
    os.utime(path, (age, age))
