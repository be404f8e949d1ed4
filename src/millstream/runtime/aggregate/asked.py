"""The windows and groups of an aggregate that a prod asks for, and the prod behind the aggregate.

| a prod asks for | the aggregate answers for |
|---|---|
| time `< v` or `<= v` | windows that end by v, rounded down to a slide |
| time `= v` | the window that ends at v, rounded down |
| values of a group | these groups |
| anything else | nothing |
| nothing | all open windows and groups |

Behind the aggregate time is the end of a window, and a bound on it is not rounded: windows above have a slide of their
own. A prod of one query speaks of the output of its topmost aggregate; aggregates below answer for everything.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from millstream.algebra.early import Asked, Prod, as_integer, ends_asked, mapped
from millstream.algebra.punctuation.restriction import Form, Restriction, below
from millstream.runtime.aggregate.state import GroupState


class AskedGroups:
    """`inner`: results are aggregated once more."""

    def __init__(self, state: GroupState) -> None:
        self._state = state
        self.inner = False

    def expression(self, prod: Prod) -> pl.Expr | None:
        """Return a condition on the partial results; None if the prod asks for none."""
        state = self._state
        if prod.lost:
            return None
        if prod.reader:
            if self.inner:
                return pl.lit(True)
            return prod.pattern.expression() if prod.pattern.attributes <= {*state.keys} else None
        conditions: list[pl.Expr] = []
        for asked in prod.asked:
            group = next((name for name in asked.names if name in state.group), None)
            if state.end is not None and self._bounds(asked):
                ends = pl.col(state.end).cast(state.table.schema[state.end]).to_physical()
                conditions.append(self._ends(asked).expression(ends))
            elif group is None:
                return None
            elif asked.time:
                conditions.append(asked.restriction.expression(pl.col(group).cast(pl.Int64)))
            else:
                conditions.append(asked.restriction.expression(pl.col(group)))
        return pl.all_horizontal(conditions) if conditions else pl.lit(True)

    def _bounds(self, asked: Asked) -> bool:
        """Return whether it asks for windows: by the stream's time, or by the attribute that they are over."""
        return asked.time if self._state.windowing is None else self._state.windowing in asked.names

    def _ends(self, asked: Asked) -> Restriction:
        """The ends of windows that it asks for. For one window of the aggregate above all windows before its end are
        asked for: their results count there."""
        wanted = _as_integers(asked)
        if self.inner and wanted.form is Form.ONE_OF and wanted.values:
            wanted = below(max(wanted.values), closed=True)
        return ends_asked(wanted, self._state.slide)

    def passed(self, prod: Prod, arrived: Prod) -> Prod:
        """Return the prod to pass on: `prod` has the names of group columns; what `arrived` asks of windows is asked of
        their ends."""
        if self._state.end is None:
            return prod
        asked: list[Asked] = []
        for before, after in zip(arrived.asked, prod.asked, strict=True):
            bounds = self._bounds(before)
            names = (*after.names, *([self._state.end] if bounds else []))
            if bounds:
                after = replace(after, names=names, restriction=ends_asked(_as_integers(before), 1), time=True)
            asked.append(after)
        lost = arrived.lost or any(not each.names and not each.time for each in asked)
        return replace(prod, asked=tuple(asked), lost=lost)


def _as_integers(asked: Asked) -> Restriction:
    return asked.restriction if asked.time else mapped(asked.restriction, as_integer)
