"""The tables of a mill that streams write, and queries over tables that run once.

A table becomes a part of a job with its first writer, with the rows that it has by then, and stays there until it is
dropped. All of its writers and readers are in the same shard.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import count
from typing import TYPE_CHECKING, Any

import polars as pl

from millstream.algebra.program.program import Program
from millstream.algebra.schema import Schema
from millstream.algebra.written import ROW
from millstream.control.mill.placing import place
from millstream.control.reports.written_table import TableRows
from millstream.errors import BindError, CodeError, OptionError, OutOfRange, PlanError, SeveralRows, reason_of
from millstream.lang import ast
from millstream.lang.aggregate import ast as body
from millstream.lang.spelling import spelled
from millstream.lang.table.ast import Write
from millstream.logical.bind.table.once import bind_once, bind_values, bind_written_once, insertion
from millstream.logical.nodes.table_write import TableWrite
from millstream.logical.nodes.written_table import WrittenTable
from millstream.logical.plan import Plan
from millstream.logical.references import references
from millstream.logical.written import touched
from millstream.physical.plan.partitioning import Keys
from millstream.physical.plan.preparation import prepare
from millstream.physical.wire.records import Fetch, Record, WriteOnce
from millstream.runtime.program.compile import compiled
from millstream.runtime.table import written_table

if TYPE_CHECKING:
    from millstream.control.mill.base import Mill


def part_name(table: str) -> str:
    """The name of the part of a job that holds a table; no query has it."""
    return f"@{table}"


class WrittenTables:
    def __init__(self, mill: Mill) -> None:
        self._mill = mill
        self._keys: dict[str, Keys] = {}
        """The columns that the streams of each partitioned table are hashed on."""
        self._numbers = count(time.time_ns())  # a repeated batch reports again to a later driver

    # --- writers and readers ----------------------------------------------------------------------------------------

    def begin(self, plan: Plan) -> None:
        """Place the tables that a new query writes or reads, unless they are there."""
        mill, used = self._mill, touched(plan)
        if not used:
            return
        if isinstance(plan, TableWrite):
            self._check_unread(plan)
        if frames := sorted(mill.connectors.read_by(plan).keys() & mill.connectors.frames.keys()):
            hint = "let the stream be read from files, or derive rows from the DataFrame in Spark"
            message = f"table '{used[0].table}' cannot be used together with the DataFrame '{frames[0]}'"
            raise OptionError("M2124", message, hint=hint)
        for table, keys in self._spread(plan):
            self._keys.setdefault(table, {}).update(keys)
        for target in used:
            if part_name(target.table) not in mill.placements.of:
                self._place(target)
        if isinstance(plan, TableWrite):
            mill.catalog.add_writer(plan)

    def _place(self, table: WrittenTable) -> None:
        """Make a table a part of a job."""
        place(self._mill, part_name(table.table), table, ast.NOW, punctuated=False)

    def check(self, plan: Plan) -> None:
        """Refuse a query that does not go by the key of a partitioned table, or needs a stream hashed otherwise than
        those on the table before it, also where there is only one shard."""
        for table, keys in self._spread(plan):
            known = self._keys.get(table, {})
            for stream, key in keys.items():
                if known.get(stream, key) != key:
                    other = f"({', '.join(known[stream])}), here by ({', '.join(key)})"
                    message = f"for table '{table}' stream '{stream}' is hashed by {other}"
                    hint = "leave out WITH (partitioned = true), or declare the stream twice"
                    raise PlanError("M3082", message, hint=hint)

    def _spread(self, plan: Plan) -> list[tuple[str, Keys]]:
        """The partitioned table of a plan, and the columns that its streams are hashed on."""
        if not touched(plan):
            return []
        parts = prepare("query", plan, self._mill.connectors.read_by(plan), shards=2)
        return [(part.table, part.keys or {}) for part in parts if part.table]

    def _check_unread(self, plan: TableWrite) -> None:
        """Refuse the first writer of a table that queries read as a static one."""
        if self._mill.catalog.written(plan.table) is not None:
            return
        if readers := self.static_readers(plan.table):
            what, reader = readers[0]
            reading = "query" if what == "query" else "stream"
            message = f"table '{plan.table}' is static in {reading} '{reader}', which would not see the writes"
            hint = f"DROP {reading.upper()} {spelled(reader)}, start the writer, then create it again"
            raise BindError("M2125", message, hint=hint)

    def static_readers(self, table: str) -> list[tuple[str, str]]:
        """The queries and derived streams that read a table as it is; views over tables read it anew."""
        return [key for key in self._mill.journal.readers(table) if self._mill.catalog.view(key[1]) is None]

    def forget(self, table: str) -> None:
        """Remove a dropped table from its job."""
        self._keys.pop(table, None)
        if part_name(table) in self._mill.placements.of and not self._mill.journal.recovering:
            self._mill.placements.remove(part_name(table))

    def reconcile(self) -> set[str]:
        """The parts that hold the tables of the catalog. A table whose part has been stopped was being dropped."""
        mill, kept = self._mill, set[str]()
        for table in [table.name for table in mill.catalog.tables]:
            placement = mill.placements.of.get(part_name(table))
            if mill.catalog.written(table) is None or placement is None:
                continue
            if placement.stopped:
                mill.catalog.forget(table)
                mill.forget(table)
            else:
                kept.add(part_name(table))
        return kept

    # --- once -------------------------------------------------------------------------------------------------------

    def select(self, query: ast.Runs) -> pl.DataFrame:
        """The rows of a SELECT over tables, as they are between two batches."""
        return self.once(query)[1]

    def once(self, query: ast.Runs) -> tuple[Schema, pl.DataFrame]:
        """The columns of a SELECT over tables, and its rows."""
        assert isinstance(query, ast.Query)
        program = bind_once(query, self._mill.catalog)
        held = self._rows([table.name for table in program.tables])
        made = compiled(program)()
        for attribute, table in zip(type(made).INDEXES, program.tables, strict=True):
            stored = getattr(made, attribute)
            for row in held[table.name].select(column.name for column in table.columns).rows():
                stored.insert(row)
        types = {column.name: column.type.polars for column in program.results}
        try:
            return Schema(program.results), pl.DataFrame(made.iterate(), schema=types, orient="row")
        except SeveralRows as error:
            hint = "aggregate it, as in (SELECT MAX(x) FROM …), or LIMIT 1 behind ORDER BY; x IN (SELECT …) takes all"
            places = [node.place for node in query.walk() if isinstance(node, body.Subquery)]
            place = places[0] if len(places) == 1 else query.place
            raise PlanError("M3085", reason_of(error), hint=hint, **place) from None
        except OutOfRange as error:
            raise PlanError("M3083", reason_of(error), **query.place) from None
        except CodeError as error:
            raise error.at(query.line, query.column) from None

    def _rows(self, tables: Iterable[str]) -> dict[str, pl.DataFrame]:
        names = [*dict.fromkeys(tables)]
        live = [name for name in names if self.live(name)]
        return {name: self._mill.tables[name] for name in names if name not in live} | self._fetched(live)

    def _fetched(self, tables: list[str]) -> dict[str, pl.DataFrame]:
        if not tables:
            return {}
        mill, number = self._mill, next(self._numbers)
        self._send(tables[0], lambda part: Fetch(part.group.group, number, tuple(tables)))
        mill.sync()
        found = TableRows.of(mill).fetched(number)
        for name in tables:
            if name not in found:
                hint = "DROP the queries on it and the table, and start anew"
                raise BindError("M2126", f"table '{name}' has failed", hint=hint)
        return {name: found[name].drop(ROW) for name in tables}

    def counts(self, table: str, *, fresh: bool = True) -> dict[str, int]:
        """Numbers of rows in a table, and of rows that were refused. Without `fresh`, as last reported."""
        mill = self._mill
        placement = mill.placements.of.get(part_name(table))
        rows, bad = mill.tables[table].height, mill.bad_rows.get(table, 0)
        if placement is not None:
            if fresh:
                mill.report_all()
            rows, refused, _ = TableRows.of(mill).counts(placement, table)
            bad += refused
        return {"accepted": rows, "late": 0, "bad": bad}

    def refused(self, table: str) -> tuple[int, str]:
        """Number of rows that a table that streams write has refused, as last reported, and why one of them was."""
        placement = self._mill.placements.of.get(part_name(table))
        return (0, "") if placement is None else TableRows.of(self._mill).counts(placement, table)[1:]

    def write(self, write: Write, text: str) -> None:
        """Run a statement that no stream drives, and note it."""
        mill, table, rows = self._mill, write.statement.table, None
        if isinstance(write.statement, body.Insert) and write.source is None:
            rows = self._values(write)
            program = insertion(mill.catalog.table(table), mill.catalog, write.conflict)
        else:
            program = bind_written_once(write, mill.catalog)
        if self.live(table):
            mill.placements.of[part_name(table)].job.require(references(program))
            number = next(self._numbers)
            self._send(table, lambda part: WriteOnce(part.group.group, table, program, rows, number, text))
            mill.journal.ran(text, number)
            return
        if readers := self.static_readers(table):
            message, hint = f"table '{table}' is static and in use", f"drop {readers[0][0]} '{readers[0][1]}' first"
            raise BindError("M2096", message, hint=hint)
        mill.tables[table] = self._written(table, program, rows)
        mill.journal.wrote(text, table, mill.tables[table])

    def insert(self, table: str, rows: pl.DataFrame) -> None:
        """Insert rows of the API into a table that streams write."""
        program = insertion(self._mill.catalog.table(table), self._mill.catalog)
        self._send(table, lambda part: WriteOnce(part.group.group, table, program, rows))

    def live(self, table: str) -> bool:
        """Return whether streams write a table, or have written it."""
        return part_name(table) in self._mill.placements.of

    def _values(self, write: Write) -> pl.DataFrame:
        """The rows of VALUES."""
        program, schema = bind_values(write, self._mill.catalog), self._mill.catalog.table(write.statement.table).schema
        try:
            found = compiled(program)().iterate()
        except (OutOfRange, CodeError) as error:
            raise BindError("M2095", reason_of(error)) from None
        return pl.DataFrame(found, schema={each.name: each.type.polars for each in schema}, orient="row")

    def _written(self, table: str, program: Program, rows: pl.DataFrame | None) -> pl.DataFrame:
        """The rows of a static table after a statement; all rows fit, or none is written."""
        schema = self._mill.catalog.table(table).schema
        plan = WrittenTable(table, schema)
        held = written_table.WrittenTable(plan.schema, table, schema, self._mill.tables[table])
        held.once(program, rows)
        if held.bad:
            raise BindError("M2095", f"a row does not fit table '{table}'", detail=f"{held.reason}.")
        return held.content().drop(ROW)

    def _send(self, table: str, record: Any) -> None:
        placement = self._mill.placements.of[part_name(table)]
        made: Record = record(placement.parts[0])
        self._mill.placements.append(made, placement.job)
