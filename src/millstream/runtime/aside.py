"""The tuples of a burst that wait aside, behind newer ones.

A prod that has an answer without them makes them trailing tuples of their windows: newer tuples go first, so that later
windows are final in time. One of every `share + 1` tuples that are worked on is one that waits aside, and all of them
are if no other waits; with a share of 0, only then.

Their time holds back the progress of time. The range of time behind them is complete nevertheless, and is told as
punctuation: windows that lie in it close before earlier ones. Once time has passed such a range, the bound `< v` says
so, and readers may forget the range.

>>> one = Aside(Schema.of(("ts", Type.BIGINT), time="ts"), 3)
>>> one.table.append(pl.DataFrame({"ts": [7, 9], TS: [7, 9]}))
>>> one.complete(20, 7), one.complete(20, 7), one.take(2).height, one.complete(31, 31)
(Punctuations([ts (9, 20)]), Punctuations(), 2, Punctuations([ts < 20]))
>>> [one.count(4, 10, 10), one.count(4, 10, 10), one.count(4, 1, 10), one.count(4, 10, 0)]
[1, 1, 3, 0]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.punctuation.restriction import Restriction, below, between
from millstream.algebra.schema import FOREVER, TS, Schema
from millstream.algebra.types import Type
from millstream.algebra.window_patterns import Stretch, time_value
from millstream.runtime.operator.frames import where
from millstream.runtime.state.table import StateTable


class Aside:
    """`share`: tuples of the queue that are worked on for each one from aside; 0: only if the queue is empty."""

    def __init__(self, schema: Schema, share: int) -> None:
        self.table = StateTable(schema.polars)
        self._share = share
        types = {a.name: a.type for a in schema if a.type.is_integer or a.type is Type.TIMESTAMP}
        self._time = schema.time if schema.time in types else None
        self._dated = types.get(self._time or "") is Type.TIMESTAMP
        self._turn = 0
        """Tuples worked on since the last one that was due from aside."""
        self._told: list[Stretch] = []
        """The ranges that were told and that time has not passed."""

    def __len__(self) -> int:
        return len(self.table)

    # --- tuples -------------------------------------------------------------------------------------------------------

    def put(self, rows: pl.DataFrame, behind: pl.Series) -> None:
        """Put tuples aside."""
        self.table.append(where(rows, behind))

    def give_back(self, pattern: Pattern) -> pl.DataFrame:
        """Remove and return the tuples that match."""
        held = self.table.frame()
        found = pattern.match(held)
        self.table.keep(~found)
        return where(held, found)

    def count(self, count: int, queued: int, held: int) -> int:
        """Return how many of the next `count` tuples are taken from aside. `queued` and `held` tuples wait in the queue
        and aside."""
        due = 0
        if self._share:
            due, self._turn = divmod(self._turn + count, self._share + 1)
        return min(held, max(due, count - queued))

    def take(self, count: int) -> pl.DataFrame:
        """Remove and return the first tuples."""
        taken = self.table.take_first(count)
        self._turn = self._turn if len(self.table) else 0
        return taken

    # --- time ---------------------------------------------------------------------------------------------------------

    @property
    def oldest(self) -> int:
        return int(self.table.frame().get_column(TS).min()) if len(self) else FOREVER  # type: ignore[arg-type]

    def complete(self, until: int, reached: int) -> Punctuations:
        """Return news of complete ranges. `until`: no other tuple is older. `reached`: no tuple at all is."""
        if self._time is None:
            return Punctuations.of(())
        made: list[Restriction] = []
        if len(self) and until < FOREVER:
            newest = int(self.table.frame().get_column(TS).max())  # type: ignore[arg-type]
            known = any(low <= newest and until <= high for low, high in self._told)
            if newest + 1 < until and not known:
                self._told = [*(each for each in self._told if each[0] < newest), (newest, until)]
                made.append(between(self._value(newest), self._value(until), False, False))
        if passed := [high for _, high in self._told if high <= reached]:
            self._told = [each for each in self._told if each[1] > reached]
            made.append(below(self._value(max(passed))))
        return Punctuations.of([Pattern.of({self._time: each}) for each in made])

    def _value(self, time: int) -> Any:
        return time_value(time, self._dated)

    # --- state --------------------------------------------------------------------------------------------------------

    def to_value(self) -> dict[str, Any]:
        return {"turn": self._turn, "told": list(self._told)}

    def restore(self, values: Mapping[str, Any]) -> None:
        self._turn = values["turn"]
        self._told = [(low, high) for low, high in values["told"]]
