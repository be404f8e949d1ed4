"""The lower level of a paned window aggregate.

| | |
|---|---|
| computes | partial results per pane (a tumbling window of length gcd(range, slide)) and group |
| state | a partial result per open pane and group |
| punctuation in → purged → out | `[ts < v, groups]` → panes that end by v → `[pane_end <= v // pane * pane, groups]` |
| | `[groups]` → all panes of these groups → itself |
| | any other → nothing → nothing; nor does one come out that an earlier one covers |
| progress v, or the port's bound v | → the panes that end by v → v + 1, for later ones end after v |
| rows come out | by closing punctuation, then pane end, then group; stamped with the pane end |
| cost | O(1) a tuple |

A window aggregate over the panes merges them; it never expects a fixed number of them. The output bound of v + 1 rather
than v is what makes both levels together close exactly the windows that a single level closes. With `partials` the
input is made of partial results, as for a window aggregate.
"""

from __future__ import annotations

import polars as pl

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.schema import FOREVER, NEVER, TS, Schema
from millstream.algebra.window import PANE_END
from millstream.runtime.aggregate.grouped import GroupedAggregate
from millstream.runtime.aggregate.state import GroupState
from millstream.runtime.operator.registry import carries_out


@carries_out("pane_aggregate")
class PaneAggregate(GroupedAggregate):
    def __init__(
        self,
        input_schema: Schema,
        schema: Schema,
        pane: int,
        group: tuple[str, ...],
        aggregates: tuple[AggregateCall, ...],
        attribute: str | None = None,
        partials: bool = False,
    ) -> None:
        if attribute is not None and attribute == input_schema.time:
            attribute = None
        state = GroupState(
            input_schema,
            group,
            aggregates,
            end=(PANE_END, schema.type_of(PANE_END).polars),
            range_=pane,
            slide=pane,
            attribute=attribute,
            stamped=attribute is not None,
            partials=partials,
        )
        timed = attribute is None
        finish = [pl.col(name) for name in schema.names]
        finish.append(pl.col(PANE_END).to_physical().alias(TS) if timed else pl.col(TS))
        super().__init__(schema, state, group, pane, attribute or input_schema.time, finish, timed=timed)

    def bound_of(self, time: int) -> int:
        return time + 1 if time not in (NEVER, FOREVER) else time
