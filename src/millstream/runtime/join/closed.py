"""Keys that the other side of a join has closed, and keys for which it stores no tuple either.

| | a new tuple that matches |
|---|---|
| closed | may find stored partners, but no later ones: it probes and is not stored |
| done | has no stored partner either, because the punctuation has been emitted: it need not probe (Lemma 5) |

Tuples that are done are closed too, so only closed tuples are matched with what is done.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.punctuation.punctuations import Punctuations, PunctuationSet
from millstream.runtime.operator.frames import take

MOST_FINISHED = 1 << 14
"""Largest number of finished keys to collect before they are added to a set."""


class ClosedKeys:
    """Punctuation of the other side, translated into the columns of this one."""

    __slots__ = ("_any", "_any_done", "_closed", "_done", "_finished", "_last")

    def __init__(self) -> None:
        self._closed, self._done = PunctuationSet(), PunctuationSet()
        self._any = self._any_done = False
        self._finished: list[Punctuations] = []
        """Punctuations to be added to `_done`."""
        self._last: tuple[pl.DataFrame, pl.Series] | None = None
        """The last argument of `closed` and its result."""

    def close(self, translated: Punctuations) -> Punctuations:
        """Add closed keys; returns the new ones."""
        self._any = True
        return self._closed.add(translated)

    def finish(self, translated: Punctuations) -> None:
        """Add keys that are done."""
        self._any_done = True
        self._finished.append(translated)
        if sum(map(len, self._finished)) > MOST_FINISHED:
            self._fold()

    def _fold(self) -> None:
        """Add the collected keys to the set, which costs more than to collect them and is often never needed."""
        if self._finished:
            self._done.add(Punctuations.concat(self._finished))
            self._finished = []

    def done(self, rows: pl.DataFrame) -> pl.Series | None:
        """Return the mask of the tuples that are done; None if none is."""
        if not self._any_done:
            return None
        closed = np.flatnonzero(self.closed(rows).to_numpy())
        if not len(closed):
            return None
        self._fold()
        found = closed[self._done.match(take(rows, closed)).to_numpy()]
        if not len(found):
            return None
        done = np.zeros(rows.height, dtype=np.bool_)
        done[found] = True
        return pl.Series(done)

    def closed(self, rows: pl.DataFrame) -> pl.Series:
        """Return the mask of the tuples that are closed; the last result is cached."""
        if self._last is None or self._last[0] is not rows:
            self._last = rows, self._closed.match(rows)
        return self._last[1]

    def covered(self, punctuations: Punctuations) -> pl.Series:
        """Return the mask of the punctuations that only match tuples that are closed."""
        return self._closed.covered(punctuations)

    def __bool__(self) -> bool:
        """True if any key is closed."""
        return self._any

    def forget(self) -> None:
        """Clear the cached result."""
        self._last = None

    def to_value(self) -> dict[str, Any]:
        self._fold()
        return {"closed": self._closed.to_value(), "done": self._done.to_value()}

    @classmethod
    def from_value(cls, value: Mapping[str, Any]) -> ClosedKeys:
        keys = cls()
        keys._closed, keys._done = (PunctuationSet.from_value(value[name]) for name in ("closed", "done"))
        keys._any, keys._any_done = len(keys._closed) > 0, len(keys._done) > 0
        return keys
