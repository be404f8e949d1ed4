"""Union of streams.

| | |
|---|---|
| computes | all tuples of all inputs under the first input's column names |
| order | by timestamp, the lowest port first among equals; latent streams: by arrival |
| state | no tuples; the promises of each input, and those that not all inputs have made yet |
| punctuation in → purged → out | p → nothing → p, once every other input has promised as much |
| progress | the lowest of the inputs', if it has risen and arrived in band |
| cost | one merge by timestamp of the step's tuples, if more than one input has any |

An input promises by punctuation and, where p bounds a column at a fixed distance from its time, by its own time. An
input that has ended promises everything. A repeated promise counts once. Promises are emitted in order of arrival,
unless an earlier one covers them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.arrays import Mask
from millstream.algebra.early import Prod
from millstream.algebra.punctuation.punctuations import Punctuations, PunctuationSet
from millstream.algebra.schema import FOREVER, NEVER, TS, Schema
from millstream.runtime.join.kernel import named
from millstream.runtime.operator.capabilities import RowWise, TakesEarly
from millstream.runtime.operator.contract import Input, Operator, Output
from millstream.runtime.operator.frames import stack
from millstream.runtime.operator.propagation import NO_PUNCTUATIONS, Emitted
from millstream.runtime.operator.registers import Registers
from millstream.runtime.operator.registry import carries_out
from millstream.runtime.operator.time_order import by_time


@carries_out("union", "gather")
class Union(Operator, RowWise, TakesEarly):
    def __init__(self, schema: Schema, members: Sequence[Schema], merges: bool) -> None:
        self.schema = schema
        self.merges = merges
        self.arity = len(members)  # type: ignore[misc]
        self._names = [dict(zip(member.names, schema.names, strict=True)) for member in members]
        self._columns = [[*member.names, TS] for member in members]
        self._offsets = [
            {names[name]: offset for name, offset in member.times.items()}
            for names, member in zip(self._names, members, strict=True)
        ]
        self._registers = Registers(len(members))
        self._promised = [PunctuationSet() for _ in members]
        self._waiting = [NO_PUNCTUATIONS for _ in members]
        self._emitted = Emitted()

    def process(self, inputs: Sequence[Input]) -> Output:
        rows = self._merge([port.rows for port in inputs])
        risen = self._registers.take(inputs)
        arrived = False
        for index, port in enumerate(inputs):
            if port.punctuations is not None and len(port.punctuations):
                fresh = self._promised[index].add(port.punctuations.select(self._names[index]))
                self._waiting[index] = Punctuations.concat([self._waiting[index], fresh])
                arrived = True
        out = self._release() if arrived or (risen and any(map(len, self._waiting))) else NO_PUNCTUATIONS
        out = out.with_progress(self._progress())
        return Output(rows, out or None)

    def early(self, rows: Sequence[pl.DataFrame | None], prod: Prod) -> pl.DataFrame | None:  # noqa: ARG002
        return self._merge(rows)

    def _progress(self) -> int:
        """Return the progress to emit after this step, or NEVER."""
        return self._registers.news()

    def _merge(self, ports: Sequence[pl.DataFrame | None]) -> pl.DataFrame | None:
        parts: list[pl.DataFrame] = []
        for index, rows in enumerate(ports):
            if rows is not None and rows.height:
                parts.append(named(rows, self._columns[index], [*self.schema.names, TS]))
        if not parts:
            return None
        merged = stack(parts)
        return by_time(merged) if self.merges else merged

    def _release(self) -> Punctuations:
        """Remove and return the waiting punctuations that every other input has promised too."""
        free: list[Punctuations] = []
        for index, waiting in enumerate(self._waiting):
            if not len(waiting):
                continue
            granted = self._granted(index, waiting)
            free.append(waiting.keep(granted))
            self._waiting[index] = waiting.keep(~granted)
        return self._emitted.release(free)

    def _granted(self, index: int, waiting: Punctuations) -> Mask:
        granted: Mask | None = None
        for other, promised in enumerate(self._promised):
            bound = self._registers.bounds[other]
            if other == index or bound == FOREVER:
                continue
            known = promised.covered(waiting).to_numpy()
            if self._offsets[other] and bound > NEVER and not known.all():
                by_time = PunctuationSet()
                for name, offset in self._offsets[other].items():
                    by_time.add(_below(name, bound + offset, self.schema))
                known = known | by_time.covered(waiting).to_numpy()
            granted = known if granted is None else granted & known
        return np.ones(len(waiting), dtype=np.bool_) if granted is None else granted

    def scalars(self) -> dict[str, Any]:
        return {
            "registers": self._registers.to_value(),
            "promised": [promised.to_value() for promised in self._promised],
            "waiting": list(self._waiting),
            "emitted": self._emitted.to_value(),
        }

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        self._registers.restore(values["registers"])
        self._promised = [PunctuationSet.from_value(promised) for promised in values["promised"]]
        self._waiting = list(values["waiting"])
        self._emitted.restore(values["emitted"])


def _below(name: str, bound: int, schema: Schema) -> Punctuations:
    """Return the promise of a bound on time as a punctuation on a column at a fixed distance from it."""
    value = pl.Series([bound], dtype=pl.Int64).cast(schema.type_of(name).polars)
    return Punctuations.from_column(name, "<", value)
