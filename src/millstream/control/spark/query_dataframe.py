"""A query as a plain Spark streaming DataFrame: a job of its own, whose pages are unpacked into rows.

The job runs one fixed query, so its log is written once. The name of its folder is a digest of the query and of the
streams that it reads, so that a restarted program finds it, as Spark finds the checkpoint of the query that reads the
DataFrame.

A TIMESTAMP is an instant in Spark, so that `withWatermark` takes it; Millstream's wall clock is UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

from millstream.algebra.early import query_prod
from millstream.algebra.identity import digest
from millstream.algebra.schema import Schema, TimeKind
from millstream.algebra.types import ELEMENTS, Type
from millstream.algebra.upstream import TimeRequest
from millstream.control.mill.demand import asked_of
from millstream.control.mill.modes import Shape, shape
from millstream.control.mill.prodders import read_streams
from millstream.control.spark.job import SparkJob
from millstream.errors import BindError, OptionError
from millstream.lang import ast
from millstream.logical.catalog import StreamDefinition
from millstream.logical.early import emits_early, owned
from millstream.logical.nodes.prodder import Prodder
from millstream.logical.plan import Plan
from millstream.logical.references import references
from millstream.logical.written import touched
from millstream.physical.plan import stages
from millstream.physical.plan.preparation import PreparedPart, prepare
from millstream.physical.shard.topology import scans
from millstream.physical.wire.address import ROWS
from millstream.physical.wire.codec import decode
from millstream.physical.wire.hashing import spread
from millstream.physical.wire.records import Feed, OpenGroup, Record, Send
from millstream.sinks.modes import FINAL, MODES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from millstream.control.connection import Connection
    from millstream.control.mill.base import Mill

NAME = "frame"
"""Name of the query, and of its mill."""
SPARK_TYPES = {
    Type.BOOLEAN: ("boolean", pa.bool_()),
    Type.INT: ("int", pa.int32()),
    Type.BIGINT: ("bigint", pa.int64()),
    Type.REAL: ("float", pa.float32()),
    Type.DOUBLE: ("double", pa.float64()),
    Type.DECIMAL: ("double", pa.float64()),
    Type.VARCHAR: ("string", pa.string()),
    Type.TIMESTAMP: ("timestamp", pa.timestamp("us", "UTC")),
    Type.DATE: ("date", pa.date32()),
    Type.INTERVAL: ("interval day to second", pa.duration("us")),
    Type.NULL: ("double", pa.float64()),
}
SPARK_TYPES |= {type_.array: (f"array<{SPARK_TYPES[type_][0]}>", pa.list_(SPARK_TYPES[type_][1])) for type_ in ELEMENTS}
"""Spark's type of each type, and Arrow's on the way there."""


class FrameJob:
    """The job of a query that is a DataFrame."""

    def __init__(self, mill: Mill, plan: Plan, prepared: list[PreparedPart], job: SparkJob) -> None:
        self._mill, self._plan, self.job = mill, plan, job
        self._streams = read_streams(made.plan for made in prepared)

    def frame(self, schema: Schema, mode: str) -> DataFrame:
        shaped = shape(self._plan, mode, "a DataFrame") if emits_early(self._plan) else None
        pages = self.job.frame().where(f"kind = {ROWS}").select("page")
        return pages.mapInArrow(_unpack(_arrow_schema(schema), shaped), spark_schema(schema))

    def prod(self, text: str) -> None:
        """Ask for the results so far, with the next batch."""
        asked, _ = asked_of(self._mill, self._plan, text, "the query")
        if asked is not None:
            prod = query_prod(asked, NAME)
            self.job.append(Feed(NAME, self._mill.clock.now(), tuple((stream, prod) for stream in self._streams)))


def frame_job(connection: Connection, statement: ast.SelectStatement | ast.CreateQuery, mode: str = FINAL) -> FrameJob:
    """The job that makes a DataFrame of a query: one for all DataFrames of the query."""
    if mode not in MODES:
        raise OptionError("M6002", f"mode cannot be {mode!r}", hint=f"one of {', '.join(MODES)}")
    mill, spark = connection.mill, connection.spark
    if spark is None:
        raise OptionError("M6057", "a DataFrame needs Spark", hint="connect() without local=True")
    plan = owned(mill.plan(statement.select), NAME)
    for target in touched(plan):
        hint = "start the query instead: a DataFrame of its own has no access to the table"
        raise BindError("M2124", f"a query on table '{target.table}', which streams write, has no DataFrame", hint=hint)
    _check_prodders(plan, mode)
    names = sorted({scan.id.source for scan in scans(plan)})
    for name in names:
        if not mill.catalog.stream(name).options.get("connector"):
            hint = "start the query instead, or declare where the stream comes from"
            raise BindError("M2099", f"stream '{name}' has no connector, so no DataFrame can read it", hint=hint)
    streams = {name: mill.catalog.stream(name) for name in names}
    frames = mill.connectors.open_all(streams)
    prepared = prepare(NAME, plan, streams, mill.options.shards)
    assert connection.checkpoint is not None
    folder = connection.checkpoint / "frames" / digest((plan, mill.options.shards, streams))[:12]
    if (known := connection.frames.get(folder)) is not None:
        known.job.adopt(frames)
        return known
    job = SparkJob(spark, folder, shards=mill.options.shards, stages=stages.depth([made.part for made in prepared]))
    connection.at_close(job.close)
    written = sum(1 for _ in job.log.read(0, job.log.end()))
    for record in list(_records(mill, prepared, streams, job.shards))[written:]:
        job.append(record)
    job.require(references(plan))
    job.adopt(frames)
    connection.frames[folder] = made = FrameJob(mill, plan, prepared, job)
    return made


def _check_prodders(plan: Plan, mode: str) -> None:
    """Refuse early rows that a query is prodded for by the driver, which has no part in the job."""
    for part in plan.walk() if mode != FINAL else ():
        if isinstance(part, Prodder) and (part.by or (part.schedule is not None and part.schedule.system)):
            how = f"PRODDED BY {part.by}" if part.by else "BY SYSTEM TIME"
            hint = "mode = 'final', start the query instead, or call its prod()"
            raise BindError("M2130", f"a query with EMIT EARLY {how} has no early rows in a DataFrame", hint=hint)


def _records(
    mill: Mill, prepared: list[PreparedPart], streams: dict[str, StreamDefinition], shards: int
) -> Iterator[Record]:
    """The whole log of the job."""
    groups: dict[str, OpenGroup] = {}
    taken: set[int] = set()
    for number, made in enumerate(prepared):
        labels = spread(shards if made.keys is not None else 1, shards, taken)
        taken |= set(labels)
        group = OpenGroup(number + 1, NAME, labels, made.keys, mill.settings(), made.part.stage)
        groups[made.part.name] = group
        yield group
        yield made.start(NAME, groups, streams, mill.tables, punctuated=False)
    stamped = tuple(name for name, stream in streams.items() if stream.schema.kind is not TimeKind.EXTERNAL)
    if stamped:  # no driver answers operators that wait for time: streams stamped on arrival promise it in every batch
        yield Send(NAME, TimeRequest(), streams=stamped)


def spark_schema(schema: Schema) -> str:
    """The schema as Spark declares it."""
    names = [a.name.replace("`", "``") for a in schema]
    return ", ".join(f"`{name}` {SPARK_TYPES[a.type][0]}" for name, a in zip(names, schema, strict=True))


def _arrow_schema(schema: Schema) -> pa.Schema:
    return pa.schema([(a.name, SPARK_TYPES[a.type][1]) for a in schema])


def _unpack(schema: pa.Schema, shaped: Shape | None = None) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Pages → rows, in Spark's types. `shaped`: makes of the rows of a task those that are wanted. A task has all pages
    of its shards in a batch, and so all rows of a window and group."""

    def unpack(batches: Iterator[Any]) -> Iterator[Any]:
        pages: Iterator[pl.DataFrame]
        pages = (decode(page.as_py()).select(schema.names) for batch in batches for page in batch.column("page"))
        if shaped is not None:
            held = [*pages]
            pages = iter([shaped(pl.concat(held))] if held else [])
        for rows in pages:
            yield from rows.to_arrow().cast(schema).to_batches()

    return unpack
