"""Tuples, or partial results, folded into one partial result per pane and group.

Grouping by one key less is much faster, so large panes are grouped one by one: as slices of a page in order of time, or
of a page sorted by pane first. A single integer key is not hashed if its values are dense.

| panes | grouping |
|---|---|
| a single one | by group |
| large, page in order of time | slice by slice, by group |
| any, keys dense | pane and key as one place in an array |
| large, page in any order | sort by pane, then slice by slice |
| small | by pane and group |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import polars as pl

from millstream.algebra.aggregate.reduction import Reduction
from millstream.algebra.arrays import Integers
from millstream.algebra.schema import FOREVER
from millstream.algebra.windower import Windower
from millstream.runtime.aggregate.bucket import check_ends
from millstream.runtime.aggregate.dense import SPAN, Places, dense, reduce
from millstream.runtime.operator.frames import beside, put, stack, take

SLICE_ROWS = 2_048
"""Mean number of tuples per pane from which grouping panes one by one is faster."""
INT16_PANES = 1 << 15
_END = "__end"


def grouped(frame: pl.DataFrame, keys: Sequence[pl.Expr | str], values: Sequence[pl.Expr]) -> pl.DataFrame:
    """Return one row per distinct key (NULL is a key too); without keys one row, or none if there are no tuples."""
    if keys:
        return frame.group_by(list(keys)).agg(list(values))
    return frame.select(list(values)).head(frame.height)


class PaneFold:
    """`time` is the time of a row as an integer, never NULL; its pane is that of `panes` which ends first after it.
    `label` names the Int64 column that identifies the pane: by its end or, with `least`, by the least time among its
    rows, or of the group in it; either is valid. With `least`, results of rows in order of time are in order too.
    `column`: the column that has this time, and what is added."""

    def __init__(
        self,
        time: pl.Expr,
        panes: Windower,
        group: Sequence[str],
        reductions: Sequence[Reduction],
        label: str,
        *,
        least: bool = False,
        column: tuple[str, int] | None = None,
    ) -> None:
        self._time, self._panes, self._pane = time.alias(label), panes, panes.step
        self._group = list(group)
        self._reductions = list(reductions)
        self._values = [reduction.expression() for reduction in reductions]
        self._label, self._least, self._column = label, least, column

    def __call__(self, page: pl.DataFrame) -> pl.DataFrame:
        """Return the partial results of at least one row."""
        times = self._times(page)
        in_order = bool((times[1:] >= times[:-1]).all())
        low, high = (int(times[0]), int(times[-1])) if in_order else (int(times.min()), int(times.max()))
        check_ends(low, high, self._pane)
        first, last = self._panes.following(low), self._panes.following(high)
        panes = (last - first) // self._pane + 1
        if panes == 1:
            return self._by_group(page, low if self._least else first)
        if last - first >= FOREVER:  # the differences of times may not fit
            return self._by_pane_and_group(page, in_order)
        large = panes * SLICE_ROWS <= page.height
        if in_order and large:
            starts = np.searchsorted(times, np.arange(first, last, self._pane))
            return stack(list(self._slices(page, times, first, starts)))
        numbers = (times - (first - self._pane)) // self._pane
        folded = self._dense_panes(page, times, numbers, first, panes)
        if folded is not None:
            return folded
        if large and panes < INT16_PANES:
            # Short numbers are sorted by radix, in linear time.
            order = np.argsort(numbers.astype(np.int16), kind="stable")
            starts = np.cumsum(np.bincount(numbers, minlength=panes))[:-1]
            return stack(list(self._slices(take(page, order), times[order], first, starts)))
        return self._by_pane_and_group(page, in_order)

    def _times(self, page: pl.DataFrame) -> Integers:
        if self._column is not None:
            name, offset = self._column
            column = page.get_column(name)
            if column.dtype == pl.Int64 or column.dtype == pl.Datetime("us"):
                times = column.cast(pl.Int64).to_numpy()
                return times + offset if offset else times
        return page.select(self._time).to_series().to_numpy()

    def _by_group(self, page: pl.DataFrame, label: int) -> pl.DataFrame:
        folded = dense(page, Places.of(page, self._group), self._reductions)
        if folded is None:
            folded = grouped(page, self._group, self._values)
        return put(folded, pl.Series(self._label, np.full(folded.height, label, dtype=np.int64)))

    def _slices(
        self, page: pl.DataFrame, times: Integers, first: int, starts: npt.NDArray[np.intp]
    ) -> Iterator[pl.DataFrame]:
        """Yield the results pane by pane; `starts` has the first row of each pane but the first."""
        cuts = [0, *starts.tolist(), page.height]
        for place, (start, end) in enumerate(pairwise(cuts)):
            if end > start:
                label = int(times[start:end].min()) if self._least else first + place * self._pane
                yield self._by_group(page.slice(start, end - start), label)

    def _dense_panes(
        self, page: pl.DataFrame, times: Integers, numbers: Integers, first: int, panes: int
    ) -> pl.DataFrame | None:
        keys = Places.of(page, self._group)
        if keys is None or panes * keys.span > SPAN * page.height:
            return None
        reduced = reduce(page, numbers * keys.span + keys.of_rows, panes * keys.span, self._reductions)
        if reduced is None:
            return None
        used, columns = reduced
        if self._least:
            labels = np.full(panes, FOREVER, dtype=np.int64)
            np.minimum.at(labels, numbers, times)
        else:
            labels = np.arange(panes, dtype=np.int64) * self._pane + first
        return beside([*keys.keys(used % keys.span), *columns, pl.Series(self._label, labels[used // keys.span])])

    def _by_pane_and_group(self, page: pl.DataFrame, in_order: bool) -> pl.DataFrame:
        end = self._panes.following(self._time)
        if not self._least:
            return grouped(page, [end.alias(self._label), *self._group], self._values)
        keys: list[pl.Expr | str] = [end.alias(_END), *self._group]
        folded = grouped(page, keys, [*self._values, self._time.min()]).drop(_END)
        return folded.sort(self._label) if in_order else folded
