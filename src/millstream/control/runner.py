"""`millstream run`: run a file of statements, on Spark or in this process, with a progress line."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from rich.console import Console

from millstream.control.connection import Connection, connect
from millstream.control.spark.session import calm
from millstream.lang import ast, parse
from millstream.sinks.terminal.screen import TERMINAL


def run_file(
    text: str,
    console: Console,
    *,
    local: bool = False,
    master: str | None = None,
    checkpoint: Path | None,
    seconds: float | None = None,
    log: Path | None = None,
    port: int | None = None,
    **options: Any,
) -> None:
    """Run until the sources end, `seconds` have passed, or Ctrl-C. A SELECT without INTO prints to the console."""
    statements = parse(text)
    if local:
        connection = connect(local=True, checkpoint=checkpoint, **options)
    else:
        with console.status("starting Spark"):
            connection = connect(master=master, checkpoint=checkpoint, log=log, **options)
        calm()
    with connection:
        if port is not None:
            from millstream.control.observe.metrics import serve

            serve(connection, port)
        mill = connection.mill
        if mill.journal.noted:
            console.print(f"resumed from {checkpoint}: {', '.join(mill.queries)}", markup=False)
        for number in range(mill.journal.statements_done(len(statements)), len(statements)):
            mill.journal.note_file(number)
            _run(connection, statements[number], console)
        mill.journal.note_file(None)
        if not mill.queries:
            console.print("no query runs", markup=False)
            return
        line = ProgressLine(connection, console)
        try:
            done = connection.await_end(seconds, line.show)
        except KeyboardInterrupt:
            done = False
        finally:
            line.close()
        console.print(line.summary("all streams have ended" if done else "stopped"), markup=False)


def _run(connection: Connection, statement: ast.Statement, console: Console) -> None:
    text = statement.text
    if isinstance(statement, ast.SelectStatement) and statement.into is None and not statement.into_options:
        text += " INTO console"
    result = connection.sql(text)
    if isinstance(result, str):
        console.print(result, markup=False)


class ProgressLine:
    """Rows per second, state and lag, on one line that is updated in place."""

    def __init__(self, connection: Connection, console: Console) -> None:
        self._connection, self._console = connection, console
        self._begun = self._shown = time.monotonic()
        visible = console.is_terminal and not TERMINAL.in_use
        self._status = console.status("waiting for the first batch") if visible else None
        if self._status is not None:
            self._status.start()

    def show(self) -> None:
        if self._status is None or time.monotonic() - self._shown < 0.25:
            return
        self._shown = time.monotonic()
        self._status.update(self._text())

    def _text(self) -> str:
        mill = self._connection.mill
        queries = [query.progress() for query in self._connection.queries]
        if not queries:
            return "no query runs"
        rate = max(progress.rows_per_second for progress in queries)
        held = sum(progress.state_rows for progress in queries)
        waiting = sum(mill.waiting().values())
        lag = f"   {waiting:,} rows behind" if waiting else ""
        return f"batch {queries[0].batch}   {rate:,.0f} rows/s   state {held:,} rows{lag}"

    def summary(self, how: str) -> str:
        jobs = {self._connection.mill.job(query) for query in self._connection.mill.queries}
        rows = sum(job.rows_in for job in jobs)
        out = sum(query.output.rows_out for query in self._connection.mill.queries.values())
        taken = time.monotonic() - self._begun
        return f"{how} after {taken:.1f} s: {rows:,} rows in, {out:,} rows out"

    def close(self) -> None:
        if self._status is not None:
            self._status.stop()
