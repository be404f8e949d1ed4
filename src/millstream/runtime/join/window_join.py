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
| punctuation of B on keys, once out | the a's that match it are dropped: they have no partner, and will have none |
| when | as settings and listeners say (`join_events`); by default at once |
| more state than memory | goes to disk by key (`join_relocation`), unless a window counts rows |
| progress v, or the port's bound v, of B | purges the a's with `ts + W_A < v` |
| progress out | the lower of both sides', if it is news and came in band |
| cost | a look-up of the new keys among the stored ones; purging copies nothing if tuples came in order |

It merges if both inputs are ordered and some side has a window, or if one counts rows and time moves on both inputs;
otherwise tuples join as they arrive and punctuation alone purges. Tuples that a punctuation has closed still probe, but
are not stored. A restriction of a right key goes out on the equal left column, and nothing goes out that one put out
earlier covers.

With windows a punctuation goes out in the step in which time passes the end of the last tuple that it waits for, which
is what a schedule of such ends would give: tuples leave in order of time, and only those that leave are counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from millstream.algebra.expression import Expression
from millstream.algebra.names import key_names
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import FOREVER, TS, Schema
from millstream.algebra.upstream import Answer, PunctuationRequest, Upstream
from millstream.algebra.window import UNBOUNDED, Window
from millstream.runtime.join.disk.relocation import Relocation
from millstream.runtime.join.events.components import JoinComponents
from millstream.runtime.join.index import Equality
from millstream.runtime.join.kernel import BEFORE, SEQ, Half, JoinColumns, JoinKernel
from millstream.runtime.join.purge import Renaming, Translation, time_name
from millstream.runtime.join.settings import JoinSettings
from millstream.runtime.join.side import JoinSide
from millstream.runtime.operator.contract import Input, Operator, Output
from millstream.runtime.operator.frames import stack
from millstream.runtime.operator.propagation import NO_PUNCTUATIONS, Emitted
from millstream.runtime.operator.registers import Registers
from millstream.runtime.operator.registry import carries_out
from millstream.runtime.operator.time_order import by_time
from millstream.runtime.state.table import StateTable


