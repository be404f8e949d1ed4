"""Spark's streaming DataFrames as streams: their rows are packed into pages by shard before the exchange.

The shards that read a DataFrame are part of the Spark plan, so a job that reads DataFrames is restarted (from its
checkpoint) when a new query reads them in another way. Order holds only within a partition (`wire.partitions`). Names
of columns are not case-sensitive; a stream has them in lower case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from millstream.errors import BindError, did_you_mean
from millstream.lang import ast, parse
from millstream.lang.names import quoted
from millstream.lang.spelling import spelled
from millstream.logical.bind.statements import bind_stream
from millstream.logical.catalog import Catalog, StreamDefinition
from millstream.physical.shard.topology import DATAFRAME, Route, Topology, is_dataframe
from millstream.physical.wire.address import INPUT
from millstream.physical.wire.records import StartQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from millstream.physical.wire.reading import Log

ForeignKeys = Mapping[str | tuple[str, ...], str]
"""The stream that a column, or several columns, refer to."""

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
    "interval day to second": "INTERVAL",
}


def declaration(
    name: str,
    frame: DataFrame,
    *,
    order_by: Any = None,
    watermark: Any = None,
    primary_key: Sequence[str] = (),
    ascending: Sequence[str] = (),
    references: ForeignKeys | None = None,
) -> str:
    """The CREATE STREAM statement of a DataFrame."""
    _check_streaming(name, frame)
    if watermark is not None and not isinstance(watermark, str):
        hint = "watermark='5 seconds'"
        raise BindError("M2021", f"the watermark of '{name}' is a text, not {type(watermark).__name__}", hint=hint)
    if order_by is not None and not isinstance(order_by, str):
        message = f"order_by of '{name}' is the name of a column, not {type(order_by).__name__}"
        raise BindError("M2001", message, hint="order_by='ts'")
    primary_key, ascending = _names("primary_key", primary_key), _names("ascending", ascending)
    foreign = _foreign_keys(name, references)
    columns = []
    for field in frame.schema.fields:
        type_ = TYPES.get(field.dataType.simpleString())
        if type_ is None:
            hint = "cast it, or leave it out"
            raise BindError("M2101", f"column '{field.name}' has the type {field.dataType.simpleString()}", hint=hint)
        columns.append(f"{quoted(field.name)} {type_}")
    known = {column.lower() for column in frame.columns}
    referring = (column for own, _ in foreign for column in own)
    for column in (*([order_by] if order_by else []), *primary_key, *ascending, *referring):
        if column.lower() not in known:
            raise BindError("M2001", f"unknown column '{column}'", hint=did_you_mean(column, known))
    columns += [f"FOREIGN KEY ({', '.join(map(quoted, own))}) REFERENCES {quoted(stream)}" for own, stream in foreign]
    text = f"CREATE STREAM {quoted(name)} ({', '.join(columns)})"
    if order_by:
        text += f" ORDER BY {quoted(order_by)}"
    if watermark is not None:
        if not order_by:
            raise BindError("M2021", f"the watermark of '{name}' needs a time column", hint="order_by='ts'")
        delay = watermark.replace("'", "''")
        text += f" WATERMARK FOR {quoted(order_by)} AS {quoted(order_by)} - INTERVAL '{delay}'"
    if primary_key:
        text += f" PRIMARY KEY ({', '.join(map(quoted, primary_key))})"
    text += "".join(f" ASCENDING ({quoted(column)})" for column in ascending)
    return f"{text} WITH (connector = '{DATAFRAME}')"


def check_fits(stream: StreamDefinition, frame: DataFrame, **options: Any) -> None:
    """Raise BindError unless the DataFrame has the columns of a stream that was declared before, with their types, and
    the options of `declaration`, if any are given, are those of the stream."""
    if not is_dataframe(stream):
        hint = "DROP it first, or take another name"
        raise BindError("M2010", f"stream '{stream.name}' exists already and is no DataFrame", hint=hint)
    _check_streaming(stream.name, frame)
    given = {field.name.lower(): field.dataType.simpleString() for field in frame.schema.fields}
    for a in stream.schema:
        if a.name not in given:
            hint = did_you_mean(a.name, given)
            raise BindError("M2103", f"the DataFrame of stream '{stream.name}' has no column '{a.name}'", hint=hint)
        if TYPES.get(given[a.name]) != a.type.value:
            message = f"column '{a.name}' of stream '{stream.name}' is {a.type.value}"
            raise BindError("M2103", f"{message}, that of its DataFrame {given[a.name]}", hint="cast it")
    if any(options.values()):
        (statement,) = parse(declaration(stream.name, frame, **options))
        assert isinstance(statement, ast.CreateStream)
        foreign = {(tuple(map(str.lower, key.columns)), key.stream.lower()) for key in statement.references}
        same = foreign == {(clause.columns, clause.stream) for clause in stream.references}
        # The empty catalog has none of the streams that its foreign keys refer to.
        if not same or _promises(bind_stream(replace(statement, references=()), Catalog())) != _promises(stream):
            hint = f"leave the options out, or DROP STREAM {spelled(stream.name)} first"
            raise BindError("M2103", f"stream '{stream.name}' has been declared with other options", hint=hint)


def _names(option: str, columns: Any) -> tuple[str, ...]:
    """One name or several."""
    names = columns if isinstance(columns, (list, tuple)) else (columns,)
    for name in names:
        if not isinstance(name, str):
            message = f"{option} has names of columns, not {type(name).__name__}"
            raise BindError("M2001", message, hint=f"{option}=['id']")
    return tuple(names)


def _foreign_keys(name: str, references: Any) -> list[tuple[tuple[str, ...], str]]:
    """The columns of each foreign key, and the stream that it refers to."""
    hint = "references={'auction': 'auctions'}: a column, or a tuple of columns, and the stream with that PRIMARY KEY"
    if references is not None and not isinstance(references, Mapping):
        found = type(references).__name__
        raise BindError("M2032", f"the references of '{name}' are a dict, not {found}", hint=hint)
    made = []
    for columns, stream in (references or {}).items():
        if not columns or not isinstance(columns, (str, tuple)) or not isinstance(stream, str):
            raise BindError("M2032", f"'{name}' cannot refer from {columns!r} to {stream!r}", hint=hint)
        made.append((_names("references", columns), stream))
    return made


def _promises(stream: StreamDefinition) -> tuple[Any, ...]:
    return stream.schema.time, stream.watermark, set(stream.primary_key), set(stream.ascending)


def _check_streaming(name: str, frame: DataFrame) -> None:
    if not getattr(frame, "isStreaming", False):
        hint = "read it with spark.readStream; fixed rows are a table: mill.insert('t', df.toArrow())"
        raise BindError("M2100", f"'{name}' is not a streaming DataFrame", hint=hint)


def adopted_streams(streams: Mapping[str, StreamDefinition]) -> frozenset[str]:
    """The streams of a query that are DataFrames."""
    return frozenset(name for name, stream in streams.items() if is_dataframe(stream))


def routes_of(log: Log) -> dict[str, Route]:
    """The routes of the DataFrames at the end of the log, by name: Spark knows a source by its place in the plan."""
    routes = Topology.of(log).routes()
    found = {name: replace(route, unwanted=()) for (_, name), route in routes.items() if is_dataframe(route.definition)}
    return dict(sorted(found.items()))


def has_read_dataframes(log: Log) -> bool:
    """Return whether the log has a query over DataFrames, running or stopped."""
    started = (record for record in log.read(0, log.end()) if isinstance(record, StartQuery))
    return any(adopted_streams(query.streams) for query in started)


def packed(frame: DataFrame, route: Route, folder: str | None = None) -> DataFrame:
    """The rows of a DataFrame as pages for the stage. `folder`: that of the job whose log has the rows that no reader
    wants."""
    from pyspark.sql import functions as F

    from millstream.physical.spark.frame_packing import judged_columns

    columns = tuple(column for column in route.definition.schema.names if column in route.columns)
    named = {name.lower(): name.replace("`", "``") for name in frame.columns}
    judged = judged_columns(route.definition)
    read = [column for column in route.definition.schema.names if column in columns or column in judged]
    chosen = [F.col(f"`{named[column]}`").alias(column) for column in read]
    # The time of a batch is in Spark's log, so that a replayed batch has the same time.
    stamped = frame.select(*chosen, F.unix_micros(F.current_timestamp()).alias(NOW))
    stream, targets, grids = route.definition, tuple(route.targets), route.grids

    def pack_batches(batches: Iterator[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        from millstream.physical.spark.frame_guards import BATCH, told_in
        from millstream.physical.spark.frame_packing import pack_frame

        context = TaskContext.get()
        assert context is not None
        told = None if folder is None else told_in(folder, stream.name, context.getLocalProperty(BATCH))
        yield from pack_frame(stream, columns, targets, context.partitionId(), batches, *(told or ((), grids)))

    return stamped.mapInArrow(pack_batches, INPUT)
