"""`millstream run`: run a file of statements, on Spark or in this process, with a progress line."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from rich.console import Console

from millstream import __version__
from millstream.amounts import amount
from millstream.control.connecting import connect
from millstream.control.connection import Connection
from millstream.control.mailbox import Mailbox
from millstream.control.mill.base import Mill
from millstream.control.mill.comparison import CONSOLE, goes_to_console, remaining
from millstream.control.mill.restarting import start_again
from millstream.control.observe.counted import counted
from millstream.control.observe.log_file import LOG
from millstream.control.observe.progress import batch_text
from millstream.control.observe.silence import why_silent
from millstream.control.observe.stream_progress import rows_in
from millstream.control.rehearsal import rehearse
from millstream.control.spark.session import calm
from millstream.control.stopping import Stop, Stopped
from millstream.errors import InputError, MillstreamError, OptionError, fresh, redacted
from millstream.lang import ast, parse
from millstream.lang.table.ast import WriteStatement
from millstream.logical.bind.table.relations import over_tables
from millstream.physical.shard.topology import scans
from millstream.sinks.terminal.plain_screen import print_rows
from millstream.sinks.terminal.screen import TERMINAL

Differing = Literal["refuse", "keep", "replace"]


def run_file(
    text: str,
    console: Console,
    *,
    local: bool = False,
    master: str | None = None,
    checkpoint: Path | None,
    seconds: float | None = None,
    log: Path | None = None,
    log_format: str = "text",
    port: int | None = None,
    stop: Stop | None = None,
    differing: Differing = "refuse",
    **options: Any,
) -> None:
    """Run until the sources end, `seconds` have passed, or a signal. A query without INTO prints to the console.
    `differing`: what to do if the checkpoint was made with other statements: refuse, keep those of the checkpoint, or
    replace them."""
    statements, stop = parse(text), stop or Stop()
    if not local or checkpoint is not None:
        quiet = Console(quiet=True)
        rehearse(statements, checkpoint, options, lambda mill: _resume(mill, statements, quiet, differing, checkpoint))
    LOG.info("millstream %s, process %d, checkpoint %s", __version__, os.getpid(), checkpoint or "temporary")
    if local:
        connection = connect(local=True, checkpoint=checkpoint, resume=False, **options)
    else:
        with console.status("starting Spark"):
            options |= {"log": log, "log_format": log_format}
            connection = connect(master=master, checkpoint=checkpoint, resume=False, **options)
        calm()
        stop.install()
    LOG.info("connected: %s, %s", connection, amount(connection.mill.options.shards, "shard"))
    try:
        if port is not None:
            from millstream.control.observe.metrics import serve

            serve(connection, port)
        left: Sequence[ast.Statement] = statements
        resumed = bool(connection.mill.journal.noted)
        if resumed:
            left = _resume(connection.mill, statements, console, differing, connection.checkpoint)
        last = _run_statements(connection, statements, left, console)
        stop.started = True
        if connection.mill.queries:
            try:
                _await_end(connection, seconds, console, resumed=resumed)
            except Stopped:
                for statement in last:
                    _say(console, f"not run after a signal: {' '.join(statement.text.split())[:100]}")
                raise
        elif not last:
            _say(console, "no query runs")
        _print_tables(connection, last, console)
    except MillstreamError as error:
        if checkpoint is None and error.code in ("M6051", "M6062"):
            error.hint = "--checkpoint keeps the state; without it the next start begins anew"
        raise
    finally:
        stop.close(connection.close, aside=not local)
    _check_delivered(connection, checkpoint)


def _check_delivered(connection: Connection, checkpoint: Path | None) -> None:
    """Raise an error if results wait for a sink when the run has ended."""
    if waiting := connection.mill.deliveries.undelivered:
        kept = "the same command, with the same --checkpoint, delivers them when the sink works"
        hint = kept if checkpoint is not None else "--checkpoint keeps results that wait for a sink"
        detail = "\n  ".join(waiting.values())
        error = OptionError("M6075", "the run has ended with results undelivered", detail=detail, hint=hint)
        error.status = 3
        raise error


def _run_statements(
    connection: Connection, statements: Sequence[ast.Statement], left: Sequence[ast.Statement], console: Console
) -> list[ast.Statement]:
    """Run the statements that are left; return the SELECTs over tables, which are for the end."""
    journal, last = connection.mill.journal, list[ast.Statement]()
    with connection.together():
        for statement in left:
            number = next(n for n, each in enumerate(statements) if each is statement)
            journal.note_file(number)
            LOG.info("statement %d: %s", number + 1, " ".join(statement.text.split()))
            if _over_tables(connection, statement):
                last.append(statement)
            else:
                _run(connection, statement, console)
        journal.note_file(None)
        for name in connection.mill.failures.of():  # those of an earlier run
            _say(console, start_again(connection.mill, name))
    for stream in _unfed(connection.mill):
        hint = "WITH (connector = 'csv', path = '…') reads files; a Python program can insert rows"
        LOG.warning("%s", InputError("M5062", f"nothing feeds stream '{stream}'", hint=hint))
    return last


def _unfed(mill: Mill) -> list[str]:
    """The streams without a connector that queries read: a file of statements cannot feed them."""
    return sorted(name for name in _read(mill) if mill.fed(name) is not None)


def _read(mill: Mill) -> set[str]:
    """The streams that queries read."""
    return {scan.id.source for query in mill.queries.values() for scan in scans(query.plan)}


def _await_end(connection: Connection, seconds: float | None, console: Console, *, resumed: bool) -> None:
    line, failures = ProgressLine(connection, console, resumed=resumed), connection.mill.failures
    how = "stopped"
    mailbox = None if connection.checkpoint is None else Mailbox(connection, Path(connection.checkpoint))

    def poll() -> None:
        line.show()
        if mailbox is not None:
            mailbox.look()

    try:
        if connection.await_end(seconds, poll):
            how = _how_ended(connection.mill)
    except Stopped as stopped:
        stopped.told = True
        raise
    except MillstreamError as error:
        error.status, how = 1, "failed"
        raise
    finally:
        line.close()
        if how != "failed":
            _say(console, line.summary(how))
            for trouble in failures.lines():
                _say(console, trouble)
    for failure in failures.of().values():
        failure.error.status = 1
        raise fresh(failure.error)


def _how_ended(mill: Mill) -> str:
    if all(query.finished is not None for query in mill.queries.values()):
        return "all queries have ended"
    unfed = " and ".join(f"'{stream}'" for stream in _unfed(mill))
    if not unfed:
        return "all streams have ended"
    only = not any(mill.fed(stream) is None for stream in _read(mill))
    return f"nothing feeds {unfed}: ended" if only else f"all streams but {unfed}, which nothing feeds, have ended"


def _resume(
    mill: Mill, statements: list[ast.Statement], console: Console, differing: Differing, checkpoint: Path | None
) -> list[ast.Statement]:
    """Compare the file with the statements of the checkpoint; return the statements that are left to run."""
    found, changed = remaining(mill, statements), mill.python_code.changed()
    differences = [
        *found.lines(mill),
        *(f"{code} has changed; query {query} calls it" for query, code in changed.items()),
    ]
    if differences and differing == "refuse":
        message = f"checkpoint '{checkpoint}' was made with other statements"
        hint = (
            "--replace drops what differs and starts it anew, --keep runs on what the checkpoint has; "
            "unrelated statements need another --checkpoint"
        )
        raise OptionError("M6071", message, detail="\n  ".join(differences), hint=hint)
    if differences and differing == "replace":
        found.check_sinks(mill, statements, changed)
        for what in found.drop(mill):
            _say(console, f"dropped: {what}")
        for query in changed.keys() & mill.queries.keys():
            mill.stop_query(query)
            _say(console, f"dropped: query {query}")
        found = remaining(mill, statements)
    elif differences:
        mill.python_code.check(changed=True)
        for difference in differences:
            _say(console, f"kept: {difference.rpartition(';')[0]}")
    _say(console, f"resumed from {checkpoint}: {', '.join(mill.queries) or 'no query'}")
    for statement in found.run:
        _say(console, f"new: {' '.join(statement.text.split())[:100]}")
    return found.run


def _run(connection: Connection, statement: ast.Statement, console: Console) -> None:
    if isinstance(statement, WriteStatement):
        connection.run(statement)
        return
    result = connection.run(_shown(statement))
    if isinstance(result, str):
        console.print(result, markup=False)


def _shown(statement: ast.Statement) -> ast.Statement:
    """A query that names no sink, with the console as its sink."""
    if not isinstance(statement, ast.SelectStatement | ast.CreateQuery) or not goes_to_console(statement):
        return statement
    text = f"{statement.text} INTO {CONSOLE}"
    if isinstance(statement, ast.CreateQuery):
        return replace(statement, into=CONSOLE, text=text, body=f"{statement.body} INTO {CONSOLE}")
    return replace(statement, into=CONSOLE, text=text)


def _over_tables(connection: Connection, statement: ast.Statement) -> bool:
    """Return whether a statement is a SELECT over tables alone."""
    if not isinstance(statement, ast.SelectStatement) or isinstance(statement, WriteStatement) or statement.into:
        return False
    return over_tables(statement.select, connection.mill.catalog)


def _print_tables(connection: Connection, statements: Sequence[ast.Statement], console: Console) -> None:
    """Print the rows of SELECTs over tables, as they are at the end."""
    for statement in statements:
        assert isinstance(statement, ast.SelectStatement)
        print_rows(console, *connection.mill.written.once(statement.select))


def _say(console: Console, text: str) -> None:
    LOG.info("%s", text)
    console.print(redacted(text), markup=False)


LOGGED = 10.0
"""Seconds between two lines of progress in the log."""


class ProgressLine:
    """Rows per second, state and lag, on one line that is updated in place."""

    def __init__(self, connection: Connection, console: Console, *, resumed: bool = False) -> None:
        self._connection, self._resumed = connection, resumed
        self._begun = self._shown = self._logged = time.monotonic()
        visible = console.is_terminal and not TERMINAL.in_use
        self._status = console.status("waiting for the first batch") if visible else None
        if self._status is not None:
            self._status.start()

    def show(self) -> None:
        """Update the line, and log it every `LOGGED` seconds."""
        if time.monotonic() - self._logged >= LOGGED and LOG.isEnabledFor(logging.INFO):
            self._logged = time.monotonic()
            LOG.info("%s", self._text())
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
        lag = f"   {amount(waiting, 'row')} behind" if waiting else ""
        lost = f"   {found}" if (found := counted(mill)) else ""
        failed = ", ".join(mill.failures.of())
        lost += f"   failed: {failed}" if failed else ""
        lost += "".join(f"   {query.query}: {query.sink}" for query in queries if query.sink is not None)
        return f"{batch_text(queries[0].batch)}   {rate:,.0f} rows/s   state {amount(held, 'row')}{lag}{lost}"

    def summary(self, how: str) -> str:
        """The rows of this run, and why a query has emitted none."""
        rows = rows_in(self._connection.mill)
        out = sum(query.rows_out for query in self._connection.mill.queries.values())
        taken = time.monotonic() - self._begun
        mill = self._connection.mill
        lost = f", {found}" if (found := counted(mill)) else ""
        silent = [f"no rows of query '{name}': {why}" for name in mill.queries if (why := why_silent(mill, name))]
        since = ", since the resume" if self._resumed else ""
        counts = f"{amount(rows, 'row')} in, {amount(out, 'row')} out{lost}"
        return "\n".join([f"{how} after {taken:.1f} s{since}: {counts}", *silent])

    def close(self) -> None:
        if self._status is not None:
            self._status.stop()
