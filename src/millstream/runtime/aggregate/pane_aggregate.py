"""The lower level of a paned window aggregate.

| | |
|---|---|
| computes | partial results per pane (`algebra/windower.py`) and group |
| state | a partial result per open pane and group |
| punctuation in → purged → out | `[ts < v, groups]` → panes that end by v → `[pane_end <= …, groups]` |
| | `[ts in [u, v), groups]` → panes within it → `[pane_end in (…, …], groups]` |
| | `[groups]` → all panes of these groups → itself |
| | any other → nothing → nothing; a punctuation that an earlier one covers is not emitted |
| progress v, or the port's bound v | → the panes that end by v → in band, v rounded down to a pane |
| order of rows | by closing punctuation, then pane end, then group; stamped one tick before the pane end |
| cost | O(1) a tuple |

A window aggregate over the panes merges them; it does not expect a fixed number of panes. A pane lies in the windows
that its last instant lies in, so both levels together close exactly the windows that a single level closes. With
`partials` the input consists of partial results, as for a window aggregate.

A prod that is answered above takes all partial results along. If it `releases` them, the pane starts afresh: later
tuples of the pane make another fragment of it, and the windows have the sum of all fragments. Otherwise the pane keeps
them, and the windows do not.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.early import Prod
from millstream.algebra.schema import Schema
from millstream.algebra.shed import Shed
from millstream.algebra.window import PANE_END
from millstream.algebra.windower import Windower
from millstream.runtime.aggregate.grouped import GroupedAggregate
from millstream.runtime.aggregate.state import GroupState
from millstream.runtime.operator.capabilities import AnswersProds, LacksShed
from millstream.runtime.operator.registry import carries_out


@carries_out("pane_aggregate")
class PaneAggregate(GroupedAggregate, AnswersProds, LacksShed):
    def __init__(
        self,
        input_schema: Schema,
        schema: Schema,
        windows: Windower,
        group: tuple[str, ...],
        aggregates: tuple[AggregateCall, ...],
        attribute: str | None = None,
        partials: bool = False,
        early: str = "",
    ) -> None:
        end = PANE_END, schema.type_of(PANE_END).polars
        state = GroupState(
            input_schema, group, aggregates, end=end, windows=windows, attribute=attribute, partials=partials
        )
        super().__init__(schema, state, [pl.col(name) for name in schema.names])
        self.answers, self._releases = bool(early), early == "release"

    def missing(self, port: int, shed: Shed, passed: Shed) -> Shed:  # noqa: ARG002
        return passed  # a tuple and its pane lie in the same windows

    def early(self, rows: Sequence[pl.DataFrame | None], prod: Prod) -> pl.DataFrame | None:
        if not self.answers or prod.lost:
            return None
        if rows[0] is not None or not self._releases:
            given = None if rows[0] is None else self._open(self._state.partials(rows[0]))
            self._fold()
            held = self._state.merged() if given is None else self._state.merged_with(given)
        else:
            held = self._state.release(self._drain())
        return self._finish(held) if held.height else None
