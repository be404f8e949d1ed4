"""Keys of tuples in one normal form: NaN equals NaN, and -0.0 equals 0.0, in a join as in a comparison.

| | |
|---|---|
| `normal` | floats with one NaN and one zero, as a group prints them |
| `discrete` | the bits of these as integers, by which frames are joined |
| `joined` | a join of two frames; a key that both have is the left's own value |
| `numbers` | the rows without NaN, which no punctuation matches |

Polars joins columns that it knows to be in order, and a single row always is, by a merge in which NaN is unequal to
itself. Integers have no such value. Polars' grouping, distinct rows and hashes take floats in their normal form.

>>> own = pl.DataFrame({"k": [-0.0], "v": [1]}), pl.DataFrame({"k": [float("nan")], "v": [2]})
>>> [joined(each, each, ["k", "v"], "semi").rows() for each in own]
[[(-0.0, 1)], [(nan, 2)]]
>>> normal(pl.Series([-0.0, 0.0])).to_list(), discrete(pl.Series([-0.0, None, 0.0])).to_list()
([0.0, 0.0], [0, None, 0])
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

How = Literal["inner", "left", "semi", "anti"]


def normal(column: pl.Series) -> pl.Series:
    """Return the column with floats in their normal form."""
    return _with_nulls(column, _normal(column)) if column.dtype.is_float() else column


def discrete(column: pl.Series) -> pl.Series:
    """Return the bits of floats in their normal form, or a column of another type as it is."""
    if not column.dtype.is_float():
        return column
    return _with_nulls(column, _normal(column.cast(pl.Float64)).view(np.int64))


def _normal(column: pl.Series) -> npt.NDArray[np.floating]:
    known = column.fill_null(0.0) if column.null_count() else column
    values: npt.NDArray[np.floating] = known.to_numpy() + 0.0  # Polars would leave -0.0 as it is
    values[np.isnan(values)] = math.nan
    return values


def _with_nulls(column: pl.Series, values: npt.NDArray[np.generic]) -> pl.Series:
    made = pl.Series(column.name, values)
    return made.set(column.is_null(), None) if column.null_count() else made


def normalized(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Return the frame with these columns in their normal form; the same frame if none has floats."""
    floats = _floats(frame, names)
    return frame.with_columns(map(normal, floats)) if floats else frame


def numbers(frame: pl.DataFrame) -> pl.Series:
    """Return the mask of the rows without NaN in any column."""
    nan = [column.is_nan().fill_null(False) for column in _floats(frame, frame.columns)]
    return ~reduce(or_, nan, pl.repeat(False, frame.height, eager=True))


def joined(left: pl.DataFrame, right: pl.DataFrame, keys: Sequence[str], how: How) -> pl.DataFrame:
    """Join by columns that both have, where NULL equals NULL, in the order of the left and then of the right."""
    order: Literal["left_right", "left"] = "left_right" if how == "inner" else "left"
    floats = _floats(left, keys)
    if not floats:
        return left.join(right, on=keys, how=how, nulls_equal=True, maintain_order=order)
    names = [column.name for column in floats]
    bits = [f"__bits_{name}" for name in names]

    def with_bits(frame: pl.DataFrame) -> pl.DataFrame:
        made = [discrete(frame.get_column(name)).alias(new) for name, new in zip(names, bits, strict=True)]
        return frame.hstack(made)

    on = [*(key for key in keys if key not in names), *bits]
    found = with_bits(left).join(with_bits(right).drop(names), on=on, how=how, nulls_equal=True, maintain_order=order)
    return found.drop(bits)


def _floats(frame: pl.DataFrame, names: Sequence[str]) -> list[pl.Series]:
    return [column for column in map(frame.get_column, names) if column.dtype.is_float()]
