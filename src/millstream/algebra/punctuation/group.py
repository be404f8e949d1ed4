"""Patterns of one shape as columns, so that a thousand punctuations cost about as much as one.

A shape names one of the five comparisons for each restricted attribute. A group holds the values of all patterns of one
shape, a column per attribute. Its index (`cover_index`), built on first use, finds the rows that it covers.
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

Kind = tuple[Shape, tuple[pl.DataType, ...]]


@value("punctuation_group", fields=("shape", "columns", "positions"))
class Group:
    """Patterns of one shape in order; `positions` are their positions in the batch."""

    __slots__ = ("_index", "columns", "positions", "shape")

    def __init__(self, shape: Shape, columns: dict[str, pl.Series], positions: Places) -> None:
        self.shape, self.columns, self.positions = shape, columns, positions
        self._index: CoverIndex | None = None

    @classmethod
    def of(cls, comparisons: Mapping[str, tuple[str, pl.Series]], positions: Places | None = None) -> Group:
        """Create a group from a comparison and a column (without nulls) for each attribute."""
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
    def kind(self) -> Kind:
        """The shape and the types of the columns; groups of one kind can be concatenated."""
        return self.shape, tuple(column.dtype for column in self.columns.values())

    @property
    def rows(self) -> Rows:
        ops = dict(self.shape)
        return Rows(self.height, lambda name, _: (ops[name], self.columns[name]) if name in ops else None)

    def with_positions(self, positions: Places) -> Group:
        moved = Group(self.shape, self.columns, positions)
        moved._index = self._index
        return moved

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
        """Rename the attributes; the new names must be distinct."""
        return Group.of({names[name]: (op, self.columns[name]) for name, op in self.shape}, self.positions)

    def concat(self, others: Sequence[Group]) -> Group:
        """Append patterns of the same kind."""
        parts = [self, *others]
        columns = {name: pl.concat([part.columns[name] for part in parts]) for name in self.columns}
        return Group(self.shape, columns, np.concatenate([part.positions for part in parts]))

    def merged(self, others: Sequence[Group]) -> Group:
        """Add patterns of the same kind, in the order of their positions."""
        whole = self.concat(others)
        if (np.diff(whole.positions) >= 0).all():
            return whole
        order = np.argsort(whole.positions, kind="stable")
        columns = {name: column.gather(order) for name, column in whole.columns.items()}
        return Group(whole.shape, columns, whole.positions[order])

    def same_kind(self, other: Group) -> bool:
        return self.kind == other.kind

    def patterns(self) -> list[Pattern]:
        if not self.shape:
            return [Pattern()] * self.height
        names = [name for name, _ in self.shape]
        columns = [[compare(op, value) for value in self.columns[name].to_list()] for name, op in self.shape]
        return [Pattern(tuple(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle without the index, which is built again on first use."""
        return Group, (self.shape, self.columns, self.positions)

    @property
    def index(self) -> CoverIndex:
        """The index; the group must not be empty."""
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
        """Mask of the rows that some pattern covers."""
        if self.height == 0 or rows.height == 0:
            return np.zeros(rows.height, dtype=np.bool_)
        found = self._equal_integers(rows) if self._index is None and len(self.shape) == 1 else None
        return self.index.any(rows) if found is None else found

    def _equal_integers(self, rows: Rows) -> Mask | None:
        """Mask of the rows that some pattern covers, if all patterns and rows are integers compared by `=`; otherwise
        None. An index is faster only if it is used more than once."""
        name, op = self.shape[0]
        if op != "=" or self.columns[name].dtype != pl.Int64:
            return None
        asked = rows.get(name, op)
        if asked is None or asked[0] != "=" or asked[1].dtype != pl.Int64 or asked[1].null_count():
            return None
        return np.isin(asked[1].to_numpy(), self.columns[name].to_numpy())

    def compact(self) -> Group:
        """Drop the patterns that another one covers."""
        if self.height < 2:
            return self
        keep = np.zeros(self.height, dtype=np.bool_)
        if self.index.strongest is not None:
            keep[self.index.strongest] = True
            return self.filter(keep)
        # With several bounds: drop the patterns that an earlier one covers, then those that a later one covers.
        places = np.arange(self.height, dtype=np.int64)
        left = self.filter(self.index.first(self.rows) == places)
        backwards = left.reversed()
        keep = backwards.index.first(backwards.rows) == places[: left.height]
        return left.filter(keep[::-1])


def rows_covered(pattern: Pattern, group: Group) -> Mask:
    """Mask of the patterns of the group that one pattern of any form covers."""
    parts: list[pl.Expr] = []
    ops: dict[str, Any] = dict(group.shape)
    for name, restriction in pattern.items:
        op, bound = ops.get(name), restriction.simple
        if op != "=":
            if op is None or bound is None or bound[0] == "=" or not faces(bound[0], op):
                return np.zeros(group.height, dtype=np.bool_)
            restriction = compare(bound[0] if strictly(bound[0], op) else bound[0][0] + "=", bound[1])
        parts.append(restriction.expression(pl.col(name)))
    if not parts:
        return np.ones(group.height, dtype=np.bool_)
    return pl.DataFrame(group.columns).select(pl.all_horizontal(parts)).to_series().to_numpy()
