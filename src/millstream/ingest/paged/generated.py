"""A generator as the source of a stream: a batch is a range of its events.

| | |
|---|---|
| the stream | is named by the option `stream`, or has the name of one that the generator makes, plural allowed |
| its columns | any of the generator's, by name, of the same type or one that holds all its values |
| punctuation | comes with the rows, unless it restricts a column that is not asked for |
| the offset | `event`: the number of the next event; `anchor`: see `replay` |
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
import polars as pl

from millstream.algebra.schema import Schema
from millstream.algebra.types import MICROS, Type
from millstream.algebra.values import value
from millstream.errors import BindError, did_you_mean
from millstream.ingest.arrivals import PunctuatedRows
from millstream.ingest.generators import Generator, generator
from millstream.ingest.paged.options import PaceOptions
from millstream.ingest.paged.replay import Replay
from millstream.ingest.paged.split import Offset, Split, SplitRows, how_many
from millstream.ingest.placed_punctuations import PlacedPunctuations
from millstream.ingest.rows import NO_BAD
from millstream.options import read_options

WORTH = 200_000
"""Events that are worth a split of their own."""
_WIDER = {
    Type.INT: (Type.BIGINT, Type.DOUBLE, Type.DECIMAL),
    Type.BIGINT: (Type.DOUBLE, Type.DECIMAL),
    Type.REAL: (Type.DOUBLE, Type.DECIMAL),
    Type.DOUBLE: (Type.DECIMAL,),
    Type.DECIMAL: (Type.DOUBLE,),
}
"""What a generated column may be declared as, beside its own type."""
Options = tuple[tuple[str, str], ...]


@value("generated_piece")
@dataclass(frozen=True, slots=True)
class GeneratedSplit:
    connector: str
    options: Options
    stream: str
    schema: Schema
    first: int
    last: int
    rows: int | None = None

    def read(self, columns: Sequence[str] | None = None) -> SplitRows:
        for name in columns or ():
            self.schema.index(name)
        wanted = [a for a in self.schema if columns is None or a.name in columns]
        made = _opened(self.connector, self.options, tuple(a.name for a in wanted))
        rows = made.make(self.stream, self.first, self.last)
        frame: pl.DataFrame = rows.rows
        if wanted:
            kept = frame.select(pl.col(a.name).cast(a.type.polars) for a in wanted)
        else:
            kept = pl.DataFrame(height=frame.height)
        return SplitRows(_punctuated(kept, rows), NO_BAD)


class GeneratedSource:
    def __init__(self, made: Generator, split: GeneratedSplit, options: PaceOptions, replay: Replay | None) -> None:
        self._generator, self._split, self._options, self._replay = made, split, options, replay

    def start(self) -> Offset:
        return {"event": 0, "anchor": None}

    def latest(self, offset: Offset, now: int) -> Offset:
        first, anchor = offset["event"], offset["anchor"]
        last = first + self._options.max_rows_per_trigger
        end = self._generator.events()
        last = last if end is None else min(last, end)
        if first == last:
            return offset
        if self._replay is not None:
            anchor = anchor or [now, self._generator.event_time(first)]
            until = self._replay.until(anchor, now)
            last = first + bisect_right(range(first, last), until, key=self._generator.event_time)
        return offset if first == last else {"event": last, "anchor": anchor}

    def splits(self, start: Offset, end: Offset, parallelism: int) -> list[Split]:
        first, last = start["event"], end["event"]
        number = how_many(last - first, WORTH, parallelism)
        places = [first + (last - first) * at // number for at in range(number + 1)]
        return [replace(self._split, first=low, last=high) for low, high in pairwise(places) if low < high]

    def ended(self, offset: Offset) -> bool:
        return int(offset["event"]) == self._generator.events()

    def behind(self, offset: Offset) -> int | None:
        """Events of all streams; endless generators are never caught up with."""
        end = self._generator.events()
        return None if end is None else end - int(offset["event"])


def open_generated(name: str, schema: Schema, connector: str, given: Mapping[str, str]) -> GeneratedSource:
    own = {option: value for option, value in given.items() if option in PaceOptions.model_fields}
    rest = {option: value for option, value in given.items() if option not in own and option != "stream"}
    options = read_options(PaceOptions, own)
    made = generator(connector, rest)
    stream = _stream(given.get("stream", name).lower(), made)
    _check(schema, made.streams[stream], stream)
    split = GeneratedSplit(connector, tuple(sorted(rest.items())), stream, schema, 0, 0)
    return GeneratedSource(made, split, options, None if options.speed is None else Replay(options.speed, MICROS))


def _stream(name: str, made: Generator) -> str:
    """Which of the generator's streams a name means."""
    alike = (name, name.removesuffix("s"), f"{name}s")
    found = next((stream for stream in alike if stream in made.streams), None)
    if found is None and len(made.streams) == 1:
        found = next(iter(made.streams))
    if found is None:
        hint = f"{did_you_mean(name, made.streams)} Say which one is meant by the option 'stream'."
        raise BindError("M2002", f"no stream '{name}' is generated", hint=hint)
    return found


def _check(declared: Schema, made: Schema, stream: str) -> None:
    for a in declared:
        if a.name not in made:
            hint = did_you_mean(a.name, made.names)
            raise BindError("M2001", f"generated stream '{stream}' has no column '{a.name}'", hint=hint)
        found = made.type_of(a.name)
        if a.type is not found and a.type not in _WIDER.get(found, ()):
            message = f"column '{a.name}' of generated stream '{stream}' is of type {found.value}, not {a.type.value}"
            raise BindError("M2006", message, hint=f"declare it as {a.name} {found.value}")


@lru_cache(maxsize=32)
def _opened(connector: str, options: Options, columns: tuple[str, ...]) -> Generator:
    """The generator, told to make no more than these columns (and the time, which it always makes)."""
    made = generator(connector, dict(options))
    time = next(iter(made.streams.values())).time
    wanted = {"columns": ",".join(columns or (str(time),))}
    return generator(connector, dict(options) | wanted)


def _punctuated(frame: pl.DataFrame, rows: PunctuatedRows) -> PunctuatedRows:
    """The frame with those punctuations that restrict none but its columns."""
    parts = rows.punctuations.parts
    kept = np.ones(len(rows.punctuations), dtype=np.bool_)
    for group in parts.groups:
        if not set(group.columns) <= set(frame.columns):
            kept[group.positions] = False
    for at, pattern in parts.odd:
        if not {name for name, _ in pattern.items} <= set(frame.columns):
            kept[at] = False
    placed = PlacedPunctuations(rows.punctuations, np.asarray(rows.positions, dtype=np.int64)).keep(kept)
    return PunctuatedRows(frame, placed.punctuations, placed.positions)
