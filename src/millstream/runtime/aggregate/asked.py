"""The windows and groups of an aggregate that a prod asks for, and the prod behind the aggregate.

| a prod asks for | the aggregate answers for |
|---|---|
| time `< v` or `<= v` | windows that end by v, rounded down to an end |
| time `= v` | the window that ends at v, rounded down |
| values of a group, or of ends or starts of windows below that are one | these groups |
| time, without windows | all groups if an aggregate below has windows, otherwise nothing |
| anything else | nothing |
| nothing | all open windows and groups |

Behind the aggregate time is the end of a window, and a bound on it is not rounded: windows above have ends of their
own. Groups that are ends or starts of its windows get it rounded. A prod of one query speaks of the output of its
topmost aggregate; aggregates below answer for everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from millstream.algebra.early import Asked, Prod, as_integer, ends_asked, mapped
from millstream.algebra.punctuation.restriction import ANY, Form, Restriction, below
from millstream.algebra.window import WINDOW_START
from millstream.runtime.aggregate.bucket import integers
from millstream.runtime.aggregate.state import GroupState, Wanted
from millstream.runtime.operator.frames import where


class AskedGroups:
    """`inner`: results are aggregated once more."""

    def __init__(self, state: GroupState) -> None:
        self._state = state
        self.inner = False

    def wanted(self, prod: Prod) -> Wanted | None:
        """Return a filter of the partial results; None if the prod asks for none."""
        state = self._state
        if prod.lost:
            return None
        if prod.reader:
            if self.inner or not prod.pattern.items:
                return _all
            return _filter([prod.pattern.expression()]) if prod.pattern.attributes <= {*state.keys} else None
        conditions: list[pl.Expr] = []
        ends: list[Wanted] = []
        for asked in prod.asked:
            found = asked.of(state.group)
            if state.end is not None and self._bounds(asked):
                ends.append(_ends_within(self._ends(asked), state.end))
            elif found is not None:
                column = pl.col(found[0])
                conditions.append(found[1].expression(column.cast(pl.Int64) if asked.time else column))
            elif not asked.windowed or state.end is not None:
                return None
        return _in_turn([*ends, *([_filter(conditions)] if conditions else [])])

    def _bounds(self, asked: Asked) -> bool:
        """Return whether it asks for windows: by the stream's time, or by the attribute that they are over."""
        ends = (name for name, _, starts in asked.windows if not starts)
        return asked.time if self._state.windowing is None else self._state.windowing in (*asked.names, *ends)

    def _ends(self, asked: Asked) -> Restriction:
        """The ends of windows that it asks for. For windows of the aggregate above all windows before their ends are
        asked for: their results count there."""
        wanted = _as_integers(asked)
        if self.inner and not wanted.is_empty:
            last = max(wanted.values, default=wanted.hi)
            wanted = ANY if last is None else below(last, closed=True)
        return ends_asked(wanted, self._state.windows)

    def passed(self, prod: Prod, arrived: Prod) -> Prod:
        """Return the prod to pass on: `prod` has the names of group columns; what `arrived` asks of windows is asked of
        their ends."""
        end, own = self._state.end, self._state.windows
        if end is None:
            return prod
        windows = (end, own, False), (WINDOW_START, own, True)
        asked: list[Asked] = []
        for before, after in zip(arrived.asked, prod.asked, strict=True):
            bounds = self._bounds(before)
            asked.append(Asked((), _as_integers(before), True, True, windows) if bounds else after)
        lost = arrived.lost or any(not each.names and not each.time for each in asked)
        return replace(prod, asked=tuple(asked), lost=lost)


def _all(groups: pl.DataFrame) -> pl.DataFrame:
    return groups


def _in_turn(filters: Sequence[Wanted]) -> Wanted:
    def wanted(groups: pl.DataFrame) -> pl.DataFrame:
        for each in filters:
            groups = each(groups)
        return groups

    return wanted


def _filter(conditions: Sequence[pl.Expr]) -> Wanted:
    return lambda groups: groups.filter(*conditions)


def _ends_within(restriction: Restriction, name: str) -> Wanted:
    """Return a filter of windows by their ends, as integers."""

    def wanted(groups: pl.DataFrame) -> pl.DataFrame:
        ends = integers(groups.get_column(name))
        if restriction.form is not Form.INTERVAL:
            values = tuple(restriction.values)
            chosen = ends == values[0] if len(values) == 1 else np.isin(ends, values)
        else:
            chosen = np.ones(len(ends), dtype=np.bool_)
            if (low := restriction.lo) is not None:
                chosen &= ends >= low if restriction.lo_closed else ends > low
            if (high := restriction.hi) is not None:
                chosen &= ends <= high if restriction.hi_closed else ends < high
        return groups if restriction.is_any or chosen.all() else where(groups, chosen)

    return wanted


def _as_integers(asked: Asked) -> Restriction:
    return asked.restriction if asked.time else mapped(asked.restriction, as_integer)