@carries_out("window_join")
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
        left_window: Window = UNBOUNDED,
        right_window: Window = UNBOUNDED,
        merges: bool = False,
    ) -> None:
        self.schema, self.merges = schema, merges
        windows = (left_window, right_window)
        equality = Equality.of(left, right, schema, keys)
        self._kernel = JoinKernel(equality, residual, windows)
        self.tie_order = (0, 1) if self._kernel.by_rows else None
        self._columns = JoinColumns((left, right), schema)
        names = self._columns.names
        pairs = (equality.pairs, tuple((b, a) for a, b in equality.pairs))
        # `_translations[i]` is for punctuation of side i and speaks of the tuples of the other side.
        self._translations = tuple(
            Translation(key_names(pairs[i]), time_name(s, names[i]), windows[1 - i].range)
            for i, s in enumerate((left, right))
        )
        self._canonical = Renaming({name: name for name in names[1].values()} | key_names(pairs[1]))
        self._sides = tuple(
            JoinSide(
                self._stored(i), windows[i], [own for own, _ in pairs[i]], SEQ[i] if self._kernel.by_rows else None
            )
            for i in (0, 1)
        )
        self._keys = tuple(key_names(own) for own in pairs)
        self._drops = not (left_window.unbounded and right_window.unbounded)
        """Whether tuples whose key is out are looked for: without windows a look-up in vain costs less."""
        relocates = bool(keys) and not self._kernel.by_rows
        self._relocation = Relocation(equality, self._kernel, self._sides, at_once=self._drops) if relocates else None
        self._owed_since = FOREVER
        """Where time was when pairs began to be owed."""
        self._registers = Registers(2)
        self._components = JoinComponents(self._sides, self._relocation, self._propagate)
        self._shared = {own for own, _ in equality.pairs}
        self._emitted = Emitted(self._shared)

    def _stored(self, side: int) -> dict[str, pl.DataType]:
        types = self.schema.polars
        numbers = (SEQ[side], BEFORE[side]) if self._kernel.by_rows else ()
        return {name: types[name] for name in self._columns.stored[side]} | {name: pl.Int64() for name in numbers}

    def process(self, inputs: Sequence[Input]) -> Output:
        left, right = self._incoming(inputs)
        new = (
            None if left is None else self._sides[0].admit(left),
            None if right is None else self._sides[1].admit(right),
        )
        safe = min(self._registers.bounds)
        disk = self._relocation
        if disk is not None:
            disk.begin(new)
        halves = tuple(Half(side.rows, rows) for side, rows in zip(self._sides, new, strict=True))
        rows = self._kernel.pairs(halves[0], halves[1])
        found = [] if rows is None else [rows]
        risen = self._registers.take(inputs)
        for index, side in enumerate(self._sides):
            side.insert(halves[index], self._registers.bounds[1 - index])
        if disk is not None:
            found += disk.keep_up()
        if found and self.merges:
            found = [by_time(stack(found))]
        for index, came in enumerate((left, right)):
            if risen or came is not None:
                found += self._expire(index)
        told = self._take_punctuation(inputs)
        punctuations, empty = NO_PUNCTUATIONS, left is None and right is None and not told
        if told or empty or self._components.due():
            owed, punctuations = self._components.act(told, min(self._registers.bounds), empty=empty)
            found += owed
        if disk is not None:
            self._hold_time(safe)
        rows = self._completed(stack(found) if found else None)
        self._registers.limit = min(self._owed_since, self._oldest_owed())
        punctuations = punctuations.with_progress(self._registers.news())
        return Output(rows, punctuations or None)

    def _take_punctuation(self, inputs: Sequence[Input]) -> int:
        """Note what both sides promise; returns how many punctuations have come."""
        told = 0
        for index, port in enumerate(inputs):
            if port.punctuations is not None and len(port.punctuations):
                own = port.punctuations.select(self._columns.names[index])
                self._sides[index].promise(own)
                self._sides[1 - index].close(self._translations[index](own))
                told += len(own)
        return told

    def _expire(self, index: int) -> list[pl.DataFrame]:
        """Drop what has left its window, and everything once the other side has ended; returns rows that were owed."""
        side, disk, bound = self._sides[index], self._relocation, self._registers.bounds[1 - index]
        if disk is None or not disk.active:
            side.expire(bound)
            return []
        if bound != FOREVER:
            column, limit = side.limit(bound)
            side.expire(bound)
            if column is not None:
                disk.expire(index, limit)
            return []
        owed = disk.catch_up()
        side.expire(bound)
        disk.forget(index)
        return owed

    # --- events -----------------------------------------------------------------------------------------------------

    def configure(self, settings: JoinSettings) -> None:
        """Change the settings, and who listens to which event, from the next step on."""
        if settings != self.settings:
            self._components.configure(settings)

    @property
    def settings(self) -> JoinSettings:
        return self._components.monitor.settings

    def answer(self, message: Upstream) -> Answer:
        if isinstance(message, PunctuationRequest):
            return replace(message.to_all(self.arity), then=self.request_punctuation)
        return super().answer(message)

    def request_punctuation(self) -> None:
        """Ask for the punctuation that may go out; it does in the next step."""
        self._components.monitor.requested = True

    def unfinished(self) -> bool:
        return self._components.unfinished()

    def waiting(self) -> bool:
        return self._components.awaits_time()

    def _hold_time(self, safe: int) -> None:
        """While pairs are owed, time goes on only to where it was when the first of them was missed."""
        assert self._relocation is not None
        if not self._relocation.missing:
            self._owed_since = FOREVER
        elif self._owed_since == FOREVER:
            self._owed_since = safe

    def _oldest_owed(self) -> int:
        """The timestamp of the oldest row that is still to come for a tuple that is stored."""
        return FOREVER

    def _propagate(self) -> Punctuations:
        free = self._release()
        for index, side in enumerate(self._sides):
            if self._drops and len(side.released):
                self._sides[1 - index].finish(side.released.select(self._keys[index]))
                side.released = NO_PUNCTUATIONS
        return free

    # --- tuples -----------------------------------------------------------------------------------------------------

    def _completed(self, rows: pl.DataFrame | None) -> pl.DataFrame | None:
        """All rows of the step, given its pairs, once everything that leaves the state has left. A join that owes
        something for tuples that leave hears of them by `on_leave` of its sides and adds it here."""
        return rows

    def _incoming(self, inputs: Sequence[Input]) -> tuple[pl.DataFrame | None, pl.DataFrame | None]:
        """The new tuples of both sides under the output's names, numbered if a window counts rows."""
        left, right = self._columns.take(inputs)
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

    def output_bound(self, bounds: Sequence[int]) -> int:
        return min(*bounds, self._registers.limit)

    @property
    def dropped(self) -> int:
        """How many tuples were not looked at, because their key had been put out."""
        return sum(side.dropped for side in self._sides)

    def tables(self) -> Mapping[str, StateTable]:
        memory = {"left": self._sides[0].table, "right": self._sides[1].table}
        return memory if self._relocation is None else {**memory, **self._relocation.tables()}

    def scalars(self) -> dict[str, Any]:
        return {
            "sides": [side.to_value() for side in self._sides],
            "registers": self._registers.to_value(),
            "emitted": self._emitted.to_value(),
            "monitor": self._components.monitor.to_value(),
            "disk": None if self._relocation is None else self._relocation.to_value(),
            "owed_since": self._owed_since,
        }

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        for side, value in zip(self._sides, values["sides"], strict=True):
            side.restore(value)
        self._registers.restore(values["registers"])
        self._owed_since = values["owed_since"]
        self._registers.limit = min(self._owed_since, self._oldest_owed())
        self._components.monitor.restore(values["monitor"])
        if self._relocation is not None:
            self._relocation.restore(values["disk"])
        for side in self._sides:
            side.build_index()
        self._emitted.restore(values["emitted"])
