"""The base class of generators.

A generator makes one sequence of events, numbered from 0. Each event is a row of one of its streams. The rows of a
stream among the events `first … last - 1` are a pure function of the options and these two numbers: the concatenation
is the same for all ways to cut the sequence, in any order and on any machine.

| | |
|---|---|
| a column | a function of the keys of its rows: whole columns at once, no state from row to row |
| a punctuation | has a position in the sequence of events, and belongs to the cut that contains it |
| the end | a generator with a last event ends its streams with punctuation, which belongs to that event |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from millstream.algebra.arrays import Integers
from millstream.algebra.schema import Schema, TimeKind
from millstream.algebra.types import Type
from millstream.errors import BindError, OptionError, did_you_mean
from millstream.ingest.arrivals import PunctuatedRows
from millstream.ingest.generators.options import LAST_TIME, GeneratorOptions
from millstream.ingest.placed_punctuations import PlacedPunctuations

TIME = "ts"
"""The time column of every generated stream."""


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: Type
    values: Callable[[Integers], Integers | pl.Series]
    """Maps the keys of the rows to values; timestamps are microseconds."""


class Generator(ABC):
    """A generator, defined column by column. The key of a row is a number that determines its values."""

    def __init__(self, options: GeneratorOptions, streams: Mapping[str, Sequence[Column]]) -> None:
        self._options = options
        wanted, known = options.columns, {column.name for columns in streams.values() for column in columns}
        for name in sorted(() if wanted is None else wanted - known):
            raise OptionError(
                "M6002", f"option 'columns' names an unknown column '{name}'", hint=did_you_mean(name, known)
            )
        self._columns = {
            stream: [c for c in columns if wanted is None or c.name in wanted or c.name == TIME]
            for stream, columns in streams.items()
        }
        self.streams: Mapping[str, Schema] = {
            stream: Schema.of(*((c.name, c.type) for c in columns), kind=TimeKind.EXTERNAL, time=TIME)
            for stream, columns in self._columns.items()
        }
        """The schema of each stream."""
        if options.events is not None and self.event_time(options.events - 1) >= LAST_TIME:
            raise OptionError("M6002", f"option 'events' cannot be {options.events}: the last is after the year 9999")

    def events(self) -> int | None:
        """Return the number of events over all streams; None if there is no end."""
        return self._options.events

    @property
    def punctuates(self) -> bool:
        """Whether the options ask for punctuation."""
        return bool(self._options.punctuation)

    def make(self, stream: str, first: int, last: int) -> PunctuatedRows:
        """Return the stream's rows among the events `first … last - 1`, with the punctuations at their positions."""
        if stream not in self.streams:
            raise BindError("M2002", f"no stream '{stream}' is generated", hint=did_you_mean(stream, self.streams))
        if not 0 <= first <= last:
            raise ValueError(f"no events {first} … {last - 1}")
        end = self._options.events
        if end is not None:
            first, last = min(first, end), min(last, end)
        keys = self._keys(stream, first, last)
        rows = pl.DataFrame([pl.Series(c.name, c.values(keys)).cast(c.type.polars) for c in self._columns[stream]])
        placed = self._placed(stream, first, last, rows, final=first < last == end)
        return PunctuatedRows(rows, placed.punctuations, placed.positions)

    @abstractmethod
    def event_time(self, number: int) -> int:
        """Return the event time of an event, in microseconds; it never decreases."""

    @abstractmethod
    def _keys(self, stream: str, first: int, last: int) -> Integers:
        """Return the keys of the stream's rows among these events, in order."""

    @abstractmethod
    def _placed(self, stream: str, first: int, last: int, rows: pl.DataFrame, *, final: bool) -> PlacedPunctuations:
        """Return the punctuations, with positions among the rows; `final` if the cut has the last event of all."""
