"""Punctuations with their positions among tuples: position p is the place after the first p tuples.

Most streams carry only bounds on the time attribute; `keys` turns them into plain integers. The key of `< v` is 2v and
that of `<= v` is 2v + 1: keys order bounds by strength, and a tuple of time t matches a bound iff 2t is below its key.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from millstream.algebra.arrays import Integers, Mask
from millstream.algebra.punctuation.group import Group
from millstream.algebra.punctuation.grouping import Parts
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import NEVER
from millstream.algebra.values import record
from millstream.runtime.operator.keys import numbers

TIME_LIMIT = 1 << 61
"""Times lie strictly between minus and plus this limit, so that keys and window ends fit into 64 bits."""
NO_KEY = -(1 << 63)


@record("marks")
class PlacedPunctuations:
    """Punctuations in order, with ascending positions."""

    punctuations: Punctuations
    positions: Integers

    @classmethod
    def at(cls, position: int, punctuations: Punctuations) -> PlacedPunctuations:
        return cls(punctuations, np.full(len(punctuations), position, dtype=np.int64))

    @classmethod
    def equalities(cls, rows: pl.DataFrame, positions: Integers) -> PlacedPunctuations:
        """Return `[k = v, …]` with the values of each row; NaN, which no punctuation matches, yields none."""
        if not (known := numbers(rows)).all():
            rows, positions = rows.filter(known), positions[known.to_numpy()]
        group = Group.of({name: ("=", rows.get_column(name)) for name in rows.columns}, np.arange(rows.height))
        parts = Parts((group,) if rows.height else (), ())
        return cls(Punctuations(rows.height, NEVER, parts=parts), positions)

    @classmethod
    def below(cls, name: str, bounds: pl.Series, positions: Integers) -> PlacedPunctuations:
        """Return `[name < bound]` for each bound."""
        return cls(Punctuations.from_column(name, "<", bounds), positions)

    @classmethod
    def interleave(cls, parts: Sequence[PlacedPunctuations]) -> PlacedPunctuations:
        """Merge by position; at one position the punctuations of earlier parts precede those of later parts."""
        parts = [part for part in parts if len(part)]
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls(Punctuations.of(()), np.empty(0, dtype=np.int64))
        positions = np.concatenate([part.positions for part in parts])
        order = np.argsort(positions, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        starts = np.cumsum([0, *map(len, parts)])
        ranked = [
            (part.punctuations, rank[start:end])
            for part, start, end in zip(parts, starts[:-1], starts[1:], strict=True)
        ]
        merged = Punctuations.merge(ranked, NEVER)
        return cls(merged, positions[order])

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def columns(self) -> set[str]:
        """The columns that the punctuations restrict."""
        parts = self.punctuations.parts
        return {name for group in parts.groups for name in group.columns} | {
            name for _, pattern in parts.odd for name, _ in pattern.items
        }

    def among(self, kept: Mask) -> PlacedPunctuations:
        """Return the same punctuations among the kept tuples only: positions count kept tuples."""
        passed = np.concatenate(([0], np.cumsum(kept, dtype=np.int64)))
        return PlacedPunctuations(self.punctuations, passed[self.positions])

    def moved(self, by: int) -> PlacedPunctuations:
        """Return the same punctuations with `by` more tuples in front."""
        return PlacedPunctuations(self.punctuations, self.positions + by) if by else self

    def last_at(self, position: int) -> PlacedPunctuations:
        """Return the last punctuation alone, at another position."""
        return PlacedPunctuations.at(position, self.slice(max(0, len(self) - 1), len(self)).punctuations)

    def keep(self, mask: Mask) -> PlacedPunctuations:
        return self if mask.all() else PlacedPunctuations(self.punctuations.keep(mask), self.positions[mask])

    def slice(self, first: int, last: int) -> PlacedPunctuations:
        """Return the punctuations with the numbers `first … last - 1`."""
        if last - first == len(self):
            return self
        held = self.punctuations.parts
        groups = []
        for group in held.groups:
            low, high = (int(place) for place in group.positions.searchsorted((first, last)))
            if low < high:
                groups.append(group.slice(low, high).with_positions(group.positions[low:high] - first))
        odd = tuple((at - first, pattern) for at, pattern in held.odd if first <= at < last)
        kept = Punctuations(last - first, NEVER, parts=Parts(tuple(groups), odd))
        return PlacedPunctuations(kept, self.positions[first:last])

    def keys(self, time: str | None) -> Integers:
        """Return the keys of the bounds on time alone; `NO_KEY` for all other punctuations."""
        keys = np.full(len(self), NO_KEY, dtype=np.int64)
        if time is None:
            return keys
        for group in self.punctuations.parts.groups:
            if group.shape in (((time, "<"),), ((time, "<="),)):
                bounds = integers(group.columns[time])
                keys[group.positions] = np.clip(bounds, -TIME_LIMIT, TIME_LIMIT) * 2 + (dict(group.shape)[time] == "<=")
        return keys


def integers(times: pl.Series) -> Integers:
    """Return times without NULL as the integers of the hidden timestamp."""
    held = times.to_numpy()
    return held.view(np.int64) if held.dtype.kind == "M" else held.astype(np.int64, copy=False)
