"""Grouped window aggregate.

| | |
|---|---|
| computes | mergeable aggregates per window and group |
| state | a partial result per open window and group; windows without tuples do not exist |
| punctuation in → purged → out | `[ts < v, groups]` → windows ended by v → `[window_end <=` their last end `, …]` |
| | and, for operators only, `[window_start <=` its start `, …]` |
| | `[ts in [u, v), groups]` → windows within it → `[window_end in (…, …], …]`; the same of `window_start` |
| | `[groups]` → all windows of these groups → itself |
| | any other → nothing → nothing; a punctuation that an earlier one covers is not emitted |
| progress v, or the port's bound v | → windows that end by v → in band, v rounded down to an end |
| notice of shed tuples | → nothing → the windows and groups that lack tuples; their rows are `final-shed` |
| order of rows | by closing punctuation, then window end, then group (NULL last) |
| cost | O(1) a tuple, plus one for each window of a pane and group; closing is linear in the groups held |

Results are stamped with the window's last instant, one tick before its end, so that windows over windows hold what
lies in them. A bound v on time therefore still holds for later results, which end after v. Without windows only
punctuation closes a group. Without windows, or over another attribute than the stream's time, results
are stamped with the newest timestamp of their tuples; windows over another attribute are closed by punctuation on it
only.

A prod is answered with the results so far of the open windows and groups that it asks for, if the aggregate `answers`
prods; the state stays as it is. Early rows of an aggregate below count in the answer and are not kept. Only increments
are: a pane that a prod has released is merged into the windows, and counts there from then on.

With `over_panes` the input is the output of a PaneAggregate of the same groups and calls. Pane rows are stamped like
windows, one tick before their end.

With `partials` the input consists of partial results of the same groups and calls, which a source computes to send
less. Each covers some tuples of one pane and group and is stamped with a time in the pane; several may have the same
pane and group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.early import EARLY, FINAL, FINAL_SHED, FINALITY, Prod
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import FOREVER, NEVER, Schema
from millstream.algebra.shed import BETWEEN, Shed
from millstream.algebra.window import PANE_END, WINDOW_END, WINDOW_START
from millstream.algebra.window_patterns import starts_of
from millstream.algebra.windower import Windower
from millstream.runtime.aggregate.finishing import Column, Finishing, Moved, result_of
from millstream.runtime.aggregate.grouped import NONE, GroupedAggregate
from millstream.runtime.aggregate.overflow import ResultCheck
from millstream.runtime.aggregate.paned_state import PanedState
from millstream.runtime.aggregate.shed_results import ShedResults
from millstream.runtime.aggregate.state import GroupState
from millstream.runtime.operator.capabilities import AnswersProds, LacksShed
from millstream.runtime.operator.registry import carries_out
from millstream.runtime.state.table import StateTable


@carries_out("window_aggregate")
class WindowAggregate(GroupedAggregate, AnswersProds, LacksShed):
    def __init__(
        self,
        input_schema: Schema,
        schema: Schema,
        windows: Windower | None,
        group: tuple[str, ...],
        aggregates: tuple[AggregateCall, ...],
        attribute: str | None = None,
        over_panes: bool = False,
        partials: bool = False,
        in_panes: bool = False,
        finality: bool = False,
        early: str = "",
        increments: bool = False,
    ) -> None:
        columns: list[Column] = []
        held: dict[str, Any] = {}
        if windows is not None:
            start = Moved(WINDOW_START, WINDOW_END, windows.start, schema.type_of(WINDOW_START).polars)
            columns += [start, pl.col(WINDOW_END)]
            held = {"windows": windows, "end": (WINDOW_END, schema.type_of(WINDOW_END).polars)}
        columns += [pl.col(name) for name in group] + [result_of(aggregate) for aggregate in aggregates]
        labels = [[pl.lit(label).alias(FINALITY)] if finality else [] for label in (FINAL, EARLY)]
        early_columns = [*columns, *labels[1]]
        columns += labels[0]
        state = (PanedState if in_panes else GroupState)(
            input_schema,
            group,
            aggregates,
            attribute=attribute,
            panes=PANE_END if over_panes else None,
            partials=partials,
            **held,
        )
        super().__init__(schema, state, columns, aggregates)
        self.answers, self._asked.inner = bool(early), early == "inner"
        self._early, self._increments = Finishing([*early_columns, self._stamp]), increments
        self._check = ResultCheck(aggregates, group, None if windows is None else (WINDOW_END, windows))
        self._labels = finality
        keys = {name: state.table.schema[name] for name in state.keys}
        if state.end is not None:
            self._shed = ShedResults(keys, state.end, state.windows)
        else:
            times = {name: offset for name, offset in input_schema.times.items() if name in group}
            place = next(iter(times), None)
            self._shed = ShedResults(keys, place, times.get(place or "", 0))

    def check(self, groups: pl.DataFrame) -> pl.DataFrame | None:
        return self._check(groups)

    def early(self, rows: Sequence[pl.DataFrame | None], prod: Prod) -> pl.DataFrame | None:
        given = rows[0]
        if given is not None and self._increments:
            self._state.take(given)
            given = None
        found = self.so_far(prod, given) if self.answers else None
        if found is None or not found.height:
            return None
        exceeding = self._check(found)
        if exceeding is not None:
            found = found.filter(exceeding.select(pl.all_horizontal(pl.all().is_null())).to_series())
        return self._early(found)

    # --- shed tuples --------------------------------------------------------------------------------------------------

    def missing(self, port: int, shed: Shed, passed: Shed) -> Shed:  # noqa: ARG002
        state = self._state
        if state.windowing is not None:
            shed = _by_attribute(shed, state.windowing)
        if self._labels:
            self._shed.add(shed, self._closed)
        if state.timed:
            return self._shed.placed(passed).moved(-1)
        if state.end is None and self._shed.place is not None:
            return passed  # the tuples of a group have one timestamp, which is that of its row
        return passed.anytime()

    def finished(self, groups: pl.DataFrame) -> pl.DataFrame:
        rows = super().finished(groups)
        if not len(self._shed):
            return rows
        label = pl.when(self._shed.mask(groups)).then(pl.lit(FINAL_SHED)).otherwise(pl.lit(FINAL))
        return rows.with_columns(label.alias(FINALITY))

    def purge_shed(self, closed: Punctuations, timely: Punctuations) -> None:
        if len(self._shed):
            self._shed.forget(self._closed, Punctuations.concat([closed, timely]))

    def tables(self) -> Mapping[str, StateTable]:
        return {**super().tables(), **({"shed": self._shed.table} if self._labels else {})}

    # --- punctuation --------------------------------------------------------------------------------------------------

    def closed(self, punctuations: Punctuations) -> Punctuations:
        """Return the punctuations, and after them those on the end of a window once more, on its start."""
        ends = punctuations.restricting(WINDOW_END) if self._state.end is not None else NONE
        if not len(ends):
            return punctuations
        type_, windows = self.schema.type_of(WINDOW_START).polars, self._windower
        ends = ends.map_ranges(WINDOW_END, lambda r: starts_of(r, windows), WINDOW_START)
        starts = ends.map_upper(WINDOW_END, windows.closed_start, WINDOW_START, "<=", type_)
        return Punctuations.concat([punctuations, starts])


def _by_attribute(shed: Shed, attribute: str) -> Shed:
    """The notice with values of another attribute in place of timestamps; any value if they are not known."""
    value = pl.col(attribute).cast(pl.Int64) if attribute in shed.names else None
    between = [
        pl.lit(limit).alias(name) if value is None else value.fill_null(limit).alias(name)
        for name, limit in zip(BETWEEN, (NEVER, FOREVER), strict=True)
    ]
    return Shed(shed.rows.with_columns(*between))
