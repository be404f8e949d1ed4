"""Values from outside as columns of our types: a value that does not fit is reported, never raised.

A value fits if the conversion is lossless. A number becomes any numeric type that can hold it (a float without fraction
an integer), and a TIMESTAMP or an INTERVAL as seconds. Text is read as in a transcript. Everything but nested data can
become VARCHAR. Columns that already have the right type stay untouched.

>>> column = coerce(pl.Series([1.0, 2.5, None]), Type.BIGINT)
>>> column.values.to_list(), column.wrong
([1, None, None], {1: '2.5 is not a value of type BIGINT'})
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from millstream.algebra.types import MICROS, Type, check_unicode, format_value, micros, short
from millstream.ingest.lines import is_null, read
from millstream.runtime.expression.written_times import usual_times

FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799
"""The range of timestamps: the years 1 to 9999."""
_UNITS = {"ms": 1_000, "us": MICROS}
"""In nanoseconds 64 bits do not leave the range."""
_DAY = 86_400
_LONGEST = (1 << 63) - 1

_NATIVE: dict[Type, set[type]] = {
    Type.BOOLEAN: {bool},
    Type.INT: {int},
    Type.BIGINT: {int},
    Type.DOUBLE: {float, int},
    Type.DECIMAL: {float, int},
    Type.VARCHAR: {str},
    Type.DATE: {date},
    Type.INTERVAL: {timedelta},
}
"""The Python types whose values Polars converts as we do."""


class Column(NamedTuple):
    """Values, NULL where one did not fit; `wrong` has the reasons by position."""

    values: pl.Series
    wrong: dict[int, str]


def coerce(values: pl.Series, type_: Type) -> Column:
    """Convert a column of any Polars type."""
    wanted = type_.polars
    if isinstance(values.dtype, pl.Categorical | pl.Enum):
        values = values.cast(pl.String)
    if values.dtype == wanted and in_range(values):
        return Column(values, {})
    if values.dtype == pl.Null:
        return Column(values.cast(wanted), {})
    if not in_range(values):
        return _coerce_inside(values, type_)
    made = _cast(values, type_)
    if made is None:
        return coerce_values(values.to_list(), type_)
    lost = values.is_not_null() & made.is_null()
    if not lost.any():
        return Column(made, {})
    places = lost.arg_true().to_list()
    tried = coerce_values(values.gather(places).to_list(), type_)
    if tried.values.null_count() < len(places):
        made = made.scatter(places, tried.values)
    return Column(made, {places[at]: reason for at, reason in tried.wrong.items()})


def _coerce_inside(values: pl.Series, type_: Type) -> Column:
    """Convert a column of dates, times or durations of which some are out of range."""
    outside = ~inside(values)
    places = outside.arg_true().to_list()
    unit = getattr(values.dtype, "time_unit", "days")
    counts = zip(places, values.to_physical().gather(places), strict=True)
    made = coerce(values.set(outside, None), type_)
    wrong = {at: f"{count} ({unit}) is out of range for {type_.value}" for at, count in counts}
    return Column(made.values, made.wrong | wrong)


def limits(type_: pl.DataType) -> tuple[int, int] | None:
    """The least and the greatest physical value of a Polars type that Python and our types have; None if they have
    all: dates and times of the years 1 to 9999, durations in 64 bits of microseconds."""
    if isinstance(type_, pl.Datetime) and type_.time_unit in _UNITS:
        unit = _UNITS[type_.time_unit]
        return FIRST_SECOND * unit, (LAST_SECOND + 1) * unit - 1
    if type_ == pl.Date:
        return FIRST_SECOND // _DAY, LAST_SECOND // _DAY
    if isinstance(type_, pl.Duration) and type_.time_unit == "ms":
        return -(_LONGEST // 1_000), _LONGEST // 1_000
    return None


def in_range(values: pl.Series) -> bool:
    """Return whether all values of a column, if it has dates, times or durations, lie within the limits."""
    if not values.dtype.is_temporal() or (known := limits(values.dtype)) is None:
        return True
    counts = (values.drop_nulls() if values.null_count() else values).cast(pl.Int64).to_numpy()
    return not len(counts) or bool(counts.min() >= known[0] and counts.max() <= known[1])


def inside(values: pl.Series) -> pl.Series:
    """Return for each value of any type whether it lies within the limits."""
    known = limits(values.dtype)
    if known is None:
        return pl.Series([True]).new_from_index(0, len(values))
    return values.to_physical().is_between(*known).fill_null(True)


def _cast(values: pl.Series, type_: Type) -> pl.Series | None:
    """Cast the whole column; NULL where a value does not fit or may not fit. None if no cast applies."""
    given, wanted = values.dtype, type_.polars
    if isinstance(given, pl.Datetime) and type_ is Type.TIMESTAMP:
        if given.time_zone is not None:
            values = values.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return values.dt.cast_time_unit("us")
    if (given.is_integer() or given == pl.String) and (type_.is_integer or type_ in (Type.DOUBLE, Type.DECIMAL)):
        made = values.cast(wanted, strict=False)
        out_of_range = given == pl.String and not type_.is_integer and made.is_infinite().any()
        return made.set(made.is_infinite().fill_null(False), None) if out_of_range else made
    if given.is_float() and type_.is_integer:
        made = values.cast(wanted, strict=False)
        return made.set((made.cast(pl.Float64) != values.cast(pl.Float64)).fill_null(False), None)
    if given == pl.Float32 and type_ in (Type.DOUBLE, Type.DECIMAL):
        return values.cast(wanted)
    if type_ is Type.REAL and (given.is_integer() or given.is_float()):
        made = values.cast(wanted)
        return made.set(made.is_infinite() & values.cast(pl.Float64).is_finite(), None)
    if type_ is Type.TIMESTAMP and (given.is_integer() or given.is_float()):
        seconds = values.cast(pl.Int64 if given.is_integer() else pl.Float64, strict=False)
        seconds = seconds.set(~seconds.is_between(FIRST_SECOND, LAST_SECOND).fill_null(True), None)
        counts = (seconds * MICROS).round() if given.is_float() else seconds * MICROS
        return counts.cast(pl.Int64).cast(wanted)
    if type_ is Type.TIMESTAMP and given == pl.String:
        return usual_times(values)
    if given.is_decimal() and type_ in (Type.DOUBLE, Type.DECIMAL):
        return values.cast(pl.String).cast(wanted)  # rounded once
    if given == pl.Binary and type_ is Type.VARCHAR:
        try:
            return values.cast(wanted)
        except pl.exceptions.PolarsError:  # some value is not UTF-8
            return None
    if given == pl.Date and type_ is Type.TIMESTAMP:
        return values.cast(wanted)
    if isinstance(given, pl.Duration) and type_ is Type.INTERVAL:
        return values.dt.cast_time_unit("us")
    return None


def coerce_values(values: Sequence[Any], type_: Type) -> Column:
    """Convert Python values: as a whole if all have the right type, else one by one."""
    if set(map(type, values)) <= _NATIVE.get(type_, set()) | {type(None)}:
        try:
            return Column(pl.Series(values, dtype=type_.polars, strict=True), {})
        except (TypeError, OverflowError, UnicodeError, pl.exceptions.PolarsError):
            pass
    made: list[Any] = []
    wrong: dict[int, str] = {}
    for at, value in enumerate(values):
        try:
            made.append(None if value is None or value is np.ma.masked else coerce_value(value, type_))
        except (ValueError, OverflowError, ArithmeticError) as error:
            made.append(None)
            wrong[at] = str(error)
    return Column(pl.Series(made, dtype=type_.polars), wrong)


def coerce_value(value: Any, type_: Type) -> Any:
    """Return a Python value as a value of the type; raise ValueError with a reason if it does not fit."""
    if hasattr(value, "item") and not isinstance(value, pl.Series):
        value = value.item()  # a numpy scalar
    if isinstance(value, str):
        if type_ is Type.VARCHAR:
            return check_unicode(value)
        return None if is_null(value.strip(), type_) else _checked(read(value, type_), type_)
    if isinstance(value, bytes) and type_ is Type.VARCHAR:
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise ValueError(f"{short(str(value))} is not UTF-8") from None
    if isinstance(value, bool):
        fits = type_ in (Type.BOOLEAN, Type.VARCHAR)
    elif isinstance(value, int | float | Decimal):
        fits = type_ is not Type.BOOLEAN and type_ is not Type.DATE
    elif isinstance(value, datetime):
        fits = type_ in (Type.TIMESTAMP, Type.VARCHAR)
    elif isinstance(value, date):
        fits = type_ in (Type.DATE, Type.TIMESTAMP, Type.VARCHAR)
    else:
        fits = isinstance(value, timedelta) and type_ in (Type.INTERVAL, Type.VARCHAR)
    if not fits:
        raise _misfit(value, type_)
    if type_ is Type.VARCHAR:
        return format_value(value)
    return _checked(_convert(value, type_), type_)


def _convert(value: Any, type_: Type) -> Any:
    if type_.is_integer:
        if isinstance(value, int):
            return value
        if not math.isfinite(value) or value != int(value):
            raise _misfit(value, type_)
        return int(value)
    if type_.is_numeric:
        return float(value)
    if type_ is Type.TIMESTAMP:
        if isinstance(value, datetime):
            return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        return datetime.combine(value, time()) if isinstance(value, date) else read(str(value), type_)
    if type_ is Type.INTERVAL and not isinstance(value, timedelta):
        return read(str(value), type_)
    return value


def _checked(value: Any, type_: Type) -> Any:
    """Return the value; raise ValueError if it is out of range for the type."""
    bits = {Type.INT: 31, Type.BIGINT: 63}.get(type_)
    if bits is not None and not -(1 << bits) <= value < 1 << bits:
        raise _out_of_range(value, type_)
    if type_ is Type.REAL:
        try:
            struct.pack("<f", value)  # the native format would overflow to infinity
        except OverflowError:
            raise _out_of_range(value, type_) from None
    if type_ is Type.INTERVAL and abs(micros(value)) > _LONGEST:
        raise _out_of_range(value, type_)
    return value


def _misfit(value: Any, type_: Type) -> ValueError:
    return ValueError(f"{short(format_value(value))} is not a value of type {type_.value}")


def _out_of_range(value: Any, type_: Type) -> ValueError:
    return ValueError(f"{short(format_value(value))} is out of range for {type_.value}")
