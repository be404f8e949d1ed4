"""Sets of punctuations that stay small: the promises of a stream so far.

A punctuation is fresh if nothing added before covers it. Only fresh punctuations change the set:

| punctuations | kept as | size |
|---|---|---|
| `< v` on one attribute | the highest bound | 1 |
| `= v` on one integer attribute | intervals; adjacent ones are merged | 1 for a dense range |
| equalities, with or without one bound | the highest bound per key | distinct keys |
| sets of values | an equality per value | |
| two-sided ranges, several bounds | single patterns | those that no other covers |

A new punctuation removes all that it covers, also of other shapes: `[k = 5]` removes `[ts < 10, k = 5]`. The columns of
one shape are segments; segments of similar size are merged. So the cost of adding depends on the number added, not on
the number held, up to a logarithm.

>>> from millstream.algebra.punctuation.punctuations import Punctuations
>>> from millstream.algebra.punctuation.restriction import equal
>>> closed = PunctuationSet()
>>> closed.add(Punctuations.from_column("k", "=", pl.Series([3, 1, 3]))).patterns()
[Pattern([k = 3]), Pattern([k = 1])]
>>> closed.add(Punctuations.of([Pattern.of(k=equal(2))])), len(closed), closed.patterns()
(Punctuations([k = 2]), 1, [Pattern([k [1, 3]])])
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from millstream.algebra.arrays import Mask
from millstream.algebra.punctuation.cover_index import Rows
from millstream.algebra.punctuation.group import Group, Kind, rows_covered
from millstream.algebra.punctuation.grouping import Parts, by_shape, expand
from millstream.algebra.punctuation.intervals import Intervals, first_of_each
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import Form, between
from millstream.algebra.schema import NEVER

if TYPE_CHECKING:
    from millstream.algebra.punctuation.punctuations import Punctuations


_INTEGERS = (pl.Int64, pl.Datetime, pl.Date, pl.Duration)
"""Types whose values are integers inside."""


class PunctuationSet:
    __slots__ = ("_intervals", "_odd", "_tables", "progress")

    def __init__(self) -> None:
        self._tables: dict[Kind, list[Group]] = {}
        self._intervals: dict[str, Intervals] = {}
        self._odd: list[Pattern] = []
        self.progress = NEVER

    def add(self, punctuations: Punctuations) -> Punctuations:
        """Add punctuations in order and return the fresh ones, with the progress if it is higher than before."""
        fresh = self.admit(punctuations)
        news = punctuations.progress if punctuations.progress > self.progress else NEVER
        self.progress = max(self.progress, news)
        return punctuations.keep(fresh).with_progress(news)

    def admit(self, punctuations: Punctuations) -> Mask:
        """Add the patterns in order and return the mask of the fresh ones."""
        fresh = self._add_bounds(punctuations.parts)
        if fresh is None:
            fresh = self._add_numbers(punctuations.parts)
        if fresh is None:
            fresh = np.zeros(len(punctuations), dtype=np.bool_)
            for groups, odd in _runs(punctuations.parts):
                for group in self._add_groups(groups):
                    fresh[group.positions] = True
                if odd is not None:
                    fresh[odd[0]] = self._add_odd(odd[1])
        return fresh

    def match(self, frame: pl.DataFrame) -> pl.Series:
        """Mask of the rows that match any punctuation added so far."""
        rows = Rows.of_page(frame)
        found = np.zeros(frame.height, dtype=np.bool_)
        for name, intervals in self._intervals.items():
            found |= intervals.match(frame.get_column(name))
        for group in self._groups():
            found |= group.covers(rows)
        for pattern in self._odd:
            found |= pattern.match(frame).to_numpy()
        return pl.Series("match", found, dtype=pl.Boolean)

    def covers(self, pattern: Pattern) -> bool:
        """True if it surely matches everything that the pattern matches: one punctuation covers the pattern or, if the
        pattern has sets of values, each choice of values."""
        if pattern.is_empty:
            return True
        parts = by_shape(enumerate(expand(pattern)))
        return all(self._covered(group).all() for group in parts.groups) and all(
            self._covers_odd(odd) for _, odd in parts.odd
        )

    def covered(self, punctuations: Punctuations) -> pl.Series:
        """Mask of the punctuations of a batch that it covers; they are not added."""
        found = np.zeros(len(punctuations), dtype=np.bool_)
        for group in punctuations.parts.groups:
            found[group.positions] = self._covered(group)
        for position, pattern in punctuations.parts.odd:
            found[position] = self.covers(pattern)
        return pl.Series("covered", found, dtype=pl.Boolean)

    def __len__(self) -> int:
        """Number of patterns held."""
        self._merge_all()
        intervals = sum(len(intervals) for intervals in self._intervals.values())
        return sum(group.height for group in self._groups()) + intervals + len(self._odd)

    @property
    def shapes(self) -> set[frozenset[str]]:
        """The sets of attributes that a pattern restricts together."""
        named = {frozenset((name,)) for name in self._intervals}
        return {group.attributes for group in self._groups()} | named | {odd.attributes for odd in self._odd}

    def patterns(self) -> list[Pattern]:
        """The patterns held; an interval means the integers in it."""
        self._merge_all()
        held = [pattern for group in self._groups() for pattern in group.patterns()]
        for name, intervals in self._intervals.items():
            ends = zip(intervals.lows.tolist(), intervals.highs.tolist(), strict=True)
            held += [Pattern.of({name: between(lo, hi)}) for lo, hi in ends]
        return held + self._odd

    def held(self) -> tuple[list[Group], dict[str, pl.Series], list[Pattern]]:
        """The patterns held: those of simple shapes, single integers by attribute, and the odd ones."""
        self._merge_all()
        numbers = {name: pl.Series(intervals.values()) for name, intervals in self._intervals.items()}
        return list(self._groups()), numbers, list(self._odd)

    def to_value(self) -> dict[str, Any]:
        """The content, in types that can be encoded."""
        self._merge_all()
        intervals = {name: (held.lows, held.highs) for name, held in self._intervals.items()}
        tables, odd = list(self._groups()), list(self._odd)
        return {"progress": self.progress, "tables": tables, "intervals": intervals, "odd": odd}

    @classmethod
    def from_value(cls, value: Any) -> PunctuationSet:
        new = cls()
        new.progress = value["progress"]
        new._tables = {group.kind: [group] for group in value["tables"]}
        new._intervals = {name: Intervals(*ends) for name, ends in value["intervals"].items()}
        new._odd = list(value["odd"])
        return new

    def _groups(self) -> Iterator[Group]:
        return (group for segments in self._tables.values() for group in segments)

    def _add_bounds(self, parts: Parts) -> Mask | None:
        """Add the most usual batch: upper bounds, each on a single attribute, as all so far. Bounds on different
        attributes do not cover each other; for each attribute a running maximum finds the fresh ones. None if the batch
        or the set is of another kind."""
        if not parts.groups or parts.odd or self._odd or self._intervals:
            return None
        kinds = {group.kind for group in parts.groups} | self._tables.keys()
        if not all(map(_is_bound, kinds)) or len({kind[0] for kind in kinds}) < len(kinds):
            return None
        fresh = np.zeros(sum(group.height for group in parts.groups), dtype=np.bool_)
        for group in parts.groups:
            fresh[group.positions] = self._add_bound(group)
        return fresh

    def _add_bound(self, group: Group) -> Mask:
        """Add upper bounds on one attribute; return a mask of the fresh ones."""
        bounds = _comparable(group)
        held = [_comparable(known)[0] for known in self._tables.get(group.kind, ())]
        highest = np.maximum.accumulate(np.concatenate(([max(held)] if held else bounds[:1], bounds)))
        fresh: Mask = bounds > highest[:-1]
        fresh[:1] |= not held
        if fresh.any():
            at = int(np.flatnonzero(fresh)[-1])
            self._tables[group.kind] = [group.slice(at, at + 1)]
        return fresh

    def _add_numbers(self, parts: Parts) -> Mask | None:
        """Add the next most usual batch: integers of the one attribute that all integers so far restrict. None if the
        batch or the set is of another kind."""
        if len(parts.groups) != 1 or parts.odd or self._odd or self._tables or len(self._intervals) > 1:
            return None
        group = parts.groups[0]
        if len(group.shape) != 1 or group.shape[0][1] != "=":
            return None
        name = group.shape[0][0]
        if group.columns[name].dtype != pl.Int64 or (self._intervals and name not in self._intervals):
            return None
        values, known = group.columns[name].to_numpy(), self._intervals.get(name, Intervals())
        fresh = ~known.contains(values)
        if len(values) > 1:
            fresh &= first_of_each(values)
        self._intervals[name] = known.add(values[fresh])
        return fresh

    def _add_groups(self, groups: Sequence[Group]) -> list[Group]:
        """Add patterns of simple shapes and return the fresh ones."""
        news = [group.filter(~self._covered(group)) for group in groups]
        fresh: list[Group] = []
        for group in news:
            repeated = np.zeros(group.height, dtype=np.bool_)
            for other in news:
                if other.attributes <= group.attributes:
                    first = other.first(group.rows)
                    repeated |= (first >= 0) & (first < group.positions)
            kept = group.filter(~repeated)
            if kept.height:
                fresh.append(kept)
        for i, group in enumerate(fresh):
            # A later one that was just inserted may cover it: it is fresh, but need not be held.
            self._insert(group.filter(~self._covered(group)) if i else group)
        return fresh

    def _add_odd(self, pattern: Pattern) -> bool:
        if self.covers(pattern):
            return False
        parts = by_shape(enumerate(expand(pattern)))
        for group in parts.groups:
            self._insert(group.filter(~self._covered(group)))
        for _, odd in parts.odd:
            if not self._covers_odd(odd):
                self._prune_by_odd(odd)
                self._odd.append(odd)
        return True

    def _covered(self, group: Group) -> Mask:
        ops = dict(group.shape)
        found = np.zeros(group.height, dtype=np.bool_)
        for name, intervals in self._intervals.items():
            if ops.get(name) == "=":
                found |= intervals.match(group.columns[name])
        for known in self._groups():
            if known.attributes <= group.attributes:
                found |= known.covers(group.rows)
        for pattern in self._odd:
            found |= rows_covered(pattern, group)
        return found

    def _covers_odd(self, pattern: Pattern) -> bool:
        for name, intervals in self._intervals.items():
            values = pattern.get(name).values
            if values and bool(intervals.match(pl.Series(values)).all()):
                return True
        rows = Rows.of_pattern(pattern)
        if any(group.attributes <= pattern.attributes and bool(group.covers(rows)[0]) for group in self._groups()):
            return True
        return any(known.covers(pattern) for known in self._odd)

    def _insert(self, group: Group) -> None:
        """Hold patterns that no held pattern covers, and drop those that they cover."""
        if not group.height:
            return
        group = group.compact()
        self._prune(group)
        if len(group.shape) == 1 and group.shape[0][1] == "=":
            name = group.shape[0][0]
            if group.columns[name].dtype == pl.Int64:
                self._intervals[name] = self._intervals.get(name, Intervals()).add(group.columns[name].to_numpy())
                return
        segments = self._tables.setdefault(group.kind, [])
        segments.append(group)
        while len(segments) > 1 and segments[-2].height < 2 * segments[-1].height:
            segments[-2:] = [segments[-2].concat(segments[-1:]).compact()]

    def _prune(self, group: Group) -> None:
        kind = group.kind
        for other, segments in self._tables.items():
            # Segments of its own kind are compacted when they are merged.
            if other != kind and group.attributes <= {name for name, _ in other[0]}:
                self._tables[other] = [known.filter(~group.covers(known.rows)) for known in segments]
        for name, intervals in self._intervals.items():
            if group.attributes <= {name} and group.shape != ((name, "="),):
                ends = intervals.highs if dict(group.shape).get(name) in ("<", "<=", None) else intervals.lows
                covered = group.covers(Group.of({name: ("=", pl.Series(ends))}).rows)
                self._intervals[name] = intervals.keep(~covered)
        self._odd = [odd for odd in self._odd if not group.covers(Rows.of_pattern(odd))[0]]
        self._drop_empty()

    def _prune_by_odd(self, pattern: Pattern) -> None:
        for kind, segments in self._tables.items():
            self._tables[kind] = [known.filter(~rows_covered(pattern, known)) for known in segments]
        for name, intervals in self._intervals.items():
            restriction = pattern.get(name)
            if pattern.attributes == {name} and restriction.form is Form.INTERVAL:
                ends = pl.DataFrame({"lo": intervals.lows, "hi": intervals.highs})
                inside = ends.select(restriction.expression(pl.col("lo")) & restriction.expression(pl.col("hi")))
                self._intervals[name] = intervals.keep(~inside.to_series().to_numpy())
        self._odd = [odd for odd in self._odd if not pattern.covers(odd)]
        self._drop_empty()

    def _drop_empty(self) -> None:
        left = {kind: [group for group in segments if group.height] for kind, segments in self._tables.items()}
        self._tables = {kind: segments for kind, segments in left.items() if segments}
        self._intervals = {name: intervals for name, intervals in self._intervals.items() if len(intervals)}

    def _merge_all(self) -> None:
        for kind, segments in self._tables.items():
            if len(segments) > 1:
                self._tables[kind] = [segments[0].concat(segments[1:]).compact()]


def _is_bound(kind: Kind) -> bool:
    """Return whether patterns of a kind are upper bounds on one attribute, with values that are numbers inside."""
    shape, types = kind
    return len(shape) == 1 and shape[0][1] == "<" and types[0] in (*_INTEGERS, pl.Float64)


def _comparable(group: Group) -> npt.NDArray[Any]:
    """Return the values of bounds on one attribute as numbers."""
    values = next(iter(group.columns.values()))
    return values.to_numpy() if values.dtype == pl.Float64 else values.cast(pl.Int64).to_numpy()


def _runs(parts: Parts) -> Iterator[tuple[Sequence[Group], tuple[int, Pattern] | None]]:
    """Groups of the patterns before each odd pattern, with that pattern, in order; the last run has no odd pattern."""
    if not parts.odd:
        yield parts.groups, None
        return
    start = -1
    for odd in parts.odd:
        yield _within(parts.groups, start, odd[0]), odd
        start = odd[0]
    yield _within(parts.groups, start, None), None


def _within(groups: Sequence[Group], after: int, before: int | None) -> list[Group]:
    """Groups of the patterns at positions after `after` and before `before`."""
    found = []
    for group in groups:
        first = int(np.searchsorted(group.positions, after, side="right"))
        last = group.height if before is None else int(np.searchsorted(group.positions, before))
        if first < last:
            found.append(group.slice(first, last))
    return found
