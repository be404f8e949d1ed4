"""The types of the language and their representation in a page.

Every type has one Polars type. A TIMESTAMP is a UTC microsecond count, so that time arithmetic is integer arithmetic.
DECIMAL is computed as a 64-bit float; exact decimals are not supported. An INTERVAL is a microsecond count. An array is
a list of values of one type; only ARRAY_AGG makes arrays.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from math import isinf
from typing import Any

import polars as pl

from millstream.algebra.array_text import split_array, write_array
from millstream.algebra.values import value

MICROS = 1_000_000


@value("type")
class Type(Enum):
    BOOLEAN = "BOOLEAN"
    INT = "INT"
    BIGINT = "BIGINT"
    REAL = "REAL"
    DOUBLE = "DOUBLE"
    DECIMAL = "DECIMAL"
    VARCHAR = "VARCHAR"
    TIMESTAMP = "TIMESTAMP"
    DATE = "DATE"
    INTERVAL = "INTERVAL"
    NULL = "NULL"
    BLOB = "BLOB"
    """Only in partial results."""
    BOOLEAN_ARRAY = "BOOLEAN[]"
    INT_ARRAY = "INT[]"
    BIGINT_ARRAY = "BIGINT[]"
    REAL_ARRAY = "REAL[]"
    DOUBLE_ARRAY = "DOUBLE[]"
    DECIMAL_ARRAY = "DECIMAL[]"
    VARCHAR_ARRAY = "VARCHAR[]"
    TIMESTAMP_ARRAY = "TIMESTAMP[]"
    DATE_ARRAY = "DATE[]"
    INTERVAL_ARRAY = "INTERVAL[]"

    @property
    def polars(self) -> pl.DataType:
        return _POLARS[self]

    @property
    def is_integer(self) -> bool:
        return self in (Type.INT, Type.BIGINT)

    @property
    def is_float(self) -> bool:
        return self in (Type.REAL, Type.DOUBLE, Type.DECIMAL)

    @property
    def is_numeric(self) -> bool:
        return self.is_integer or self.is_float

    @property
    def is_array(self) -> bool:
        return self.value.endswith("[]")

    @property
    def array(self) -> Type:
        """The type of arrays of this type, which is not NULL nor an array."""
        return Type(f"{self.value}[]")

    @property
    def element(self) -> Type:
        """The type of the values of an array."""
        return Type(self.value.removesuffix("[]"))


_POLARS: dict[Type, pl.DataType] = {
    Type.BOOLEAN: pl.Boolean(),
    Type.INT: pl.Int32(),
    Type.BIGINT: pl.Int64(),
    Type.REAL: pl.Float32(),
    Type.DOUBLE: pl.Float64(),
    Type.DECIMAL: pl.Float64(),
    Type.VARCHAR: pl.String(),
    Type.TIMESTAMP: pl.Datetime("us"),
    Type.DATE: pl.Date(),
    Type.INTERVAL: pl.Duration("us"),
    Type.NULL: pl.Null(),
    Type.BLOB: pl.Binary(),
}
_POLARS |= {type_: pl.List(_POLARS[type_.element]) for type_ in Type if type_.is_array}
ELEMENTS = tuple(type_.element for type_ in Type if type_.is_array)
"""The types that an array may hold, and a column of a stream may have."""


_BOOLEANS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
BLANKS = " \t\r\n\f\v"
_LONG = 4000
"""Python converts no longer integers from text."""
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE | re.ASCII)
_NAN = re.compile(r"[+-]?nan", re.IGNORECASE)
DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_DATE = re.compile(DATE)
_MOMENT = re.compile(rf"{DATE}([ T][0-9]{{2}}:[0-9]{{2}}(:[0-9]{{2}}(\.[0-9]+)?)?(Z|[+-][0-9]{{2}}(:?[0-9]{{2}})?)?)?")


def parse_value(text: str, type_: Type) -> Any:
    """Parse the written form of a value (quotes already removed); raise ValueError with a reason if it does not fit.

    Digits are ASCII digits, without separators. Timestamps are `YYYY-MM-DD[ HH:MM[:SS[.ffffff]][zone]]` or bare seconds
    since the epoch; the result is naive UTC.

    >>> parse_value("12.5", Type.TIMESTAMP)
    datetime.datetime(1970, 1, 1, 0, 0, 12, 500000)
    >>> parse_value("7", Type.BIGINT)
    7
    >>> parse_value("1_000", Type.BIGINT)
    Traceback (most recent call last):
    ValueError: '1_000' is not a value of type BIGINT
    """
    text = text.strip(BLANKS)
    if type_ is Type.VARCHAR:
        return text
    if type_.is_integer:
        if _INTEGER.fullmatch(text) is None:
            raise _misfit(text, type_)
        bits = 31 if type_ is Type.INT else 63
        value = int(text) if len(text) < _LONG else 1 << bits
        if not -(1 << bits) <= value < 1 << bits:
            raise ValueError(f"{short(text)} is out of range for {type_.value}")
        return value
    if type_.is_float:
        return float(text) if _INFINITE.fullmatch(text) or _NAN.fullmatch(text) else _finite(text, type_)
    if type_ is Type.BOOLEAN:
        if text.lower() not in _BOOLEANS:
            raise ValueError(f"{short(text)!r} is not a BOOLEAN")
        return _BOOLEANS[text.lower()]
    if type_ is Type.TIMESTAMP:
        return parse_timestamp(text)
    if type_ is Type.DATE:
        if _DATE.fullmatch(text) is None:
            raise _misfit(text, type_)
        return date.fromisoformat(text)
    if type_ is Type.INTERVAL:
        return timedelta(seconds=_finite(text, type_))
    if type_.is_array:
        parts = split_array(text)
        return [None if part == "NULL" and not quoted else parse_value(part, type_.element) for part, quoted in parts]
    raise ValueError(f"no values of type {type_.value} can be written")


def parse_timestamp(text: str) -> datetime:
    if _MOMENT.fullmatch(text) is None:
        seconds = _finite(text, Type.TIMESTAMP)
        try:
            return datetime(1970, 1, 1) + timedelta(microseconds=round(seconds * MICROS))
        except OverflowError as error:
            raise ValueError(f"{short(text)} is out of range for TIMESTAMP") from error
    stamp = datetime.fromisoformat(text)
    try:
        return stamp.astimezone(UTC).replace(tzinfo=None) if stamp.tzinfo else stamp
    except OverflowError as error:
        raise ValueError(f"{short(text)} is out of range for TIMESTAMP") from error


def _finite(text: str, type_: Type) -> float:
    if _NUMBER.fullmatch(text) is None and _INFINITE.fullmatch(text) is None:
        raise _misfit(text, type_)
    number = float(text)
    if isinf(number):
        raise ValueError(f"{short(text)} is out of range for {type_.value}")
    return number


def _misfit(text: str, type_: Type) -> ValueError:
    return ValueError(f"{short(text)!r} is not a value of type {type_.value}")


def check_unicode(text: str) -> str:
    """Return a text; raise ValueError if it has half of a surrogate pair, which UTF-8 cannot write."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f"text is not valid Unicode: {escaped(text[error.start])} is half of a surrogate pair"
            ) from None
    return text


def escaped(text: str) -> str:
    r"""Return a text with halves of surrogate pairs written as escapes.

    >>> print(escaped("5 \ud800"))
    5 \ud800
    """
    return text.encode("utf-8", "backslashreplace").decode()


def short(text: str) -> str:
    """Cut a text to a length fit for a message."""
    return text if len(text) <= 80 else f"{text[:77]}..."


def format_value(value: Any) -> str:
    """The written form of a value, as transcripts print it.

    >>> format_value(datetime(2024, 1, 2, 3, 4, 5)), format_value(None), format_value(2.0), format_value(True)
    ('2024-01-02 03:04:05', 'NULL', '2.0', 'true')
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, timedelta):
        return format(value.total_seconds(), "g")
    if isinstance(value, list):
        return write_array(value, format_value)
    return str(value)


def micros(value: datetime | timedelta) -> int:
    """Microseconds since the epoch, or in a duration; exact."""
    delta = value if isinstance(value, timedelta) else value.replace(tzinfo=None) - datetime(1970, 1, 1)
    return delta // timedelta(microseconds=1)
