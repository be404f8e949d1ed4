"""The options of freeway traffic."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from millstream.algebra.types import MICROS, micros, parse_timestamp
from millstream.ingest.generators.options import GeneratorOptions, Length, Moment, Names

Count = Annotated[int, Field(ge=1, le=10_000)]
Share = Annotated[float, Field(ge=0, le=1)]


class TrafficOptions(GeneratorOptions):
    punctuations: ClassVar[frozenset[str]] = frozenset({"time", "segment", "probe"})

    start: Moment = Field(default=micros(parse_timestamp("2010-02-15")), description="event time of the first event")
    punctuation: Names = Field(default=frozenset({"time"}), description="some of time, segment, probe, or none")
    punctuate_every: Length = Field(
        default=60 * MICROS, description="event time between two punctuations of the kind time; at least sensor_period"
    )
    freeways: Count = Field(default=5, description="number of freeways")
    segments: Count = Field(default=10, description="segments of each freeway, a mile long")
    detectors: Count = Field(default=3, description="detectors on each segment")
    sensor_period: Length = Field(default=20 * MICROS, description="event time between two readings of a detector")
    probes: Count = Field(default=50, description="number of probe vehicles")
    probe_period: Length = Field(default=300 * MICROS, description="event time between two readings of a probe")
    congestion: Share = Field(default=0.5, description="highest density of traffic, from 0 (always free) to 1")
    faulty: Share = Field(default=0.0, description="share of detector readings whose speed is -1, evenly spread")
