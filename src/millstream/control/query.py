"""A query of the Python API, started or not."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

import polars as pl

from millstream.algebra.schema import Schema
from millstream.arguments import check_text
from millstream.control.mill.contracts import contract
from millstream.control.mill.restarting import start_again
from millstream.control.mill.running_query import RunningQuery
from millstream.control.mill.statements import check_sink_options, check_stage, sink_of
from millstream.control.observe.early_plot import Track, end_label
from millstream.control.observe.notebook import Picture, Text, query_html
from millstream.control.observe.progress import Progress, progress_of
from millstream.control.reports.assess import EarlyAnswers
from millstream.errors import BindError, MillstreamError, OptionError
from millstream.lang import ast
from millstream.lang.spelling import spelled
from millstream.logical.contract.query_contract import QueryContract
from millstream.sinks import Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from millstream.control.connection import Connection
    from millstream.control.spark.query_dataframe import FrameJob

SinkLike = str | Sink | Callable[[int, pl.DataFrame], None] | None


class Query:
    """A query, started or not."""

    def __init__(
        self,
        connection: Connection,
        statement: ast.SelectStatement | ast.CreateQuery,
        schema: Schema,
        started: RunningQuery | None = None,
    ) -> None:
        self._connection, self._statement, self._started = connection, statement, started
        self.schema = schema
        self._frames: FrameJob | None = None
        """The job of its DataFrames."""

    def __repr__(self) -> str:
        return f"<query {self.name or '(not started)'} {self.schema}>"

    def _repr_html_(self) -> str:
        return query_html(self)

    @property
    def text(self) -> str:
        """The statement of the query."""
        return self._statement.text

    @property
    def name(self) -> str | None:
        """The name of the query while it runs; None before `start` and after it was stopped or dropped."""
        started = self._started
        return started.name if started and self._connection.mill.queries.get(started.name) is started else None

    @property
    def running(self) -> bool:
        """True from `start` to `stop`, to its last row, to a failure, or to the end of the connection."""
        ended = self.error is not None or self.finished or self._connection._closed
        return self.name is not None and not ended

    @property
    def finished(self) -> bool:
        """True once a query with LIMIT has emitted all its rows. Those that were not taken yet can still be taken."""
        return self._started is not None and self._started.finished is not None

    @property
    def error(self) -> MillstreamError | None:
        """The error that the query has failed with; None while it runs, and after the last row of its LIMIT."""
        if self._started is None or self.name is None:
            return None
        if self._started.failure is not None:
            return self._started.failure.error
        if self.finished:  # its job may know it no more
            return None
        try:
            self._connection.mill.job(self.name).check()  # of the last query that runs, the job has the error
        except MillstreamError as error:
            return error
        return None

    def __enter__(self) -> Query:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.name is not None:
            self.stop()

    def start(
        self, sink: SinkLike = None, *, name: str | None = None, start: str | None = None, **options: Any
    ) -> Query:
        """Start the query. `sink`: None keeps results for `take`; 'console', 'parquet' (with path=…), 'none', a
        function of a batch number and a Polars frame, or any object with open, write and close. `name`: by default that
        of CREATE QUERY, that it had before `stop`, or a free one. `start`: 'now' (the default), 'beginning' or
        'shared', as in CREATE QUERY."""
        self._connection._check_open()
        if self.name is not None:
            return self._start_again(anything=(sink, name, start, *options.values()))
        if name is not None and not isinstance(name, str):
            raise BindError("M2092", f"the name of a query is a text, not {type(name).__name__}")
        mill = self._connection.mill
        how, own = start or self._statement.start.how, getattr(self._statement, "name", None)
        before = self._started.name if self._started and self._started.name not in mill.queries else None
        name = (name or own or before or mill.free_name()).lower()
        sink_options = {option: str(value) for option, value in options.items()}
        check_sink_options(sink_options, sink if isinstance(sink, str) else "of an object")
        into, into_options = sink_of(self._statement)
        if sink_options and sink is None and into is None:
            hint = "start('parquet', path='…'); without a sink, results wait for take()"
            raise OptionError("M6001", f"option '{min(sink_options)}' needs a sink", hint=hint)
        text, held = ast.query_text(name, self._statement, how), into_options | sink_options
        mill.start_query(name, text, self._statement.select, sink or into, held, ast.Start(how))
        self._started = mill.queries[name]
        self._connection._start()
        return self

    def _start_again(self, anything: tuple[Any, ...]) -> Query:
        """Start the query again after it has failed, with the sink that it had."""
        name, mill = self._running(), self._connection.mill
        if self.error is None:
            raise BindError("M2091", f"query '{name}' is already running")
        if any(each is not None for each in anything):
            hint = f"start() without arguments, or DROP QUERY {spelled(name)} and a new one"
            raise BindError("M2106", f"query '{name}' has failed; it starts again as it was", hint=hint)
        start_again(mill, name)
        self._connection._start()
        return self

    def to_df(self, mode: str = "final") -> DataFrame:
        """Return the query as a Spark streaming DataFrame of rows, to combine with anything in Spark. `mode`: 'final';
        'all' with the early rows of a query that gives them; 'upsert': of each batch, the last row for a window and
        group."""
        from millstream.control.spark.query_dataframe import frame_job

        self._connection._check_open()
        self._frames = frame_job(self._connection, self._statement, mode)
        return self._frames.frame(self.schema, mode)

    def explain(self, stage: str = "optimized") -> Text:
        """Return the plan as text. `stage`: logical, optimized, physical, contract or feedback."""
        self._connection._check_open()
        check_stage(stage)
        return Text(self._connection.mill.execute(f"EXPLAIN {stage} {self.text}"))

    def contract(self) -> QueryContract:
        """Return the contract of the query: whether its state stays bounded, what it relies on, what to declare."""
        self._connection._check_open()
        mill, name = self._connection.mill, self.name
        plan = mill.plan(self._statement.select) if name is None else mill.query(name).plan
        return contract(mill, plan)

    def take(self) -> pl.DataFrame:
        """Return the rows since the last call, of a query without a sink. Wait until everything fed is processed; in
        this process, read a batch of the streams with a connector first."""
        name = self._kept()
        self._connection._work()
        return self._connection.mill.take_rows(name)

    def punctuations(self) -> list[str]:
        """Return the punctuations since the last call, of a query without a sink. Wait as `take` does."""
        name = self._kept()
        self._connection._work()
        return [p.format(self.schema) for p in self._connection.mill.take_punctuations(name)]

    def request_punctuation(self) -> None:
        """Have the joins of the query emit the punctuation that they hold back (see the option `propagation`)."""
        self._connection.mill.request_punctuation(self._running())

    def feedback(self, text: str) -> None:
        """Tell the query which of its rows are not wanted: `~[…]`, a pattern over its columns. From the next batch on
        it emits no row that matches, and saves the work for them where it can. `?[…]`: which it should emit first;
        `![…]`: which it should emit now, as far as they are known (`prod`)."""
        check_text(text, "feedback", "~[k = 5]")
        self._connection.mill.feedback(self._running(), text)

    def prod(self, text: str = "{}") -> None:
        """Ask the query for its results so far, of all open windows and groups or of those that match a pattern:
        `{window_end <= 20}`, `{sensor = 5}`. Its select list has `finality`; early rows have 'early' there. The
        DataFrames of the query are asked too."""
        check_text(text, "a prod", "{k = 5}")
        self._connection._check_open()
        if self._frames is not None:
            self._frames.prod(text)
        if self._frames is None or self.name is not None:
            self._connection.mill.prod(self._running(), text)

    def progress(self) -> Progress:
        """Return counts, times and state sizes of the query."""
        return progress_of(self._connection.mill, self._running())

    def early_plot(self) -> Picture:
        """Return a picture (SVG) of its early answers beside the final ones, and of their accuracy."""
        name, mill = self._running(), self._connection.mill
        unit = mill.query(name).plan.schema.unit
        return Picture(EarlyAnswers.of(mill).tracks.get(name, Track()).svg(f"Early answers of {name}", end_label(unit)))

    def await_end(self, timeout: float | None = None) -> bool:
        """Wait until all streams have ended, or the query has, by its LIMIT; return False if `timeout` seconds pass
        first. Raise the error of the query if it has failed."""
        name, failures = self._running(), self._connection.mill.failures
        ended = self._connection.await_end(timeout, lambda: failures.raise_of(name), query=name)
        failures.raise_of(name)
        return ended

    def stop(self) -> None:
        """Stop the query; others keep running."""
        self._connection.mill.stop_query(self._running())

    def _kept(self) -> str:
        """The name of the query, whose results are kept for this process."""
        name = self._running()
        if self._started is not None and self._started.sink is not None:
            sink = self._started.sink if isinstance(self._started.sink, str) else "a sink of its own"
            hint = "start() or INTO memory keeps them for take(); a second query can have another sink"
            raise BindError("M2105", f"the results of query '{name}' go to {sink}", hint=hint)
        return name

    def _running(self) -> str:
        self._connection._check_open()
        if (name := self.name) is None:
            raise BindError("M2098", "the query is not running: not started, stopped or dropped", hint="query.start()")
        return name
