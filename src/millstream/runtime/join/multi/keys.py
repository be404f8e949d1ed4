"""The shared key index of an n-way join: for the tuples of one step, stored and new, one number for each key value.

| | |
|---|---|
| equal keys | have equal numbers, on whatever input they are |
| one integer key | is its own number, if keys lie close together |
| other keys | are numbered by sorting or hashing all of them once, whatever the number of inputs |
| keys of different types | are compared in a type that holds them all |

Tuples with a NULL key are not asked about.

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

KEY = "__key"
_ROW = "__row"


class KeyIndex:
    """`columns[i]` are the key columns of input i, in the same order for all; `types` those to compare them in, where
    the inputs' differ."""

    def __init__(self, columns: Sequence[Sequence[str]], types: Sequence[pl.DataType | None]) -> None:
        self.columns, self._types = [list(own) for own in columns], tuple(types)
        self.names = [f"{KEY}{place}" for place in range(len(self._types))]
        """What keys are called where it does not matter whose they are."""

    def keys(self, side: int, frame: pl.DataFrame) -> list[pl.Series]:
        """The keys of some tuples of one input, under the common names."""
        made = []
        for name, column, common in zip(self.names, self.columns[side], self._types, strict=True):
            values = frame.get_column(column)
            made.append((values if common is None else values.cast(common)).alias(name))
        return made

    def codes(self, frames: Sequence[tuple[int, pl.DataFrame]]) -> tuple[list[Places], int]:
        """For each frame, given with its input, the numbers of its tuples' keys; and how many numbers there may be."""
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
    """For columns of the output that are equal, the type in which they are compared if theirs differ."""
    return [_common([output.type_of(name) for name in names]) for names in equal]


def _common(types: Sequence[Type]) -> pl.DataType | None:
    if len({type_.polars for type_ in types}) == 1:
        return None
    if all(type_.is_integer for type_ in types):
        return pl.Int64()
    if all(type_.is_numeric for type_ in types):
        return pl.Float64()
    return pl.Datetime("us") if {*types} == {Type.DATE, Type.TIMESTAMP} else types[0].polars
