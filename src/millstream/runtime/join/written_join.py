"""Join of a stream with a table that streams write.

| | |
|---|---|
| computes | every tuple with every row of the table that has equal keys and satisfies the residual |
| the table | as of the tuple's time: with the changes of that time and before |
| `outer` | a tuple without a row is emitted once, with NULLs in the table's columns |
| order, timestamp | in timestamp order, changes first among equal times; the tuple's timestamp |
| state | a copy of the table, as of the time it has reached |
| punctuation of the stream → purged → out | any → nothing → itself |
| progress | the stream's |
| cost | one look-up of the step's tuples in the rows and their versions within the step |

A step may have many changes. Each makes a version of a row, which the tuples between it and the next change of the row
see; all tuples of a stretch of changes are looked up at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from millstream.algebra.arrays import Mask, Places
from millstream.algebra.schema import TS, Schema
from millstream.algebra.written import ALIVE, ROW
from millstream.runtime.join.kernel import named
from millstream.runtime.join.table_join import TableJoin
from millstream.runtime.operator.contract import Input, Output
from millstream.runtime.operator.frames import pick, stack, take, where
from millstream.runtime.operator.registry import Site, carries_out
from millstream.runtime.state.table import StateTable

STRETCH = 1 << 9
"""Up to this many changes are looked up at once, however many of them are of one row."""
VERSIONS = 8
"""Beyond that, the most changes of one row: a tuple is compared with all versions of a row."""
_ALWAYS = np.iinfo(np.int64).max


@carries_out("written_join")
class WrittenJoin(TableJoin):
    arity = 2
    merges = True
    tie_order = (1, 0)

    def __init__(self, changes: Schema, table_schema: Schema, **parameters: Any) -> None:
        super().__init__(table_schema=table_schema, table=table_schema.empty().drop(TS), **parameters)
        held = self._table.columns
        self._given = [*changes.names, TS]
        self._named = [ROW, ALIVE, *held, TS]
        self._stored = [*held, ROW]
        self._copy = StateTable({**{name: self.schema.polars[name] for name in held}, ROW: pl.Int64()})

    @classmethod
    def at(cls, site: Site, parameters: Mapping[str, Any]) -> WrittenJoin:
        """With the rows that the table has when the query is added."""
        made = cls(**{name: value for name, value in parameters.items() if name != "name"})
        if (rows := site.tables.get(parameters["name"])) is not None:
            made._copy.replace(named(rows, rows.columns, [ROW, *made._stored[:-1]]))
        return made

    def process(self, inputs: Sequence[Input]) -> Output:
        punctuations = inputs[0].punctuations
        if punctuations is not None:
            punctuations = punctuations.select(self._columns.names[0])
        [arrived] = self._columns.take(inputs[:1])
        changes = inputs[1].rows
        if changes is None or not changes.height:
            made = None if arrived is None else self._join(arrived, self._values(self._copy.frame()))
            return Output(made, punctuations or None)
        changes = named(changes, self._given, self._named)
        if arrived is None:
            self._apply(changes)
            return Output(None, punctuations or None)
        times = changes.get_column(TS).to_numpy()
        seen = np.searchsorted(times, arrived.get_column(TS).to_numpy(), side="right")
        parts: list[pl.DataFrame] = []
        for start, end in _stretches(changes.get_column(ROW).to_numpy(), 0, changes.height):
            stretch = changes.slice(start, end - start)
            first, last = map(int, np.searchsorted(seen, [start, _ALWAYS if end == changes.height else end]))
            if last > first:
                found = self._among(arrived.slice(first, last - first), seen[first:last] - start, stretch)
                parts += [] if found is None else [found]
            self._apply(stretch)
        return Output(stack(parts) if parts else None, punctuations or None)

    def _among(self, rows: pl.DataFrame, seen: Places, changes: pl.DataFrame) -> pl.DataFrame | None:
        """Return the results of tuples, each of which sees the first `seen` of these changes."""
        held = self._copy.frame()
        numbers = changes.get_column(ROW).to_numpy()
        alive = changes.get_column(ALIVE).to_numpy()
        following = _following(numbers)
        ends = np.concatenate([_first_change(held.get_column(ROW).to_numpy(), numbers), following[alive]])
        starts = np.concatenate([np.zeros(held.height, dtype=np.int64), np.flatnonzero(alive) + 1])
        versions = stack([held, where(changes, alive).select(held.columns)]) if alive.any() else held

        def visible(left: Places, right: Places) -> Mask:
            own = seen[left]
            return (starts[right] <= own) & (own <= ends[right])

        return self._join(rows, self._values(versions), visible=visible)

    def _values(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows without their numbers."""
        return pick(rows, self._stored[:-1])

    def _apply(self, changes: pl.DataFrame) -> None:
        """Bring the copy to the state after these changes."""
        numbers = changes.get_column(ROW).to_numpy()
        newest = np.flatnonzero(_following(numbers) == _ALWAYS)
        latest = take(changes, newest)
        if len(self._copy):
            held = self._copy.frame().get_column(ROW).to_numpy()
            self._copy.keep(pl.Series(~np.isin(held, numbers)))
        self._copy.append(where(latest, latest.get_column(ALIVE)).select(self._stored))

    def output_bound(self, bounds: Sequence[int]) -> int:
        return bounds[0]

    def tables(self) -> Mapping[str, StateTable]:
        return {"copy": self._copy}


def _stretches(numbers: npt.NDArray[np.int64], start: int, end: int) -> Iterator[tuple[int, int]]:
    """Cut changes of rows with these numbers into stretches that are looked up at once.

    >>> [*_stretches(np.zeros(1024, dtype=np.int64), 0, 1024)], [*_stretches(np.arange(1024), 0, 1024)]
    ([(0, 512), (512, 1024)], [(0, 1024)])
    """
    if end - start <= STRETCH or np.unique(numbers[start:end], return_counts=True)[1].max() <= VERSIONS:
        yield start, end
        return
    middle = (start + end) // 2
    yield from _stretches(numbers, start, middle)
    yield from _stretches(numbers, middle, end)


def _following(numbers: npt.NDArray[np.int64]) -> Places:
    """Return, for each change, the place of the next change of the same row.

    >>> _following(np.array([7, 8, 7])).tolist() == [2, _ALWAYS, _ALWAYS]
    True
    """
    order = np.argsort(numbers, kind="stable")
    found = np.full(len(numbers), _ALWAYS, dtype=np.int64)
    same = numbers[order[1:]] == numbers[order[:-1]]
    found[order[:-1][same]] = order[1:][same]
    return found


def _first_change(held: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]) -> Places:
    """Return, for each row held, the place of its first change."""
    distinct, first = np.unique(numbers, return_index=True)
    place = np.searchsorted(distinct, held).clip(max=len(distinct) - 1)
    return np.where(distinct[place] == held, first[place], _ALWAYS).astype(np.int64)
