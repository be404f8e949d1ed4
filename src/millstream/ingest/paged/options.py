"""Options of page sources."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator

from millstream.options import LocalPath, TextOptions

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
"""Seconds of event time per second of wall time; None: as fast as possible."""


class PaceOptions(TextOptions):
    """Options for the pace of reading."""

    max_rows_per_trigger: int = Field(default=1_000_000, ge=1, description="limit of rows in a batch, about")
    speed: Speed = Field(default=None, description="max, or the ratio of event time to real time")


class FileOptions(PaceOptions):
    path: LocalPath = Field(description="a folder, a file, or a pattern such as data/*/bids-*.parquet")
    max_files_per_trigger: int | None = Field(default=None, ge=1, description="limit of files in a batch")
    once: bool = Field(default=False, description="true: the stream ends once all present files are read")


class TextFileOptions(FileOptions):
    prods: bool = Field(default=False, description="true: lines in braces are prods, not rows")


class JsonOptions(TextFileOptions):
    pass


class TableOptions(TextOptions):
    """Options of a table that is read from files."""

    path: LocalPath = Field(description="a file, a folder, or a pattern such as data/*/rates-*.csv")


class CsvShape(TextOptions):
    """How the values of CSV files are written."""

    header: bool = Field(default=True, description="whether the first line of each file names the columns")
    delimiter: str = Field(default=",", description="one character between two values")
    null: str = Field(default="", description="a text that means NULL, as an empty value always does")

    @field_validator("delimiter")
    @classmethod
    def _one_character(cls, value: str) -> str:
        value = "\t" if value.lower() in _TAB else value
        if len(value) != 1 or not value.isascii() or value in '"\r\n':
            raise ValueError("one ASCII character, no quote and no line break, or tab")
        return value


class CsvOptions(TextFileOptions, CsvShape):
    pass


class CsvTableOptions(TableOptions, CsvShape):
    pass
