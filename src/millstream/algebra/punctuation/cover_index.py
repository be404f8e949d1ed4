"""The search structure over patterns of one shape: finds the first pattern that covers each of many rows.

A row of a page is covered by the patterns that it matches. A pattern is a row too: its values mean `< v` or `= v`. So
subsumption also runs over whole columns.

| query | cost for n patterns and m rows |
|---|---|
| covered by any, one bound | a comparison with the highest (lowest) bound: m |
| first or any, equalities and at most one bound | two binary searches: (n + m) log n, the n part once |
| several bounds | n · m comparisons, in blocks |

With one bound, a pattern matters only if its bound exceeds those of all earlier patterns with the same equality values.
These steps ascend, so one search over (key, rank of bound) finds the first pattern that covers a row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from millstream.algebra.arrays import Mask, Places
from millstream.algebra.punctuation.column_order import Bounds, Keys
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import above, below

Shape = tuple[tuple[str, str], ...]
"""Attributes with their comparisons, sorted by attribute."""

UPPER, LOWER = ("<", "<="), (">", ">=")
BLOCK = 64
"""Number of patterns with several bounds that are compared with all rows at a time."""


class Rows(NamedTuple):
    """The rows that groups are to cover. `get(attribute, op)` returns the rows' restriction of an attribute: a
    comparison and the column of its values, or None if they do not restrict it. `op` is the comparison of the covering
    pattern."""

    height: int
    get: Callable[[str, str], tuple[str, pl.Series] | None]

    @classmethod
    def of_page(cls, frame: pl.DataFrame) -> Rows:
        return cls(frame.height, lambda name, _: ("=", frame.get_column(name)))

    @classmethod
    def of_pattern(cls, pattern: Pattern) -> Rows:
        """A single row. Of a range or a set, a bound is compared with the end that has to lie within it."""

        def get(name: str, op: str) -> tuple[str, pl.Series] | None:
            own = pattern.get(name)
            if op == "=":
                end = own.simple
            elif own.values:
                end = "=", own.values[-1 if op in UPPER else 0]
            else:
                end = (below(own.hi, own.hi_closed) if op in UPPER else above(own.lo, own.lo_closed)).simple
            return None if end is None else (end[0], pl.Series([end[1]]))

        return cls(1, get)


class CoverIndex:
    """The distinct values, keys and steps of at least one pattern."""

    def __init__(self, shape: Shape, columns: Mapping[str, pl.Series], height: int) -> None:
        self.keys: list[tuple[str, Keys, Places]] = []
        self.codes = np.zeros(height, dtype=np.int64)
        for name, op in shape:
            if op == "=":
                values = Keys(columns[name])
                joint, self.codes = _joined(self.codes, values, first=not self.keys)
                self.keys.append((name, values, joint))
        self.bounds = [(name, op, Bounds(columns[name])) for name, op in shape if op != "="]
        self.strongest: Places | None = None
        """For each key the pattern that covers all others of that key; None if there are several bounds."""
        if not self.bounds:
            self.strongest = np.unique(self.codes, return_index=True)[1].astype(np.int64)
        elif len(self.bounds) == 1:
            _, op, bounds = self.bounds[0]
            ranks = bounds.codes if op in UPPER else len(bounds) - 1 - bounds.codes
            order = np.argsort(self.codes, kind="stable")
            reached = (self.codes * len(bounds) + ranks)[order]
            step = np.concatenate([[True], reached[1:] > np.maximum.accumulate(reached)[:-1]])
            self.steps, self.step_at = reached[step], order[step].astype(np.int64)
            of_key = self.codes[self.step_at]
            self.strongest = self.step_at[np.concatenate([of_key[1:] != of_key[:-1], [True]])]

    def any(self, rows: Rows) -> Mask:
        """Mask of the rows that some pattern covers."""
        if len(self.bounds) != 1 or self.strongest is None:
            return self.first(rows) >= 0
        name, op, values = self.bounds[0]
        asked, keys = rows.get(name, op), self._keys_of(rows)
        if keys is None or asked is None or not faces(op, asked[0]):
            return np.zeros(rows.height, dtype=np.bool_)
        upper, strict = op in UPPER, strictly(op, asked[0])
        bounds = values.codes[self.strongest]
        if not self.keys:
            return values.within(asked[1], bounds, upper=upper, strict=strict)
        return values.within(asked[1], bounds[keys], upper=upper, strict=strict) & (keys >= 0)

    def first(self, rows: Rows) -> Places:
        """For each row the index of the first pattern that covers it, or -1."""
        keys = self._keys_of(rows)
        if keys is None:
            return np.full(rows.height, -1, dtype=np.int64)
        if not self.bounds and self.strongest is not None:
            return np.where(keys >= 0, self.strongest[keys], -1)
        compared: list[tuple[str, Bounds, str, pl.Series]] = []
        for name, op, values in self.bounds:
            asked = rows.get(name, op)
            if asked is None or not faces(op, asked[0]):
                return np.full(rows.height, -1, dtype=np.int64)
            compared.append((op, values, *asked))
        return self._first_step(keys, *compared[0]) if len(compared) == 1 else self._first_of_many(keys, compared)

    def _keys_of(self, rows: Rows) -> Places | None:
        """For each row the code of its equality values, or -1; None if no row can be covered."""
        codes = np.zeros(rows.height, dtype=np.int64)
        for i, (name, values, joint) in enumerate(self.keys):
            asked = rows.get(name, "=")
            if asked is None or asked[0] != "=":
                return None
            own = values.find(asked[1])
            if i == 0:
                codes = own  # all codes were 0, so the joint codes are the first attribute's own
                continue
            both = codes * len(values) + own
            place = np.minimum(np.searchsorted(joint, both), len(joint) - 1)
            codes = np.where((codes >= 0) & (own >= 0) & (joint[place] == both), place, -1)
        return codes

    def _first_step(self, keys: Places, op: str, values: Bounds, row_op: str, column: pl.Series) -> Places:
        needed = values.needed(column, upper=op in UPPER, strict=strictly(op, row_op))
        sought = keys * len(values) + needed
        place = np.minimum(np.searchsorted(self.steps, sought), len(self.steps) - 1)
        reached = self.steps[place]
        found = (keys >= 0) & (needed < len(values)) & (reached >= sought) & (reached // len(values) == keys)
        return np.where(found, self.step_at[place], -1)

    def _first_of_many(self, keys: Places, compared: Sequence[tuple[str, Bounds, str, pl.Series]]) -> Places:
        needs = [v.needed(column, upper=op in UPPER, strict=strictly(op, row_op)) for op, v, row_op, column in compared]
        offers = [v.codes if op in UPPER else len(v) - 1 - v.codes for op, v, _, _ in compared]
        found = np.full(len(keys), -1, dtype=np.int64)
        for start in range(0, len(self.codes), BLOCK):
            block = slice(start, start + BLOCK)
            open_rows = np.flatnonzero((found < 0) & (keys >= 0))
            if not len(open_rows):
                break
            fits = self.codes[block, None] == keys[None, open_rows]
            for offer, need in zip(offers, needs, strict=True):
                fits &= offer[block, None] >= need[None, open_rows]
            hit = fits.any(axis=0)
            found[open_rows[hit]] = start + fits.argmax(axis=0)[hit]
        return found


def _joined(codes: Places, values: Keys, *, first: bool) -> tuple[Places, Places]:
    """Codes for pairs of a code and a value: the distinct pairs, and the code of each place's pair."""
    if first:
        return np.arange(len(values), dtype=np.int64), values.codes
    joint, places = np.unique(codes * len(values) + values.codes, return_inverse=True)
    return joint, places.astype(np.int64)


def faces(op: str, row_op: str) -> bool:
    """True if a pattern with `op` can cover a row with `row_op`."""
    return row_op == "=" or (op in UPPER) == (row_op in UPPER)


def strictly(op: str, row_op: str) -> bool:
    """True if the row's value must lie strictly inside the bound: `< 5` covers `< 5` but not `<= 5` or `= 5`."""
    return op in ("<", ">") and row_op not in ("<", ">")
