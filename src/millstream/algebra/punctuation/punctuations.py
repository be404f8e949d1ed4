"""Batches of punctuations: patterns in order, and the progress of time.

A batch holds patterns of one shape as columns (`Group`); sets and two-sided ranges, which are rare, stay single
patterns. `progress` is a bound on the hidden timestamp: no later tuple has a lower one.

>>> closed = Punctuations.from_column("auction", "=", pl.Series([7, 9]))
>>> closed.match(pl.DataFrame({"auction": [7, 8, None]})).to_list()
[True, False, False]
>>> closed.select({"auction": "id"}).patterns()
[Pattern([id = 7]), Pattern([id = 9])]
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import itemgetter

import numpy as np
import polars as pl

from millstream.algebra.arrays import Mask, Places
from millstream.algebra.element import Element
from millstream.algebra.punctuation.column_order import canonical
from millstream.algebra.punctuation.cover_index import LOWER, UPPER, Rows
from millstream.algebra.punctuation.group import Group, Kind
from millstream.algebra.punctuation.grouping import Parts, by_shape
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import ANY, Restriction, compare
from millstream.algebra.punctuation.set import PunctuationSet
from millstream.algebra.schema import NEVER
from millstream.algebra.values import value

__all__ = ["PunctuationSet", "Punctuations"]

_FEW = 4
"""Up to this many patterns are encoded one by one, more of them as columns."""


def _fields(held: Punctuations) -> tuple[int, int, tuple[Pattern, ...] | None, Parts | None]:
    few = held._patterns is not None and len(held) <= _FEW
    return len(held), held.progress, held._patterns if few else None, None if few else held.parts


@value("punctuations", fields=("count", "progress", "patterns", "parts"), take=_fields)
class Punctuations(Element):
    """An immutable batch. It is created from patterns or from columns, and converts one into the other on demand."""

    __slots__ = ("_count", "_parts", "_patterns", "progress")
    keeps_position = False
    progress: int

    def __init__(
        self, count: int, progress: int, patterns: tuple[Pattern, ...] | None = None, parts: Parts | None = None
    ) -> None:
        self._count, self.progress = count, progress
        self._patterns, self._parts = patterns, parts

    @classmethod
    def of(cls, patterns: Iterable[Pattern] = (), progress: int = NEVER) -> Punctuations:
        held = tuple(patterns)
        return cls(len(held), progress, patterns=held)

    @classmethod
    def from_column(cls, name: str, op: str, series: pl.Series, progress: int = NEVER) -> Punctuations:
        """One punctuation `name op value` for each value; none for NULL and NaN, which nothing equals."""
        values = canonical(series).drop_nulls()
        values = values.drop_nans() if values.dtype.is_float() else values
        groups = (Group.of({name: (op, values)}),) if values.len() else ()
        return cls(values.len(), progress, parts=Parts(groups, ()))

    @classmethod
    def from_group(cls, group: Group) -> Punctuations:
        return _renumbered([group], (), NEVER)

    @classmethod
    def concat(cls, batches: Sequence[Punctuations]) -> Punctuations:
        """All punctuations in order, with the highest progress."""
        progress = max((batch.progress for batch in batches), default=NEVER)
        batches = [batch for batch in batches if len(batch)]
        if len(batches) == 1:
            return batches[0].with_progress(progress)
        groups: dict[Kind, list[Group]] = {}
        odd: list[tuple[int, Pattern]] = []
        start = 0
        for batch in batches:
            for group in batch.parts.groups:
                groups.setdefault(group.kind, []).append(group.with_positions(group.positions + start))
            odd += [(start + position, pattern) for position, pattern in batch.parts.odd]
            start += len(batch)
        joined = tuple(first.concat(rest) if rest else first for first, *rest in groups.values())
        return cls(start, progress, parts=Parts(joined, tuple(odd)))

    @classmethod
    def merge(cls, batches: Sequence[tuple[Punctuations, Places]], progress: int) -> Punctuations:
        """The punctuations of all batches, in the order of the places that are given for each."""
        groups: dict[Kind, list[Group]] = {}
        for batch, at in batches:
            for group in batch.parts.groups:
                groups.setdefault(group.kind, []).append(group.with_positions(at[group.positions]))
        odd = [(int(at[position]), pattern) for batch, at in batches for position, pattern in batch.parts.odd]
        return _renumbered([first.merged(rest) if rest else first for first, *rest in groups.values()], odd, progress)

    @property
    def parts(self) -> Parts:
        if self._parts is None:
            assert self._patterns is not None
            self._parts = by_shape(enumerate(self._patterns))
        return self._parts

    def patterns(self) -> list[Pattern]:
        if self._patterns is None:
            placed: list[Pattern | None] = [None] * self._count
            for group in self.parts.groups:
                for position, pattern in zip(group.positions.tolist(), group.patterns(), strict=True):
                    placed[position] = pattern
            for position, pattern in self.parts.odd:
                placed[position] = pattern
            self._patterns = tuple(pattern for pattern in placed if pattern is not None)
        return list(self._patterns)

    @property
    def punctuation_count(self) -> int:
        return self._count or 1

    def __len__(self) -> int:
        return self._count

    def __bool__(self) -> bool:
        return self._count > 0 or self.progress > NEVER

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Punctuations):
            return NotImplemented
        return self.progress == other.progress and self.patterns() == other.patterns()

    def __hash__(self) -> int:
        return hash((self.progress, tuple(self.patterns())))

    def __repr__(self) -> str:
        shown = [str(pattern) for pattern in self.patterns()]
        return f"Punctuations({' '.join(shown)}{'' if self.progress == NEVER else f' progress {self.progress}'})"

    def with_progress(self, progress: int) -> Punctuations:
        return Punctuations(self._count, progress, patterns=self._patterns, parts=self._parts)

    def where(self, mask: pl.Series) -> Punctuations:
        """The punctuations for which the mask (an entry per punctuation) is true, with the same progress."""
        return self.keep(mask.fill_null(False).to_numpy())

    def keep(self, mask: Mask) -> Punctuations:
        """Like `where`, with a NumPy mask."""
        if len(mask) != self._count:
            raise ValueError(f"{len(mask)} entries in the mask for {self._count} punctuations")
        if mask.all():
            return self
        groups = tuple(kept for group in self.parts.groups if (kept := group.filter(mask[group.positions])).height)
        return _renumbered(groups, [(at, pattern) for at, pattern in self.parts.odd if mask[at]], self.progress)

    def select(self, names: Mapping[str, str]) -> Punctuations:
        """The punctuations that restrict only attributes in `names`, renamed by it, with the same progress."""
        all_groups, all_odd = self.parts
        if not all_odd and all(names.get(name) == name for group in all_groups for name, _ in group.shape):
            return self
        groups: list[Group] = []
        odd = [(at, pattern.rename(names)) for at, pattern in all_odd if pattern.attributes <= names.keys()]
        for group in all_groups:
            if not group.attributes <= names.keys():
                continue
            if len({names[name] for name in group.attributes}) == len(group.shape):
                groups.append(group.rename(names))
            else:  # two attributes become one: both restrictions hold for it
                renamed = [pattern.rename(names) for pattern in group.patterns()]
                parts = by_shape(zip(group.positions.tolist(), renamed, strict=True))
                groups += parts.groups
                odd += parts.odd
        return _renumbered(tuple(groups), odd, self.progress)

    def restricting(self, name: str) -> Punctuations:
        """The punctuations that restrict an attribute, with the same progress."""
        kept = np.zeros(self._count, dtype=np.bool_)
        for group in self.parts.groups:
            kept[group.positions] = name in group.attributes
        for position, pattern in self.parts.odd:
            kept[position] = name in pattern.attributes
        return self.keep(kept)

    def without_upper(self, names: Collection[str]) -> Punctuations:
        """The punctuations that set no upper bound on any of these attributes, with the same progress."""
        kept = np.ones(self._count, dtype=np.bool_)
        for group in self.parts.groups:
            kept[group.positions] = not any(name in names and op in UPPER for name, op in group.shape)
        for position, pattern in self.parts.odd:
            kept[position] = not any(name in names and part.is_upper for name, part in pattern.items)
        return self.keep(kept)

    def without(self, names: Collection[str]) -> Punctuations:
        """The punctuations that restrict none of these attributes, with the same progress."""
        kept = np.ones(self._count, dtype=np.bool_)
        for group in self.parts.groups:
            kept[group.positions] = group.attributes.isdisjoint(names)
        for position, pattern in self.parts.odd:
            kept[position] = pattern.attributes.isdisjoint(names)
        return self.keep(kept)

    def map_upper(
        self, name: str, change: Callable[[pl.Expr], pl.Expr], to: str, op: str, type: pl.DataType, tick: int = 0
    ) -> Punctuations:
        """Turn each upper bound v on `name` into `op change(v)` on `to`.

        `change` gets Int64 (microseconds for times, the floor of fractions), of `<=` v + `tick`; its result is cast to
        `type`. A punctuation is dropped if the result is null, or if it restricts `name` in any other way. Punctuations
        that do not restrict `name` stay.
        """
        groups: list[Group] = []
        single: list[tuple[int, Pattern]] = list(self.parts.odd)
        for group in self.parts.groups:
            ops = dict(group.shape)
            if name not in ops:
                groups.append(group)
            elif ops[name] in UPPER and (to == name or to not in ops):
                values = _changed(group.columns[name], _after(change, tick, ops[name] == "<="), type)
                known = values.is_not_null()
                comparisons = {n: (o, group.columns[n].filter(known)) for n, o in group.shape if n != name}
                comparisons[to] = (op, values.filter(known))
                groups.append(Group.of(comparisons, group.positions[known.to_numpy()]))
            elif ops[name] in UPPER:  # `to` is restricted too: both restrictions hold for it
                single += zip(group.positions.tolist(), group.patterns(), strict=True)
        odd = [(at, pattern) for at, pattern in single if pattern.get(name).is_any]
        bounded = [(at, pattern) for at, pattern in single if pattern.get(name).is_upper]
        for at, pattern in bounded:
            upper = pattern.get(name)
            [bound] = _changed(pl.Series([upper.hi], strict=False), _after(change, tick, upper.hi_closed), type)
            if bound is not None:
                rest = Pattern.of(dict(pattern.items) | {name: ANY})
                odd.append((at, rest.intersect(Pattern.of({to: compare(op, bound)}))))
        parts = by_shape(sorted(odd, key=itemgetter(0)))
        return _renumbered((*groups, *parts.groups), parts.odd, self.progress)

    def has_ranges(self, name: str) -> bool:
        """True if some punctuation bounds an attribute from below, with or without an upper bound."""
        by_shape = any(own == name and op in LOWER for group in self.parts.groups for own, op in group.shape)
        return by_shape or any(pattern.get(name).starts for _, pattern in self.parts.odd)

    def map_ranges(self, name: str, change: Callable[[Restriction], Restriction], to: str) -> Punctuations:
        """Turn each restriction of `name` that bounds it from below into another one, on `to`. A punctuation is dropped
        if nothing matches it then; others stay. They are handled one by one: ranges are rare."""
        if not self.has_ranges(name):
            return self
        made: list[Pattern] = []
        for pattern in self.patterns():
            own = pattern.get(name)
            if own.starts:
                rest = Pattern.of(dict(pattern.items) | {name: ANY})
                pattern = rest.intersect(Pattern.of({to: change(own)}))
            if not pattern.is_empty:
                made.append(pattern)
        return Punctuations.of(made, self.progress)

    def match(self, frame: pl.DataFrame) -> pl.Series:
        """Mask of the rows that match any punctuation."""
        rows = Rows.of_page(frame)
        found = np.zeros(frame.height, dtype=np.bool_)
        for group in self.parts.groups:
            found |= group.covers(rows)
        for _, pattern in self.parts.odd:
            found |= pattern.match(frame).to_numpy()
        return pl.Series("match", found, dtype=pl.Boolean)

    def first_match(self, frame: pl.DataFrame) -> pl.Series:
        """For each row the index of the first punctuation that it matches, or null."""
        rows = Rows.of_page(frame)
        none = self._count
        first = np.full(frame.height, none, dtype=np.int64)
        for group in self.parts.groups:
            found = group.first(rows)
            first = np.minimum(first, np.where(found >= 0, found, none))
        for position, pattern in self.parts.odd:
            first = np.minimum(first, np.where(pattern.match(frame).to_numpy(), position, none))
        known = pl.Series("first_match", first, dtype=pl.Int64)
        return known.set(known == none, None).cast(pl.UInt32)


def _renumbered(groups: Sequence[Group], odd: Sequence[tuple[int, Pattern]], progress: int) -> Punctuations:
    """A batch of parts whose positions may have gaps."""
    if len(groups) == 1 and not odd:
        only = groups[0]
        whole = only.with_positions(np.arange(only.height, dtype=np.int64))
        return Punctuations(only.height, progress, parts=Parts((whole,), ()))
    taken = np.sort(np.concatenate([*(group.positions for group in groups), [at for at, _ in odd]]).astype(np.int64))
    moved = tuple(group.with_positions(np.searchsorted(taken, group.positions)) for group in groups)
    placed = tuple((int(np.searchsorted(taken, at)), pattern) for at, pattern in sorted(odd, key=itemgetter(0)))
    return Punctuations(len(taken), progress, parts=Parts(moved, placed))


def _after(change: Callable[[pl.Expr], pl.Expr], tick: int, closed: bool) -> Callable[[pl.Expr], pl.Expr]:
    return (lambda bound: change(bound + tick)) if tick and closed else change


def _changed(bounds: pl.Series, change: Callable[[pl.Expr], pl.Expr], type_: pl.DataType) -> pl.Series:
    """The changed bounds; null where `change` has no result."""
    dtype = bounds.dtype
    numbers = bounds.floor() if dtype.is_float() else bounds
    if dtype == pl.Date:
        numbers = bounds.cast(pl.Datetime("us"))
    if not (dtype.is_numeric() or dtype.is_temporal()):
        return pl.Series([None] * bounds.len(), dtype=type_)
    frame = numbers.cast(pl.Int64, strict=False).alias("bound").to_frame()
    new = frame.select(pl.when(pl.col("bound").is_not_null()).then(change(pl.col("bound"))).alias("bound")).to_series()
    if type_ == pl.Date:
        new = new.cast(pl.Datetime("us"))
    new = new.cast(type_, strict=False)
    return new.fill_nan(None) if type_.is_float() else new
