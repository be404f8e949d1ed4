"""The tuples of an operator that prods have passed: their windows have an answer without them.

A prod passes the tuples that wait, and later ones of the same windows and groups. They are put aside (`aside.py`), or
shed. A tuple that a reader desires is not passed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import polars as pl

from millstream.algebra.early import Prod, as_integer, mapped
from millstream.algebra.feedback import MOST_DESIRED
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import ANY, Form, below
from millstream.algebra.schema import TS
from millstream.algebra.window import WINDOW_END


class Passed:
    """`names`: the columns of the tuples."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._answered: list[Pattern] = []
        """The tuples that prods have passed, of those that may still arrive."""

    def pass_by(self, prod: Prod) -> bool:
        """Note the tuples that a prod passes; return whether there are any."""
        pattern = passed_by(prod, self._names)
        if pattern is None or any(each.covers(pattern) for each in self._answered):
            return pattern is not None
        self._answered = [*(each for each in self._answered if not pattern.covers(each)), pattern][-MOST_DESIRED:]
        return True

    def behind(self, rows: pl.DataFrame, desired: Sequence[Pattern]) -> pl.Series | None:
        """Return a mask of the tuples that prods have passed; None if there are none."""
        if not self._answered:
            return None
        found = _matched(self._answered, rows) & ~_matched(desired, rows)
        return found if found.any() else None

    def forget(self, time: int) -> None:
        """Forget what is older than a time."""
        self._answered = [each for each in self._answered if each.get(TS).hi > time]

    def to_value(self) -> list[Pattern]:
        return list(self._answered)

    def restore(self, value: Sequence[Pattern]) -> None:
        self._answered = list(value)


def passed_by(prod: Prod, names: Collection[str]) -> Pattern | None:
    """Return the tuples of the windows and groups that a prod asks for, and of earlier windows: those older than the
    end of the last window or, without a bound, than the time of the stream at the prod. None if that is not known."""
    times, groups = ANY, {}
    if prod.reader:
        if not prod.pattern.attributes <= {WINDOW_END}:
            return None
        times = mapped(prod.pattern.get(WINDOW_END), as_integer)
    for asked in prod.asked:
        column = next((name for name in asked.names if name in names), None)
        if asked.time:
            times = asked.restriction
        elif column is None:
            return None
        else:
            groups[column] = asked.restriction
    if prod.lost or times.is_empty:
        return None
    last = max(times.values) if times.form is Form.ONE_OF else times.hi
    last = prod.time if last is None else last
    return None if last is None else Pattern.of({TS: below(last), **groups})


def _matched(patterns: Sequence[Pattern], rows: pl.DataFrame) -> pl.Series:
    found = pl.repeat(False, rows.height, dtype=pl.Boolean, eager=True)
    for pattern in patterns:
        found = found | pattern.match(rows)
    return found
