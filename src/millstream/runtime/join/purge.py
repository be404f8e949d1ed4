"""Punctuation in a join: the stored tuples that it makes useless, and its propagation.

Purge (Lemma 1). A punctuation p of one side promises that no later tuple there matches it. A stored tuple of the other
side is useless if every partner that it could still find would match p. So p is *translated* into a pattern over the
other side: key restrictions move to the equal columns, and an upper bound v on the time becomes `ts < v - W`, if the
other side has a window of range W. If p restricts anything else it purges nothing. A bound on time alone is progress
and handled as such. New tuples that match a translated punctuation probe, but are not stored.

Propagation (Lemma 2). p is emitted, under the output's names, once no stored tuple of its own side matches it. A
restriction of a right key is emitted on the equal left column, so that both sides name equal keys alike. Values that
both sides have closed (Lemma 3) need no rule of their own: each side closes the tuples that the other has stored.

>>> from millstream.algebra.punctuation.pattern import Pattern
>>> from millstream.algebra.punctuation.restriction import below, equal
>>> key, both = Pattern.of({"b.k": equal(5)}), Pattern.of({"b.k": equal(6), "b.ts": below(30)})
>>> Translation({"b.k": "a.k"}, {"b.ts": 0}, 10)(Punctuations.of([key, both, Pattern.of({"b.x": below(1)})]))
Punctuations([a.k = 5] [__ts < 20, a.k = 6])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import polars as pl

from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import TS, Schema
from millstream.runtime.operator.propagation import together


class Renaming:
    """Punctuation under other names; it is returned unchanged if its names stay."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = dict(names)
        self._changed = frozenset(name for name, new in names.items() if name != new)

    def __call__(self, punctuations: Punctuations) -> Punctuations:
        if all(self._changed.isdisjoint(attributes) for attributes in together(punctuations)):
            return punctuations
        return punctuations.select(self._names)


class Translation:
    """Translation of punctuation of one side into patterns of useless tuples of the other, both over the output's
    names. `times` are the columns at a fixed distance from the time, with the distance: a bound on one of them becomes
    a bound on the column `on`."""

    def __init__(self, keys: Mapping[str, str], times: Mapping[str, int], kept_for: int | None, on: str = TS) -> None:
        self._keys = dict(keys)
        self._times = {} if kept_for is None else {t: offset for t, offset in times.items() if t not in self._keys}
        self._kept_for, self._on = kept_for or 0, on

    def __call__(self, punctuations: Punctuations) -> Punctuations:
        names = together(punctuations)
        if not any(len(own) > 1 and not own.isdisjoint(self._times) for own in names):
            return punctuations.select(self._keys)
        both = punctuations.select({**self._keys, **{name: name for name in self._times}})
        for name, offset in self._times.items():
            both = both.map_upper(name, self._less(offset), self._on, "<", pl.Int64(), 1 if offset else 0)
        return both

    def _less(self, offset: int) -> Callable[[pl.Expr], pl.Expr]:
        return lambda bound: bound - self._kept_for - offset


def times_named(schema: Schema, names: Mapping[str, str]) -> dict[str, int]:
    """Return the columns of a side at a fixed distance from its time, under the output's names, with the distance."""
    return {names[name]: offset for name, offset in schema.times.items()}
