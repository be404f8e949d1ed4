"""Spark's streaming DataFrames as streams: their rows are packed into pages by shard before the exchange.

The shards that read a DataFrame are part of the Spark plan, so a job that reads DataFrames is restarted (from its
checkpoint) when a new query reads them in another way. Order holds only within a partition: a DataFrame of several
partitions should declare a watermark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from millstream.errors import BindError, did_you_mean
from millstream.logical.catalog import StreamDefinition
from millstream.physical.shard.topology import DATAFRAME, Route, Topology, is_dataframe
from millstream.physical.wire.address import INPUT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from millstream.physical.wire.reading import Log

NOW = "__now"
TYPES = {
    "boolean": "BOOLEAN",
    "tinyint": "INT",
    "smallint": "INT",
    "int": "INT",
    "bigint": "BIGINT",
    "float": "REAL",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "timestamp": "TIMESTAMP",
    "timestamp_ntz": "TIMESTAMP",
    "date": "DATE",
}


def declaration(
    name: str,
    frame: DataFrame,
    *,
    order_by: str | None = None,
    watermark: str | None = None,
    primary_key: Sequence[str] = (),
    ascending: Sequence[str] = (),
) -> str:
    """The CREATE STREAM statement of a DataFrame."""
    if not frame.isStreaming:
        raise BindError("M2100", f"'{name}' is not a streaming DataFrame", hint="read it with spark.readStream")
    columns = []
    for field in frame.schema.fields:
        type_ = TYPES.get(field.dataType.simpleString())
        if type_ is None:
            hint = "cast it, or leave it out"
            raise BindError("M2101", f"column '{field.name}' has the type {field.dataType.simpleString()}", hint=hint)
        columns.append(f'"{field.name}" {type_}')
    for column in (*([order_by] if order_by else []), *primary_key, *ascending):
        if column not in frame.columns:
            raise BindError("M2001", f"unknown column '{column}'", hint=did_you_mean(column, frame.columns))
    text = f'CREATE STREAM "{name}" ({", ".join(columns)})'
    if order_by:
        text += f' ORDER BY "{order_by}"'
    if watermark:
        number, _, unit = watermark.strip().partition(" ")
        text += f' WATERMARK FOR "{order_by}" AS "{order_by}" - INTERVAL \'{number}\' {unit.strip().rstrip("sS")}'
    if primary_key:
        quoted = ", ".join(f'"{column}"' for column in primary_key)
        text += f" PRIMARY KEY ({quoted})"
    text += "".join(f' ASCENDING ("{column}")' for column in ascending)
    return f"{text} WITH (connector = '{DATAFRAME}')"


def adopted_streams(streams: dict[str, StreamDefinition]) -> frozenset[str]:
    """The streams of a query that are DataFrames."""
    return frozenset(name for name, stream in streams.items() if is_dataframe(stream))


def routes_of(log: Log, mill: str) -> dict[str, Route]:
    """The routes of a mill's DataFrames at the end of the log."""
    topology = Topology()
    for record in log.read(0, log.end()):
        topology.note(record)
    found = {name: route for (owner, name), route in topology.routes().items() if owner == mill}
    return {name: route for name, route in found.items() if is_dataframe(route.definition)}


def packed(frame: DataFrame, route: Route) -> DataFrame:
    """The rows of a DataFrame as pages for the stage."""
    from pyspark.sql import functions as F

    columns = tuple(column for column in route.definition.schema.names if column in route.columns)
    chosen = []
    for column in columns:
        field = frame.schema[column]
        values = F.col(f"`{column}`")
        chosen.append(values.cast("timestamp_ntz") if field.dataType.simpleString() == "timestamp" else values)
    # The time of a batch is in Spark's log, so that a replayed batch has the same time.
    stamped = frame.select(*chosen, F.unix_micros(F.current_timestamp()).alias(NOW))
    stream, targets = route.definition, tuple(route.targets)

    def pack_batches(batches: Iterator[Any]) -> Iterator[Any]:
        from millstream.physical.spark.frame_packing import pack_frame

        yield from pack_frame(stream, columns, targets, batches)

    return stamped.mapInArrow(pack_batches, INPUT)
