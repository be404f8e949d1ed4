"""Doomed groups: groups of an aggregate whose result is not wanted, whatever tuples follow.

A watched pattern is one that a result keeps matching once it does: `[n > 10]` for a COUNT. When the partial result of a
group matches it, the group is purged, and its key is kept instead until the group closes, so that it does not form
again from later tuples. Purge and key are one step: between them no tuple is taken.

| | |
|---|---|
| checked | once a step, if tuples were taken, for all groups at once |
| skipped | while few tuples have come, compared with the groups held; the more often little is found, the longer |
| passed on | for each window with few doomed groups, one pattern with their keys: the inputs may omit their tuples |

A check folds the waiting tuples, which costs more than to fold them when the window closes. So it has to find a doomed
group for every `WORTH` tuples, or the next one comes later. Of a window with more than `MOST` doomed groups nothing
more is passed on: to test every tuple for that many keys costs more than to drop the tuples here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import one_of
from millstream.runtime.operator.frames import where
from millstream.runtime.operator.keys import joined
from millstream.runtime.state.table import StateTable

MOST = 256
"""Most groups of a window that the inputs are told of; tuples of further ones are dropped on arrival."""
MOST_PATTERNS = 16
"""Most patterns that the inputs are told of in a step."""
SHARE = 8
"""Groups per tuple: groups are checked once one tuple for each that many groups has been taken."""
WORTH = 4
"""A check pays if it finds a doomed group for this many tuples; then the next one may come as soon."""
MOST_WAIT = 1 << 24
"""While checks do not pay, each waits for twice as many tuples as the one before it took, up to this number."""
_DOOMED = "__doomed"


class Doomed:
    """`keys`: the columns that name a group, with their types. `calls`: the aggregates."""

    def __init__(self, keys: Mapping[str, pl.DataType], calls: Sequence[AggregateCall]) -> None:
        self._keys, self._calls = list(keys), {call.name: call for call in calls}
        self.table = StateTable(keys)
        self.watched: list[Pattern] = []
        self.taken = 0
        """Tuples since the last check."""
        self._wait = 0  # tuples before the next check
        self._found: list[Pattern] = []  # the inputs are still to be told of these groups

    def watch(self, pattern: Pattern) -> bool:
        """Watch a pattern over keys and results from now on; return whether it is new. A pane has no results yet."""
        if (
            not self._keys
            or not pattern.attributes <= {*self._keys, *self._calls}
            or any(known.covers(pattern) for known in self.watched)
        ):
            return False
        self.watched = [*(known for known in self.watched if not pattern.covers(known)), pattern]
        return True

    def unwatch(self, covers: Callable[[Pattern], bool]) -> bool:
        before, self.watched = self.watched, [pattern for pattern in self.watched if not covers(pattern)]
        return len(self.watched) < len(before)

    def due(self, taken: int, groups: int) -> bool:
        """Return whether groups are to be checked, after `taken` further tuples."""
        self.taken += taken
        known = groups + len(self.table)
        return bool(self.watched) and self.taken > 0 and self.taken >= max(known / SHARE, self._wait)

    def find(self, groups: pl.DataFrame) -> pl.DataFrame:
        """Return the keys of the groups, given by their partial results, that are doomed; keep them, and note which
        groups the inputs are told of."""
        taken, self.taken = self.taken, 0
        names = {name for pattern in self.watched for name in pattern.attributes if name in self._calls}
        calls = [self._calls[name] for name in sorted(names)]
        values = groups.select(*self._keys, *(call.result() for call in calls))
        doomed = values.select(pl.any_horizontal([p.expression() for p in self.watched])).to_series()
        for call in calls:
            if (fits := call.fits()) is not None:
                doomed = doomed & groups.select(fits).to_series()
        found = where(values.select(self._keys), doomed)
        self._wait = 0 if found.height * WORTH >= taken else min(2 * taken, MOST_WAIT)
        if found.height:
            self.table.append(found)
            self._found += self._told(found)[: MOST_PATTERNS - len(self._found)]
        return found

    def _told(self, found: pl.DataFrame) -> list[Pattern]:
        """Return patterns for groups found just now, with all other doomed groups of their windows: a pattern takes the
        place of an earlier one that it covers."""
        *others, last = self._keys
        if not others:
            return _patterns([{last: self.table.frame().get_column(last).to_list()}]) if len(self.table) <= MOST else []
        if len(others) > 1:  # a pattern has no pairs of values
            few = found if len(self.table) <= MOST else found.clear()
            return _patterns({name: [value] for name, value in row.items()} for row in few.rows(named=True))
        (first,) = others
        windows = found.select(first).unique(maintain_order=True).head(MOST_PATTERNS)
        doomed = joined(self.table.frame(), windows, [first], "semi")
        grouped = doomed.group_by(first, maintain_order=True).agg(pl.col(last)).filter(pl.col(last).list.len() <= MOST)
        return _patterns({first: [value], last: values} for value, values in grouped.iter_rows())

    def take_found(self) -> tuple[Pattern, ...]:
        """Return patterns for groups found since the last call."""
        found, self._found = tuple(self._found), []
        return found

    def mask(self, groups: pl.DataFrame, doomed: pl.DataFrame) -> pl.Series:
        """Return a mask of the rows that belong to these doomed groups."""
        doomed = doomed.with_columns(pl.lit(True).alias(_DOOMED))
        names = groups.select(self._keys)
        return joined(names, doomed, self._keys, "left").get_column(_DOOMED).is_not_null()

    def without(self, partials: pl.DataFrame) -> pl.DataFrame:
        """Return partial results without those of doomed groups."""
        if not len(self.table) or not partials.height:
            return partials
        return joined(partials, self.table.frame(), self._keys, "anti")

    def close(self, closes: Callable[[pl.DataFrame], pl.Series]) -> None:
        """Forget the groups that close."""
        if len(self.table):
            self.table.keep(~closes(self.table.frame()))

    def to_value(self) -> Any:
        return self.watched, self.taken, self._found

    def restore(self, value: Any) -> None:
        self.watched, self.taken, self._found = (list(value[0]), value[1], list(value[2]))


def _patterns(keys: Iterable[Mapping[str, Sequence[Any]]]) -> list[Pattern]:
    found = (Pattern.of({name: one_of(values) for name, values in each.items()}) for each in keys)
    return [pattern for pattern in found if not pattern.is_empty]
