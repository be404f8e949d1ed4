"""Symmetric window join.

| | |
|---|---|
| computes | pairs (a, b) with equal keys (NULL never equals) that satisfy the residual predicate and the windows |
| windows | the older is at most its own stream's range older, or among the last n of its stream (`join_kernel`) |
| timestamp | the newer one of the pair |
| state | per side the tuples that may still find a partner (`join_side`) |
| order | merging: by timestamp; on arrival: by probing tuple, then by partner |
| punctuation of B in → purged | on keys, or keys and time → the a's that only partners matching it could join |
| punctuation of A or B → out | any, once no stored tuple of its own side matches it (`join_purge`) |
| progress v, or the port's bound v, of B | purges the a's with `ts + W_A < v` |
| progress out | the lower of both sides', if it is news and came in band |
| cost | a look-up of the new keys among the stored ones; purging copies nothing if tuples came in order |

It merges if both inputs are ordered and some side has a window; otherwise tuples join as they arrive and punctuation
alone purges. Tuples that a punctuation has closed still probe, but are not stored. A restriction of a right key goes
out on the equal left column, and nothing goes out that one put out earlier covers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from millstream.algebra.expression import Expression
from millstream.algebra.punctuation import Punctuations
from millstream.algebra.schema import TS, Schema
from millstream.runtime.join_index import Equality
from millstream.runtime.join_kernel import BEFORE, SEQ, Half, JoinKernel, JoinWindow, named
from millstream.runtime.join_purge import Renaming, Translation, key_names, time_name
from millstream.runtime.join_side import JoinSide
from millstream.runtime.operator import NOTHING, Input, Operator, Output
from millstream.runtime.propagation import NO_PUNCTUATIONS, Emitted
from millstream.runtime.registers import Registers
from millstream.runtime.state import StateTable
from millstream.runtime.time_order import by_time

UNBOUNDED = JoinWindow()


class WindowJoin(Operator):
    """`schema` names the left input's columns, then the right's, in their order; `residual` is over these names."""

    arity = 2

    def __init__(
        self,
        left: Schema,
        right: Schema,
        schema: Schema,
        keys: tuple[tuple[str, str], ...] = (),
        residual: Expression | None = None,
        left_window: JoinWindow = UNBOUNDED,
        right_window: JoinWindow = UNBOUNDED,
        merges: bool = False,
    ) -> None:
        self.schema, self.merges = schema, merges
        windows = (left_window, right_window)
        equality = Equality.of(left, right, schema, keys)
        self._kernel = JoinKernel(equality, residual, windows)
        self.tie_order = (0, 1) if self._kernel.by_rows else None
        names = (list(schema.names[: len(left)]), list(schema.names[len(left) :]))
        self._input_columns = ([*left.names, TS], [*right.names, TS])
        self._columns = ([*names[0], TS], [*names[1], TS])
        self._names = tuple(dict(zip(s.names, own, strict=True)) for s, own in zip((left, right), names, strict=True))
        pairs = (equality.pairs, tuple((b, a) for a, b in equality.pairs))
        # `_translations[i]` is for punctuation of side i and speaks of the tuples of the other side.
        self._translations = tuple(
            Translation(key_names(pairs[i]), time_name(s, names[i]), windows[1 - i].range)
            for i, s in enumerate((left, right))
        )
        self._canonical = Renaming({name: name for name in names[1]} | key_names(pairs[1]))
        self._sides = tuple(
            JoinSide(
                self._stored(i), windows[i], [own for own, _ in pairs[i]], SEQ[i] if self._kernel.by_rows else None
            )
            for i in (0, 1)
        )
        self._registers = Registers(2)
        self._shared = {own for own, _ in equality.pairs}
        self._emitted = Emitted(self._shared)

    def _stored(self, side: int) -> dict[str, pl.DataType]:
        types = self.schema.polars
        numbers = (SEQ[side], BEFORE[side]) if self._kernel.by_rows else ()
        return {name: types[name] for name in self._columns[side]} | {name: pl.Int64() for name in numbers}

    def process(self, inputs: Sequence[Input]) -> Output:
        new = self._incoming(inputs)
        halves = tuple(Half(side.rows, rows) for side, rows in zip(self._sides, new, strict=True))
        rows = self._kernel.pairs(halves[0], halves[1])
        if rows is not None and self.merges:
            rows = by_time(rows)
        risen = self._registers.take(inputs)
        for index, (side, half) in enumerate(zip(self._sides, halves, strict=True)):
            bound = self._registers.bounds[1 - index]
            side.insert(half, bound)
            if risen or half.new is not None:
                side.expire(bound)
        for index, port in enumerate(inputs):
            if port.punctuations is not None and len(port.punctuations):
                own = port.punctuations.select(self._names[index])
                self._sides[index].promise(own)
                self._sides[1 - index].close(self._translations[index](own))
        punctuations = self._release().with_progress(self._registers.news())
        if rows is None and not punctuations:
            return NOTHING
        return Output(rows, punctuations or None)

    def _incoming(self, inputs: Sequence[Input]) -> tuple[pl.DataFrame | None, pl.DataFrame | None]:
        """The new tuples of both sides under the output's names, numbered if a window counts rows."""
        left, right = (
            None
            if port.rows is None or not port.rows.height
            else named(port.rows, self._input_columns[index], self._columns[index])
            for index, port in enumerate(inputs)
        )
        if not self._kernel.by_rows:
            return left, right
        counts = [0 if rows is None else rows.height for rows in (left, right)]
        before: tuple[npt.NDArray[Any], npt.NDArray[Any]] = np.zeros(counts[0], np.int64), np.full(counts[1], counts[0])
        if left is not None and right is not None and self.merges:
            # In timestamp order; the left one goes first among equals.
            times = left.get_column(TS).to_numpy(), right.get_column(TS).to_numpy()
            before = np.searchsorted(times[1], times[0]), np.searchsorted(times[0], times[1], side="right")
        numbered: list[pl.DataFrame | None] = []
        for index, rows in enumerate((left, right)):
            own, other = self._sides[index].count, self._sides[1 - index].count
            if rows is not None:
                rows = rows.with_columns(
                    pl.Series(SEQ[index], np.arange(own + 1, own + rows.height + 1, dtype=np.int64)),
                    pl.Series(BEFORE[index], (other + before[index]).astype(np.int64)),
                )
            numbered.append(rows)
        for side, count in zip(self._sides, counts, strict=True):
            side.count += count
        return numbered[0], numbered[1]

    def _release(self) -> Punctuations:
        if not any(side.freed for side in self._sides):
            return NO_PUNCTUATIONS
        left, right = (side.release() for side in self._sides)
        return self._emitted.release([left, self._canonical(right)])

    def tables(self) -> Mapping[str, StateTable]:
        return {"left": self._sides[0].table, "right": self._sides[1].table}

    def scalars(self) -> dict[str, Any]:
        return {
            "sides": [side.to_value() for side in self._sides],
            "registers": self._registers.to_value(),
            "emitted": self._emitted.to_value(),
        }

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        for side, value in zip(self._sides, values["sides"], strict=True):
            side.restore(value)
        self._registers = Registers.from_value(values["registers"])
        self._emitted = Emitted.from_value(values["emitted"], self._shared)
