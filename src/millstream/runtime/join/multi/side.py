"""One input of a multi-join: its stored tuples, the inputs that have closed their keys, its waiting punctuations.

| | |
|---|---|
| stored | tuples that may still be part of a result (`purge`), under the output's column names |
| counted | every tuple that arrives, stored or not, so that purging never shifts a ROWS window |
| closed | tuples of the other inputs that this input's own punctuation matches: over keys, or keys and time |

A punctuation on keys and an upper bound v on time closes a tuple u of another input if no result with u can end as late
as v: if `u.ts + W < v`. So tuples are matched by their keys and the time `EXPIRES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.arrays import Mask, Places
from millstream.algebra.punctuation.pattern import Pattern
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
    """Patterns of the tuples that the punctuation of one input closes, over the common names of keys. `times`: its
    columns at a fixed distance from its time, with the distance, if they bound results."""

    def __init__(self, names: Mapping[str, str], times: Mapping[str, int]) -> None:
        self._translation = Translation(names, times, 0, EXPIRES)
        self.known = PunctuationSet()
        self.any = False

    def take(self, own: Punctuations) -> Punctuations:
        """Add punctuation of the input; returns what is newly closed."""
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
        """Number of tuples that have arrived, stored or not, if some window counts rows."""
        self.closed: Places | None = None
        """For each stored tuple a bit for every other input that has closed its key; None: no input has closed any."""
        self.stale = False
        """Whether `closed` has to be computed again."""
        self._pending = Pending()
        self._promised = self._shrunk = False

    @property
    def freed(self) -> bool:
        """True if punctuation may have become free since the last release."""
        return len(self._pending) > 0 and (self._promised or self._shrunk)

    def expiring(self, times: Places) -> pl.Series:
        """Return the last timestamp of a result that each tuple may be part of."""
        if self.window.range is None:
            return pl.Series(EXPIRES, np.full(len(times), FOREVER, dtype=np.int64))
        reach = self.window.range
        return pl.Series(EXPIRES, np.minimum(times, FOREVER - reach) + reach)

    def in_window(self, times: Places, seq: Places | None, bound: int) -> Mask:
        """Return the mask of the tuples in the window, given the lowest bound of the other inputs."""
        column, limit = self._limit(bound)
        if column is None:
            return np.ones(len(times), dtype=np.bool_)
        numbers = times if column == TS else seq
        assert numbers is not None
        return numbers >= limit

    def _limit(self, bound: int) -> tuple[str | None, int]:
        """Return a column and a limit: tuples with a lower value are out of the window."""
        if self.window.rows is not None:
            return SEQ, self.count - self.window.rows + 1
        if self.window.range is not None and bound > NEVER:
            return TS, bound - self.window.range
        return None, NEVER

    def store(self, own: Arrivals, alive: Mask, closed: Places | None, bound: int) -> None:
        """Store the new tuples that are alive, and purge the stored ones that are not. `alive` masks stored tuples,
        then new ones."""
        fresh, held = alive[own.held :], own.held
        if own.new is not None and fresh.any():
            # Append `own.new`: a slice of `own.rows` would keep all of it in memory.
            self.table.append(own.new if fresh.all() else where(own.new, fresh), own.rows if fresh.all() else None)
        stays = alive[:held]
        if not stays.all():
            kept = np.concatenate([stays, np.ones(int(np.count_nonzero(fresh)), dtype=np.bool_)])
            self._purge(kept, bound)
            self._shrunk = True
        self.closed = closed[alive] if closed is not None else None

    def _purge(self, kept: Mask, bound: int) -> None:
        """Purge the tuples out of the window from the front, then the others that are not kept."""
        column, limit = self._limit(bound)
        if column is not None:
            inside = self.table.frame().get_column(column).to_numpy() >= limit
            if not inside.all():
                self.table.purge_below(column, limit)
                kept = kept[inside]
        self.table.keep(pl.Series(kept, dtype=pl.Boolean))

    def drop(self, pattern: Pattern) -> None:
        """Purge the tuples whose results are not wanted."""
        stays = ~pattern.match(self.table.frame())
        if not stays.all():
            self.table.keep(stays)
            self.closed = None if self.closed is None else self.closed[stays.to_numpy()]
            self._shrunk = True

    def promise(self, punctuations: Punctuations) -> None:
        """Add punctuation of this input, to be emitted when no stored tuple matches it."""
        self._pending.add(punctuations)
        self._promised = True

    def release(self) -> Punctuations:
        """Remove and return the punctuations of this input that may be emitted now."""
        free = self._pending.release(self.table.frame(), shrunk=self._shrunk) if self.freed else NO_PUNCTUATIONS
        self._promised = self._shrunk = False
        return free

    def to_value(self) -> dict[str, Any]:
        return {"count": self.count, "pending": self._pending.to_value()}

    def restore(self, value: Mapping[str, Any]) -> None:
        self.count = value["count"]
        self._pending.restore(value["pending"])
        self._promised = self.stale = True
