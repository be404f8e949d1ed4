"""Numbers for the partitions of tuples, and tuples arranged by partition.

NULL is a partition of its own, and so is NaN.

>>> numbered(pl.DataFrame({"k": [7, None, 7]}), ["k"]).tolist()
[0, 1, 0]
>>> numbered(pl.DataFrame({"k": [0.0, -0.0, float("nan"), -float("nan")]}), ["k"]).tolist()
[0, 0, 1, 1]
>>> known = Partitions(["k"], {"k": pl.Int64()})
>>> known.codes(pl.DataFrame({"k": [7, 9]})).tolist(), known.codes(pl.DataFrame({"k": [8, 7]})).tolist()
([0, 1], [2, 0])
>>> known = Partitions(["k"], {"k": pl.Int64()})
>>> known.codes(pl.DataFrame({"k": [None, 7, 9]})).tolist(), known.keep(np.array([True, False, True]))
([0, 1, 2], None)
>>> known.codes(pl.DataFrame({"k": [9, None]})).tolist()
[1, 0]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from millstream.algebra.arrays import Mask, Places
from millstream.runtime.operator.frames import pick, stack, where
from millstream.runtime.operator.keys import discrete
from millstream.runtime.over.scans import Values, lengths_of

CODE = "__code"
_ROW = "__row"
SPARE = 1 << 16
"""Entries of a look-up array that are worth their memory, however few the keys."""


def keys_of(frame: pl.DataFrame, names: Sequence[str]) -> list[pl.Series]:
    """Return the key columns as integers or texts that are equal if and only if the keys are."""
    return [_discrete(frame.get_column(name)) for name in names]


def _discrete(column: pl.Series) -> pl.Series:
    return column if column.dtype == pl.String else discrete(column).cast(pl.Int64)


def numbered(frame: pl.DataFrame, names: Sequence[str]) -> Places:
    """Return a number from 0 for each tuple, the same for tuples of one partition, in the order of first occurrence."""
    if not names:
        return np.zeros(frame.height, dtype=np.int64)
    return Partitions(names, {name: frame.schema[name] for name in names}).codes(frame)


def places_of_firsts(values: Places, among: Mask) -> Places:
    """Return where each of the values among these occurs first, in order."""
    chosen = np.flatnonzero(among)
    return chosen[np.sort(np.unique(values[chosen], return_index=True)[1])]


class Partitions:
    """The partitions known so far, numbered from 0."""

    def __init__(self, names: Sequence[str], schema: Mapping[str, pl.DataType]) -> None:
        self._names = list(names)
        self._keys = pl.DataFrame(schema={name: schema[name] for name in names})
        self._one = len(self._names) == 1 and self._keys.dtypes[0] != pl.String
        self._low, self._table = 0, np.full(0, -1, dtype=np.int64)
        """For one key of integers that are close together: the code of each, from the lowest on."""
        self._null = -1
        self.count = 0 if names else 1

    @property
    def keys(self) -> pl.DataFrame:
        """The keys of all partitions, in the order of their numbers."""
        return self._keys

    def codes(self, frame: pl.DataFrame) -> Places:
        """Return the number of the partition of each tuple; new partitions get the next numbers."""
        if not self._names:
            return np.zeros(frame.height, dtype=np.int64)
        if self._one and (found := self._integer_codes(frame)) is not None:
            return found
        return self._joined_codes(frame)

    def keep(self, mask: Mask) -> None:
        """Keep only the partitions where the mask is true, and number them anew, in their order."""
        keys = where(self._keys, mask) if self._names else self._keys
        self.__init__(self._names, self._keys.schema)  # type: ignore[misc]
        if keys.height:
            self.codes(keys)

    # --- one key of integers ------------------------------------------------------------------------------------------

    def _integer_codes(self, frame: pl.DataFrame) -> Places | None:
        """Return the codes by an array look-up; None if the keys are too far apart."""
        column = _discrete(frame.get_column(self._names[0]))
        absent = column.is_null().to_numpy() if column.null_count() else None
        values = (column if absent is None else column.drop_nulls()).to_numpy()
        if len(values) and not self._cover(int(values.min()), int(values.max())):
            return None
        found = self._table[values - self._low]
        firsts = places_of_firsts(values, found < 0)
        if absent is not None:
            firsts = np.flatnonzero(~absent)[firsts]
            if self._null < 0:
                firsts = np.sort(np.append(firsts, np.argmax(absent)))
        if len(firsts):
            self._number(column, firsts)
            self._add(frame, firsts)
            found = self._table[values - self._low]
        if absent is None:
            return np.asarray(found)
        codes = np.full(frame.height, self._null, dtype=np.int64)
        codes[~absent] = found
        return codes

    def _number(self, column: pl.Series, places: Places) -> None:
        """Give the keys at these places the next numbers, in their order; NULL too."""
        for at in np.flatnonzero(column.gather(places).is_null().to_numpy()):
            self._null = self.count + int(at)
        numbers = self.count + np.arange(len(places))
        known = numbers != self._null
        self._table[column.gather(places[known]).to_numpy() - self._low] = numbers[known]

    def _cover(self, low: int, high: int) -> bool:
        """Extend the look-up array to these values; return whether it is worth it."""
        if len(self._table):
            low, high = min(low, self._low), max(high, self._low + len(self._table) - 1)
        span = high - low + 1
        if span == len(self._table):
            return True
        if span > 8 * (self.count + 1) + SPARE:
            return False
        if not len(self._table) and self.count:
            return False  # the keys were joined before
        grown = np.full(span, -1, dtype=np.int64)
        start = self._low - low if len(self._table) else 0
        grown[start : start + len(self._table)] = self._table
        self._low, self._table = low, grown
        return True

    def _add(self, frame: pl.DataFrame, places: Places) -> None:
        new = pick(frame, self._names)[places]
        self._keys = stack([self._keys, new]) if self._keys.height else new
        self.count = self._keys.height

    # --- any keys -----------------------------------------------------------------------------------------------------

    def _joined_codes(self, frame: pl.DataFrame) -> Places:
        self._one, self._table = False, self._table[:0]
        keys = pl.DataFrame(keys_of(frame, self._names))
        distinct = keys.with_columns(pl.Series(_ROW, np.arange(keys.height))).unique(
            self._names, keep="first", maintain_order=True
        )
        known = pl.DataFrame([*keys_of(self._keys, self._names), pl.Series(CODE, np.arange(self.count))])
        found = distinct.join(known, on=self._names, how="left", nulls_equal=True, maintain_order="left")
        codes = found.get_column(CODE).fill_null(-1).to_numpy().copy()
        fresh = codes < 0
        codes[fresh] = self.count + np.arange(int(fresh.sum()))
        if fresh.any():
            self._add(frame, found.get_column(_ROW).to_numpy()[fresh])
        coded = found.select(self._names).with_columns(pl.Series(CODE, codes))
        joined = keys.join(coded, on=self._names, how="left", nulls_equal=True, maintain_order="left")
        return joined.get_column(CODE).to_numpy()


@dataclass(frozen=True, slots=True)
class Arranged:
    """Tuples by partition, in their order within it. `order`: the places of the tuples; `starts` and `lengths`: where
    partitions start, and their numbers of tuples; `start_of`: the start of each tuple's partition."""

    order: Places
    starts: Places
    lengths: Places
    start_of: Places

    @classmethod
    def by(cls, codes: Places) -> Arranged:
        size = len(codes)
        highest = int(codes.max(initial=0))
        if not highest:
            some = min(size, 1)
            starts, lengths = np.zeros(some, dtype=np.int64), np.full(some, size, dtype=np.int64)
            return cls(np.arange(size), starts, lengths, np.zeros(size, dtype=np.int64))
        # Integers of 16 bits are sorted by their digits.
        order = np.argsort(codes.astype(np.uint16) if highest < 1 << 16 else codes, kind="stable")
        sorted_codes = codes[order]
        changes = np.ones(size, dtype=np.bool_)
        np.not_equal(sorted_codes[1:], sorted_codes[:-1], out=changes[1:])
        starts = np.flatnonzero(changes)
        lengths = lengths_of(starts, size)
        return cls(order, starts, lengths, np.repeat(starts, lengths))

    @property
    def firsts(self) -> Places:
        """The place of the first tuple of each partition."""
        return self.order[self.starts]

    @property
    def last(self) -> Places:
        """Where the last tuple of each partition is in this order."""
        return self.starts + self.lengths - 1

    def each(self, of_partition: Values) -> Values:
        """Return the value of its partition for each tuple, in this order."""
        return np.repeat(of_partition, self.lengths)

    def positions(self, before: Places) -> Places:
        """Return the number of each tuple in its partition, whose next number was `before`, in this order."""
        return np.asarray(np.arange(len(self.order)) + self.each(before - self.starts))

    def left(self) -> Places:
        """Return the number of tuples of its partition from each tuple on, in this order."""
        return np.asarray(self.each(self.starts + self.lengths) - np.arange(len(self.order)))

    def ends(self, values: Values) -> Mask:
        """Return which tuples are the last ones of their partition and value, where equal values are together."""
        ends = np.ones(len(self.order), dtype=np.bool_)
        ends[:-1] = values[1:] != values[:-1]
        ends[self.last] = True
        return ends

    def placed(self, values: Values) -> Values:
        """Return values in this order by the places of their tuples."""
        made = np.empty_like(values)
        made[self.order] = values
        return made
