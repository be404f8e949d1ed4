"""The Python API: a connection to Millstream on Spark, and the queries it runs. `connecting` opens one.

    import millstream as ms

    with ms.connect() as mill:
        mill.sql("CREATE STREAM bids (auction BIGINT, price DOUBLE, ts TIMESTAMP) ORDER BY ts "
                 "WITH (connector = 'parquet', path = 'data/bids')")
        hot = mill.sql("SELECT auction, price FROM bids WHERE price > 100").start("console")
        hot.await_end(timeout=60)

Statements take effect at once. A SELECT returns a query; `start` runs it, `to_df` turns it into a Spark DataFrame. A
connection does not stop a session that it was given.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from millstream import scratch
from millstream.arguments import check_function, check_seconds, check_text
from millstream.config import MOST_SHARDS, Options
from millstream.control.job.jobs import Jobs, LocalJobs
from millstream.control.job.local import LocalJob
from millstream.control.mill.base import Mill
from millstream.control.mill.recovery import recover
from millstream.control.mill.statements import run_statement
from millstream.control.observe.notebook import Text, connection_html
from millstream.control.observe.watch import Watch
from millstream.control.pacer import Pacer
from millstream.control.query import Query
from millstream.control.spark.dataframe_source import ForeignKeys, check_fits, declaration
from millstream.control.spark.given_session import with_hint
from millstream.control.spark.jobs import SparkJobs
from millstream.control.spark.listener import BatchListener, OnProgress
from millstream.errors import BindError, MillstreamError, OptionError, SqlSyntaxError
from millstream.lang import ast, parse
from millstream.lang.table.ast import WriteStatement
from millstream.logical.bind.table.relations import over_tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from millstream.control.spark.query_dataframe import FrameJob

LOG = logging.getLogger("millstream")


class Connection:
    """Without `spark` everything runs in this process. `own`: stop the session when the connection is closed."""

    def __init__(
        self,
        spark: SparkSession | None,
        checkpoint: str | Path | None,
        options: Options,
        *,
        own: bool,
        resume: bool = True,
        given: SparkSession | None = None,
    ) -> None:
        self.spark, self._given = spark, given
        """`_given`: the session of the program that `spark` is a copy of."""
        self._closing = ExitStack()
        scratch.sweep_aside()
        self._closed = self._together = False
        """`_together`: true while queries wait to start together."""
        self.frames: dict[Path, FrameJob] = {}
        """The jobs of queries that are DataFrames, by their folders."""
        try:
            self._open(checkpoint, options, own=own)
            self._resumes = bool(self.mill.queries)
            """True until the queries of the checkpoint are started."""
            if self._resumes and resume:
                self._start()
        except BaseException:
            self.close()
            raise

    def _open(self, checkpoint: str | Path | None, options: Options, *, own: bool) -> None:
        spark, temporary = self.spark, False
        if checkpoint is None and spark is not None:
            checkpoint = self._closing.enter_context(scratch.temporary())
            temporary = True
        self.checkpoint = None if checkpoint is None else Path(checkpoint).absolute()
        if spark is not None and own:
            self._closing.callback(spark.stop)
        chosen = "shards" in options.model_fields_set
        if spark is None:
            self._jobs: Jobs = LocalJobs(self.checkpoint, shards=options.shards)
        else:
            assert self.checkpoint is not None
            shards = options.shards if chosen else min(spark.sparkContext.defaultParallelism, MOST_SHARDS)
            self._jobs = SparkJobs(spark, self.checkpoint, shards=shards)
        self._closing.callback(self._jobs.close)  # callbacks run last to first
        if chosen:
            self._jobs.check_shards(options.shards)
        self.mill = Mill(self._jobs, options=options, wall=True)
        if isinstance(self._jobs, LocalJobs):
            self._jobs.clock = self.mill.clock.now
        self.mill.deliveries.temporary = temporary
        recover(self.mill)
        self._watch = Watch(self.mill)
        self._pacer = Pacer(self.mill, self._watch.check)
        self._listener = BatchListener(self.mill, self._watch.check)
        self._closing.callback(self.mill.deliveries.close)
        self._closing.callback(self._watch.check)
        self._closing.callback(self._listener.detach)
        self._closing.callback(self._jobs.stop)
        self._closing.callback(self._pacer.stop)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        place = "in this process" if self.spark is None else f"on Spark at {self.spark.sparkContext.master}"
        return f"<connection {'(closed)' if self._closed else place}, checkpoint {self.checkpoint}>"

    def _repr_html_(self) -> str:
        return connection_html(self)

    # --- statements -------------------------------------------------------------------------------------------------

    def sql(self, text: str, args: Any = None) -> Query:
        """Run statements and return the result of the last one: a `Query` for SELECT and CREATE QUERY, `Text` for
        EXPLAIN and SHOW, a Polars frame for a SELECT over tables alone, None otherwise. The annotation names the
        result that a program chains on; `Query.explain` is typed as text. A SELECT without INTO runs after `start` or
        `to_df`; CREATE QUERY, and a statement that writes a table for each tuple of a stream, run at once."""
        result: Query | Text | pl.DataFrame | None = None
        self._check_open()
        if args is not None:
            hint = "the values stand in the text: sql(f'SELECT … WHERE k = {k}')"
            raise SqlSyntaxError("M1090", "parameters of a statement: not available", hint=hint)
        statements = parse(text)
        if not statements:
            hint = "a text such as SELECT … or CREATE STREAM …; SHOW STREAMS lists the streams"
            raise SqlSyntaxError("M1010", "the text has no statement", hint=hint, line=1, column=1)
        for statement in statements:
            result = self.run(statement)
            if statement is not statements[-1] and isinstance(result, Query) and result.name is None:
                hint = "CREATE QUERY name AS SELECT … starts at once; or call sql for each SELECT"
                message = "a SELECT that does not run: sql returns the query of the last statement alone"
                LOG.warning("%s", BindError("M2113", message, hint=hint, **statement.place))
        return cast("Query", result)

    def run(self, statement: ast.Statement) -> Query | Text | pl.DataFrame | None:
        """Run a parsed statement, as `sql` does; errors have the positions of the text that it was parsed from."""
        self._check_open()
        try:
            return self._run(statement)
        except BindError as error:
            raise (error if self.spark is None else with_hint(error, self._given or self.spark, self.spark)) from None

    def _run(self, statement: ast.Statement) -> Query | Text | pl.DataFrame | None:
        given: Any = statement
        if not isinstance(given, ast.Statement):
            hint = "sql('…') runs a text"
            raise SqlSyntaxError("M1010", f"expected a parsed statement, found {type(given).__name__}", hint=hint)
        if isinstance(statement, WriteStatement):
            return self._write(statement)
        if isinstance(statement, ast.SelectStatement) and statement.into is None and not statement.into_options:
            with statement.placing():
                if over_tables(statement.select, self.mill.catalog):
                    return self._select(statement.select)
                plan = self.mill.plan(statement.select)
            return Query(self, statement, plan.schema)
        self.mill.batch()
        text = run_statement(self.mill, statement)
        if isinstance(statement, ast.CreateQuery | ast.SelectStatement):
            self._start()
            name = statement.name if isinstance(statement, ast.CreateQuery) else [*self.mill.queries][-1]
            return Query(self, statement, self.mill.schema(name), self.mill.queries[name])
        return Text(text) if text else None

    def _select(self, select: ast.Runs) -> pl.DataFrame:
        """The rows of a SELECT over tables, after everything fed; in this process, after a batch of the streams."""
        self.mill.batch()
        self._work()
        return self.mill.written.select(select)

    def _write(self, statement: WriteStatement) -> Query | None:
        before = {*self.mill.queries}
        self.mill.batch()
        run_statement(self.mill, statement)
        started = [name for name in self.mill.queries if name not in before]
        if started or self.mill.queries:
            self._start()
        if not self._together:
            self._feed()
        return self.query(started[0]) if started else None

    def query(self, name: str) -> Query:
        """Return the running query of that name."""
        self._check_open()
        running = self.mill.query(name)
        (statement,) = parse(running.text)
        assert isinstance(statement, ast.CreateQuery)
        return Query(self, statement, running.plan.schema, running)

    @property
    def queries(self) -> list[Query]:
        return [self.query(name) for name in self.mill.queries]

    # --- data -------------------------------------------------------------------------------------------------------

    def insert(self, stream: str, rows: Any) -> None:
        """Insert rows into a stream without a connector or a table: tuples, dicts, a Polars frame, an Arrow table."""
        self._check_open()
        self.mill.insert(stream, rows)
        self._feed()

    def stream(
        self,
        name: str,
        frame: DataFrame,
        *,
        order_by: str | None = None,
        watermark: str | None = None,
        primary_key: Sequence[str] = (),
        ascending: Sequence[str] = (),
        references: ForeignKeys | None = None,
    ) -> None:
        """Declare a streaming DataFrame as a stream. `order_by`: its time column; `watermark`: the longest delay of a
        row, such as '5 seconds'; `ascending`: columns that never decrease; `references`: the stream whose primary key
        has the values of a column. After a restart from a checkpoint, call it again with the DataFrame; its queries
        then resume."""
        self._check_open()
        if not isinstance(name, str):
            raise BindError("M2002", f"expected the name of a stream, found {type(name).__name__}")
        name = name.lower()
        options: dict[str, Any] = {"order_by": order_by, "watermark": watermark}
        options |= {"primary_key": primary_key, "ascending": ascending, "references": references}
        try:
            if name not in self.mill.catalog:
                self.sql(declaration(name, frame, **options))
            else:
                check_fits(self.mill.catalog.stream(name), frame, **options)
        except MillstreamError as error:
            error.line = error.column = None  # there is no text that the position could be in
            raise
        self.mill.adopt(name, frame)
        if self.mill.queries:
            self._start()

    def punctuate(self, stream: str, *patterns: str) -> None:
        """Promise that no later row matches one of these patterns."""
        self._check_open()
        self.mill.punctuate(stream, *patterns)
        self._feed()

    def prod(self, stream: str, pattern: str = "{}") -> None:
        """Ask the queries that read a stream for their results so far, over exactly the rows before: `{}`, or a pattern
        over the columns of the stream. Queries with EMIT EARLY, or finality in the select list, answer."""
        self._check_open()
        check_text(pattern, "a prod", "{ts <= 20, k = 5}")
        self.mill.catalog.stream(stream)
        self.mill.prod(stream, pattern)
        self._feed()

    def _feed(self) -> None:
        """Write the queued elements to the jobs' logs; in this process, process them too, with a batch of the streams
        that jobs read."""
        self.mill.batch()
        if self.spark is None:
            if not self._together and not self._resumes:
                self._work()
            self.mill.sync()
        self._watch.check()

    def _check_open(self) -> None:
        if self._closed:
            raise OptionError("M6059", "the connection is closed", hint="connect() again")

    # --- Python code ------------------------------------------------------------------------------------------------

    def function(self, code: Any = None, /, **options: Any) -> Any:
        """Register a scalar function for this connection; a decorator, with or without options. See
        `millstream.function`, which registers one for all connections."""
        self._check_open()
        return self.mill.function(code, **options)

    def aggregate(self, code: Any = None, /, **options: Any) -> Any:
        """Register an aggregate, a class, for this connection; see `millstream.aggregate`."""
        self._check_open()
        return self.mill.aggregate(code, **options)

    def resume(self, *, changed: bool = False) -> None:
        """Start the queries of the checkpoint, after `connect(resume=False)`. `changed`: also if Python code that they
        call has changed; they go on with the new code."""
        self._check_open()
        self.mill.python_code.check(changed=changed)
        if self.mill.queries:
            self._start()

    # --- life -------------------------------------------------------------------------------------------------------

    @contextmanager
    def together(self) -> Iterator[None]:
        """Start the queries of the statements inside together: jobs begin, or go on, to read streams at the end, when
        all queries are there and have their feedback."""
        self._together = True
        try:
            with self.mill.readings.held():
                yield
        finally:
            self._together = False
            if self.mill.queries:
                self._start()

    def _start(self) -> None:
        if self._together:
            return
        if self._resumes:
            self.mill.python_code.check()
            self._resumes = False
            self.mill.request_reports()
        for job in self._jobs.all():
            if isinstance(job, LocalJob):
                job.after_batch = self._listener.hear_local
            job.start()
        if self.spark is not None:
            self._listener.attach(self.spark)
            self._pacer.start()

    def on_progress(self, callback: OnProgress) -> Callable[[], None]:
        """Call the callback with a `Progress` after every batch, for each query; on Spark, from a thread of Spark's.
        Return a function that removes it."""
        self._check_open()
        check_function(callback, "progress", "a callback")
        return self._listener.add(callback)

    def at_close(self, action: Callable[[], None]) -> None:
        """Run an action when the connection is closed, before its queries stop."""
        check_function(action, "", "an action at the end")
        self._closing.callback(action)

    def ended(self) -> bool:
        """Return whether all streams with a connector that a query reads have ended and been processed, and the sinks
        have all results."""
        return self.mill.ended()

    def check(self) -> None:
        """Raise the error that has stopped a job, or that of a failed query if no query runs any more."""
        for job in self._jobs.all():
            job.check()
        self.mill.failures.settle()
        self.mill.endings.settle()
        self.mill.failures.check(told=True)

    def await_end(
        self, timeout: float | None = None, poll: Callable[[], None] = lambda: None, *, query: str | None = None
    ) -> bool:
        """Wait until all streams, or all queries, have ended, or one query has, and the sinks have all results; return
        False if `timeout` seconds pass
        first."""
        self._check_open()
        check_seconds(timeout, "timeout")
        check_function(poll, "", "poll")
        deadline = None if timeout is None else time.monotonic() + timeout
        while not (self.ended() or (query is not None and self.mill.endings.has(query))):
            self.check()
            if deadline is not None and time.monotonic() > deadline:
                return False
            poll()
            if not self._work():
                time.sleep(0.05)
        self._watch.check()
        return True

    def _work(self) -> bool:
        """Run a batch in this process; return whether there was something to do."""
        own = [job for job in self._jobs.all() if isinstance(job, LocalJob)]
        worked = [job.step() for job in own]
        if own and not any(worked):
            if self.mill.time.go_on():
                worked = [job.step() for job in own]
            else:
                self._pacer.poll()
        return any(worked)

    def close(self) -> None:
        """Stop all queries. The checkpoint keeps their state."""
        self._closed = True
        self._closing.close()
