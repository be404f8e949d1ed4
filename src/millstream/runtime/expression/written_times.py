"""Columns of written timestamps, read as a whole: `YYYY-MM-DD HH:MM:SS`, with a fraction or without, at once, and all
other forms that `parse_timestamp` takes.

Polars and Python read these forms alike, but Polars also accepts others (`2024-1-2 3:4:5`, `23:59:60`), so each text is
checked first. If all texts have the same length, which is the rule, their bytes are computed with directly.

>>> usual_times(pl.Series(["2024-01-02 03:04:05", "2024-1-2 3:4:5"])).to_list()
[datetime.datetime(2024, 1, 2, 3, 4, 5), None]
"""

from __future__ import annotations

import numpy as np
import polars as pl

from millstream.algebra.arrays import Integers
from millstream.algebra.ranges import LIMITS
from millstream.algebra.types import DATE, MICROS, Type

_DIGITS = (0, 1, 2, 3, 5, 6, 8, 9, 11, 12, 14, 15, 17, 18)
"""The places of the digits in a timestamp without a fraction."""
_WHOLE = 19
"""The length of such a timestamp."""
_DAY = 86_400 * MICROS
_CLOCK = r"([0-9]{2}:[0-9]{2})(?::([0-5][0-9])(?:\.([0-9]+))?)?"
_ZONE = r"(?:Z|([+-][0-9]{2})(?::?([0-9]{2}))?)?"
_MOMENT = f"^({DATE})(?:[ T]{_CLOCK}{_ZONE})?$"
"""A written time, as `parse_timestamp` takes it: its date, hour and minute, second, fraction, and offset."""
_MINUTES = 24 * 60


def usual_times(texts: pl.Series, separator: str = " ", zone: str = "") -> pl.Series:
    """Return timestamps with this separator and zone; NULL where the text has another form or is no time."""
    if (even := _even(texts, separator, zone)) is not None:
        return even.alias(texts.name)
    usual = texts.str.contains(rf"^{DATE}{separator}[0-2][0-9]:[0-5][0-9]:[0-5][0-9](\.[0-9]+)?{zone}$")
    texts = texts if usual.all() else texts.set(~usual, None)
    times = texts.str.to_datetime(f"%Y-%m-%d{separator}%H:%M:%S%.f{zone}", time_unit="us", strict=False)
    ours = times.dt.year().is_between(1, 9999).fill_null(True)
    return times if ours.all() else times.set(~ours, None)


def written_times(texts: pl.Series) -> pl.Series:
    """Return written times in UTC; NULL where the text is none."""
    times = usual_times(texts)
    other = times.is_null() & texts.is_not_null()
    return times.scatter(other.arg_true(), _moments(texts.filter(other))) if other.any() else times


def _moments(texts: pl.Series) -> pl.Series:
    parts = pl.col("text").str.extract_groups(_MOMENT)
    date, time, second, fraction, hours, minutes = (parts.struct.field(str(number)) for number in range(1, 7))
    whole = pl.concat_str(date, pl.lit(" "), time.fill_null("00:00"), pl.lit(":"), second.fill_null("00"))
    read = whole.str.to_datetime("%Y-%m-%d %H:%M:%S", time_unit="us", strict=False).cast(pl.Int64)
    micros = fraction.fill_null("0").str.slice(0, 6).str.pad_end(6, "0").cast(pl.Int64)
    east = hours.cast(pl.Int64).abs() * 60 + minutes.fill_null("0").cast(pl.Int64)
    sign = pl.when(hours.str.starts_with("-")).then(-1).otherwise(1)
    offset = pl.when(hours.is_null()).then(0).when(east < _MINUTES).then(sign * east)
    count = read + micros - offset * 60 * MICROS
    inside = pl.when(count.is_between(*LIMITS[Type.TIMESTAMP])).then(count)
    return texts.alias("text").to_frame().select(inside.cast(Type.TIMESTAMP.polars)).to_series()


def _even(texts: pl.Series, separator: str, zone: str) -> pl.Series | None:
    """Return the timestamps; None unless all texts have the same length and are times of the form."""
    lengths = texts.str.len_bytes()
    length, fraction = lengths.min(), 0
    if texts.null_count() or not isinstance(length, int) or length != lengths.max():
        return None
    if length != _WHOLE + len(zone):
        fraction = length - len(zone) - _WHOLE - 1
        if not 0 < fraction <= 6:
            return None
    held = texts.to_arrow(compat_level=pl.CompatLevel.oldest())
    offsets, data = (np.frombuffer(buffer, dtype) for buffer, dtype in zip(held.buffers()[1:], "lB", strict=True))
    start = int(offsets[held.offset])
    columns = np.ascontiguousarray(data[start : start + length * len(texts)].reshape(-1, length).T)
    places = (*_DIGITS, *range(_WHOLE + 1, _WHOLE + 1 + fraction))
    marks = {4: "-", 7: "-", 10: separator, 13: ":", 16: ":", **({_WHOLE: "."} if fraction else {})}
    marks |= {length - len(zone) + at: mark for at, mark in enumerate(zone)}
    if any((columns[place] != ord(mark)).any() for place, mark in marks.items()):
        return None
    digits = columns[list(places)] - ord("0")
    return None if (digits > 9).any() else _computed(digits.astype(np.int64), fraction)


def _computed(digits: Integers, fraction: int) -> pl.Series | None:
    """Return the timestamps of these digits, place by place; None if one is no time."""

    def number(first: int, last: int) -> Integers:
        made: Integers = digits[first]
        for place in range(first + 1, last):
            made = made * 10 + digits[place]
        return made

    year, month, day = number(0, 4), number(4, 6), number(6, 8)
    hour, minute, second = number(8, 10), number(10, 12), number(12, 14)
    if (year < 1).any() or (month < 1).any() or (month > 12).any() or (day < 1).any():
        return None
    if (hour > 23).any() or (minute > 59).any() or (second > 59).any():
        return None
    months = (year - 1970) * 12 + month - 1
    first_days, next_days = (at.astype("M8[M]").astype("M8[D]").astype(np.int64) for at in (months, months + 1))
    if (day > next_days - first_days).any():
        return None
    micros = ((hour * 60 + minute) * 60 + second) * MICROS
    if fraction:
        micros += number(14, 14 + fraction) * 10 ** (6 - fraction)
    return pl.Series((first_days + day - 1) * _DAY + micros, dtype=pl.Int64).cast(pl.Datetime("us"))
