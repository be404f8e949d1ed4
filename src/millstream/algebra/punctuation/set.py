"""Sets of punctuations that stay small: what a stream has promised so far.

A punctuation is fresh if nothing added before covers it; only fresh ones change the set. What is kept:

| punctuations | kept as | size |
|---|---|---|
| `< v` on one attribute | the highest bound | 1 |
| `= v` on one integer attribute | intervals, neighbours joined up | 1 for a dense range |
| equalities, with or without one bound | per key the highest bound | distinct keys |
| sets of values | as that many equalities | |
| two-sided ranges, several bounds | single patterns | those that no other covers |

A new punctuation removes what it covers, also of other shapes: `[k = 5]` removes `[ts < 10, k = 5]`. The columns of one
shape are segments that are merged when they have become alike in size, so that adding costs what is added, not what is
held, up to a logarithm.

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
import polars as pl

from millstream.algebra.arrays import Mask
from millstream.algebra.punctuation.cover_index import Rows, Shape
from millstream.algebra.punctuation.group import Group, rows_covered
from millstream.algebra.punctuation.grouping import Parts, by_shape, expand
from millstream.algebra.punctuation.intervals import Intervals, first_of_each
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import Form, between
from millstream.algebra.schema import NEVER

if TYPE_CHECKING:
    from millstream.algebra.punctuation.punctuations import Punctuations

Kind = tuple[Shape, tuple[pl.DataType, ...]]


class PunctuationSet:
    __slots__ = ("_intervals", "_odd", "_tables", "progress")

    def __init__(self) -> None:
        self._tables: dict[Kind, list[Group]] = {}
        self._intervals: dict[str, Intervals] = {}
        self._odd: list[Pattern] = []
        self.progress = NEVER

    def add(self, punctuations: Punctuations) -> Punctuations:
        """Take them in order and return the fresh ones, with the progress if it is news."""
        fresh = self.admit(punctuations)
        news = punctuations.progress if punctuations.progress > self.progress else NEVER
        self.progress = max(self.progress, news)
        return punctuations.keep(fresh).with_progress(news)

    def admit(self, punctuations: Punctuations) -> Mask:
        """Take their patterns in order and tell which ones are fresh."""
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
        """Which rows match any punctuation added so far."""
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
        """Whether it surely matches everything that the pattern matches: one punctuation covers the pattern, or, if
        the pattern has sets of values, each choice of values."""
        if pattern.is_empty:
            return True
        parts = by_shape(enumerate(expand(pattern)))
        return all(self._covered(group).all() for group in parts.groups) and all(
            self._covers_odd(odd) for _, odd in parts.odd
        )

    def covered(self, punctuations: Punctuations) -> pl.Series:
        """Which punctuations of a batch it covers (without adding them)."""
        found = np.zeros(len(punctuations), dtype=np.bool_)
        for group in punctuations.parts.groups:
            found[group.positions] = self._covered(group)
        for position, pattern in punctuations.parts.odd:
            found[position] = self.covers(pattern)
        return pl.Series("covered", found, dtype=pl.Boolean)

    def __len__(self) -> int:
        """How many patterns are kept."""
        self._merge_all()
        intervals = sum(len(intervals) for intervals in self._intervals.values())
        return sum(group.height for group in self._groups()) + intervals + len(self._odd)

    def patterns(self) -> list[Pattern]:
        """What is kept; an interval stands for the integers in it."""
        self._merge_all()
        made = [pattern for group in self._groups() for pattern in group.patterns()]
        for name, intervals in self._intervals.items():
            ends = zip(intervals.lows.tolist(), intervals.highs.tolist(), strict=True)
            made += [Pattern.of({name: between(lo, hi)}) for lo, hi in ends]
        return made + self._odd

    def to_value(self) -> dict[str, Any]:
        """All of it, as values."""
        self._merge_all()
        intervals = {name: (kept.lows, kept.highs) for name, kept in self._intervals.items()}
        tables, odd = list(self._groups()), list(self._odd)
        return {"progress": self.progress, "tables": tables, "intervals": intervals, "odd": odd}

    @classmethod
    def from_value(cls, value: Any) -> PunctuationSet:
        made = cls()
        made.progress = value["progress"]
        made._tables = {_kind(group): [group] for group in value["tables"]}
        made._intervals = {name: Intervals(*ends) for name, ends in value["intervals"].items()}
        made._odd = list(value["odd"])
        return made

    def _groups(self) -> Iterator[Group]:
        return (group for segments in self._tables.values() for group in segments)

    def _add_bounds(self, parts: Parts) -> Mask | None:
        """The most usual batch, upper bounds on the one attribute that all bounds so far are on: a running maximum
        tells which are fresh. None if the batch or the set is of another kind."""
        if len(parts.groups) != 1 or parts.odd or self._odd or self._intervals or len(self._tables) > 1:
            return None
        group = parts.groups[0]
        kind = _kind(group)
        if len(group.shape) != 1 or group.shape[0][1] != "<" or not _is_integral(kind[1][0]):
            return None
        if self._tables and kind not in self._tables:
            return None
        bounds = next(iter(group.columns.values())).cast(pl.Int64).to_numpy()
        held = [next(iter(known.columns.values())).cast(pl.Int64)[0] for known in self._tables.get(kind, ())]
        highest = np.maximum.accumulate(np.concatenate(([max(held, default=NEVER)], bounds)))
        fresh: Mask = bounds > highest[:-1] if held else np.concatenate(([True], bounds[1:] > highest[1:-1]))
        if fresh.any():
            at = int(np.flatnonzero(fresh)[-1])
            self._tables[kind] = [group.slice(at, at + 1)]
        return fresh

    def _add_numbers(self, parts: Parts) -> Mask | None:
        """The next most usual batch, integers of the one attribute that all integers so far are of. None if the batch
        or the set is of another kind."""
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
        """Add patterns of simple shapes; returns the fresh ones."""
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
            # Those inserted just now may cover it, if they came later: it is fresh, but need not be kept.
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
        """Keep patterns that nothing kept covers, and drop what they cover."""
        if not group.height:
            return
        group = group.compact()
        self._prune(group)
        if len(group.shape) == 1 and group.shape[0][1] == "=":
            name = group.shape[0][0]
            if group.columns[name].dtype == pl.Int64:
                self._intervals[name] = self._intervals.get(name, Intervals()).add(group.columns[name].to_numpy())
                return
        segments = self._tables.setdefault(_kind(group), [])
        segments.append(group)
        while len(segments) > 1 and segments[-2].height < 2 * segments[-1].height:
            segments[-2:] = [segments[-2].concat(segments[-1:]).compact()]

    def _prune(self, group: Group) -> None:
        kind = _kind(group)
        for other, segments in list(self._tables.items()):
            # Segments of its own kind are compacted when they merge.
            if other != kind and group.attributes <= {name for name, _ in other[0]}:
                self._replace(other, [known.filter(~group.covers(known.rows)) for known in segments])
        for name, intervals in list(self._intervals.items()):
            if group.attributes <= {name} and group.shape != ((name, "="),):
                ends = intervals.highs if dict(group.shape).get(name) in ("<", "<=", None) else intervals.lows
                left = intervals.keep(~group.covers(Group.of({name: ("=", pl.Series(ends))}).rows))
                self._set_intervals(name, left)
        self._odd = [odd for odd in self._odd if not group.covers(Rows.of_pattern(odd))[0]]

    def _prune_by_odd(self, pattern: Pattern) -> None:
        for kind, segments in list(self._tables.items()):
            self._replace(kind, [known.filter(~rows_covered(pattern, known)) for known in segments])
        for name, intervals in list(self._intervals.items()):
            restriction = pattern.get(name)
            if pattern.attributes == {name} and restriction.form is Form.INTERVAL:
                ends = pl.DataFrame({"lo": intervals.lows, "hi": intervals.highs})
                inside = ends.select(restriction.expression(pl.col("lo")) & restriction.expression(pl.col("hi")))
                self._set_intervals(name, intervals.keep(~inside.to_series().to_numpy()))
        self._odd = [odd for odd in self._odd if not pattern.covers(odd)]

    def _replace(self, kind: Kind, segments: list[Group]) -> None:
        left = [group for group in segments if group.height]
        if left:
            self._tables[kind] = left
        else:
            del self._tables[kind]

    def _set_intervals(self, name: str, intervals: Intervals) -> None:
        if len(intervals):
            self._intervals[name] = intervals
        else:
            del self._intervals[name]

    def _merge_all(self) -> None:
        for kind, segments in self._tables.items():
            if len(segments) > 1:
                self._tables[kind] = [segments[0].concat(segments[1:]).compact()]


def _is_integral(type_: pl.DataType) -> bool:
    return type_ == pl.Int64 or type_ == pl.Datetime or type_ == pl.Date or type_ == pl.Duration


def _kind(group: Group) -> Kind:
    return group.shape, tuple(column.dtype for column in group.columns.values())


def _runs(parts: Parts) -> Iterator[tuple[Sequence[Group], tuple[int, Pattern] | None]]:
    """Groups of patterns that come before the next odd pattern, and that pattern, in order."""
    if not parts.odd:
        yield parts.groups, None
        return
    start = -1
    for odd in parts.odd:
        yield _within(parts.groups, start, odd[0]), odd
        start = odd[0]
    yield _within(parts.groups, start, None), None


def _within(groups: Sequence[Group], after: int, before: int | None) -> list[Group]:
    made = []
    for group in groups:
        first = int(np.searchsorted(group.positions, after, side="right"))
        last = group.height if before is None else int(np.searchsorted(group.positions, before))
        if first < last:
            made.append(group.slice(first, last))
    return made
