"""The types of the language and their representation in a page.

Every type has one Polars type. A TIMESTAMP is a UTC microsecond count, so that time arithmetic is integer arithmetic.
DECIMAL is computed as a 64-bit float; exact decimals are not supported. An INTERVAL is a microsecond count.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from enum import Enum
from typing import Any

import polars as pl

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

    @property
    def polars(self) -> pl.DataType:
        return _POLARS[self]

    @property
    def is_integer(self) -> bool:
        return self in (Type.INT, Type.BIGINT)

    @property
    def is_numeric(self) -> bool:
        return self in (Type.INT, Type.BIGINT, Type.REAL, Type.DOUBLE, Type.DECIMAL)


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
}


_BOOLEANS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}


def parse_value(text: str, type_: Type) -> Any:
    """Parse the written form of a value (quotes already removed); raise ValueError with a reason if it does not fit.

    Timestamps are `YYYY-MM-DD[ HH:MM:SS[.ffffff]]` or bare seconds since the epoch; the result is naive UTC.

    >>> parse_value("12.5", Type.TIMESTAMP)
    datetime.datetime(1970, 1, 1, 0, 0, 12, 500000)
    >>> parse_value("7", Type.BIGINT)
    7
    """
    text = text.strip()
    if type_ is Type.VARCHAR:
        return text
    if type_ in (Type.INT, Type.BIGINT):
        value = int(text)
        bits = 31 if type_ is Type.INT else 63
        if not -(1 << bits) <= value < 1 << bits:
            raise ValueError(f"{text} is out of range for {type_.value}")
        return value
    if type_ in (Type.REAL, Type.DOUBLE, Type.DECIMAL):
        return float(text)
    if type_ is Type.BOOLEAN:
        if text.lower() not in _BOOLEANS:
            raise ValueError(f"{text!r} is not a BOOLEAN")
        return _BOOLEANS[text.lower()]
    if type_ is Type.TIMESTAMP:
        return parse_timestamp(text)
    if type_ is Type.DATE:
        return date.fromisoformat(text)
    if type_ is Type.INTERVAL:
        return timedelta(seconds=float(text))
    raise ValueError(f"no values of type {type_.value} can be written")


def parse_timestamp(text: str) -> datetime:
    try:
        return datetime(1970, 1, 1) + timedelta(microseconds=round(float(text) * MICROS))
    except ValueError:
        stamp = datetime.fromisoformat(text)
    except OverflowError as error:
        raise ValueError(f"{text} is out of range for TIMESTAMP") from error
    return stamp.astimezone(UTC).replace(tzinfo=None) if stamp.tzinfo else stamp


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
    return str(value)


def micros(value: datetime | timedelta) -> int:
    """Microseconds since the epoch, or in a duration; exact."""
    delta = value if isinstance(value, timedelta) else value.replace(tzinfo=None) - datetime(1970, 1, 1)
    return delta // timedelta(microseconds=1)
