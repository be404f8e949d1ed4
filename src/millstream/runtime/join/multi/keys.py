"""The shared key index of a multi-join: a number for each key value of the tuples of one step, stored and new.

| | |
|---|---|
| equal keys | have equal numbers, on all inputs |
| one integer key | is its own number, less the lowest key, if keys are close together |
| other keys | are numbered by sorting or hashing all of them once, whatever the number of inputs |
| keys of different types | are compared in a type that holds them all |
| fractions | are compared by their bits: NaN equals NaN, -0.0 equals 0.0 |

No tuple has a NULL key.

>>> frames = [pl.DataFrame({"a.k": [7, 9]}), pl.DataFrame({"b.k": [9, 8]})]
>>> codes, count = KeyIndex([["a.k"], ["b.k"]], [None]).codes(list(enumerate(frames)))
>>> [own.tolist() for own in codes], count
([[0, 2], [2, 1]], 3)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl

from millstream.algebra.arrays import Places
from millstream.algebra.schema import Schema
from millstream.algebra.types import Type
from millstream.runtime.operator.keys import discrete

KEY = "__key"
_ROW = "__row"


class KeyIndex:
    """`columns[i]` lists the key columns of input i, in the same order for all; `types` the types to compare them in,
    where those of the inputs differ."""

    def __init__(self, columns: Sequence[Sequence[str]], types: Sequence[pl.DataType | None]) -> None:
        self.columns, self._types = [list(own) for own in columns], tuple(types)
        self.names = [f"{KEY}{place}" for place in range(len(self._types))]
        """Common names of the keys, for all inputs."""

    def keys(self, side: int, frame: pl.DataFrame) -> list[pl.Series]:
        """Return the keys of tuples of one input, under the common names, by which they can be joined."""
        keys = []
        for name, column, common in zip(self.names, self.columns[side], self._types, strict=True):
            values = frame.get_column(column)
            keys.append(discrete(values if common is None else values.cast(common)).alias(name))
        return keys

    def codes(self, frames: Sequence[tuple[int, pl.DataFrame]]) -> tuple[list[Places], int]:
        """Return the key numbers of the tuples of each frame, given with its input, and an upper limit of them."""
        keys = [self.keys(side, frame) for side, frame in frames]
        ends = np.cumsum([frame.height for _, frame in frames]).tolist()
        if not ends or not ends[-1]:
            return [np.zeros(0, dtype=np.int64) for _ in frames], 0
        if len(self.names) == 1 and all(own[0].dtype.is_integer() for own in keys):
            return _integer_codes([own[0].to_numpy().astype(np.int64, copy=False) for own in keys], ends)
        both = pl.concat([pl.DataFrame(own) for own in keys])
        numbered = both.with_columns(pl.Series(_ROW, np.arange(both.height)))
        first = numbered.select(pl.col(_ROW).first().over(self.names)).to_series().to_numpy()
        return np.split(first, ends[:-1]), both.height


def _integer_codes(keys: list[Places], ends: list[int]) -> tuple[list[Places], int]:
    some = [own for own in keys if len(own)]
    lowest, highest = min(int(own.min()) for own in some), max(int(own.max()) for own in some)
    span = highest - lowest + 1
    if span <= 4 * ends[-1] + 1024:
        return [own - lowest for own in keys], span
    found, codes = np.unique(np.concatenate(keys), return_inverse=True)
    return np.split(codes, ends[:-1]), len(found)


def common_types(output: Schema, equal: Iterable[Sequence[str]]) -> list[pl.DataType | None]:
    """Return for each set of equal columns of the output the type to compare them in, if theirs differ."""
    return [_common([output.type_of(name) for name in names]) for names in equal]


def _common(types: Sequence[Type]) -> pl.DataType | None:
    if len({type_.polars for type_ in types}) == 1:
        return None
    if all(type_.is_integer for type_ in types):
        return pl.Int64()
    if all(type_.is_numeric for type_ in types):
        return pl.Float64()
    return pl.Datetime("us") if {*types} == {Type.DATE, Type.TIMESTAMP} else types[0].polars
