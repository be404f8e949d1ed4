"""Running aggregates over frames.

| | |
|---|---|
| computes | each tuple, with aggregates of the tuples of its partition in a frame that ends with it |
| | user-defined aggregates: each tuple, as many times as they return rows, with these rows |
| order | by timestamp, equal timestamps by arrival; latent streams: by arrival. A tuple never sees later ones |
| `SLIDE` of rows | every n-th tuple of a partition only |
| `SLIDE` of time | the last tuple of each slot and partition only, once time has reached the end of the slot |
| `ACTIVE EXPIRATION` | besides, a row for each tuple that leaves the frame, once time has passed it |
| state | `RANGE`: the tuples in the frame; `ROWS k`: k tuples a partition; `UNBOUNDED`: a partial result a partition |
| | of an aggregate that takes one tuple at a time, besides, what it keeps for each partition |
| punctuation in → purged → out | on the partition alone → partitions that match it → itself |
| | any other → nothing → itself; where rows are held back, once none of them matches it |
| progress v, or the port's bound v | → tuples that leave the frame by v → v, or the oldest row held back |
| cost | a sort of the tuples by partition and two running merges, whatever the size of the frame |
| | of an aggregate that takes one tuple at a time: some microseconds a tuple, and what it does |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.aggregate.row_call import RowCall
from millstream.algebra.frame import Frame
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import FOREVER, NEVER, TS, Schema, TimeKind
from millstream.algebra.time_limits import own_limits
from millstream.collection import uncollected
from millstream.runtime.operator.capabilities import AwaitsTime
from millstream.runtime.operator.contract import Input, Operator, Output
from millstream.runtime.operator.propagation import NO_PUNCTUATIONS, Pending
from millstream.runtime.operator.registry import carries_out
from millstream.runtime.operator.time_closing import TimeClosing
from millstream.runtime.over.folded import foldable, refuse, split_reasons
from millstream.runtime.over.frames import Frames, Slots, with_results
from millstream.runtime.over.panes import Panes
from millstream.runtime.over.row_held import row_frames
from millstream.runtime.over.sliding import Sliding
from millstream.runtime.over.totals import Totals
from millstream.runtime.over.windows import ActiveWindows, Windows
from millstream.runtime.state.table import StateTable

EVERY = 1 << 60
"""The size of a frame that has all tuples of a partition."""


@carries_out("over")
class Over(Operator, AwaitsTime):
    def __init__(
        self,
        input_schema: Schema,
        schema: Schema,
        partition: tuple[str, ...],
        frame: Frame,
        calls: tuple[AggregateCall, ...] | tuple[RowCall, ...],
        merges: bool = False,
    ) -> None:
        self.schema, self.merges = schema, merges
        self._partition = {name: name for name in partition}
        self._names = list(schema.polars)
        self._frames = _frames(input_schema, schema, partition, frame, calls)
        self._held = self._frames.held
        self.timed = self._held is not None
        self._closing = TimeClosing(own_limits(input_schema.trails, partition))
        self._latent = input_schema.kind is TimeKind.LATENT
        self._now = NEVER
        """The highest bound, or timestamp of a tuple, so far."""
        self._pending = Pending()
        self._progress = NEVER, NEVER
        """The highest progress received in band, and emitted."""

    @uncollected()
    def process(self, inputs: Sequence[Input]) -> Output:
        port = inputs[0]
        punctuations = NO_PUNCTUATIONS if port.punctuations is None else port.punctuations
        made, unfit = None, None
        if port.rows is not None and port.rows.height:
            made, unfit = self._results(port.rows)
        if self._held is not None:
            refuse(unfit)
        self._now = max(self._now, port.bound, punctuations.progress)
        made = self._frames.release(made, self._now)
        self._purge(punctuations)
        return Output(made, self._propagated(punctuations) or None, exceeding=unfit if made is not None else None)

    def _results(self, rows: pl.DataFrame) -> tuple[pl.DataFrame | None, pl.DataFrame | None]:
        """Return the rows to emit, and the reasons of results that do not fit, by result."""
        if self._latent:
            rows = self._in_order(rows)
        results, emitted = self._frames.take(rows)
        self._now = max(self._now, int(rows.item(-1, TS)))
        results, unfit = split_reasons(results)
        return with_results(rows, results, emitted, self._names), unfit

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
        return {**own, "results": self._held.table} if isinstance(self._held, Slots) else own

    def scalars(self) -> dict[str, Any]:
        own = {"now": self._now, "progress": self._progress, "pending": self._pending.to_value()}
        return {**own, **self._frames.scalars()}

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        self._now, self._progress = values["now"], tuple(values["progress"])
        self._pending.restore(values["pending"])
        self._frames.restore_scalars(values)

    def state_rows(self) -> int:
        return self._frames.count() + (len(self._held.table) if isinstance(self._held, Slots) else 0)


def _frames(
    schema: Schema,
    output: Schema,
    partition: Sequence[str],
    frame: Frame,
    calls: Sequence[AggregateCall] | Sequence[RowCall],
) -> Frames:
    if rows := [call for call in calls if isinstance(call, RowCall)]:
        return row_frames(schema, output, partition, frame, rows)
    columns = [call for call in calls if isinstance(call, AggregateCall)]
    if frame.active:
        return ActiveWindows(schema, partition, frame, columns, output.polars)
    made = _of_columns(schema, partition, frame, columns)
    made.held = None if frame.slots is None else Slots(output.polars, partition, frame.slots)
    return made


def _of_columns(schema: Schema, partition: Sequence[str], frame: Frame, calls: Sequence[AggregateCall]) -> Frames:
    if all(map(foldable, calls)):
        if frame.size is None:
            return Totals(schema, partition, frame, calls)
        slides = frame.rows and frame.slide is not None
        return (Panes if slides else Sliding.of)(schema, partition, frame, calls)
    if frame.size is not None:
        return Windows(schema, partition, frame, calls)
    return Windows(schema, partition, Frame("ROWS", EVERY, frame.slide if frame.rows else None), calls)
