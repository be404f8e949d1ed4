"""CAST: a column of one type as a column of another.

A value that cannot be converted becomes NULL: a continuous query must not stop for one bad value. Numbers are truncated
towards zero. A TIMESTAMP as a number, and back, is seconds since the epoch. Text is read and written in the form of
transcripts; a text is a time in all forms that input takes, and a DATE is that of such a time.

>>> import polars as pl
>>> frame = pl.DataFrame({"x": ["7", "seven", None]})
>>> frame.select(convert(pl.col("x"), Type.VARCHAR, Type.BIGINT)).to_series().to_list()
[7, None, None]
"""

from __future__ import annotations

import polars as pl

from millstream.algebra.array_text import PLAIN
from millstream.algebra.ranges import LIMITS
from millstream.algebra.types import BLANKS, MICROS, Type
from millstream.runtime.expression.exact import quotient
from millstream.runtime.expression.written_times import written_times

_TRUE, _FALSE = ("true", "t", "1"), ("false", "f", "0")


def convert(value: pl.Expr, source: Type, target: Type) -> pl.Expr:
    """Return the value as the target type, unchanged if pages represent both types alike."""
    if source.polars == target.polars:
        return value
    if source is Type.VARCHAR:
        return _from_text(value, target)
    if target is Type.VARCHAR:
        return _to_text(value, source)
    if source.is_numeric and target in (Type.TIMESTAMP, Type.INTERVAL):
        count = (value.cast(pl.Float64) * MICROS).round(0).cast(pl.Int64, strict=False)
        return pl.when(count.is_between(*LIMITS[target])).then(count).cast(target.polars)
    if target is Type.REAL and source in (Type.DOUBLE, Type.DECIMAL):
        short = value.cast(pl.Float32)
        return pl.when(short.is_finite() | ~value.is_finite()).then(short)
    if source in (Type.TIMESTAMP, Type.INTERVAL) and target.is_numeric:
        seconds = (
            value.cast(pl.Int64) // MICROS if target.is_integer else quotient(value.cast(pl.Int64), pl.lit(MICROS))
        )
        return seconds.cast(target.polars, strict=False)
    return value.cast(target.polars, strict=False)


def _from_text(text: pl.Expr, target: Type) -> pl.Expr:
    text = text.str.strip_chars(BLANKS)
    if target is Type.BOOLEAN:
        word = text.str.to_lowercase()
        return pl.when(word.is_in(_TRUE)).then(True).when(word.is_in(_FALSE)).then(False)
    if target is Type.TIMESTAMP:
        seconds = convert(text.cast(pl.Float64, strict=False), Type.DOUBLE, Type.TIMESTAMP)
        return pl.coalesce(_time(text), seconds)
    if target is Type.DATE:
        return _time(text).cast(pl.Date)
    if target is Type.INTERVAL:
        return convert(text.cast(pl.Float64, strict=False), Type.DOUBLE, Type.INTERVAL)
    if target.is_integer:
        # "2.7" is a number too and is truncated like any other.
        whole = text.cast(pl.Int64, strict=False)
        return pl.coalesce(whole, text.cast(pl.Float64, strict=False).cast(pl.Int64, strict=False)).cast(
            target.polars, strict=False
        )
    return text.cast(target.polars, strict=False)


def _time(text: pl.Expr) -> pl.Expr:
    return pl.map_batches([text], lambda texts: written_times(texts[0]), Type.TIMESTAMP.polars, is_elementwise=True)


def _to_text(value: pl.Expr, source: Type) -> pl.Expr:
    if source is Type.TIMESTAMP:
        whole = value.dt.microsecond() == 0
        return (
            pl.when(whole)
            .then(value.dt.to_string("%Y-%m-%d %H:%M:%S"))
            .otherwise(value.dt.to_string("%Y-%m-%d %H:%M:%S%.6f"))
        )
    if source is Type.INTERVAL:
        return quotient(value.cast(pl.Int64), pl.lit(MICROS)).cast(pl.String)
    if source.is_array:
        items = value.list.eval(_item_text(pl.element(), source.element).fill_null("NULL"))
        return pl.when(value.is_not_null()).then(pl.concat_str(pl.lit("["), items.list.join(", "), pl.lit("]")))
    return value.cast(pl.String)


def _item_text(item: pl.Expr, type_: Type) -> pl.Expr:
    """Return an item of an array as text, in quotes if it would be read differently without them."""
    text = convert(item, type_, Type.VARCHAR)
    if type_ is not Type.VARCHAR:
        return text
    plain = text.str.contains(rf"^(?:{PLAIN})$") & (text.str.to_uppercase() != "NULL")
    return pl.when(plain).then(text).otherwise("'" + text.str.replace_all("'", "''", literal=True) + "'")
