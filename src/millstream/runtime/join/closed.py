"""What the other side of a join will not join any more, and what it has nothing for at all.

| | a new tuple that matches |
|---|---|
| closed | finds stored partners, but none will come: it probes and is not stored |
| done | has no stored partner either, for the punctuation is out: it need not probe (Lemma 5) |

Whatever is done is closed too, so only closed tuples are asked for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.punctuation.punctuations import Punctuations, PunctuationSet
from millstream.runtime.operator.frames import take

MOST_FINISHED = 1 << 14
"""So many keys that are out are noted before they are put in order."""


class ClosedKeys:
    """Punctuation of the other side, translated into the columns of this one."""

    __slots__ = ("_any", "_any_done", "_asked", "_closed", "_done", "_finished")

    def __init__(self) -> None:
        self._closed, self._done = PunctuationSet(), PunctuationSet()
        self._any = self._any_done = False
        self._finished: list[Punctuations] = []
        """What belongs into `_done` and is not there yet."""
        self._asked: tuple[pl.DataFrame, pl.Series] | None = None
        """The tuples that were asked for last, and which of them are closed."""

    def close(self, translated: Punctuations) -> Punctuations:
        """Note what is closed; returns what is new."""
        self._any = True
        return self._closed.add(translated)

    def finish(self, translated: Punctuations) -> None:
        """Note what is done."""
        self._any_done = True
        self._finished.append(translated)
        if sum(map(len, self._finished)) > MOST_FINISHED:
            self._fold()

    def _fold(self) -> None:
        """Make what is done findable, which costs more than to note it; often nobody ever asks."""
        if self._finished:
            self._done.add(Punctuations.concat(self._finished))
            self._finished = []

    def done(self, rows: pl.DataFrame) -> pl.Series | None:
        """Which tuples are done; None: none is."""
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
        """Which tuples are closed; asked for the same ones again, it is known."""
        if self._asked is None or self._asked[0] is not rows:
            self._asked = rows, self._closed.match(rows)
        return self._asked[1]

    def __bool__(self) -> bool:
        """Whether anything is closed."""
        return self._any

    def forget(self) -> None:
        """The tuples that were asked for are not needed any more, and may be closed by now."""
        self._asked = None

    def to_value(self) -> dict[str, Any]:
        self._fold()
        return {"closed": self._closed.to_value(), "done": self._done.to_value()}

    @classmethod
    def from_value(cls, value: Mapping[str, Any]) -> ClosedKeys:
        made = cls()
        made._closed, made._done = (PunctuationSet.from_value(value[name]) for name in ("closed", "done"))
        made._any, made._any_done = len(made._closed) > 0, len(made._done) > 0
        return made
