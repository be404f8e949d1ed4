"""Grouped window aggregate.

| | |
|---|---|
| computes | mergeable aggregates per window `[end - range, end)` and group; ends are multiples of `slide` |
| state | a partial result per open window and group; windows without tuples do not exist |
| punctuation in → purged → out | `[ts < v, groups]` → windows ended by v → `[window_end <= (v // slide) * slide, …]` |
| | `[groups]` → all windows of these groups → itself |
| | any other → nothing → nothing; nor does one come out that an earlier one covers |
| progress v, or the port's bound v | → windows that end by v → in band, v rounded down to a slide |
| rows come out | by closing punctuation, then window end, then group (NULL last) |
| cost | O(1) a tuple, plus range/slide a pane and group; closing follows what is held |

Without a range a group has no windows, and only punctuation on it closes it. Results are stamped with the window
end; without a range, or if the windows are over another attribute than the stream's time (then only punctuation on
that attribute closes them), with the newest of their tuples.

With `over_panes` the input is the output of a PaneAggregate of the same groups and calls. Pane rows are stamped with
their end, so a bound v there speaks of panes that end before v, and completes windows that end before v.

With `partials` the input is made of partial results of the same groups and calls, each of some tuples of one pane and
stamped with a time in it: what a source makes of its tuples to send less. Several of them may be of one pane and group.
"""

from __future__ import annotations

import polars as pl

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.schema import FOREVER, NEVER, TS, Schema
from millstream.algebra.window import PANE_END, WINDOW_END, WINDOW_START
from millstream.runtime.aggregate.grouped import GroupedAggregate
from millstream.runtime.aggregate.state import GroupState
from millstream.runtime.operator.registry import carries_out


@carries_out("window_aggregate")
class WindowAggregate(GroupedAggregate):
    def __init__(
        self,
        input_schema: Schema,
        schema: Schema,
        range: int | None,
        slide: int | None,
        group: tuple[str, ...],
        aggregates: tuple[AggregateCall, ...],
        attribute: str | None = None,
        over_panes: bool = False,
        partials: bool = False,
    ) -> None:
        if attribute is not None and attribute == input_schema.time:
            attribute = None
        timed = range is not None and attribute is None
        step = slide or range or 1
        state = GroupState(
            input_schema,
            group,
            aggregates,
            end=None if range is None else (WINDOW_END, schema.type_of(WINDOW_END).polars),
            range_=range or 0,
            slide=step,
            attribute=attribute,
            stamped=not timed,
            panes=PANE_END if over_panes else None,
            partials=partials,
        )
        time = PANE_END if over_panes else attribute or input_schema.time
        finish: list[pl.Expr] = []
        if range is not None:
            start = (pl.col(WINDOW_END).to_physical() - range).cast(schema.type_of(WINDOW_START).polars)
            finish += [start.alias(WINDOW_START), pl.col(WINDOW_END)]
        finish += [pl.col(name) for name in group] + [aggregate.result() for aggregate in aggregates]
        finish.append(pl.col(WINDOW_END).to_physical().alias(TS) if timed else pl.col(TS))
        super().__init__(schema, state, group, step, time, finish, timed=timed)
        self._over_panes = over_panes

    def time_of(self, bound: int) -> int:
        return bound - 1 if self._over_panes and bound not in (NEVER, FOREVER) else bound
