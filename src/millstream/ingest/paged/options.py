"""The options of page sources."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator

from millstream.options import TextOptions

FASTEST = "max"
_TAB = ("\\t", "tab")


def _speed(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if value.strip().lower() == FASTEST:
        return None
    try:
        speed = Fraction(value.strip().lower().removesuffix("x"))
    except (ValueError, ZeroDivisionError):
        raise ValueError("max, or a number such as 1, 0.5 or 100") from None
    if not 0 < speed <= 10**9:
        raise ValueError("a number above 0, at most 1000000000")
    return speed


Speed = Annotated[Fraction | None, BeforeValidator(_speed)]
"""How many seconds of event time pass in a second; None is as fast as can be."""


class PaceOptions(TextOptions):
    """How fast a source is read; a doc line each."""

    max_rows_per_trigger: int = Field(default=1_000_000, ge=1, description="at most about so many rows in a batch")
    speed: Speed = Field(default=None, description="max, or how many times as fast as real time event time passes")


class FileOptions(PaceOptions):
    path: str = Field(description="a folder, a file, or a pattern such as data/*/bids-*.parquet")
    max_files_per_trigger: int | None = Field(default=None, ge=1, description="at most so many files in a batch")
    once: bool = Field(default=False, description="true: the stream ends when all that is there has been read")


class CsvOptions(FileOptions):
    header: bool = Field(default=True, description="whether the first line of each file names the columns")
    delimiter: str = Field(default=",", description="one character between two values")
    null: str = Field(default="", description="the text that stands for NULL, beside nothing at all")

    @field_validator("delimiter")
    @classmethod
    def _one_character(cls, value: str) -> str:
        value = "\t" if value.lower() in _TAB else value
        if len(value) != 1 or not value.isascii() or value in '"\r\n':
            raise ValueError("one ASCII character, no quote and no line break, or tab")
        return value
