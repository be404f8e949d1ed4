"""What Python code returns, as columns of the declared type. A value that does not fit is an error, never converted
silently: only an integer becomes a fraction, and a shorter number a longer one.

>>> column([1, None, 2], Type.DOUBLE, "f").to_list()
[1.0, None, 2.0]
>>> column([1, "x"], Type.BIGINT, "f")
Traceback (most recent call last):
millstream.errors.CodeError: M6054: f returned 'x', which is not a BIGINT
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from types import NoneType
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from millstream.algebra.ranges import LIMITS
from millstream.algebra.types import Type
from millstream.amounts import amount
from millstream.errors import CodeError

_INTEGERS, _NUMBERS = (int, np.integer), (int, float, np.integer, np.floating)
_ACCEPTED: dict[Type, tuple[type, ...]] = {
    Type.BOOLEAN: (bool, np.bool_),
    Type.INT: _INTEGERS,
    Type.BIGINT: _INTEGERS,
    Type.REAL: _NUMBERS,
    Type.DOUBLE: _NUMBERS,
    Type.DECIMAL: _NUMBERS,
    Type.VARCHAR: (str,),
    Type.TIMESTAMP: (datetime,),
    Type.DATE: (date,),
    Type.INTERVAL: (timedelta,),
}
_EXACT: dict[Type, frozenset[type]] = {
    type_: frozenset({NoneType, *(kind for kind in kinds if not issubclass(kind, np.generic))})
    for type_, kinds in _ACCEPTED.items()
}
"""The types of values that need no look at single values."""
_UNFIT = (TypeError, OverflowError, UnicodeEncodeError, pl.exceptions.PolarsError)


def column(values: Sequence[Any], type_: Type, what: str) -> pl.Series:
    """Return values as a column; raise CodeError if one does not fit the type. `what` names the code."""
    if not _EXACT[type_].issuperset(map(type, values)):
        values = [value if type(value) in _EXACT[type_] else _converted(value, type_, what) for value in values]
    if type_ is Type.TIMESTAMP:
        values = [_naive(value) for value in values]
    dtype = pl.Float64() if type_ is Type.REAL else type_.polars
    try:
        made = pl.Series(values, dtype=dtype, strict=True)
    except _UNFIT:
        for value in values:
            try:
                pl.Series([value], dtype=dtype, strict=True)
            except _UNFIT:
                raise misfit(value, type_, what) from None
        raise
    return whole_column(made, len(made), type_, what)


def fitting(value: Any, type_: Type, what: str) -> Any:
    """Return a value as pages hold it; raise CodeError if it does not fit the type."""
    if value is None:
        return None
    if type(value) not in _EXACT[type_]:
        value = _converted(value, type_, what)
    if type_ is Type.TIMESTAMP:
        return _naive(value)
    if type_.is_integer:
        least, most = LIMITS[type_]
        if not least <= value <= most:
            raise misfit(value, type_, what)
        return value
    as_it_is = type(value) is float if type_ in (Type.DOUBLE, Type.DECIMAL) else type_ in (Type.BOOLEAN, Type.DATE)
    if as_it_is or (type_ is Type.VARCHAR and value.isascii()):
        return value
    return column([value], type_, what)[0]


def whole_column(returned: Any, height: int, type_: Type, what: str) -> pl.Series:
    """Return a column that vectorized code has returned, in its type; raise CodeError if it does not fit."""
    if isinstance(returned, pa.Array | pa.ChunkedArray):
        made = pl.from_arrow(returned)
        returned = made if isinstance(made, pl.Series) else returned
    elif isinstance(returned, np.ndarray) and returned.ndim == 1:
        returned = pl.Series(returned)
    if not isinstance(returned, pl.Series):
        raise CodeError("M6054", f"{what} returned a {type(returned).__name__}, not a column")
    if len(returned) != height:
        raise CodeError("M6054", f"{what} returned {amount(len(returned), 'value')} for {amount(height, 'row')}")
    if returned.dtype == type_.polars:
        return returned.alias("")
    if not _widens(returned.dtype, type_):
        raise CodeError("M6054", f"{what} returned a column of {returned.dtype}, which is not {_article(type_)}")
    made = returned.cast(type_.polars, strict=False).alias("")
    lost = made.is_null() & returned.is_not_null()
    if type_ is Type.REAL:
        lost |= made.is_infinite() & returned.cast(pl.Float64).is_finite()
    if lost.any():
        raise misfit(returned[int(lost.arg_max() or 0)], type_, what)
    return made


def misfit(value: Any, type_: Type, what: str) -> CodeError:
    shown = repr(value)
    shown = shown if len(shown) <= 60 else f"{shown[:60]}…"
    return CodeError("M6054", f"{what} returned {shown}, which is not {_article(type_)}")


def _article(type_: Type) -> str:
    return f"an {type_.value}" if type_.value[0] in "AEIOU" else f"a {type_.value}"


def _converted(value: Any, type_: Type, what: str) -> Any:
    if not isinstance(value, _ACCEPTED[type_]) or (isinstance(value, bool) and type_ is not Type.BOOLEAN):
        raise misfit(value, type_, what)
    if type_ is Type.DATE and isinstance(value, datetime):
        raise misfit(value, type_, what)
    return value.item() if isinstance(value, np.generic) else value


def _naive(value: datetime | None) -> datetime | None:
    """The time as pages have it: UTC, without a zone."""
    return value.astimezone(UTC).replace(tzinfo=None) if value is not None and value.tzinfo else value


def _widens(given: pl.DataType, wanted: Type) -> bool:
    """Return whether a column may be converted: no value of its type can lose anything but its range."""
    if given == pl.Null:
        return True
    if wanted.is_integer:
        return given.is_integer()
    if wanted.is_numeric:
        return given.is_integer() or given.is_float()
    if wanted is Type.TIMESTAMP:
        return isinstance(given, pl.Datetime) and given.time_zone in (None, "UTC")
    if wanted is Type.INTERVAL:
        return isinstance(given, pl.Duration)
    return wanted is Type.VARCHAR and given in (pl.Categorical, pl.Enum)
