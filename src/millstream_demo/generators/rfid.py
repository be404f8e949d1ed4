"""RFID readings: tags pass readers, each is read several times at a fixed interval, and some readings have a wrong tag.

In each second of event time the same number of tags arrive, at random times. The key of a row is the number of its tag
times `repeats`, plus the number of the reading; rows are in the order of time, then of keys. A tag is read for less
than `LONGEST`, so the readings of a second come from the tags of that second and of a few seconds before, and the
readings before a second are counted without making them.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
import polars as pl
from pydantic import Field

from millstream.algebra.arrays import Integers
from millstream.algebra.types import MICROS, Type
from millstream.errors import OptionError
from millstream.ingest.generators.base import TIME, Column, Generator
from millstream.ingest.generators.draws import MOST, Draws
from millstream.ingest.generators.options import GeneratorOptions, Length
from millstream.ingest.generators.timeline import bounds_among
from millstream.ingest.paged.generated import Generated
from millstream.ingest.placed_punctuations import PlacedPunctuations

STREAM = "readings"
LONGEST = 60 * MICROS
WRONG = 1 << 40
"""Wrong tags have numbers from here on."""
_PARTS = 1_000_000


class RfidOptions(GeneratorOptions):
    tags: int = Field(default=100, ge=1, le=100_000, description="tags that arrive per second of event time")
    repeats: int = Field(default=10, ge=1, le=1000, description="readings of each tag")
    interval: Length = Field(default=MICROS // 10, description="event time between two readings of a tag")
    noise: float = Field(default=0.05, ge=0, le=1, description="share of readings with a wrong tag")
    readers: int = Field(default=1, ge=1, le=10_000, description="number of readers; a tag passes one of them")


class Rfid(Generator):
    _options: RfidOptions

    def __init__(self, options: RfidOptions) -> None:
        self._arrival = Draws(options.seed, "arrival of a tag")
        self._noise = Draws(options.seed, "noise of a reading")
        self._wrong = Draws(options.seed, "wrong tag")
        self._reader = Draws(options.seed, "reader of a tag")
        self._repeats, self._interval, self._tags = options.repeats, options.interval, options.tags
        length = (options.repeats - 1) * options.interval
        if length > LONGEST:
            hint = "Choose fewer repeats, or a shorter interval."
            raise OptionError("M6002", "a tag cannot be read for more than a minute (repeats * interval)", hint=hint)
        self._before = -(-length // MICROS)  # seconds before, whose tags may still be read
        columns = [
            Column("reader_id", Type.BIGINT, lambda keys: self._reader.below(keys // options.repeats, options.readers)),
            Column("tag_id", Type.BIGINT, self._tag_ids),
            Column("noise", Type.BOOLEAN, lambda keys: pl.Series(self._is_noise(keys))),
            Column(TIME, Type.TIMESTAMP, lambda keys: self._times(keys) + options.start),
        ]
        super().__init__(options, {STREAM: columns})

    def event_time(self, number: int) -> int:
        return int(self._times(self._numbered(number, number + 1))[0]) + self._options.start

    def _keys(self, stream: str, first: int, last: int) -> Integers:  # noqa: ARG002
        return self._numbered(first, last)

    def _placed(self, stream: str, first: int, last: int, rows: pl.DataFrame, *, final: bool) -> PlacedPunctuations:  # noqa: ARG002
        if "time" not in self._options.punctuation:
            return PlacedPunctuations.interleave([])
        times = self._times(self._numbered(max(first - 1, 0), last))
        every, start = self._options.punctuate_every, self._options.start
        return bounds_among(times, start, every, min(first, 1), last - first if final else None)

    # --- columns ----------------------------------------------------------------------------------------------------

    def _tag_ids(self, keys: Integers) -> Integers:
        return np.where(self._is_noise(keys), WRONG + self._wrong.below(keys, MOST), keys // self._repeats + 1)

    def _is_noise(self, keys: Integers) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return np.asarray(self._noise.below(keys, _PARTS) < round(self._options.noise * _PARTS))

    def _times(self, keys: Integers) -> Integers:
        """Return times in microseconds since the start."""
        tags = keys // self._repeats
        return self._arrivals(tags) + (keys - tags * self._repeats) * self._interval

    def _arrivals(self, tags: Integers) -> Integers:
        return tags // self._tags * MICROS + self._arrival.below(tags, MICROS)

    # --- the order of readings --------------------------------------------------------------------------------------

    def _numbered(self, first: int, last: int) -> Integers:
        """Return the keys of the events `first … last - 1`."""
        if first >= last:
            return np.empty(0, dtype=np.int64)
        start, end = self._second(first), self._second(last - 1) + 1
        tags = np.arange(max(start - self._before, 0) * self._tags, end * self._tags, dtype=np.int64)
        keys = np.arange(tags[0] * self._repeats, (tags[-1] + 1) * self._repeats, dtype=np.int64)
        times = self._times(keys)
        inside = np.flatnonzero((times >= start * MICROS) & (times < end * MICROS))
        ordered = keys[inside[np.argsort(times[inside], kind="stable")]]
        skipped = first - self._count(start)
        return ordered[skipped : skipped + last - first]

    def _second(self, event: int) -> int:
        """Return the second of event time in which an event happens."""
        lowest = event // (self._tags * self._repeats)
        seconds = range(lowest, lowest + self._before + 2)
        return seconds[bisect_right(seconds, event, key=self._count) - 1]

    def _count(self, second: int) -> int:
        """Return the number of readings before a second."""
        complete = max(second - self._before, 0)
        tags = np.arange(complete * self._tags, second * self._tags, dtype=np.int64)
        read = -(-(second * MICROS - self._arrivals(tags)) // self._interval)
        return complete * self._tags * self._repeats + int(np.clip(read, 0, self._repeats).sum())


RFID = Generated("rfid", RfidOptions, Rfid)
