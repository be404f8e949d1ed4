"""Options of all generators, and the types of their values."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, field_validator

from millstream.algebra.types import MICROS, micros, parse_timestamp
from millstream.errors import SqlSyntaxError
from millstream.options import TextOptions

LAST_TIME = micros(parse_timestamp("9999-12-31"))
"""Event times lie before this time."""
MOST_EVENTS = 1 << 53
HIGHEST_RATE = 100 * MICROS


def _micros_of_duration(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        from millstream.lang.cursor import Cursor  # imported here: workers run without the parser
        from millstream.lang.durations import duration

        cursor = Cursor(value)
        length = duration(cursor, "a duration").micros
        if not cursor.ended or length.denominator != 1 or length < 1:
            raise ValueError("a duration such as '90 seconds', at least a microsecond")
    except SqlSyntaxError as error:
        raise ValueError(error.message) from None
    return int(length)


def _micros_of_time(value: Any) -> Any:
    return micros(parse_timestamp(value.strip())) if isinstance(value, str) else value


def _names(value: Any) -> Any:
    return frozenset(name.strip().lower() for name in value.split(",")) if isinstance(value, str) else value


Length = Annotated[int, BeforeValidator(_micros_of_duration)]
"""A duration in microseconds, written as in the language: '20 seconds', '5 min'."""
Moment = Annotated[int, BeforeValidator(_micros_of_time), Field(ge=0, lt=LAST_TIME)]
"""Microseconds since the epoch, written as a timestamp or as seconds."""
Names = Annotated[frozenset[str], BeforeValidator(_names)]
"""Names, separated by commas."""
Pace = Annotated[int, Field(ge=1, le=HIGHEST_RATE)]
"""Events per second of event time."""


class GeneratorOptions(TextOptions):
    """Options of every generator."""

    punctuations: ClassVar[frozenset[str]] = frozenset({"time"})
    """The kinds of punctuation that the generator can make."""

    events: int | None = Field(
        default=None, ge=1, le=MOST_EVENTS, description="number of events over all streams; default: endless"
    )
    seed: int = Field(default=0, description="seed of the random values")
    start: Moment = Field(default=0, description="event time of the first event")
    columns: Names | None = Field(default=None, description="the columns to make; the time column is always made")
    punctuation: Names = Field(default=frozenset(), description="the kinds of punctuation, or none")
    punctuate_every: Length = Field(default=MICROS, description="event time between two punctuations of the kind time")

    @field_validator("punctuation")
    @classmethod
    def _known_punctuation(cls, value: frozenset[str]) -> frozenset[str]:
        if value - cls.punctuations and value != {"none"}:
            raise ValueError(f"some of {', '.join(sorted(cls.punctuations))}, or none")
        return value - {"none"}
