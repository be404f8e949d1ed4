"""Symmetric window join.

| | |
|---|---|
| computes | pairs (a, b) with equal keys (NULL never equals) that satisfy the residual predicate and the windows |
| windows | the older is within its own stream's range of the newer, or among its stream's last n (`kernel`) |
| timestamp | the newer one of the pair |
| state | per side the tuples that may still find a partner (`side`) |
| order | merging: by timestamp; on arrival: by probing tuple, then by partner |
| punctuation of B in → purged | on keys, or keys and time → the a's that only partners matching it could join |
| punctuation of A or B → out | any, once no stored tuple of its own side matches it (`purge`) |
| punctuation of B on keys, once emitted | later a's that match it are dropped: no partner is stored or will arrive |
| when | as settings and listeners say (`events`); by default at once |
| more state than memory | moves to disk by key (`disk`), unless a window counts rows |
| progress v, or the port's bound v, of B | purges the a's with `ts + W_A < v` |
| | and those that a condition like `a.ts >= b.ts - 5` or `a.ts = b.ts` then excludes (`time_limits`) |
| | merging: also by the time behind tuples of B that wait, unless one of the same key does (`look_ahead`) |
| progress out | the lower of both sides', if it has risen and arrived in band |
| feedback in → purged | the stored tuples that the input may omit |
| feedback | `~[…]` on keys that B has closed and stores no tuple of, to A (`told`) |
| cost | a look-up of the new keys among the stored ones, and of times where a key has many tuples (`stretches`) |
| purging | copies nothing if tuples arrived in order |

It merges if both inputs are ordered and some side has a window, or if a window counts rows and both inputs make
progress. Otherwise tuples join as they arrive, and only punctuation and time purge. Tuples that a punctuation has
closed still probe, but are not stored. A restriction of a right key is emitted on the equal left column. A punctuation
that an earlier one covers is not emitted.

With windows a punctuation is emitted in the step in which time passes the end of the last tuple that it waits for. No
schedule of such ends is needed: tuples leave in order of time, and only those that leave are counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.arrays import Integers, Mask
from millstream.algebra.early import Prod
from millstream.algebra.expression import Expression
from millstream.algebra.names import key_names
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import FOREVER, TS, Schema
from millstream.algebra.shed import ANYTHING, Shed
from millstream.algebra.time_limits import Partner, join_limits
from millstream.algebra.upstream import Answer, PunctuationRequest, Upstream
from millstream.algebra.window import UNBOUNDED, Window
from millstream.runtime.join.disk.relocation import Relocation
from millstream.runtime.join.events.components import JoinComponents
from millstream.runtime.join.index import Equality
from millstream.runtime.join.kernel import BEFORE, SEQ, Half, JoinColumns, JoinKernel
from millstream.runtime.join.look_ahead import LookAhead
from millstream.runtime.join.purge import Renaming, Translation, times_named
from millstream.runtime.join.settings import JoinSettings
from millstream.runtime.join.side import JoinSide
from millstream.runtime.join.told import ToldKeys
from millstream.runtime.operator.capabilities import (
    ActsOnProds,
    AnswersMessages,
    AwaitsTime,
    Defers,
    Disclaims,
    LacksShed,
    LooksAhead,
    early_results,
)
from millstream.runtime.operator.contract import Ahead, Input, Operator, Output
from millstream.runtime.operator.frames import stack
from millstream.runtime.operator.propagation import NO_PUNCTUATIONS, Emitted
from millstream.runtime.operator.registers import Registers
from millstream.runtime.operator.registry import carries_out
from millstream.runtime.operator.time_closing import TimeClosing
from millstream.runtime.operator.time_order import by_time
from millstream.runtime.state.table import StateTable


@carries_out("window_join")
class WindowJoin(Operator, ActsOnProds, AnswersMessages, Disclaims, LacksShed, AwaitsTime, LooksAhead, Defers):
    """`schema` names the left input's columns, then the right's, in their order; `residual` is over these names."""

    arity = 2
    preserved = (False, False)
    """For each side, whether its tuples are kept without a partner."""
    numbers = False
    """True if tuples are numbered whatever the windows are."""
    tells_keys = True
    """True if it tells its inputs which keys punctuation of the other input has closed."""

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
        windows = self._windows = (left_window, right_window)
        equality = Equality.of(left, right, schema, keys)
        self._kernel = JoinKernel(equality, residual, windows, numbered=self.numbers)
        self.tie_order = (0, 1) if self._kernel.by_rows else None
        self._columns = JoinColumns((left, right), schema)
        names = self._columns.names
        pairs = (equality.pairs, tuple((b, a) for a, b in equality.pairs))
        self._keys = tuple(key_names(own) for own in pairs)
        # `_translations[i]` translates punctuation of side i into patterns over the tuples of the other side.
        self._translations = tuple(
            Translation(self._keys[i], times_named(own, names[i]), windows[1 - i].range)
            for i, own in enumerate((left, right))
        )
        self._canonical = Renaming({name: name for name in names[1].values()} | self._keys[1])
        self._sides = tuple(JoinSide(self._stored(i), windows[i], [own for own, _ in pairs[i]], SEQ[i]) for i in (0, 1))
        self._drops = not (left_window.unbounded and right_window.unbounded)
        """Whether tuples whose key has been emitted are dropped: without windows a futile probe costs less."""
        relocates = bool(keys) and not self._kernel.by_rows
        self._relocation = Relocation(equality, self._kernel, self._sides, at_once=self._drops) if relocates else None
        partners = [Partner(own, names[i], [key for key, _ in pairs[i]]) for i, own in enumerate((left, right))]
        limits = join_limits(partners, residual)
        self._closing = tuple(TimeClosing(limits.get((i, 1 - i), ())) for i in (0, 1))
        """For each side, what the other side's time closes of it."""
        self._ahead = tuple(LookAhead(i, equality, windows[i].range, limits.get((i, 1 - i), ())) for i in (0, 1))
        self._owed_since = FOREVER
        """Time of the inputs when the first pair on disk was missed; FOREVER: none is owed."""
        self._registers = Registers(2)
        self._components = JoinComponents(self._sides, self._relocation, self._propagate)
        self._told = self._told_keys() if self.tells_keys and equality.pairs else None
        self._shared = {own for own, _ in equality.pairs}
        self._emitted = Emitted(self._shared)

    def missing(self, port: int, shed: Shed, passed: Shed) -> Shed:  # noqa: ARG002
        """Pairs with a tuple are missing up to its window later. If tuples are used once, padded or counted, pairs of
        others change."""
        window = self._windows[port]
        if self.numbers or any(self.preserved) or window.rows is not None:
            return ANYTHING
        return passed.later(window.range)

    def _stored(self, side: int) -> dict[str, pl.DataType]:
        types = self.schema.polars
        stored = {name: types[name] for name in self._columns.stored[side]}
        if self._numbered(side):
            stored[SEQ[side]] = pl.Int64()
        if self._kernel.by_rows:
            stored[BEFORE[side]] = pl.Int64()
        return stored

    def _numbered(self, side: int) -> bool:
        return self._kernel.by_rows or self.preserved[side]

    def process(self, inputs: Sequence[Input]) -> Output:
        arrived = self._incoming(inputs)
        new = [None if rows is None else side.admit(rows) for side, rows in zip(self._sides, arrived, strict=True)]
        time = min(self._registers.bounds)
        disk = self._relocation
        if disk is not None:
            disk.begin(new)
        halves = [Half(side.rows, rows) for side, rows in zip(self._sides, new, strict=True)]
        pairs = self._chosen(self._kernel.pairs(*halves), halves)
        found = [] if pairs is None else [pairs]
        risen = self._registers.take(inputs)
        for index, side in enumerate(self._sides):
            if self._closing[index]:
                closed = self._closing[index].advance(self._registers.bounds[1 - index])
                side.close_by_time(closed)
                self._closed_by_time(index, closed)
            side.insert(halves[index], self._registers.bounds[1 - index])
        if disk is not None:
            found += disk.keep_up()
        if found and self.merges:
            found = [by_time(stack(found))]
        for index, rows in enumerate(arrived):
            if risen or rows is not None:
                found += self._expire(index)
        for index, port in enumerate(inputs):
            if port.ahead is not None and (disk is None or not disk.active):
                self._look_ahead(1 - index, port.ahead)
        count = self._take_punctuation(inputs)
        punctuations, empty = NO_PUNCTUATIONS, not count and all(rows is None for rows in arrived)
        if count or empty or self._components.due():
            owed, punctuations = self._components.act(count, min(self._registers.bounds), empty=empty)
            found += owed
        # While pairs are owed, progress stops at the time of the inputs before the first of them was missed.
        self._owed_since = min(self._owed_since, time) if disk is not None and disk.missing else FOREVER
        found += self._padded()
        self._registers.limit = min(self._owed_since, self._oldest_owed())
        punctuations = punctuations.with_progress(self._registers.news())
        told = self._told.take() if self._told is not None else ()
        return Output(stack(found) if found else None, punctuations or None, upstream=told)

    def _take_punctuation(self, inputs: Sequence[Input]) -> int:
        """Hand the punctuation of each side to both sides; returns the number of punctuations."""
        count = 0
        for index, port in enumerate(inputs):
            if port.punctuations is not None and len(port.punctuations):
                own = port.punctuations.select(self._columns.names[index])
                self._sides[index].promise(own)
                self._sides[1 - index].close(self._translations[index](own))
                count += len(own)
        return count

    def _expire(self, index: int) -> list[pl.DataFrame]:
        """Purge the tuples that have left their window, or all once the other side has ended; returns owed pairs."""
        disk, bound = self._relocation, self._registers.bounds[1 - index]
        owed = disk.catch_up() if disk is not None and bound == FOREVER else []
        side = self._sides[index]
        side.expire(bound)
        if disk is not None:
            disk.expire(index, bound)
        if side.purge_by_time() and disk is not None and disk.active:
            owed += disk.finish()
        return owed

    def _look_ahead(self, index: int, ahead: Ahead) -> None:
        """Purge the tuples that no tuple of the other side joins, although tuples wait there."""
        side = self._sides[index]
        if len(side.table):
            waiting = partial(self._waiting, 1 - index, ahead)
            side.drop(self._ahead[index].useless(side.rows, ahead.time, waiting))

    def _waiting(self, index: int, ahead: Ahead) -> pl.DataFrame:
        pages = [self._columns.renamed(index, page) for page in ahead.pages()]
        return stack(pages) if pages else pl.DataFrame(schema=self._stored(index))

    # --- events -----------------------------------------------------------------------------------------------------

    def configure(self, settings: JoinSettings) -> None:
        """Change the settings, and the listeners of events, from the next step on."""
        if settings != self.settings:
            self._components.configure(settings)

    @property
    def settings(self) -> JoinSettings:
        return self._components.monitor.settings

    @property
    def owes(self) -> bool:
        return self._relocation is not None and self._relocation.active

    def early(self, rows: Sequence[pl.DataFrame | None], prod: Prod) -> pl.DataFrame | None:  # noqa: ARG002
        if not self.owes:
            return early_results(self, rows)
        twin = deepcopy(self)
        found = [twin.process([Input(each) for each in rows]).rows] if any(r is not None for r in rows) else []
        assert twin._relocation is not None
        pairs = [frame for frame in (*found, *twin._relocation.catch_up()) if frame is not None and frame.height]
        return stack(pairs) if pairs else None

    def answer(self, message: Upstream) -> Answer:
        if isinstance(message, PunctuationRequest):
            return replace(message.to_all(self.arity), then=self.request_punctuation)
        return message.unanswered(self.arity)

    def disclaim(self, pattern: Pattern, omitted: Sequence[Pattern | None]) -> None:  # noqa: ARG002
        for side, own, names in zip(self._sides, omitted, self._columns.names, strict=True):
            if own is not None:
                side.drop(own.rename(names).match(side.rows).to_numpy())

    def request_punctuation(self) -> None:
        """Request the punctuation that may be emitted; the next step emits it."""
        self._components.monitor.requested = True

    def unfinished(self) -> bool:
        return self._components.unfinished()

    def waiting(self) -> bool:
        return self._components.awaits_time()

    def _oldest_owed(self) -> int:
        """Timestamp of the oldest result still owed for a stored tuple."""
        return FOREVER

    def _propagate(self) -> Punctuations:
        if not any(side.freed for side in self._sides):
            return NO_PUNCTUATIONS
        released = [side.release() for side in self._sides]
        for index, own in enumerate(released):
            if len(own):
                self._without_partners(index, own)
        return self._emitted.release([self._outgoing(index, own) for index, own in enumerate(released)])

    def _without_partners(self, side: int, released: Punctuations) -> None:
        """Tuples of the other side that match these punctuations of a side have no partner there, now or later."""
        if self._drops:
            self._sides[1 - side].finish(released.select(self._keys[side]))
        if self._told is not None:
            names = self._keys[1] if side else {key: key for key in self._keys[0]}
            self._told.add(side, released.select(names), self._closed_itself)

    def _told_keys(self) -> ToldKeys | None:
        """What it tells its inputs; keys have the names of the left columns."""
        may_omit = [not self._kernel.by_rows and not kept for kept in self.preserved]
        own = [{output: name for name, output in names.items()} for names in self._columns.names]
        columns = [{key: own[0][key] for key in self._keys[0]}, {a: own[1][b] for a, b in self._keys[0].items()}]
        return ToldKeys(columns, may_omit) if any(may_omit) else None

    def _closed_itself(self, side: int, on_keys: Punctuations) -> Mask:
        return self._sides[1 - side].closes(on_keys if side else on_keys.select(self._keys[0]))

    def _closed_by_time(self, side: int, closed: Punctuations) -> None:
        """Tuples of a side that match have no later partner, by the time of the other side."""

    def _outgoing(self, side: int, released: Punctuations) -> Punctuations:
        """Return the punctuation to emit for what a side has released."""
        return self._canonical(released) if side else released

    # --- tuples -----------------------------------------------------------------------------------------------------

    def _chosen(self, pairs: pl.DataFrame | None, halves: list[Half]) -> pl.DataFrame | None:  # noqa: ARG002
        """Return the pairs to emit of those found in a step; may change the tuples that the step stores."""
        return pairs

    def _padded(self) -> list[pl.DataFrame]:
        """Return the results for tuples that have left the state in this step without a partner."""
        return []

    def _incoming(self, inputs: Sequence[Input]) -> list[pl.DataFrame | None]:
        """Return the new tuples of both sides under the output's names, with their numbers if they are counted."""
        new = self._columns.take(inputs)
        before = self._before(new) if self._kernel.by_rows else None
        for index, rows in enumerate(new):
            if rows is not None and self._numbered(index):
                side = self._sides[index]
                numbers = np.arange(side.count + 1, side.count + rows.height + 1, dtype=np.int64)
                rows.insert_column(rows.width, pl.Series(SEQ[index], numbers))
                if before is not None:
                    rows.insert_column(rows.width, pl.Series(BEFORE[index], before[index]))
                side.count += rows.height
        return new

    def _before(self, new: Sequence[pl.DataFrame | None]) -> list[Integers]:
        """Return for each new tuple the number of tuples of the other side before it: the left one first, or in a
        merging join in timestamp order, the left one first among equals."""
        times = [np.zeros(0, dtype=np.int64) if rows is None else rows.get_column(TS).to_numpy() for rows in new]
        if self.merges:
            before = np.searchsorted(times[1], times[0]), np.searchsorted(times[0], times[1], side="right")
        else:
            before = np.zeros(len(times[0]), dtype=np.int64), np.full(len(times[1]), len(times[0]))
        return [self._sides[1 - index].count + count.astype(np.int64) for index, count in enumerate(before)]

    def output_bound(self, bounds: Sequence[int]) -> int:
        return min(*bounds, self._registers.limit)

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
            "told_keys": None if self._told is None else self._told.to_value(),
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
        if self._told is not None and values.get("told_keys") is not None:
            self._told.restore(values["told_keys"])
