"""Patterns of one shape as columns: the reason why a thousand punctuations cost about as much as one.

A shape names, for each restricted attribute, one of the five comparisons. A group holds the values of all patterns of
one shape, a column per attribute; what it covers is found through its index (`cover_index`), made when first needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.arrays import Mask, Places
from millstream.algebra.punctuation.column_order import canonical
from millstream.algebra.punctuation.cover_index import CoverIndex, Rows, Shape, faces, strictly
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import compare
from millstream.algebra.values import value


@value(
    "punctuation_group",
    fields=("shape", "columns", "positions"),
    take=lambda group: (group.shape, dict(group.columns), group.positions),
)
class Group:
    """Patterns of one shape in order; `positions` says which place each has in its batch."""

    __slots__ = ("_index", "columns", "positions", "shape")

    def __init__(self, shape: Shape, columns: Mapping[str, pl.Series], positions: Places) -> None:
        self.shape, self.columns, self.positions = shape, columns, positions
        self._index: CoverIndex | None = None

    @classmethod
    def of(cls, comparisons: Mapping[str, tuple[str, pl.Series]], positions: Places | None = None) -> Group:
        """From a comparison and a column (no nulls) for each attribute."""
        shape = tuple(sorted((name, op) for name, (op, _) in comparisons.items()))
        columns = {name: canonical(comparisons[name][1]) for name, _ in shape}
        if positions is None:
            positions = np.arange(next(iter(columns.values())).len() if columns else 1, dtype=np.int64)
        return cls(shape, columns, positions)

    @property
    def height(self) -> int:
        return len(self.positions)

    @property
    def attributes(self) -> frozenset[str]:
        return frozenset(name for name, _ in self.shape)

    @property
    def rows(self) -> Rows:
        ops = dict(self.shape)
        return Rows(self.height, lambda name, _: (ops[name], self.columns[name]) if name in ops else None)

    def with_positions(self, positions: Places) -> Group:
        made = Group(self.shape, self.columns, positions)
        made._index = self._index
        return made

    def filter(self, mask: Mask) -> Group:
        if mask.all():
            return self
        kept = pl.Series(mask)
        return Group(self.shape, {n: c.filter(kept) for n, c in self.columns.items()}, self.positions[mask])

    def slice(self, first: int, last: int) -> Group:
        columns = {name: column.slice(first, last - first) for name, column in self.columns.items()}
        return Group(self.shape, columns, self.positions[first:last])

    def reversed(self) -> Group:
        return Group(self.shape, {n: c.reverse() for n, c in self.columns.items()}, self.positions[::-1])

    def rename(self, names: Mapping[str, str]) -> Group:
        """Renamed; the new names must differ from each other."""
        said = {names[name]: (op, self.columns[name]) for name, op in self.shape}
        return Group.of(said, self.positions)

    def concat(self, others: Sequence[Group]) -> Group:
        """With more patterns of the same shape and types."""
        parts = [self, *others]
        columns = {name: pl.concat([part.columns[name] for part in parts]) for name in self.columns}
        return Group(self.shape, columns, np.concatenate([part.positions for part in parts]))

    def same_kind(self, other: Group) -> bool:
        return self.shape == other.shape and all(c.dtype == other.columns[n].dtype for n, c in self.columns.items())

    def patterns(self) -> list[Pattern]:
        names = [name for name, _ in self.shape]
        made = [[compare(op, value) for value in self.columns[name].to_list()] for name, op in self.shape]
        if not names:
            return [Pattern()] * self.height
        return [Pattern(tuple(zip(names, row, strict=True))) for row in zip(*made, strict=True)]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles without the index, which is made anew where it is needed."""
        return Group, (self.shape, dict(self.columns), self.positions)

    @property
    def index(self) -> CoverIndex:
        """For a group that is not empty."""
        if self._index is None:
            self._index = CoverIndex(self.shape, self.columns, self.height)
        return self._index

    def first(self, rows: Rows) -> Places:
        """For each row the position of the first pattern that covers it, or -1."""
        if self.height == 0 or rows.height == 0:
            return np.full(rows.height, -1, dtype=np.int64)
        found = self.index.first(rows)
        return np.where(found >= 0, self.positions[found], -1)

    def covers(self, rows: Rows) -> Mask:
        """Which rows some pattern covers."""
        if self.height == 0 or rows.height == 0:
            return np.zeros(rows.height, dtype=np.bool_)
        found = self._among(rows) if self._index is None and len(self.shape) == 1 else None
        return self.index.any(rows) if found is None else found

    def _among(self, rows: Rows) -> Mask | None:
        """Which rows have one of the integers that this is about; None if it is about anything else. An index would be
        faster only if it were used more than once."""
        name, op = self.shape[0]
        said = rows.get(name, op) if op == "=" else None
        if said is None or said[0] != "=" or self.columns[name].dtype != pl.Int64:
            return None
        values = said[1]
        return (
            None
            if values.dtype != pl.Int64 or values.null_count()
            else np.isin(values.to_numpy(), self.columns[name].to_numpy())
        )

    def compact(self) -> Group:
        """Without the patterns that another one covers."""
        if self.height < 2:
            return self
        keep = np.zeros(self.height, dtype=np.bool_)
        if self.index.strongest is not None:
            keep[self.index.strongest] = True
            return self.filter(keep)
        # With several bounds: whatever an earlier one covers goes, then, from the end, whatever a later one covers.
        places = np.arange(self.height, dtype=np.int64)
        left = self.filter(self.index.first(self.rows) == places)
        backwards = left.reversed()
        keep = backwards.index.first(backwards.rows) == places[: left.height]
        return left.filter(keep[::-1])


def rows_covered(pattern: Pattern, group: Group) -> Mask:
    """Which patterns of the group one pattern of any form covers."""
    parts: list[pl.Expr] = []
    ops: dict[str, Any] = dict(group.shape)
    for name, restriction in pattern.items:
        op, said = ops.get(name), restriction.simple
        if op == "=":
            parts.append(restriction.expression(pl.col(name)))
        elif op is None or said is None or said[0] == "=" or not faces(said[0], op):
            return np.zeros(group.height, dtype=np.bool_)
        else:
            parts.append(
                compare(said[0] if strictly(said[0], op) else said[0][0] + "=", said[1]).expression(pl.col(name))
            )
    if not parts:
        return np.ones(group.height, dtype=np.bool_)
    return pl.DataFrame(dict(group.columns)).select(pl.all_horizontal(parts)).to_series().to_numpy()
