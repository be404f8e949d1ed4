"""Join of n inputs on common keys in one operator.

| | |
|---|---|
| computes | combinations of one tuple of every input with equal keys (NULL never equals) that satisfy the residual |
| windows | every part is within its own window of the newest: at most its range older, or among its stream's last n |
| timestamp | the newest part's |
| state | per input the tuples that may still be part of a result (`purge`), and no partial results |
| early failing | only new tuples whose key is on all other inputs probe (`kernel`) |
| order | merging: by timestamp; on arrival: any |
| punctuation on keys in → purged | tuples whose key all other inputs have closed; likewise on keys and time |
| purge and drop | all tuples of a key that some input has closed and has no tuple of; later ones are not stored |
| punctuation of S_i → out | any, once no stored tuple of S_i matches it; on a key: on the first input's column |
| progress v, or bounds v, of all others | purges the tuples of S_i with `ts + W_i < v` |
| progress v, or bound v, of one other | purges those of them that have no partner stored there |
| | closes the tuples that a condition like `a.ts >= b.ts` excludes for it (`time_limits`), like punctuation |
| progress out | the lowest of all inputs', if it has risen and arrived in band |
| feedback in → purged | the stored tuples that the input may omit |
| feedback | `~[…]` on keys that an input has closed and stores no tuple of, to all others (`told`) |
| cost | the keys of stored and new tuples are numbered once a step; one search per probing tuple and other input |

It merges if all inputs are ordered and at most one has no window, like the equivalent tree of window joins, or if a
window counts rows and all inputs make progress. Otherwise tuples join as they arrive. With two inputs it is a window
join.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.arrays import Mask, Places
from millstream.algebra.expression import Expression
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import TS, Schema
from millstream.algebra.shed import ANYTHING, Shed
from millstream.algebra.time_limits import Partner, join_limits
from millstream.algebra.window import Window
from millstream.runtime.join.kernel import JoinColumns
from millstream.runtime.join.look_ahead import closed_by
from millstream.runtime.join.multi.kernel import Arrivals, MultiJoinKernel
from millstream.runtime.join.multi.keys import KeyIndex, common_types
from millstream.runtime.join.multi.purge import Held, useful
from millstream.runtime.join.multi.side import SEQ, Closings, MultiJoinSide
from millstream.runtime.join.purge import Renaming, times_named
from millstream.runtime.join.told import ToldKeys
from millstream.runtime.operator.capabilities import Disclaims, LacksShed, LooksAhead
from millstream.runtime.operator.contract import Ahead, Input, Operator, Output
from millstream.runtime.operator.frames import stack, where
from millstream.runtime.operator.propagation import NO_PUNCTUATIONS, Emitted
from millstream.runtime.operator.registers import Registers
from millstream.runtime.operator.registry import carries_out
from millstream.runtime.operator.time_closing import TimeClosing
from millstream.runtime.state.table import StateTable


@carries_out("multi_join")
class MultiJoin(Operator, Disclaims, LacksShed, LooksAhead):
    """`schema` names the columns of the inputs, one input after the other, in their order; `residual` is over these
    names. `keys[i]` lists the key columns of input i, by its own names; columns at the same place are equal."""

    def __init__(
        self,
        inputs: Sequence[Schema],
        schema: Schema,
        keys: Sequence[Sequence[str]],
        windows: Sequence[Window],
        residual: Expression | None = None,
        merges: bool = False,
    ) -> None:
        self.arity = len(inputs)  # type: ignore[misc]
        self.schema, self.merges = schema, merges
        self._columns = JoinColumns(inputs, schema)
        names = self._columns.names
        joined = [[names[i][key] for key in own] for i, own in enumerate(keys)]
        self._index = KeyIndex(joined, common_types(schema, zip(*joined, strict=True)))
        self._windows = windows
        self._kernel = MultiJoinKernel([list(own.values()) for own in names], windows, residual, merges=merges)
        ranged = any(window.range is not None for window in windows)
        self._timely = not (self._kernel.by_rows and ranged and not merges)
        self.tie_order = tuple(range(len(inputs))) if self._kernel.by_rows else None
        types = schema.polars
        self._sides = [
            MultiJoinSide({name: types[name] for name in own}, window)
            for own, window in zip(self._columns.stored, windows, strict=True)
        ]
        first = self._index.columns[0]
        self._closings = []
        self._canonical = []
        for side, (s, own) in enumerate(zip(inputs, names, strict=True)):
            equal = self._index.columns[side]
            times = times_named(s, own) if self._timely else {}
            self._closings.append(Closings(dict(zip(equal, self._index.names, strict=True)), times))
            self._canonical.append(
                Renaming({name: name for name in own.values()} | dict(zip(equal, first, strict=True)))
            )
        partners = [Partner(s, own, keys) for s, own, keys in zip(inputs, names, joined, strict=True)]
        self._time_limits = join_limits(partners, residual)
        self._limits = {pair: TimeClosing(limits) for pair, limits in self._time_limits.items()}
        self._passed: dict[tuple[int, int], Punctuations] = {}
        """For pairs of inputs (i, j), what the time of j has closed of i."""
        self._registers = Registers(len(inputs))
        self._emitted = Emitted(first)
        columns = [dict(zip(self._index.names, own, strict=True)) for own in keys]
        self._told = None if self._kernel.by_rows else ToldKeys(columns, [True] * len(inputs))

    # --- a step ---------------------------------------------------------------------------------------------------

    def missing(self, port: int, shed: Shed, passed: Shed) -> Shed:  # noqa: ARG002
        window = self._windows[port]
        return passed.later(window.range) if window.rows is None else ANYTHING

    def process(self, inputs: Sequence[Input]) -> Output:
        arrived, ahead, count = self._incoming(inputs)
        rows = self._kernel.results(arrived, count) if any(own.fresh for own in arrived) else None
        risen = self._registers.take(inputs)
        fresh = self._take_punctuation(inputs)
        any_rows = any(port.rows is not None and port.rows.height for port in inputs)  # NULL keys count in ROWS windows
        if risen or fresh or any_rows or ahead or any(side.stale for side in self._sides):
            self._purge(arrived, ahead, count, fresh)
        punctuations = self._release().with_progress(self._registers.news())
        told = self._told.take() if self._told is not None else ()
        return Output(rows, punctuations or None, upstream=told)

    def disclaim(self, pattern: Pattern, omitted: Sequence[Pattern | None]) -> None:  # noqa: ARG002
        for side, own, names in zip(self._sides, omitted, self._columns.names, strict=True):
            if own is not None:
                side.drop(own.rename(names))

    def _incoming(self, inputs: Sequence[Input]) -> tuple[list[Arrivals], dict[int, Places], int]:
        """Return stored and new tuples of all inputs with the numbers of their keys; for inputs whose tuples wait, the
        bound on time of each key; an upper limit of the numbers."""
        new = self._columns.take(inputs)
        numbers = self._numbered(new) if self._kernel.by_rows else [(None, {}) for _ in new]
        arrived: list[Arrivals] = []
        for side, rows, keys, (seq, before) in zip(self._sides, new, self._index.columns, numbers, strict=True):
            whole, held = side.table.frame(), len(side.table)
            if rows is not None:
                if seq is not None:
                    rows = rows.with_columns(pl.Series(SEQ, seq))
                missing = [rows.get_column(key).is_null() for key in keys if rows.get_column(key).null_count()]
                if missing:
                    there = ~pl.DataFrame(missing).select(pl.any_horizontal(pl.all())).to_series()
                    rows, kept = where(rows, there), there.to_numpy()
                    before = {j: counted[kept] for j, counted in before.items()}
                if rows.height:
                    whole = whole.clone().extend(rows) if held else rows
                else:
                    rows = None
            stamps = whole.get_column(TS).to_numpy()
            order = whole.get_column(SEQ).to_numpy() if side.window.rows is not None else None
            arrived.append(Arrivals(whole, rows, held, np.zeros(0, np.int64), stamps, order, before))
        waiting = {i: self._waiting(i, port.ahead) for i, port in enumerate(inputs) if port.ahead is not None}
        codes, count = self._index.codes([*((i, own.rows) for i, own in enumerate(arrived)), *waiting.items()])
        for own, found in zip(arrived, codes, strict=False):
            own.codes = found
        ahead: dict[int, Places] = {}
        for (i, rows), found in zip(waiting.items(), codes[len(arrived) :], strict=True):
            reached = inputs[i].ahead
            assert reached is not None
            ahead[i] = np.full(count, reached.time, dtype=np.int64)
            np.minimum.at(ahead[i], found, rows.get_column(TS).to_numpy())
        return arrived, ahead, count

    def _waiting(self, i: int, ahead: Ahead) -> pl.DataFrame:
        """Return the tuples that wait, without those that have no key."""
        pages = [self._columns.renamed(i, page) for page in ahead.pages()]
        return stack(pages).drop_nulls(self._index.columns[i]) if pages else self._sides[i].table.frame().clear()

    def _numbered(self, new: Sequence[pl.DataFrame | None]) -> list[tuple[Places | None, dict[int, Places]]]:
        """Return for the new tuples of each input their numbers, if it has a ROWS window, and the number of tuples of
        every other such input before each of them."""
        heights = [0 if rows is None else rows.height for rows in new]
        times = [np.zeros(0, np.int64) if rows is None else rows.get_column(TS).to_numpy() for rows in new]
        numbers: list[tuple[Places | None, dict[int, Places]]] = []
        for i, own in enumerate(self._sides):
            before: dict[int, Places] = {}
            for j, side in enumerate(self._sides):
                if j == i or side.window.rows is None:
                    continue
                if self.merges:
                    earlier = np.searchsorted(times[j], times[i], side="right" if j < i else "left")
                else:
                    earlier = np.full(heights[i], heights[j] if j < i else 0)
                before[j] = side.count + earlier.astype(np.int64)
            seq = None if own.window.rows is None else own.count + 1 + np.arange(heights[i], dtype=np.int64)
            numbers.append((seq, before))
        for side, height in zip(self._sides, heights, strict=True):
            side.count += height
        return numbers

    def _take_punctuation(self, inputs: Sequence[Input]) -> dict[int, Punctuations]:
        """Hand the punctuation of a step to the inputs; returns what each has newly closed."""
        fresh: dict[int, Punctuations] = {}
        for i, port in enumerate(inputs):
            if port.punctuations is not None and len(port.punctuations):
                own = port.punctuations.select(self._columns.names[i])
                self._sides[i].promise(own)
                closed = self._closings[i].take(own)
                if len(closed):
                    fresh[i] = closed
        return fresh

    # --- state ----------------------------------------------------------------------------------------------------

    def _purge(
        self,
        arrived: Sequence[Arrivals],
        ahead: Mapping[int, Places],
        count: int,
        fresh: Mapping[int, Punctuations],
    ) -> None:
        """Store the tuples that may still be part of a result, and purge the others."""
        bounds = self._registers.bounds
        for (i, j), closing in self._limits.items():
            closed = closing.advance(bounds[j])
            if len(closed):
                self._passed[i, j] = closed
        lowest = [min(bounds[:i] + bounds[i + 1 :]) for i in range(self.arity)]
        held = [
            Held(
                own.codes,
                own.times,
                self._closed(i, own, ahead, fresh),
                side.window.range,
                side.in_window(own.times, own.seq, lowest[i]),
            )
            for i, (side, own) in enumerate(zip(self._sides, arrived, strict=True))
        ]

        def excluded(i: int, j: int, places: Places, times: Places) -> Mask:
            return closed_by(self._time_limits.get((i, j), ()), arrived[i].rows, times, places)

        reached = [ahead.get(j, bound) for j, bound in enumerate(bounds)]
        alive = useful(held, reached, count, excluded, timely=self._timely)
        for i, (side, own) in enumerate(zip(self._sides, arrived, strict=True)):
            side.store(own, alive[i], held[i].closed, lowest[i])

    def _closed(
        self, i: int, own: Arrivals, ahead: Mapping[int, Places], fresh: Mapping[int, Punctuations]
    ) -> Places | None:
        """Return for each tuple of input i a bit for every other input that has closed its key; None: none has."""
        side = self._sides[i]
        known = 0 if side.stale else own.held
        side.stale = False
        others = [(j, closing.known) for j, closing in enumerate(self._closings) if j != i and closing.any]
        timely = [(j, self._passed[i, j]) for j in range(self.arity) if (i, j) in self._passed]
        early = [(j, bounds) for j, bounds in ahead.items() if (i, j) in self._time_limits]
        if not others and not timely and not early:
            return None
        closed = np.zeros(len(own.codes), dtype=np.int64)
        if side.closed is not None and known:
            closed[:known] = side.closed
        keyed = pl.DataFrame([*self._index.keys(i, own.rows), side.expiring(own.times)])
        for j, patterns in others:
            if len(closed) > known:
                closed[known:] |= patterns.match(keyed.slice(known)).to_numpy().astype(np.int64) << j
            if known and j in fresh:
                closed[:known] |= fresh[j].match(keyed.slice(0, known)).to_numpy().astype(np.int64) << j
        for j, passed in timely:
            closed |= passed.match(own.rows).to_numpy().astype(np.int64) << j
        for j, bounds in early:
            closed |= closed_by(self._time_limits[i, j], own.rows, bounds[own.codes]).astype(np.int64) << j
        return closed

    def _release(self) -> Punctuations:
        if not any(side.freed for side in self._sides):
            return NO_PUNCTUATIONS
        released = [side.release() for side in self._sides]
        for i, own in enumerate(released):
            if self._told is not None and len(own):
                names = dict(zip(self._index.columns[i], self._index.names, strict=True))
                self._told.add(i, own.select(names), self._closed_itself)
        return self._emitted.release([rename(own) for own, rename in zip(released, self._canonical, strict=True)])

    def _closed_itself(self, i: int, on_keys: Punctuations) -> Mask:
        return self._closings[i].known.covered(on_keys).to_numpy()

    def tables(self) -> Mapping[str, StateTable]:
        return {f"input{i}": side.table for i, side in enumerate(self._sides)}

    def scalars(self) -> dict[str, Any]:
        return {
            "sides": [side.to_value() for side in self._sides],
            "closed": [closing.known.to_value() for closing in self._closings],
            "registers": self._registers.to_value(),
            "emitted": self._emitted.to_value(),
            "told_keys": None if self._told is None else self._told.to_value(),
        }

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        for side, value in zip(self._sides, values["sides"], strict=True):
            side.restore(value)
        for closing, value in zip(self._closings, values["closed"], strict=True):
            closing.restore(value)
        self._registers.restore(values["registers"])
        self._emitted.restore(values["emitted"])
        if self._told is not None and values.get("told_keys") is not None:
            self._told.restore(values["told_keys"])
