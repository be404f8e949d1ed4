"""Running aggregates that take one tuple at a time.

| | |
|---|---|
| computes | each tuple, as many times as its aggregates return rows, with these rows |
| order | by timestamp, equal timestamps by arrival; latent streams: by arrival. A tuple never sees later ones |
| `SLIDE`, `ACTIVE EXPIRATION` | as for other running aggregates (`over.py`) |
| state | what each aggregate keeps for each partition, and the tuples in its window |
| punctuation in → purged → out | on the partition alone → partitions that match it → itself |
| | any other → nothing → itself; where rows are held back, once none of them matches it |
| progress v, or the port's bound v | → tuples that leave the frame by v → v, or the oldest row held back |
| cost | some microseconds a tuple, and what the aggregate does |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from millstream.algebra.aggregate.row_call import RowCall
from millstream.algebra.frame import Frame
from millstream.algebra.schema import NEVER, TS, Schema, TimeKind
from millstream.algebra.time_limits import own_limits
from millstream.collection import uncollected
from millstream.runtime.operator.contract import Input, Output
from millstream.runtime.operator.propagation import NO_PUNCTUATIONS, Pending
from millstream.runtime.operator.time_closing import TimeClosing
from millstream.runtime.over.over import Over
from millstream.runtime.over.row_active import RowActive
from millstream.runtime.over.row_frames import RowFrames
from millstream.runtime.over.row_slots import RowSlots
from millstream.runtime.python.paged import PagedFrames, is_paged
from millstream.runtime.state.table import StateTable


class RowOver(Over):
    def __init__(  # the frames differ; the treatment of time and punctuation is that of `Over`
        self,
        input_schema: Schema,
        schema: Schema,
        partition: tuple[str, ...],
        frame: Frame,
        calls: tuple[RowCall, ...],
        merges: bool = False,
    ) -> None:
        self.schema, self.merges = schema, merges
        self._partition = {name: name for name in partition}
        kind = RowActive if frame.active else RowFrames if frame.slots is None else RowSlots
        if kind is RowFrames and frame.size is None and frame.slide is None and all(map(is_paged, calls)):
            kind = PagedFrames
        self._rows = kind(input_schema, schema, partition, frame, calls)
        self._frames = self._rows  # type: ignore[assignment]
        self._slots = None
        self._held = self._rows if isinstance(self._rows, RowActive | RowSlots) else None  # type: ignore[assignment]
        self.timed = self._held is not None
        self._closing = TimeClosing(own_limits(input_schema.trails, partition))
        self._latent = input_schema.kind is TimeKind.LATENT
        self._names = list(schema.polars)
        self._now = NEVER
        self._checked = False
        """True once the state of a partition was found to be one that a checkpoint can hold."""
        self._pending = Pending()
        self._progress = NEVER, NEVER

    def process(self, inputs: Sequence[Input]) -> Output:
        with uncollected():
            return self._processed(inputs[0])

    def _processed(self, port: Input) -> Output:
        punctuations = NO_PUNCTUATIONS if port.punctuations is None else port.punctuations
        parts: list[pl.DataFrame | None] = []
        if port.rows is not None and port.rows.height:
            rows = self._in_order(port.rows) if self._latent else port.rows
            parts.append(self._rows.made(rows))
            if not self._checked:
                self._checked = True
                self._rows.store.check()
            self._now = max(self._now, int(rows.item(-1, TS)))
        self._now = max(self._now, port.bound, punctuations.progress)
        if isinstance(self._rows, RowActive | RowSlots):
            parts.append(self._rows.release(self._now))
        self._purge(punctuations)
        made = [part for part in parts if part is not None]
        return Output(pl.concat(made) if made else None, self._propagated(punctuations) or None)

    def waiting(self) -> bool:
        return isinstance(self._rows, RowActive | RowSlots) and len(self._rows) > 0

    def tables(self) -> Mapping[str, StateTable]:
        return self._rows.tables()

    def scalars(self) -> dict[str, Any]:
        return {**super().scalars(), **self._rows.scalars()}

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        super().restore_scalars(values)
        self._rows.restore_scalars(values)

    def state_rows(self) -> int:
        return self._rows.count()
