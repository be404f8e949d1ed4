"""The outlet of a query: its sink, and the spool that holds its results while the sink raises.

A sink gets every batch once and in order. While batches wait in the spool, later ones wait behind them; the sink is
tried again after a pause, which grows from try to try, and a warning each minute says so. With `on_error = 'stop'`, or
if the error does not pass by itself (`MillstreamError.lasting`), the query stops instead. Started again, it first
delivers the batch that failed, and stops again if that fails.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.schema import Schema
from millstream.amounts import amount
from millstream.control.mill.modes import Shape
from millstream.control.mill.outputs import QueryOutput
from millstream.control.mill.spool import Results, Spool
from millstream.errors import MillstreamError, OptionError, reason_of
from millstream.sinks import Sink
from millstream.sinks.files.folder import AHEAD
from millstream.sinks.options import DeliveryOptions

LOG = logging.getLogger("millstream")
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 30.0
"""Seconds before a sink that has raised is tried again: the first time, and at most."""
REMINDED = 60.0
"""Least seconds between two warnings of a sink that fails."""


@dataclass(frozen=True, slots=True)
class SinkTrouble:
    """A sink that raises: since when (seconds since the epoch), its last error, and what waits for it."""

    since: float
    error: str
    rows: int
    batches: int

    def __str__(self) -> str:
        at = datetime.fromtimestamp(self.since).strftime("%Y-%m-%d %H:%M:%S")
        return f"sink failing since {at}, {amount(self.rows, 'row')} spooled: {self.error}"


class Outlet:
    """`name`: the sink, as messages name it. `delivered` is called with the number of rows that the sink has taken.
    `shape`: makes of the rows of a batch those that the sink takes."""

    def __init__(
        self,
        query: str,
        name: str,
        schema: Schema,
        sink: Sink,
        options: DeliveryOptions,
        spool: Spool,
        delivered: Callable[[int], None] = lambda _: None,
        shape: Shape = lambda rows: rows,
    ) -> None:
        self.query, self.name, self.options, self.spool = query, name, options, spool
        self._sink, self._schema, self._delivered = sink, schema, delivered
        self._shape = shape
        self._opened = False
        self.last = -1
        """The last batch that was delivered or spooled."""
        self._taken: tuple[int, Results] | None = None
        """The last batch whose results were taken from the output."""
        self._since, self._error = 0.0, ""
        self._pause, self._due, self._told = FIRST_PAUSE, 0.0, 0.0
        self.lasting: MillstreamError | None = None
        """The sink's last error, if it does not pass by itself."""

    def open(self) -> None:
        """Open the sink; raise a MillstreamError if it raises."""
        try:
            self._sink.open(self.query, self._schema)
        except MillstreamError:
            raise
        except Exception as error:
            raise self.failure(error, "cannot be opened") from error
        self._opened = True

    def open_later(self) -> None:
        """Open the sink, now or when it works again; raise OptionError if it is ahead of the checkpoint."""
        try:
            self.open()
        except MillstreamError as error:
            if error.code == AHEAD:
                raise
            self._note(error)

    def failure(self, error: BaseException, what: str = "failed") -> MillstreamError:
        if isinstance(error, MillstreamError) and (error.code == "M6044" or error.lasting):
            return error
        reason = str(error) if isinstance(error, MillstreamError) else reason_of(error)
        return OptionError("M6044", f"sink {self.name} of query '{self.query}' {what}: {reason}")

    @property
    def trouble(self) -> SinkTrouble | None:
        """None while the sink works."""
        if not self._since:
            return None
        return SinkTrouble(self._since, self._error, self.spool.rows, len(self.spool.batches()))

    def take(self, batch: int, output: QueryOutput) -> Results:
        """Take the results of a batch from the output of the query, once: a batch that is abandoned and repeated has
        the same results."""
        if self._taken is None or self._taken[0] != batch:
            self._taken = batch, (self._shape(output.take_rows()), output.take_punctuations())
        return self._taken[1]

    def write(self, batch: int, rows: pl.DataFrame, punctuations: Sequence[Pattern]) -> MillstreamError | None:
        """Deliver a batch, or spool it; return the error that stops the query, if it must be stopped."""
        stops = self.options.on_error == "stop"
        if self._opened and not self.spool:
            try:
                self._write(batch, rows, punctuations)
            except Exception as error:
                self._note(error)
                self.spool.put(batch, rows, punctuations)
                failed: Exception | None = error
            else:
                self._well()
                return None
        else:
            self.spool.put(batch, rows, punctuations)
            failed = self.retry(now=stops or self.lasting is not None)
        if self.spool.bytes > self.options.spool_limit:
            message = f"the results that wait for sink {self.name} of query '{self.query}' exceed spool_limit"
            detail = (
                f"{amount(self.spool.rows, 'row')}, {self.spool.bytes:,} bytes; the sink's last error: {self._error}."
            )
            return OptionError("M6045", message, detail=detail)
        return self.failure(failed) if failed is not None and (stops or self.lasting is not None) else None

    def retry(self, *, now: bool = False) -> Exception | None:
        """Deliver what waits, if the pause is over or with `now`, until the sink raises again; return that error."""
        idle = self._opened or not self._since
        if (idle and not self.spool) or (time.monotonic() < self._due and not now):
            return None
        try:
            if not self._opened:
                self.open()
            for batch in self.spool.batches():
                self._write(batch, *self.spool.get(batch))
                self.spool.remove(batch)
        except Exception as error:
            self._note(error)
            return error
        self._well()
        return None

    def _write(self, batch: int, rows: pl.DataFrame, punctuations: Sequence[Pattern]) -> None:
        self._sink.write(batch, rows, punctuations)
        self._delivered(rows.height)

    def close(self) -> None:
        """Try once more to deliver what waits, and close the sink. What still waits stays in the spool."""
        self.retry(now=True)
        try:
            self._sink.close()
        except Exception as error:
            LOG.warning("%s", self.failure(error, "cannot be closed"))

    def _note(self, error: BaseException) -> None:
        reason, now = reason_of(error), time.monotonic()
        if isinstance(error, MillstreamError) and error.detail:
            reason += f" ({error.detail.removesuffix('.')})"
        self.lasting = error if isinstance(error, MillstreamError) and error.lasting else None
        first = not self._since
        if first:
            self._since, self._pause = time.time(), FIRST_PAUSE
        else:
            self._pause = min(2 * self._pause, LONGEST_PAUSE)
        self._error, self._due = reason, now + self._pause
        # A query that stops fails, which is reported.
        if self.options.on_error != "stop" and (first or now >= self._told + REMINDED):
            self._told = now
            spooled = "" if self.lasting else "; its results are spooled"
            what = f"fails{spooled}" if first else f"still fails; {amount(self.spool.rows, 'row')} spooled"
            LOG.warning("sink %s of query '%s' %s: %s", self.name, self.query, what, reason)

    def _well(self) -> None:
        if self._since:
            LOG.warning("sink %s of query '%s' works again; all its results are delivered", self.name, self.query)
        self._since, self._error, self.lasting = 0.0, "", None
