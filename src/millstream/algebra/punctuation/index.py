"""The rows that many patterns match.

Patterns are split into pieces, one for each choice of values in their lists; a range is two bounds, one of them under a
name of its own. So pieces of equal shape are compared as columns, like punctuations (`cover_index`).

>>> from millstream.algebra.punctuation.restriction import between, equal, one_of
>>> index = Index([Pattern.of(k=one_of([1, 2]), v=between(3, 4)), Pattern.of(k=equal(7))])
>>> index.match(pl.DataFrame({"k": [1, 2, 7, 3], "v": [3, 5, 0, 3]})).to_list()
[True, False, True, False]
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import polars as pl

from millstream.algebra.punctuation.cover_index import Rows
from millstream.algebra.punctuation.grouping import by_shape, expand
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import Form, Restriction, above, below

_HIGH = "\0"
"""Begins the name under which a range has its upper bound."""


def pieces_of(pattern: Pattern) -> list[Pattern]:
    """Return a pattern for each choice of values in the lists of a pattern; itself, if those are too many.

    >>> from millstream.algebra.punctuation.restriction import one_of
    >>> [str(piece) for piece in pieces_of(Pattern.of(k=one_of([1, 2]), v=above(3)))]
    ['[k = 1, v > 3]', '[k = 2, v > 3]']
    """
    if pattern.is_empty:
        return []
    lists = [name for name, restriction in pattern.items if len(restriction.values) > 1]
    if len(lists) != 1:
        return expand(pattern)
    place = [name for name, _ in pattern.items].index(lists[0])
    before, after = pattern.items[:place], pattern.items[place + 1 :]
    values = pattern.items[place][1].values
    return [Pattern((*before, (lists[0], Restriction(Form.ONE_OF, (value,))), *after)) for value in values]


class Index:
    """The rows that some pattern matches."""

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        pieces = [_opened(piece) for pattern in patterns for piece in pieces_of(pattern)]
        self._groups, odd = by_shape(enumerate(pieces))
        self._odd = [pieces[place].expression() for place, _ in odd]  # lists with too many choices

    def match(self, frame: pl.DataFrame) -> pl.Series:
        rows = Rows(frame.height, lambda name, _: ("=", frame.get_column(name.removeprefix(_HIGH))))
        found = np.zeros(frame.height, dtype=np.bool_)
        for group in self._groups:
            found |= group.covers(rows)
        for expression in self._odd:
            found |= frame.select(expression).to_series().to_numpy()
        return pl.Series(found, dtype=pl.Boolean)


def _opened(pattern: Pattern) -> Pattern:
    """Return a pattern with each range as two bounds."""
    made: dict[str, Restriction] = {}
    for name, part in pattern.items:
        if part.form is Form.INTERVAL and part.lo is not None and part.hi is not None:
            made |= {name: above(part.lo, part.lo_closed), _HIGH + name: below(part.hi, part.hi_closed)}
        else:
            made[name] = part
    return Pattern.of(made)
