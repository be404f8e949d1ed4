"""Numbered rows at a steady rate: `value` counts from 0."""

from __future__ import annotations

import numpy as np
import polars as pl
from pydantic import Field

from millstream.algebra.arrays import Integers
from millstream.algebra.types import Type
from millstream.ingest.generators.base import TIME, Column, Generator
from millstream.ingest.generators.options import GeneratorOptions, Pace
from millstream.ingest.generators.timeline import Timeline
from millstream.ingest.placed_punctuations import PlacedPunctuations

STREAM = "rate"


class RateOptions(GeneratorOptions):
    rate: Pace = Field(default=1, description="rows per second of event time")


class Rate(Generator):
    def __init__(self, options: RateOptions) -> None:
        self._timeline = Timeline(options.start, options.rate)
        columns = [Column("value", Type.BIGINT, np.copy), Column(TIME, Type.TIMESTAMP, self._timeline.times)]
        super().__init__(options, {STREAM: columns})

    def event_time(self, number: int) -> int:
        return self._timeline.time(number)

    def _keys(self, stream: str, first: int, last: int) -> Integers:  # noqa: ARG002
        return np.arange(first, last, dtype=np.int64)

    def _placed(self, stream: str, first: int, last: int, rows: pl.DataFrame, *, final: bool) -> PlacedPunctuations:  # noqa: ARG002
        if "time" not in self._options.punctuation:
            return PlacedPunctuations.interleave([])
        bounds = self._timeline.bounds(first, last, self._options.punctuate_every, final=final)
        return bounds.moved(-first)
