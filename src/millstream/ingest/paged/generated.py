"""A generator as the source of a stream: a batch is a range of its events.

| | |
|---|---|
| the stream | named by the option `stream`, else by its own name, in the singular or the plural |
| its columns | any columns of the generator, by name, with the same type or a wider one |
| punctuation | is among the rows, unless it restricts a column that is not read |
| the offset | `event`: the number of the next event; `anchor`: see `replay` |
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.schema import Schema
from millstream.algebra.types import MICROS, Type
from millstream.algebra.values import record
from millstream.errors import BindError, did_you_mean
from millstream.ingest.arrivals import PunctuatedRows
from millstream.ingest.generators.base import TIME, Generator
from millstream.ingest.generators.options import GeneratorOptions
from millstream.ingest.paged.options import PaceOptions
from millstream.ingest.paged.replay import Replay
from millstream.ingest.paged.split import Offset, Split, SplitRows, how_many, narrowed, selected
from millstream.ingest.placed_punctuations import PlacedPunctuations
from millstream.options import read_options

WORTH = 200_000
"""Least number of events in a split."""
_WIDER = {
    Type.INT: (Type.BIGINT, Type.DOUBLE, Type.DECIMAL),
    Type.BIGINT: (Type.DOUBLE, Type.DECIMAL),
    Type.REAL: (Type.DOUBLE, Type.DECIMAL),
    Type.DOUBLE: (Type.DECIMAL,),
    Type.DECIMAL: (Type.DOUBLE,),
}
"""Types that a generated column may be declared as, apart from its own."""
Options = tuple[tuple[str, str], ...]


@record("generated_piece")
class GeneratedSplit:
    connector: str
    options: Options
    stream: str
    schema: Schema
    first: int
    last: int
    rows: int | None = None

    def read(self, columns: Sequence[str] | None = None) -> SplitRows:
        names = selected(self.schema, columns)
        made = _opened(self.connector, self.options, names).make(self.stream, self.first, self.last)
        types = pl.Schema({name: self.schema.type_of(name).polars for name in names})
        return SplitRows(_punctuated(narrowed(made.rows, names).cast(types), made))


class GeneratedSource:
    def __init__(self, generator: Generator, split: GeneratedSplit, options: PaceOptions) -> None:
        self._generator, self._split, self._options = generator, split, options
        self._replay = None if options.speed is None else Replay(options.speed, MICROS)

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

    @property
    def ends(self) -> bool:
        return self._generator.events() is not None

    @property
    def punctuates(self) -> bool:
        return self._generator.punctuates

    def ended(self, offset: Offset) -> bool:
        return int(offset["event"]) == self._generator.events()

    def behind(self, offset: Offset) -> int | None:
        """Return the number of events of all streams left; None for an endless generator."""
        end = self._generator.events()
        return None if end is None else end - int(offset["event"])


@dataclass(frozen=True, slots=True)
class Generated:
    """Opens the streams of a generator, given the class of its options and its own.

    >>> from millstream.ingest.generators.rate import Rate, RateOptions
    >>> Generated("rate", RateOptions, Rate).generator({"rate": "2"}).make("rate", 3, 5).rows.rows()
    [(3, datetime.datetime(1970, 1, 1, 0, 0, 1, 500000)), (4, datetime.datetime(1970, 1, 1, 0, 0, 2))]
    """

    connector: str
    options: type[GeneratorOptions]
    make: Callable[[Any], Generator]

    def __call__(self, name: str, schema: Schema, given: Mapping[str, str], _: Sequence[str] = ()) -> GeneratedSource:
        own = {option: value for option, value in given.items() if option in PaceOptions.model_fields}
        rest = {option: value for option, value in given.items() if option not in own and option != "stream"}
        options = read_options(PaceOptions, own)
        made = self.generator(rest)
        stream = _stream(given.get("stream", name).lower(), made)
        _check(schema, made.streams[stream], stream)
        split = GeneratedSplit(self.connector, tuple(sorted(rest.items())), stream, schema, 0, 0)
        return GeneratedSource(made, split, options)

    check = __call__

    def punctuates(self, name: str, schema: Schema, given: Mapping[str, str]) -> bool:
        return self(name, schema, given).punctuates

    def generator(self, options: Mapping[str, str]) -> Generator:
        """Return the generator; raise OptionError if an option is unknown or its value is invalid."""
        return self.make(read_options(self.options, options, others=(*PaceOptions.model_fields, "stream")))


def _stream(name: str, made: Generator) -> str:
    """Return the generator's stream that a name refers to."""
    alike = (name, name.removesuffix("s"), f"{name}s")
    found = next((stream for stream in alike if stream in made.streams), None)
    if found is None and len(made.streams) == 1:
        found = next(iter(made.streams))
    if found is None:
        hint = f"{did_you_mean(name, made.streams)} Name it by the option 'stream'."
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
    """Return the generator restricted to these columns (and the time, which it always makes)."""
    from millstream.ingest.paged.base import SOURCES  # it imports this module

    opener = SOURCES.get(connector)
    assert isinstance(opener, Generated)
    return opener.generator({**dict(options), "columns": ",".join(columns or (TIME,))})


def _punctuated(frame: pl.DataFrame, rows: PunctuatedRows) -> PunctuatedRows:
    """Return the frame with the punctuations that restrict only its columns."""
    parts, columns = rows.punctuations.parts, set(frame.columns)
    kept = np.ones(len(rows.punctuations), dtype=np.bool_)
    for group in parts.groups:
        kept[group.positions] = group.attributes <= columns
    for at, pattern in parts.odd:
        kept[at] = pattern.attributes <= columns
    placed = PlacedPunctuations(rows.punctuations, np.asarray(rows.positions, dtype=np.int64)).keep(kept)
    return PunctuatedRows(frame, placed.punctuations, placed.positions)
