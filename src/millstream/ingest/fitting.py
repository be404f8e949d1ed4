"""Whether the values of a column of some Polars type fit one of our types: known before any value is read.

It agrees with `coerce`: a column that always fits has no value that `coerce` reports, and of one that never fits it
reports all.

>>> fit(pl.Int32(), Type.BIGINT).name, fit(pl.Int64(), Type.INT).name, fit(pl.String(), Type.BIGINT).name
('ALWAYS', 'IN_RANGE', 'PERHAPS')
>>> bounds(pl.Int64(), Type.INT)
(-2147483648, 2147483647)
"""

from __future__ import annotations

from enum import Enum, auto

import polars as pl

from millstream.algebra.types import Type
from millstream.ingest.coerce import limits

_FLOATS = (Type.DOUBLE, Type.DECIMAL, Type.REAL)
_SIGNED: dict[type[pl.DataType], int] = {pl.Int8: 8, pl.Int16: 16, pl.Int32: 32, pl.Int64: 64}
_UNSIGNED: dict[type[pl.DataType], int] = {pl.UInt8: 8, pl.UInt16: 16, pl.UInt32: 32, pl.UInt64: 64}
_BITS = {Type.INT: 32, Type.BIGINT: 64}
_FROM_NUMBERS = {*_FLOATS, *_BITS, Type.VARCHAR, Type.TIMESTAMP, Type.INTERVAL}


class Fit(Enum):
    ALWAYS = auto()
    IN_RANGE = auto()
    """All values fit that lie within `bounds`."""
    PERHAPS = auto()
    NEVER = auto()


def fit(given: pl.DataType, type_: Type) -> Fit:
    if given == pl.Null:
        return Fit.ALWAYS
    if not possible(given, type_):
        return Fit.NEVER
    if bounds(given, type_) is not None:
        return Fit.IN_RANGE
    if given == type_.polars or (type_ is Type.VARCHAR and given != pl.Binary):
        return Fit.ALWAYS
    if isinstance(given, pl.Duration):
        return Fit.ALWAYS
    exact = given.is_integer() or given.is_decimal() or given == pl.Float32
    if type_ in _FLOATS and exact:
        return Fit.ALWAYS
    held = _SIGNED.get(type(given)) or _UNSIGNED.get(type(given), 128) + 1
    return Fit.ALWAYS if type_ in _BITS and given.is_integer() and held <= _BITS[type_] else Fit.PERHAPS


def possible(given: pl.DataType, type_: Type) -> bool:
    """Return whether some value of the Polars type other than NULL may fit."""
    if given == pl.String or isinstance(given, pl.Categorical | pl.Enum):
        return True
    if given.is_numeric():
        return type_ in _FROM_NUMBERS
    if given == pl.Boolean:
        return type_ in (Type.BOOLEAN, Type.VARCHAR)
    if isinstance(given, pl.Datetime):
        return type_ in (Type.TIMESTAMP, Type.VARCHAR)
    if given == pl.Date:
        return type_ in (Type.DATE, Type.TIMESTAMP, Type.VARCHAR)
    if isinstance(given, pl.Duration):
        return type_ in (Type.INTERVAL, Type.VARCHAR)
    return given == pl.Binary and type_ is Type.VARCHAR


def bounds(given: pl.DataType, type_: Type) -> tuple[int, int] | None:
    """The least and the greatest physical value that fits; None unless these decide whether a value fits."""
    if given.is_temporal():
        return limits(given)
    if type_ in _BITS and _SIGNED.get(type(given), 0) > _BITS[type_]:
        highest = 1 << (_BITS[type_] - 1)
        return -highest, highest - 1
    return None
