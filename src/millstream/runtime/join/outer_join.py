"""Outer join of two streams: LEFT, RIGHT or FULL.

| | |
|---|---|
| computes | the pairs of the window join, and every tuple of a kept side in no pair, once, padded with NULLs |
| a tuple is padded | when it leaves the state, or is not stored, without ever having been in a pair |
| timestamp | the newer one of a pair; a padded tuple keeps its own |
| state | that of the window join, and the numbers of stored tuples without a partner (`unmatched`) |
| order | none: a padded tuple is older than the pairs before it |
| punctuation of B in → purged | as in the window join; purged a's without a partner are padded |
| punctuation of A or B → out | any, on its own columns, once no stored tuple of its own side matches it |
| progress v, or the port's bound v, of B | purges a's as in the window join; all of them when B has ended |
| progress out | the lowest of both sides' and the timestamps of tuples of kept sides that wait for a partner |
| cost | the window join's, and a look-up of the numbers that match and that leave |

A NULL key never joins, so such a tuple is padded at once. A padded tuple breaks no punctuation: only `*` matches NULL,
so punctuation that restricts the padded columns does not match it, and punctuation on the tuple's own columns waits for
the tuple. A punctuation that restricts nothing would match it, and waits until both sides have promised it. The keys of
a padded tuple differ, so punctuation on one side's key implies nothing about the other's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.arrays import Places
from millstream.algebra.expression import Expression
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import FOREVER, Schema
from millstream.algebra.window import UNBOUNDED, Window
from millstream.runtime.join.disk.relocation import NAMES
from millstream.runtime.join.kernel import SEQ
from millstream.runtime.join.unmatched import Unmatched
from millstream.runtime.join.window_join import WindowJoin
from millstream.runtime.operator.contract import Input
from millstream.runtime.operator.propagation import Emitted
from millstream.runtime.operator.registry import carries_out
from millstream.runtime.state.table import StateTable


@carries_out("outer_join")
class OuterJoin(WindowJoin):
    """`preserved`: for the left and the right side, whether its tuples are kept."""

    def __init__(
        self,
        preserved: tuple[bool, bool],
        left: Schema,
        right: Schema,
        schema: Schema,
        keys: tuple[tuple[str, str], ...] = (),
        residual: Expression | None = None,
        left_window: Window = UNBOUNDED,
        right_window: Window = UNBOUNDED,
        merges: bool = False,
    ) -> None:
        self.preserved = preserved
        super().__init__(left, right, schema, keys, residual, left_window, right_window, merges)
        self._unmatched = {side: Unmatched(SEQ[side]) for side in (0, 1) if preserved[side]}
        windows = enumerate((left_window, right_window))
        self._ranged = [side for side, window in windows if window.range is not None or self._closing[side]]
        self._nothing = pl.DataFrame(schema=schema.polars)
        """Rows of NULLs, as many as have been needed so far."""
        self._ended = [False, False]
        """For each side, whether a punctuation that restricts nothing has been released."""
        self._shared |= {self._columns.names[1][own] for _, own in keys}
        self._emitted = Emitted(self._shared)
        self._kernel.on_match = self._match
        for side, unmatched in self._unmatched.items():
            self._sides[side].on_leave = unmatched.leave

    def _incoming(self, inputs: Sequence[Input]) -> list[pl.DataFrame | None]:
        new = super()._incoming(inputs)
        for side, unmatched in self._unmatched.items():
            unmatched.arrive(new[side])
        return new

    def _match(self, left: pl.DataFrame, right: pl.DataFrame, rows: tuple[Places, Places]) -> None:
        for side, unmatched in self._unmatched.items():
            unmatched.match((left, right)[side].get_column(SEQ[side]).to_numpy().take(rows[side]))

    def _padded(self) -> list[pl.DataFrame]:
        alone = [(side, unmatched.take()) for side, unmatched in self._unmatched.items()]
        return [self._pad(side, rows) for side, rows in alone if rows is not None]

    def _pad(self, side: int, rows: pl.DataFrame) -> pl.DataFrame:
        if self._nothing.height < rows.height:
            self._nothing = self._nothing.clear(rows.height)
        padded = self._nothing.head(rows.height)
        for name in self._columns.stored[side]:
            padded.replace_column(padded.get_column_index(name), rows.get_column(name))
        return padded

    def _oldest_owed(self) -> int:
        """Timestamp of the oldest tuple that may still be padded."""
        return min((unmatched.oldest() for unmatched in self._unmatched.values()), default=FOREVER)

    def _outgoing(self, side: int, released: Punctuations) -> Punctuations:
        """Drop punctuations that restrict nothing as long as tuples of the other side may be padded."""
        everything = [group.positions for group in released.parts.groups if not group.shape]
        if not everything:
            return released
        self._ended[side] = True
        if not self.preserved[1 - side] or self._ended[1 - side]:
            return released
        kept = np.ones(len(released), dtype=np.bool_)
        kept[np.concatenate(everything)] = False
        return released.keep(kept)

    def waiting(self) -> bool:
        ranged = any(side in self._ranged and len(held) for side, held in self._unmatched.items())
        return ranged or super().waiting()

    def tables(self) -> Mapping[str, StateTable]:
        held = {f"{NAMES[side]}_unmatched": unmatched.table() for side, unmatched in self._unmatched.items()}
        return {**super().tables(), **held}

    def state_rows(self) -> int:
        return sum(len(table) for table in super().tables().values())

    def scalars(self) -> dict[str, Any]:
        return super().scalars() | {"ended": list(self._ended)}

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        super().restore_scalars(values)
        self._ended = list(values["ended"])
