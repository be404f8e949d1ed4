"""A time of the hidden timestamp as a value of a time column.

>>> time_value(5, Type.BIGINT), time_value(1_000_000, Type.TIMESTAMP)
(5, datetime.datetime(1970, 1, 1, 0, 0, 1))
"""

from __future__ import annotations

from datetime import datetime, timedelta

from millstream.algebra.types import Type

_EPOCH = datetime(1970, 1, 1)


def time_value(time: int, type_: Type) -> int | datetime | None:
    """Return the value; None if the type has none."""
    if type_.is_integer:
        return time
    try:
        return _EPOCH + timedelta(microseconds=time) if type_ is Type.TIMESTAMP else None
    except OverflowError:
        return None
