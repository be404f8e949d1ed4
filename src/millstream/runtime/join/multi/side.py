"""One input of an n-way join: its stored tuples, which other inputs have closed their keys, its punctuations that wait.

| | |
|---|---|
| stored | tuples that may still be part of a result (`multi_join_purge`), under the output's column names |
| counted | every tuple that comes, stored or not, so that purging never shifts a ROWS window |
| closed | what this input's own punctuation closes, for tuples of the others: over keys, or keys and time |

A punctuation on keys and an upper bound v on time closes a tuple u of another input for which a result cannot end as
late as v: those with `u.ts + W < v`. So for matching a tuple has, beside its keys, the time `EXPIRES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.arrays import Mask, Places
from millstream.algebra.punctuation.punctuations import Punctuations, PunctuationSet
from millstream.algebra.schema import FOREVER, NEVER, TS
from millstream.algebra.window import Window
from millstream.runtime.join.multi.kernel import Arrivals
from millstream.runtime.join.purge import Translation
from millstream.runtime.operator.frames import where
from millstream.runtime.operator.propagation import NO_PUNCTUATIONS, Pending
from millstream.runtime.state.table import StateTable

SEQ = "__seq"
EXPIRES = "__expires"


class Closings:
    """What the punctuation of one input closes, over the common names of keys. `time` is its visible time, if it is
    not a key and results can be bounded by it."""

    def __init__(self, names: Mapping[str, str], time: str | None) -> None:
        self._translation = Translation(names, time, 0, EXPIRES)
        self.known = PunctuationSet()
        self.any = False

    def take(self, own: Punctuations) -> Punctuations:
        """Take punctuation of the input; returns what is closed anew."""
        translated = self._translation(own)
        if not len(translated):
            return NO_PUNCTUATIONS
        self.any = True
        return self.known.add(translated)

    def restore(self, value: Any) -> None:
        self.known, self.any = PunctuationSet.from_value(value), True


class MultiJoinSide:
    def __init__(self, schema: Mapping[str, pl.DataType], window: Window) -> None:
        numbers = {} if window.rows is None else {SEQ: pl.Int64()}
        self.table = StateTable({**schema, **numbers})
        self.window = window
        self.count = 0
        """How many tuples have come, stored or not."""
        self.closed: Places | None = None
        """For each stored tuple a bit for every other input that has closed its key; None: for none has any."""
        self.stale = False
        """Whether `closed` has to be found anew."""
        self._pending = Pending()
        self._told = self._shrunk = False

    @property
    def freed(self) -> bool:
        """Whether punctuation may have become free since the last release."""
        return len(self._pending) > 0 and (self._told or self._shrunk)

    def expiring(self, times: Places) -> pl.Series:
        """When tuples are in no later result any more."""
        if self.window.range is None:
            return pl.Series(EXPIRES, np.full(len(times), FOREVER, dtype=np.int64))
        reach = self.window.range
        return pl.Series(EXPIRES, np.minimum(times, FOREVER - reach) + reach)

    def in_window(self, times: Places, seq: Places | None, bound: int) -> Mask:
        """Which tuples the window still holds, given the lowest bound of the other inputs."""
        column, limit = self._limit(bound)
        if column is None:
            return np.ones(len(times), dtype=np.bool_)
        numbers = times if column == TS else seq
        assert numbers is not None
        return numbers >= limit

    def _limit(self, bound: int) -> tuple[str | None, int]:
        """The column whose values below a limit are out of the window, and the limit."""
        if self.window.rows is not None:
            return SEQ, self.count - self.window.rows + 1
        if self.window.range is not None and bound > NEVER:
            return TS, bound - self.window.range
        return None, NEVER

    def settle(self, own: Arrivals, alive: Mask, closed: Places | None, bound: int) -> None:
        """Store what is alive of the stored and the new tuples together, purge the rest."""
        fresh, held = alive[own.held :], own.held
        if own.new is not None and fresh.any():
            # The new tuples as they came: a part of the whole would keep all of it in memory.
            self.table.append(own.new if fresh.all() else where(own.new, fresh), own.rows if fresh.all() else None)
        stays = alive[:held]
        if not stays.all():
            kept = np.concatenate([stays, np.ones(int(np.count_nonzero(fresh)), dtype=np.bool_)])
            self._purge(kept, bound)
            self._shrunk = True
        self.closed = closed[alive] if closed is not None else None

    def _purge(self, kept: Mask, bound: int) -> None:
        """Purge from the front what is out of the window, and then whatever else is not kept."""
        column, limit = self._limit(bound)
        if column is not None:
            inside = self.table.frame().get_column(column).to_numpy() >= limit
            if not inside.all():
                self.table.purge_below(column, limit)
                kept = kept[inside]
        self.table.keep(pl.Series(kept, dtype=pl.Boolean))

    def promise(self, punctuations: Punctuations) -> None:
        """Take punctuation of this input, to be put out when nothing stored matches it."""
        self._pending.add(punctuations)
        self._told = True

    def release(self) -> Punctuations:
        """The punctuations of this input that may go out now."""
        free = self._pending.release(self.table.frame(), shrunk=self._shrunk) if self.freed else NO_PUNCTUATIONS
        self._told = self._shrunk = False
        return free

    def to_value(self) -> dict[str, Any]:
        return {"count": self.count, "pending": self._pending.to_value()}

    def restore(self, value: Mapping[str, Any]) -> None:
        self.count = value["count"]
        self._pending.restore(value["pending"])
        self._told = self.stale = True
