"""A file of statements, tried before anything is done: a mistake in it is reported before Spark starts, and before
statements ahead of it have changed a checkpoint.

The statements run in a mill in memory, after those that the checkpoint has. No row of a stream is read: queries are
planned, and their sources and sinks are checked and not opened for results. Files of tables are read if the checkpoint
has statements, since it would be left half changed. What only the run itself can find, it finds later.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from millstream.config import Options
from millstream.control.folders import checkpoint_folder
from millstream.control.job.identity import FILE
from millstream.control.job.ownership import check_unowned
from millstream.control.job.parts import DRIVER, check_checkpoint
from millstream.control.mill.altering import altered
from millstream.control.mill.feedback_statement import check_feedback
from millstream.control.mill.local import LocalMill
from millstream.control.mill.outputs import QueryOutput
from millstream.control.mill.recovery import replay_statements
from millstream.control.mill.running_query import RunningQuery
from millstream.control.mill.statements import (
    check_sink,
    named_plan,
    note_query,
    run_statement,
    runs_once,
    sink_of,
    stem_of,
)
from millstream.control.mill.written import WrittenTables
from millstream.errors import MillstreamError
from millstream.ingest.tables import read_table
from millstream.lang import ast, parse
from millstream.lang.table.ast import WriteStatement
from millstream.logical.bind import bind_table
from millstream.logical.bind.table.once import bind_once
from millstream.logical.bind.table.relations import over_tables
from millstream.logical.nodes.written_table import WrittenTable
from millstream.logical.plan import Plan
from millstream.physical.shard.topology import scans
from millstream.physical.wire.control_log import ControlLog
from millstream.physical.wire.records import Remember
from millstream.sinks import delivery_options, make_sink
from millstream.sinks.files.parquet import ParquetSink

LOG = logging.getLogger("millstream")
Compare = Callable[[LocalMill], list[ast.Statement]]


class RehearsedTables(WrittenTables):
    """Tables that statements write, without their rows."""

    def live(self, table: str) -> bool:
        return self._mill.catalog.written(table) is not None

    def _place(self, table: WrittenTable) -> None:
        pass

    def _send(self, table: str, record: Any) -> None:
        pass


class Rehearsal(LocalMill):
    """A mill whose queries are planned, and read nothing. `runs`: the jobs of the checkpoint."""

    runs: tuple[str, ...] = ()

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.written = RehearsedTables(self)

    def execute(self, text: str) -> str:
        self.try_out(parse(text))
        return ""

    def set_option(self, name: str, value: Any) -> None:
        if name.lower() == "shards" or self.journal.recovering:
            super().set_option(name, value)
        else:  # names of operators are known once queries run
            self.options.change(name, value)
            self.journal.option(name, value)

    def try_out(self, statements: Iterable[ast.Statement]) -> None:
        for statement in statements:
            with statement.placing():
                self._try(statement)

    def _try(self, statement: ast.Statement) -> None:
        match statement:
            case ast.CreateTable() if statement.name not in self.catalog:
                table = bind_table(statement, self.catalog)
                self.catalog.add_table(table)
                if self.runs and not self.journal.recovering:
                    read_table(table)
                self.tables[table.name] = pl.DataFrame(schema={a.name: a.type.polars for a in table.schema})
                self.journal.statement("relation", table.name, statement.text, ())
            case ast.CreateQuery() if statement.name not in self.queries:
                self._plan(statement.name, statement.text, statement)
            case WriteStatement(select=write) if runs_once(self, write):
                run_statement(self, statement)
            case ast.SelectStatement(select=select, into=None) if over_tables(select, self.catalog):
                assert isinstance(select, ast.Query)
                bind_once(select, self.catalog)
            case ast.SelectStatement():
                name = self.free_name(stem_of(statement.select))
                self._plan(name, ast.query_text(name, statement, "now"), statement)
            case ast.FeedbackStatement():
                check_feedback(self, statement)
            case ast.AlterQuery():
                altered(self, statement)
            case ast.ExplainNamed():
                named_plan(self, statement.name)
            case ast.Explain() | ast.Show():
                pass  # they may need results
            case _:
                run_statement(self, statement)

    def _plan(self, name: str, text: str, statement: ast.CreateQuery | ast.SelectStatement) -> None:
        plan = self.plan(statement.select)
        if not self.journal.recovering:
            check_sink(statement)
            self._check_folder(name, statement)
            self.connectors.open_all(self.connectors.read_by(plan))
            if statement.start.how == "beginning":
                self.connectors.check_rereadable(scan.id.base for scan in scans(plan))
        self.enter(name, text, plan, statement.select)

    def enter(self, name: str, text: str, plan: Plan, select: ast.Runs) -> None:
        """Enter a planned query, for statements that name it."""
        self.written.begin(plan)
        self.queries[name] = RunningQuery(name, text, plan, QueryOutput(plan.schema, 1))
        note_query(self, self.queries[name], select)

    def _check_folder(self, query: str, statement: ast.CreateQuery | ast.SelectStatement) -> None:
        """Raise OptionError if a new query may not write to its folder."""
        into, options = sink_of(statement)
        if into is None or into.lower() != "parquet":
            return
        _, own = delivery_options({name: value for name, value in options.items() if name != "connector"}, into)
        refused: MillstreamError | None = None
        for run in self.runs or ("",):
            sink = make_sink(into, own | {"run": run, "anew": "true"})
            assert isinstance(sink, ParquetSink)
            try:
                sink.check(query)
            except MillstreamError as error:
                refused = error
            else:
                return
        assert refused is not None
        raise refused


def rehearse(
    statements: Sequence[ast.Statement], checkpoint: Path | None, options: dict[str, Any], compare: Compare
) -> None:
    """Raise the error that these statements will raise, if it can be known. `compare` returns those that are left to
    run if the checkpoint has statements already."""
    known = {name: value for name, value in options.items() if name in Options.model_fields and name != "shards"}
    if (checkpoint := checkpoint_folder(checkpoint)) is not None:
        check_unowned(checkpoint)
        check_checkpoint(ControlLog(checkpoint / DRIVER))
    with _silently():
        try:
            mill = Rehearsal(Options.read(**known))
            mill.runs = _runs(checkpoint)
            replay_statements(mill, _notes(checkpoint))
            mill.try_out(compare(mill) if mill.journal.noted else statements)
        except MillstreamError:
            raise
        except Exception as error:  # the run itself decides
            LOG.debug("the statements could not be tried out: %s", error, exc_info=True)


def _runs(checkpoint: Path | None) -> tuple[str, ...]:
    """The ids of the jobs in a checkpoint."""
    found = [] if checkpoint is None else sorted(checkpoint.glob(f"job-*/{FILE}"))
    return tuple(json.loads(path.read_text())["id"] for path in found)


def _notes(checkpoint: Path | None) -> Iterator[Remember]:
    path = None if checkpoint is None else checkpoint / DRIVER
    if path is not None and path.exists():
        log = ControlLog(path)
        yield from (record for record in log.read(0, log.end()) if isinstance(record, Remember))


@contextmanager
def _silently() -> Iterator[None]:
    """Log no warning: the run itself does."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        yield
    finally:
        logging.disable(before)
