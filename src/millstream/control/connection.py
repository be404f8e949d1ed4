"""The Python API: a connection to Millstream on Spark, and the queries it runs.

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

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

import polars as pl

from millstream.algebra.schema import Schema
from millstream.config import Options
from millstream.control.job.jobs import Jobs, LocalJobs
from millstream.control.job.local import LocalJob
from millstream.control.mill.base import Mill, RunningQuery
from millstream.control.mill.recovery import recover
from millstream.control.mill.statements import run_statement, sink_of
from millstream.control.observe.notebook import Text, connection_html, query_html
from millstream.control.observe.progress import Progress, progress_of
from millstream.control.pacer import Pacer
from millstream.control.spark.dataframe_source import declaration
from millstream.control.spark.jobs import SparkJobs
from millstream.control.spark.listener import BatchListener, OnProgress
from millstream.control.spark.session import start_session
from millstream.errors import BindError, OptionError
from millstream.lang import ast, parse
from millstream.sinks import Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SinkLike = str | Sink | Callable[[int, pl.DataFrame], None] | None


def connect(
    spark: SparkSession | None = None,
    *,
    local: bool = False,
    master: str | None = None,
    checkpoint: str | Path | None = None,
    settings: Mapping[str, str] | None = None,
    log: Path | None = None,
    **options: Any,
) -> Connection:
    """Connect to Millstream.

    `spark`       the session to use; None: start one, and stop it when the connection is closed.
    `local`       run in this process, without Spark and Java. Batches run while the program waits: in `insert`,
                  `punctuate`, `take` and `await_end`.
    `master`      the master of a new session: `local[*]`, `spark://…`
    `checkpoint`  a folder that all jobs can reach; a connection to a folder used before resumes. None: a temporary
                  folder, with `local` memory.
    `settings`    Spark settings of a new session.
    `log`         the file for the messages of the JVM and the workers of a new session; None: discard them.
    `options`     Millstream's options, such as strategy, ets, page_rows, shards.
    """
    if local:
        if spark is not None or master is not None:
            raise OptionError("M6052", "local with a session or a master", hint="local=True needs neither")
        return Connection(None, checkpoint, Options.read(**options), own=False)
    own = spark is None
    if spark is None:
        spark = start_session(master or "local[*]", settings, log)
    elif master is not None:
        raise OptionError("M6052", "a session and a master were given", hint="a session has its master already")
    defaults = {"shards": spark.sparkContext.defaultParallelism}
    return Connection(spark, checkpoint, Options.read(**defaults | options), own=own)


class Connection:
    """Without `spark` everything runs in this process. `own`: stop the session when the connection is closed."""

    def __init__(
        self, spark: SparkSession | None, checkpoint: str | Path | None, options: Options, *, own: bool
    ) -> None:
        self.spark = spark
        self._closing = ExitStack()
        if checkpoint is None and spark is not None:
            checkpoint = self._closing.enter_context(TemporaryDirectory(prefix="millstream-"))
        self.checkpoint = None if checkpoint is None else Path(checkpoint).absolute()
        if spark is None:
            self._jobs: Jobs = LocalJobs(self.checkpoint, shards=options.shards)
        else:
            assert self.checkpoint is not None
            self._jobs = SparkJobs(spark, self.checkpoint, shards=options.shards)
            if own:
                self._closing.callback(spark.stop)
        self.mill = Mill(self._jobs, options=options, wall=True)
        recover(self.mill)
        self._pacer = Pacer(self.mill)
        self._listener = BatchListener(self.mill)
        self._closing.callback(self._jobs.close)  # callbacks run last to first
        self._closing.callback(self.mill.deliveries.close)
        self._closing.callback(self._listener.detach)
        self._closing.callback(self._jobs.stop)
        self._closing.callback(self._pacer.stop)
        self._closed = False
        if self.mill.queries:
            self.mill.request_reports()
            self._start()

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

    def sql(self, text: str) -> Query:
        """Run statements and return the result of the last one: a `Query` for SELECT and CREATE QUERY, `Text` for
        EXPLAIN and SHOW, None otherwise. The annotation names the result that a program chains on; `Query.explain`
        is typed as text. A SELECT without INTO runs after `start` or `to_df`; CREATE QUERY runs at once."""
        self._check_open()
        result: Query | Text | None = None
        for statement in parse(text):
            result = self._statement(statement)
        return cast("Query", result)

    def _statement(self, statement: ast.Statement) -> Query | Text | None:
        if isinstance(statement, ast.SelectStatement) and statement.into is None and not statement.into_options:
            with statement.placing():
                plan = self.mill.plan(statement.select)
            return Query(self, statement, plan.schema)
        self.mill.batch()
        text = run_statement(self.mill, statement)
        if isinstance(statement, ast.CreateQuery | ast.SelectStatement):
            self._start()
            *_, name = self.mill.queries
            return Query(self, statement, self.mill.schema(name), self.mill.queries[name])
        return Text(text) if text else None

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
    ) -> None:
        """Declare a streaming DataFrame as a stream. `order_by`: its time column; `watermark`: the longest delay of a
        row, such as '5 seconds'; `ascending`: columns that never decrease, partition after partition. After a restart
        from a checkpoint, call it again with the DataFrame; its queries then resume."""
        name = name.lower()
        if name not in self.mill.catalog:
            time = {"order_by": order_by, "watermark": watermark}
            self.sql(declaration(name, frame, **time, primary_key=primary_key, ascending=ascending))
        self.mill.adopt(name, frame)
        if self.mill.queries:
            self._start()

    def punctuate(self, stream: str, *patterns: str) -> None:
        """Promise that no later row matches one of these patterns."""
        self._check_open()
        self.mill.punctuate(stream, *patterns)
        self._feed()

    def _feed(self) -> None:
        """Write the queued elements to the jobs' logs; in this process, process them too."""
        self.mill.batch()
        if self.spark is None:
            self.mill.sync()

    def _check_open(self) -> None:
        if self._closed:
            raise OptionError("M6059", "the connection is closed", hint="connect() again")

    # --- life -------------------------------------------------------------------------------------------------------

    def _start(self) -> None:
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
        return self._listener.add(callback)

    def at_close(self, action: Callable[[], None]) -> None:
        """Run an action when the connection is closed, before its queries stop."""
        self._closing.callback(action)

    def ended(self) -> bool:
        """Return whether all streams with a connector that a query reads have ended and been processed."""
        return self.mill.ended()

    def check(self) -> None:
        """Raise the error that has stopped a job, if there is one."""
        for job in self._jobs.all():
            job.check()

    def await_end(self, timeout: float | None = None, poll: Callable[[], None] = lambda: None) -> bool:
        """Wait until all streams have ended; return False if `timeout` seconds pass first."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self.ended():
            self.check()
            if deadline is not None and time.monotonic() > deadline:
                return False
            poll()
            if not self._work():
                time.sleep(0.05)
        return True

    def _work(self) -> bool:
        """Run a batch in this process; return whether there was something to do."""
        worked = [job.step() for job in self._jobs.all() if isinstance(job, LocalJob)]
        if worked and not any(worked):
            self._pacer.poll()
        return any(worked)

    def close(self) -> None:
        """Stop all queries. The checkpoint keeps their state."""
        self._closed = True
        self._closing.close()


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
        """True from `start` to `stop`, or to the end of the connection."""
        return self.name is not None and not self._connection._closed

    def __enter__(self) -> Query:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.name is not None:
            self.stop()

    def start(self, sink: SinkLike = None, *, name: str | None = None, **options: Any) -> Query:
        """Start the query. `sink`: None keeps results for `take`; 'console', 'parquet' (with path=…), 'none', a
        function of a batch number and a Polars frame, or any object with open, write and close."""
        if self.name is not None:
            raise BindError("M2091", f"query '{self.name}' is already running")
        self._connection._check_open()
        mill = self._connection.mill
        name = (name or mill.free_name()).lower()
        sink_options = {option: str(value) for option, value in options.items()}
        into, into_options = sink_of(self._statement)
        text = f'CREATE QUERY "{name}" AS {self._statement.text}'
        mill.start_query(name, text, self._statement.select, sink or into, into_options | sink_options)
        self._started = mill.queries[name]
        self._connection._start()
        return self

    def to_df(self) -> DataFrame:
        """Return the query as a Spark streaming DataFrame of rows, to combine with anything in Spark."""
        from millstream.control.spark.query_dataframe import to_frame

        return to_frame(self._connection, self._statement, self.schema)

    def explain(self, stage: str = "optimized") -> Text:
        """Return the plan as text. `stage`: logical, optimized, physical or contract."""
        return Text(self._connection.mill.execute(f"EXPLAIN {stage} {self.text}"))

    def take(self) -> pl.DataFrame:
        """Return the rows since the last call, of a query without a sink. Wait until everything fed is processed."""
        return self._connection.mill.take_rows(self._running())

    def punctuations(self) -> list[str]:
        """Return the punctuations since the last call, of a query without a sink. Wait as `take` does."""
        return [p.format(self.schema) for p in self._connection.mill.take_punctuations(self._running())]

    def request_punctuation(self) -> None:
        """Have the joins of the query emit the punctuation that they hold back (see the option `propagation`)."""
        self._connection.mill.request_punctuation(self._running())

    def progress(self) -> Progress:
        """Return counts, times and state sizes of the query."""
        return progress_of(self._connection.mill, self._running())

    def await_end(self, timeout: float | None = None) -> bool:
        """Wait until all streams have ended; return False if `timeout` seconds pass first."""
        return self._connection.await_end(timeout)

    def stop(self) -> None:
        """Stop the query; others keep running."""
        self._connection.mill.stop_query(self._running())

    def _running(self) -> str:
        self._connection._check_open()
        if (name := self.name) is None:
            raise BindError("M2098", "the query is not running: not started, stopped or dropped", hint="query.start()")
        return name


__all__ = ["Connection", "Query", "connect"]
