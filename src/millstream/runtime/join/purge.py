"""What punctuation does in a join: which stored tuples it makes useless, and when it goes on.

Purge (Lemma 1). A punctuation p of one side says that no later tuple there matches it. A stored tuple of the other
side is useless if every partner that it could still find would match p. So p is *translated* into a pattern over the
other side: key restrictions move to the equal columns, and an upper bound v on the time becomes `ts < v - W`, if tuples
of the other side are kept for a range W only. If p restricts anything else it purges nothing. A bound on time alone
comes as progress and is handled as such. Tuples that match what has been translated so far are not stored in the first
place; they still probe.

Propagation (Lemma 2). p goes on, under the names of the output, once no stored tuple of its own side matches it. A
restriction of a right key goes out on the equal left column, so that both sides call equal things the same. That the
same value is closed on both sides (Lemma 3) needs no rule of its own: each closes what the other has stored.

>>> from millstream.algebra.punctuation.pattern import Pattern
>>> from millstream.algebra.punctuation.restriction import below, equal
>>> key, both = Pattern.of({"b.k": equal(5)}), Pattern.of({"b.k": equal(6), "b.ts": below(30)})
>>> Translation({"b.k": "a.k"}, "b.ts", 10)(Punctuations.of([key, both, Pattern.of({"b.x": below(1)})]))
Punctuations([a.k = 5] [__ts < 20, a.k = 6])
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import TS, Schema
from millstream.runtime.operator.propagation import together


class Renaming:
    """Punctuation under other names; nothing is done for what keeps its names."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = dict(names)
        self._changed = frozenset(name for name, new in names.items() if name != new)

    def __call__(self, punctuations: Punctuations) -> Punctuations:
        if all(self._changed.isdisjoint(said) for said in together(punctuations)):
            return punctuations
        return punctuations.select(self._names)


class Translation:
    """From punctuation of one side to what it makes useless on the other, both under the output's names. A bound on the
    time speaks of the column `on`."""

    def __init__(self, keys: Mapping[str, str], time: str | None, kept_for: int | None, on: str = TS) -> None:
        self._keys = dict(keys)
        self._time = time if kept_for is not None and time not in self._keys else None
        self._kept_for, self._on = kept_for or 0, on

    def __call__(self, punctuations: Punctuations) -> Punctuations:
        if self._time is None or not any(self._time in said and len(said) > 1 for said in together(punctuations)):
            return punctuations.select(self._keys)
        both = punctuations.select({**self._keys, self._time: self._time})
        return both.map_upper(self._time, lambda bound: bound - self._kept_for, self._on, "<", pl.Int64())


def time_name(schema: Schema, names: Mapping[str, str]) -> str | None:
    """The output's name of a side's visible time."""
    return None if schema.time is None else names[schema.time]
