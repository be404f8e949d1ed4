"""The partitions of aggregates that take one tuple at a time, and their storage.

While it runs, a partition is a Python object: the evaluations of all calls. `flush` writes what has changed since the
last time to tables, which a checkpoint stores; `restore` creates the objects from the tables.

| table | a row for each | columns |
|---|---|---|
| `states` | partition | its key, and the state of its evaluations as one value |
| `window_…` | tuple in a window | partition, number, place in the frame, arguments |

Calls over one finite frame share a window (`together`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.aggregate.row_call import RowCall
from millstream.algebra.arrays import Mask, Places
from millstream.algebra.frame import Frame
from millstream.algebra.schema import Schema
from millstream.algebra.values import decode, encode
from millstream.runtime.over.framed import Evaluation
from millstream.runtime.over.groups import together
from millstream.runtime.over.partitions import Partitions
from millstream.runtime.state.table import StateTable

PARTITION, STATE, NUMBER, PLACE = "__partition", "__state", "__number", "__place"


class Partition:
    """The evaluations of all groups of calls in one partition. `identity` never changes, unlike its place among the
    partitions that are held."""

    __slots__ = ("arrivals", "changed", "closing", "due", "evaluations", "identity")

    def __init__(self, identity: int, evaluations: list[Evaluation]) -> None:
        self.identity, self.evaluations = identity, evaluations
        self.arrivals = 0
        self.changed = True
        self.closing = False
        """True if no tuple comes any more and it is held for its expiries alone."""
        self.due = False
        """True if it is in the queue of partitions whose tuples leave with time."""

    def held(self) -> int:
        """The number of tuples in its windows."""
        return sum(len(window) for each in self.evaluations for window in each.windows)

    @property
    def forgettable(self) -> bool:
        """True if it holds nothing."""
        return not self.held() and not any(each.remembers for each in self.evaluations)

    def first_place(self) -> int | None:
        """The lowest place of a tuple in its windows."""
        firsts = (window.first() for each in self.evaluations for window in each.windows)
        return min((first[1] for first in firsts if first is not None), default=None)


class PartitionStore:
    """The partitions by key, as objects and as tables."""

    def __init__(self, schema: Schema, names: Sequence[str], frame: Frame, calls: Sequence[RowCall]) -> None:
        self._names, self._frame = list(names), frame
        self.groups = together(calls, frame)
        self._keys_schema = {name: schema.polars[name] for name in names}
        self.keys = Partitions(self._names, self._keys_schema)
        self.held: list[Partition] = []
        self._next = 0
        self._ready = False
        self._dropped: list[int] = []
        self._states = StateTable(self._keys_schema | {PARTITION: pl.Int64(), STATE: pl.Binary()})
        self._windows = self._window_tables(schema)

    def _window_tables(self, schema: Schema) -> list[list[StateTable]]:
        found = []
        for group, evaluations in zip(self.groups, self._new_evaluations(), strict=True):
            types = {f"a{n}": schema.polars[name] for n, name in enumerate(group.columns)}
            numbers: dict[str, pl.DataType] = {PARTITION: pl.Int64(), NUMBER: pl.Int64(), PLACE: pl.Int64()}
            found.append([StateTable(numbers | types) for _ in evaluations.windows])
        return found

    def _new_evaluations(self) -> list[Evaluation]:
        return [group.evaluation(self._frame) for group in self.groups]

    def codes(self, rows: pl.DataFrame) -> Places:
        """The place in `held` of the partition of each tuple; new ones are created."""
        self.restore()
        codes = self.keys.codes(rows)
        count = self.keys.count if self._names else 1
        while len(self.held) < count:
            self.held.append(Partition(self._next, self._new_evaluations()))
            self._next += 1
        return codes

    def of(self, rows: pl.DataFrame) -> list[Partition]:
        """The partition of each tuple; new ones are created."""
        codes, held = self.codes(rows), self.held
        return [held[code] for code in codes.tolist()] if self._names else held * rows.height

    def check(self) -> None:
        """Raise CodeError if a checkpoint cannot hold the state of a partition."""
        if self.held:
            _state(self.held[0])

    def keep(self, mask: Mask) -> None:
        """Keep only the partitions where the mask is true."""
        self._dropped += [partition.identity for partition, kept in zip(self.held, mask, strict=True) if not kept]
        self.keys.keep(mask)
        self.held = [partition for partition, kept in zip(self.held, mask, strict=True) if kept]

    def count(self) -> int:
        """The number of partitions that hold something, and of tuples in their windows."""
        self.restore()
        return sum(1 + partition.held() for partition in self.held if not partition.forgettable)

    # --- tables -----------------------------------------------------------------------------------------------------

    def tables(self) -> Mapping[str, StateTable]:
        named = {f"window_{n}_{m}": table for n, tables in enumerate(self._windows) for m, table in enumerate(tables)}
        return {"states": self._states, **named}

    def flush(self) -> None:
        """Write what has changed to the tables."""
        if not self._ready:
            return
        places = [place for place, partition in enumerate(self.held) if partition.changed]
        changed = [self.held[place] for place in places]
        gone = [*self._dropped, *(partition.identity for partition in changed)]
        _remove(self._states, PARTITION, gone)
        if changed:
            keys = self.keys.keys[places] if self._names else pl.DataFrame()
            states = [_state(partition) for partition in changed]
            identities = pl.Series(PARTITION, [partition.identity for partition in changed], pl.Int64())
            self._states.append(pl.DataFrame([*keys.get_columns(), identities, pl.Series(STATE, states, pl.Binary())]))
        for n, tables in enumerate(self._windows):
            for m, table in enumerate(tables):
                _remove(table, PARTITION, self._dropped)
                self._flush_window(table, n, m, changed)
        self._dropped = []
        for partition in changed:
            partition.changed = False

    def _flush_window(self, table: StateTable, n: int, m: int, changed: list[Partition]) -> None:
        gone: list[int] = []
        fresh: list[tuple[Any, ...]] = []
        for partition in changed:
            window = partition.evaluations[n].windows[m]
            gone += window.gone
            window.gone = []
            fresh += [(partition.identity, number, place, *row) for number, place, row in window.unstored()]
        _remove(table, NUMBER, gone)
        if fresh:
            columns = zip(*sorted(fresh, key=lambda row: row[1]), strict=True)
            named = zip(table.schema.items(), columns, strict=True)
            table.append(pl.DataFrame([pl.Series(name, values, type_) for (name, type_), values in named]))

    def restore(self) -> None:
        """Create the partitions that the tables have, once."""
        if self._ready:
            return
        self._ready = True
        states = self._states.frame()
        if self._names:
            self.keys.codes(states.select(self._names))  # in the order of the rows, each of another partition
        by_identity: dict[int, Partition] = {}
        for identity, state in states.select(PARTITION, STATE).rows():
            partition = Partition(identity, self._new_evaluations())
            partition.arrivals, partition.closing, saved = decode(state, "the state of an aggregate")
            for each, value in zip(partition.evaluations, saved, strict=True):
                each.load(value)
            partition.changed = False
            self.held.append(partition)
            by_identity[identity] = partition
        self._next = max(by_identity, default=-1) + 1
        for n, tables in enumerate(self._windows):
            for m, table in enumerate(tables):
                for identity, number, place, *row in table.frame().rows():
                    by_identity[identity].evaluations[n].windows[m].restore(number, place, tuple(row))


def _state(partition: Partition) -> bytes:
    return encode((partition.arrivals, partition.closing, [each.save() for each in partition.evaluations]))


def _remove(table: StateTable, column: str, values: Iterable[int]) -> None:
    """Remove the rows that have one of these values."""
    gone = np.fromiter(values, dtype=np.int64)
    if len(gone) and len(table):
        table.keep(pl.Series(~np.isin(table.frame().get_column(column).to_numpy(), gone)))
