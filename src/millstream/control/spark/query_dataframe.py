"""A query as a plain Spark streaming DataFrame: a job of its own, whose pages are unpacked into rows.

The job runs one fixed query, so its log is written once. The name of its folder is a digest of the query, so that a
restarted program finds it, as Spark finds the checkpoint of the query that reads the DataFrame.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

from millstream.algebra.identity import digest
from millstream.algebra.schema import Schema
from millstream.algebra.types import Type
from millstream.control.spark.job import SparkJob
from millstream.errors import BindError, OptionError
from millstream.lang import ast
from millstream.physical.plan import stages
from millstream.physical.plan.preparation import prepare
from millstream.physical.shard.topology import base_stream, scans
from millstream.physical.wire.address import ROWS
from millstream.physical.wire.codec import decode
from millstream.physical.wire.hashing import spread
from millstream.physical.wire.records import OpenGroup

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from millstream.control.connection import Connection

NAME = "frame"
"""Name of the query, and of its mill."""
SPARK_TYPES = {
    Type.BOOLEAN: "boolean",
    Type.INT: "int",
    Type.BIGINT: "bigint",
    Type.REAL: "float",
    Type.DOUBLE: "double",
    Type.VARCHAR: "string",
    Type.TIMESTAMP: "timestamp_ntz",
    Type.DATE: "date",
    Type.INTERVAL: "interval day to second",
}


def to_frame(connection: Connection, statement: ast.SelectStatement | ast.CreateQuery, schema: Schema) -> DataFrame:
    mill, spark = connection.mill, connection.spark
    if spark is None:
        raise OptionError("M6057", "a DataFrame needs Spark", hint="connect() without local=True")
    plan = mill.plan(statement.select)
    streams = {base_stream(scan.stream) for scan in scans(plan)}
    for name in sorted(streams):
        if not mill.catalog.stream(name).options.get("connector"):
            hint = "start the query instead, or declare where the stream comes from"
            raise BindError("M2099", f"stream '{name}' has no connector, so no DataFrame can read it", hint=hint)
    name = digest((plan, mill.options.shards))[:12]
    definitions = {name: mill.catalog.stream(name) for name in streams}
    prepared = prepare(NAME, plan, definitions, mill.options.shards)
    assert connection.checkpoint is not None
    folder = connection.checkpoint / "frames" / name
    job = SparkJob(spark, folder, shards=mill.options.shards, stages=stages.depth([made.part for made in prepared]))
    if not job.log.end():
        settings = mill.settings()
        groups: dict[str, OpenGroup] = {}
        taken: set[int] = set()
        for number, made in enumerate(prepared):
            labels = spread(job.shards if made.keys is not None else 1, job.shards, taken)
            taken |= set(labels)
            groups[made.part.name] = OpenGroup(number + 1, NAME, labels, made.keys, settings, made.part.stage)
            job.append(groups[made.part.name])
            job.append(made.start(NAME, groups, definitions, mill.tables, punctuated=False))
    pages = job.frame().where(f"kind = {ROWS}").select("page")
    return pages.mapInArrow(_unpack([(a.name, a.type.value) for a in schema]), spark_schema(schema))


def spark_schema(schema: Schema) -> str:
    """The schema as Spark declares it."""
    return ", ".join(f"`{a.name}` {SPARK_TYPES.get(a.type, 'double')}" for a in schema)


def _unpack(columns: list[tuple[str, str]]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Pages → rows, in Spark's types."""

    def unpack(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for page in batch.column("page"):
                yield from _rows(decode(page.as_py()), columns)

    return unpack


def _rows(page: pl.DataFrame, columns: list[tuple[str, str]]) -> list[Any]:
    table = page.select([name for name, _ in columns]).to_arrow(compat_level=pl.CompatLevel.oldest())
    fields = [pa.field(f.name, pa.string() if pa.types.is_large_string(f.type) else f.type) for f in table.schema]
    batches: list[Any] = table.cast(pa.schema(fields)).to_batches()
    return batches
