"""A table that streams write: its writers, merged in the order of time, and the changes of its rows.

| | |
|---|---|
| computes | the changes that the statements of its writers make, tuple by tuple |
| order | by timestamp; equal timestamps by the order in which the writers were added, then by arrival |
| a writer added later | writes from the time that the table has reached: an older tuple counts as of then |
| a row that is refused | is not written but counted: its key is there, NULL, a value that does not fit, an exception |
| state | the rows |
| punctuation in → purged → out | any → nothing → nothing |
| progress | the lowest of the writers' |
| cost | a step of plain INSERTs: some columns; other statements: some microseconds a tuple |

Ports are added and removed while it runs: the first is a source that never has tuples, for a table without writers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.program.expression import Argument
from millstream.algebra.program.program import Program
from millstream.algebra.program.statement import RETURN, Insert
from millstream.algebra.schema import FOREVER, NEVER, TS, Schema
from millstream.algebra.written import ALIVE, ROW
from millstream.collection import uncollected
from millstream.errors import CodeError, OutOfRange, reason_of
from millstream.runtime.engine.statistics import Counters
from millstream.runtime.operator.capabilities import Reports
from millstream.runtime.operator.contract import NOTHING, Input, Operator, Output
from millstream.runtime.operator.frames import stack
from millstream.runtime.operator.registry import Site, carries_out
from millstream.runtime.operator.time_order import by_time
from millstream.runtime.state.table import StateTable
from millstream.runtime.table.rows import Change, Shared, statement


@carries_out("written_table")
class WrittenTable(Operator, Reports):
    merges = True

    def __init__(self, schema: Schema, table: str, table_schema: Schema, rows: pl.DataFrame | None = None) -> None:
        self.schema, self.table = schema, table
        self.tie_order = (0,)
        self._names = list(table_schema.names)
        self._types: dict[str, pl.DataType] = {ROW: pl.Int64(), **{n: table_schema.polars[n] for n in self._names}}
        self._rows = StateTable(self._types)
        self._writers: list[Program | None] = [None]
        self._shared: Shared | None = None
        self._statements: list[Any] = []
        self._changed: dict[int, tuple[Any, ...] | None] = {}
        """Changes of rows that the state lacks."""
        self._next = 0
        self._reached = NEVER
        """The lowest time of later changes."""
        self.bad = 0
        """Number of rows that were refused."""
        self.reason = ""
        """Why the last one was."""
        self._fetched: dict[int, pl.DataFrame] = {}
        """Rows to report, by the number of the request."""
        if rows is not None and rows.height:
            numbered = rows.select(pl.int_range(rows.height, dtype=pl.Int64).alias(ROW), *self._names)
            self._rows.append(numbered)
            self._next = rows.height

    @classmethod
    def at(cls, site: Site, parameters: Mapping[str, Any]) -> Operator:
        return cls(**parameters, rows=site.tables.get(parameters["table"]))

    # --- writers --------------------------------------------------------------------------------------------------

    def settle(self, bound: int) -> None:
        """Take the time that all writers have reached as that of the table, before something else writes it; it is the
        same in all shards."""
        self._reached = max(self._reached, bound if bound < FOREVER else NEVER)

    def attach(self, program: Program) -> None:
        """Add a port for a writer."""
        self._writers.append(program)
        self._arrange()

    def detach(self, port: int) -> None:
        """Remove the port of a writer."""
        del self._writers[port]
        self._arrange()

    def _arrange(self) -> None:
        self.tie_order = tuple(range(len(self._writers)))
        if self._shared is not None:
            self._prepare(self._shared)

    def _prepare(self, shared: Shared) -> None:
        self._statements = [None if writer is None else statement(writer, shared) for writer in self._writers]

    # --- tuples ---------------------------------------------------------------------------------------------------

    def process(self, inputs: Sequence[Input]) -> Output:
        given = [
            (port, offer.rows) for port, offer in enumerate(inputs) if offer.rows is not None and offer.rows.height
        ]
        if not given:
            return NOTHING
        at_once = self._shared is None and all(writer is None or plain(writer) for writer in self._writers)
        made = self._append(given) if at_once else self._run(given)
        if made is None or not made.height:
            return NOTHING
        times = np.maximum.accumulate(np.maximum(made.get_column(TS).to_numpy(), self._reached))
        self._reached = int(times[-1])
        return Output(made.with_columns(pl.Series(TS, times)))

    def _append(self, given: Sequence[tuple[int, pl.DataFrame]]) -> pl.DataFrame:
        """Insert all rows at once."""
        parts = [rows.select(*_columns(self._writers[port], self._types), TS) for port, rows in given]
        rows = by_time(stack(parts)) if len(parts) > 1 else parts[0]
        numbers = pl.Series(ROW, np.arange(self._next, self._next + rows.height))
        self._next += rows.height
        self._rows.append(rows.select(numbers, *self._names))
        return rows.select(numbers, pl.lit(True).alias(ALIVE), *self._names, TS)

    def _run(self, given: Sequence[tuple[int, pl.DataFrame]]) -> pl.DataFrame | None:
        """Run the statements, one tuple after the other."""
        shared = self._loaded()
        times = np.concatenate([rows.get_column(TS).to_numpy() for _, rows in given])
        ports = np.repeat([port for port, _ in given], [rows.height for _, rows in given])
        taken: list[tuple[Any, ...]] = []
        for port, rows in given:
            writer = self._writers[port]
            assert writer is not None
            taken += rows.select(argument.name for argument in writer.arguments).rows()
        order = np.lexsort((ports, times))
        with uncollected():
            for at, port, time in zip(order.tolist(), ports[order].tolist(), times[order].tolist(), strict=True):
                self._write(shared, self._statements[port], taken[at], time)
            return self._made(shared)

    def once(self, program: Program, rows: pl.DataFrame | None = None) -> pl.DataFrame | None:
        """Run a program at the time that the table has reached, once or for each row; return the changes."""
        shared = self._loaded()
        run = statement(program, shared)
        for row in [()] if rows is None else rows.select(each.name for each in program.arguments).rows():
            self._write(shared, run, row, self._reached)
        return self._made(shared)

    def _write(self, shared: Shared, run: Any, row: tuple[Any, ...], time: int) -> None:
        shared.time = time
        done = len(shared.log)
        try:
            refused = [reason for (reason,) in run(*row)]
        except (OutOfRange, CodeError) as error:
            assert len(shared.log) == done  # the values of a statement are computed before it changes anything
            refused = [reason_of(error)]
        if refused:
            self.bad += len(refused)
            self.reason = refused[-1]

    def _made(self, shared: Shared) -> pl.DataFrame | None:
        """The logged changes, as rows."""
        log, shared.log = shared.log, []
        self._next = shared.next_number
        if not log:
            return None
        self._changed.update((number, row) for _, number, row in log)
        return self._frame(log)

    def _frame(self, log: Sequence[Change]) -> pl.DataFrame:
        nulls = (None,) * len(self._names)
        times, numbers, rows = zip(*log, strict=True)
        columns = zip(*(nulls if row is None else row for row in rows), strict=True)
        named = [pl.Series(name, values, self._types[name]) for name, values in zip(self._names, columns, strict=True)]
        alive = pl.Series(ALIVE, [row is not None for row in rows], pl.Boolean())
        return pl.DataFrame(
            [pl.Series(ROW, numbers, pl.Int64()), alive, *named, pl.Series(TS, times, self.schema.polars[TS])]
        )

    def _loaded(self) -> Shared:
        """The rows for statements that take one tuple at a time."""
        if self._shared is None:
            held = self._rows.frame().select(ROW, *self._names).rows()
            self._shared = Shared(((number, row) for number, *row_ in held for row in [tuple(row_)]), self._next)
            self._prepare(self._shared)
        return self._shared

    # --- state ----------------------------------------------------------------------------------------------------

    def content(self) -> pl.DataFrame:
        """All rows, with their numbers."""
        self._flush()
        return self._rows.frame()

    def fetch(self, number: int) -> None:
        """Report the rows as they are now."""
        self._fetched[number] = self.content()

    def report(self) -> tuple[str, dict[int, pl.DataFrame]] | None:
        fetched, self._fetched = self._fetched, {}
        return (self.table, fetched) if fetched else None

    def summary(self, counters: Counters) -> tuple[str, int, int, str]:  # noqa: ARG002
        """Return the table, the numbers of its rows and of rows that were refused, and why the last one was."""
        return self.table, self.state_rows(), self.bad, self.reason

    def _flush(self) -> None:
        if not self._changed:
            return
        changed = np.fromiter(self._changed, dtype=np.int64)
        held = self._rows.frame().get_column(ROW).to_numpy()
        self._rows.keep(pl.Series(~np.isin(held, changed)))
        alive = sorted((number, row) for number, row in self._changed.items() if row is not None)
        if alive:
            self._rows.append(self._frame([(0, number, row) for number, row in alive]).select(*self._types))
        self._changed = {}

    def tables(self) -> Mapping[str, StateTable]:
        self._flush()
        return {"rows": self._rows}

    def scalars(self) -> dict[str, Any]:
        return {"next": self._next, "reached": self._reached, "bad": self.bad, "reason": self.reason}

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        self._next, self._reached = values["next"], values["reached"]
        self.bad, self.reason = values["bad"], values["reason"]
        self._shared, self._changed = None, {}

    def state_rows(self) -> int:
        self._flush()
        return len(self._rows)


def plain(program: Program) -> bool:
    """True if a program inserts one row for each tuple, of its columns as they are."""
    if len(program.iterate) != 1 or not isinstance(program.iterate[0], Insert):
        return False
    (query,) = program.iterate[0].queries
    return program.iterate[0].table != RETURN and query.condition is None and all(map(_copies, query.items))


def _copies(item: Any) -> bool:
    return isinstance(item, Argument) or (hasattr(item, "value") and item.value is None)


def _columns(program: Program | None, types: Mapping[str, pl.DataType]) -> list[pl.Expr]:
    """The columns of the table in its types, of the tuples of a plain writer: theirs are the same or shorter."""
    assert program is not None and isinstance(program.iterate[0], Insert)
    (query,) = program.iterate[0].queries
    names = [name for name in types if name != ROW]
    return [
        (pl.col(item.name) if isinstance(item, Argument) else pl.lit(None)).cast(types[name]).alias(name)
        for name, item in zip(names, query.items, strict=True)
    ]
