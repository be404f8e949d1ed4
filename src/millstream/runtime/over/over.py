"""Running aggregates over frames.

| | |
|---|---|
| computes | each tuple, with aggregates of the tuples of its partition in a frame that ends with it |
| order | by timestamp, equal timestamps by arrival; latent streams: by arrival. A tuple never sees later ones |
| `SLIDE` of rows | every n-th tuple of a partition only |
| `SLIDE` of time | the last tuple of each slot and partition only, once time has reached the end of the slot |
| `ACTIVE EXPIRATION` | besides, a row for each tuple that leaves the frame, once time has passed it (`active.py`) |
| state | `RANGE`: the tuples in the frame; `ROWS k`: k tuples a partition; `UNBOUNDED`: a partial result a partition |
| punctuation in → purged → out | on the partition alone → partitions that match it → itself |
| | any other → nothing → itself; where rows are held back, once none of them matches it |
| progress v, or the port's bound v | → tuples that leave the frame by v → v, or the oldest row held back |
| cost | a sort of the tuples by partition and two running merges, whatever the size of the frame |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.aggregate.row_call import RowCall
from millstream.algebra.frame import Frame
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import FOREVER, NEVER, TS, Schema, TimeKind
from millstream.algebra.time_limits import own_limits
from millstream.runtime.operator.contract import Input, Operator, Output
from millstream.runtime.operator.frames import pick, where
from millstream.runtime.operator.propagation import NO_PUNCTUATIONS, Pending
from millstream.runtime.operator.registry import carries_out
from millstream.runtime.operator.time_closing import TimeClosing
from millstream.runtime.over.active import ActiveWindows, merged_by_time
from millstream.runtime.over.folded import foldable, refuse, split_reasons
from millstream.runtime.over.panes import Panes
from millstream.runtime.over.sliding import Sliding
from millstream.runtime.over.slots import Slots
from millstream.runtime.over.totals import Totals
from millstream.runtime.over.windows import Windows
from millstream.runtime.state.table import StateTable

if TYPE_CHECKING:
    from millstream.runtime.operator.registry import Site

EVERY = 1 << 60
"""The size of a frame that has all tuples of a partition."""


@carries_out("over")
class Over(Operator):
    def __init__(
        self,
        input_schema: Schema,
        schema: Schema,
        partition: tuple[str, ...],
        frame: Frame,
        calls: tuple[AggregateCall, ...],
        merges: bool = False,
    ) -> None:
        self.schema, self.merges = schema, merges
        self._partition = {name: name for name in partition}
        self._frames = _frames(input_schema, partition, frame, calls)
        self._slots = None if frame.slots is None else Slots(schema, partition, frame.slots)
        self._held = self._frames if isinstance(self._frames, ActiveWindows) else self._slots
        """What holds back rows until time releases them."""
        self.timed = self._held is not None
        self._closing = TimeClosing(own_limits(input_schema.trails, partition))
        self._latent = input_schema.kind is TimeKind.LATENT
        self._names = list(schema.polars)
        self._now = NEVER
        """The highest bound, or timestamp of a tuple, so far."""
        self._pending = Pending()
        self._progress = NEVER, NEVER
        """The highest progress received in band, and emitted."""

    @classmethod
    def at(cls, site: Site, parameters: Mapping[str, Any]) -> Operator:
        if any(isinstance(call, RowCall) for call in parameters["calls"]):
            from millstream.runtime.over.row_over import RowOver

            return RowOver(**parameters)
        return super().at(site, parameters)

    def process(self, inputs: Sequence[Input]) -> Output:
        port = inputs[0]
        punctuations = NO_PUNCTUATIONS if port.punctuations is None else port.punctuations
        made, unfit = None, None
        if port.rows is not None and port.rows.height:
            made, unfit = self._results(port.rows)
        if self._held is not None:
            refuse(unfit)
        self._now = max(self._now, port.bound, punctuations.progress)
        if self._slots is not None:
            made = self._slots.take(made, self._now)
        elif isinstance(self._frames, ActiveWindows):
            gone = self._frames.release(self._now)
            made = merged_by_time(made, None if gone is None else pick(gone, self._names))
        self._purge(punctuations)
        return Output(made, self._propagated(punctuations) or None, exceeding=unfit if made is not None else None)

    def _results(self, rows: pl.DataFrame) -> tuple[pl.DataFrame | None, pl.DataFrame | None]:
        """Return the rows to emit, and the reasons of results that do not fit, by result."""
        if self._latent:
            rows = self._in_order(rows)
        results, emitted = self._frames.take(rows)
        self._now = max(self._now, int(rows.item(-1, TS)))
        if emitted is not None:
            if not emitted.any():
                return None, None
            rows = where(rows, emitted)
        results, unfit = split_reasons(results)
        columns = {series.name: series for series in (*rows.get_columns(), *results)}
        return pl.DataFrame([columns[name] for name in self._names]), unfit

    def _in_order(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return tuples of a latent stream with times that do not fall: those of several streams may."""
        times = rows.get_column(TS)
        if int(rows.item(0, TS)) >= self._now and times.is_sorted():
            return rows
        risen = np.maximum(np.maximum.accumulate(times.to_numpy()), self._now)
        return rows.with_columns(pl.Series(TS, risen))

    def _purge(self, punctuations: Punctuations) -> None:
        self._frames.purge(self._now)
        if self._partition and (len(punctuations) or self._closing):
            closed = punctuations.with_progress(NEVER).select(self._partition)
            timely = self._closing.advance(self._now)
            self._frames.close(Punctuations.concat([closed, timely]) if len(timely) else closed)

    # --- punctuation --------------------------------------------------------------------------------------------------

    def _propagated(self, punctuations: Punctuations) -> Punctuations:
        if self._held is None:
            return punctuations
        received, emitted = self._progress
        received = max(received, punctuations.progress)
        self._pending.add(punctuations.with_progress(NEVER))
        free = self._pending.release(self._held.withheld()) if len(self._pending) else NO_PUNCTUATIONS
        reached = min(received, self._held.oldest)
        self._progress = received, max(emitted, reached)
        return free.with_progress(reached if reached > emitted else NEVER)

    def output_bound(self, bounds: Sequence[int]) -> int:
        return bounds[0] if self._held is None else min(bounds[0], self._held.oldest)

    # --- time ---------------------------------------------------------------------------------------------------------

    def waiting(self) -> bool:
        return self._held is not None and len(self._held.table) > 0

    def needs(self) -> int:
        return FOREVER if self._held is None else self._held.needs

    # --- state --------------------------------------------------------------------------------------------------------

    def tables(self) -> Mapping[str, StateTable]:
        own = self._frames.tables()
        return own if self._slots is None else {**own, "results": self._slots.table}

    def scalars(self) -> dict[str, Any]:
        return {"now": self._now, "progress": self._progress, "pending": self._pending.to_value()}

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        self._now, self._progress = values["now"], tuple(values["progress"])
        self._pending.restore(values["pending"])

    def state_rows(self) -> int:
        return self._frames.count() + (0 if self._slots is None else len(self._slots.table))


def _frames(
    schema: Schema, partition: Sequence[str], frame: Frame, calls: Sequence[AggregateCall]
) -> Totals | Sliding | Windows:
    if frame.active:
        return ActiveWindows(schema, partition, frame, calls)
    if all(map(foldable, calls)):
        if frame.size is None:
            return Totals(schema, partition, frame, calls)
        slides = frame.rows and frame.slide is not None
        return (Panes if slides else Sliding.of)(schema, partition, frame, calls)
    if frame.size is not None:
        return Windows(schema, partition, frame, calls)
    return Windows(schema, partition, Frame("ROWS", EVERY, frame.slide if frame.rows else None), calls)
