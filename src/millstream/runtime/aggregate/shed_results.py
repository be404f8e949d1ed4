"""The windows and groups that may lack tuples, since an operator below has shed some.

A notice of shed tuples (`algebra/shed.py`) names timestamps and the values that are known. It concerns the windows that
these timestamps lie in, of the groups with these values, or of all groups if a group column is not known. Without
windows over time, a group column at a fixed distance from time takes their place; without one, only values count.

What is concerned is kept until it is closed, as the lowest and the highest end of a window for each group.

>>> from millstream.algebra.windower import Hopping
>>> one = ShedResults({"end": pl.Int64(), "k": pl.Int64()}, "end", Hopping(20, 10))
>>> one.add(Shed(pl.DataFrame({FIRST: [13, 31], LAST: [13, 31], "k": [1, 2]})))
>>> results = pl.DataFrame({"end": [10, 20, 30, 40, 40], "k": [1, 1, 1, 1, 2]})
>>> one.mask(results).to_list(), len(one.table)
([False, True, True, False, True], 2)
>>> one.forget(30)
>>> len(one.table)
1
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import FOREVER, NEVER
from millstream.algebra.shed import BETWEEN, FIRST, LAST, Shed
from millstream.algebra.windower import Windower
from millstream.runtime.aggregate.bucket import integers
from millstream.runtime.operator.keys import joined
from millstream.runtime.state.table import StateTable

WHOLE, PLACE = "__whole", "__place"


class ShedResults:
    """`keys`: the columns of windows and groups, with their types. `place`: the one of them that tells time; None:
    there is none. `ends`: the windows whose ends are its values; a number: its distance from timestamps."""

    def __init__(self, keys: Mapping[str, pl.DataType], place: str | None, ends: Windower | int = 0) -> None:
        self._keys, self.place, self._ends = keys, place, ends
        self._groups = [name for name in keys if name != place]
        types = {FIRST: pl.Int64(), LAST: pl.Int64(), WHOLE: pl.Boolean()}
        self.table = StateTable(types | {name: keys[name] for name in self._groups})

    def __len__(self) -> int:
        return len(self.table)

    def placed(self, shed: Shed) -> Shed:
        """The notice with values of the column that tells time in place of timestamps."""
        if self.place is None:
            return shed.anytime()
        windows = self._ends
        if isinstance(windows, int):
            return shed.moved(windows)
        before, after = pl.col(FIRST), pl.col(LAST)
        first = pl.when(before == NEVER).then(NEVER).otherwise(windows.following(before))
        far = after >= FOREVER - windows.length - windows.step
        last = pl.when(far).then(FOREVER).otherwise(windows.last(after))
        rows = shed.rows.with_columns(first.alias(FIRST), last.alias(LAST))
        return Shed(rows.filter(pl.col(FIRST) <= pl.col(LAST)).unique(maintain_order=True))

    def add(self, shed: Shed, closed: int = NEVER) -> None:
        """Note what a notice concerns, but for windows that end by `closed`."""
        placed = self.placed(shed)
        whole = not self._groups or not {*self._groups} <= {*placed.names}
        values = [pl.lit(None, self._keys[n]).alias(n) if whole else pl.col(n) for n in self._groups]
        rows = placed.rows.select(*BETWEEN, pl.lit(whole).alias(WHOLE), *values).filter(pl.col(LAST) > closed)
        rows = rows.unique(maintain_order=True)
        if len(self.table):
            rows = joined(rows, self.table.frame(), rows.columns, "anti")
        if rows.height:
            self.table.append(rows)

    def mask(self, results: pl.DataFrame) -> pl.Series:
        """Return a mask of the results that may lack tuples."""
        held = self.table.frame()
        places = np.zeros(results.height, dtype=np.int64)
        if self.place is not None:
            places = integers(results.get_column(self.place))
        found = np.zeros(results.height, dtype=np.bool_)
        for first, last in held.filter(WHOLE).select(BETWEEN).unique().iter_rows():
            found |= (places >= first) & (places <= last)
        single = held.filter(~pl.col(WHOLE))
        if single.height:
            named = results.select(self._groups).with_columns(pl.Series(PLACE, places)).with_row_index(WHOLE)
            pairs = joined(named, single.drop(WHOLE), self._groups, "inner")
            pairs = pairs.filter(pl.col(PLACE).is_between(FIRST, LAST))
            found[pairs.get_column(WHOLE).to_numpy()] = True
        return pl.Series(found)

    def forget(self, closed: int, punctuations: Punctuations | None = None) -> None:
        """Forget what is closed: windows that end by `closed`, and those that punctuation on the columns covers."""
        if not len(self.table):
            return
        held = self.table.frame()
        gone = held.get_column(LAST) <= closed
        if punctuations is not None and len(punctuations):
            gone |= self._covered(held, punctuations)
        if gone.any():
            self.table.keep(~gone)

    def _covered(self, held: pl.DataFrame, punctuations: Punctuations) -> pl.Series:
        """Return a mask of what punctuation covers as a whole: by values, and by a bound on time from above."""
        patterns = [p for p in punctuations.patterns() if p.attributes <= self._keys.keys()]
        place = self.place
        if place is not None:
            patterns = [p for p in patterns if p.get(place).is_any or p.get(place).is_upper]
            held = held.with_columns(pl.col(LAST).cast(self._keys[place]).alias(place))
        return Punctuations.of(patterns).match(held)  # an unknown group is NULL, which only `*` matches
