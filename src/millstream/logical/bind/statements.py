"""Binds CREATE STREAM and CREATE TABLE: checks names and types, derives the kind of time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from millstream.algebra.punctuation.template import Template
from millstream.algebra.schema import Attribute, Schema, TimeKind
from millstream.algebra.type_names import type_named
from millstream.algebra.types import MICROS, Type
from millstream.amounts import amount
from millstream.errors import BindError, MillstreamError, OptionError, did_you_mean
from millstream.lang import ast
from millstream.logical.bind.columns import check_types, known_columns
from millstream.logical.bind.references import bind_references
from millstream.logical.bind.scope import CURRENT_TIME
from millstream.logical.catalog import Catalog, Closes, StreamDefinition, TableDefinition
from millstream.logical.windows import units


def bind_stream(statement: ast.CreateStream, catalog: Catalog) -> StreamDefinition:
    """Return the definition of a base stream.

    A column of ORDER BY or WATERMARK FOR makes timestamps external, `current_time` internal; without either they are
    latent. With a watermark or a punctuation scheme the order is not promised.
    """
    try:
        catalog.check_free(statement.name)
        columns = _given(statement)
        schema = _timed(statement, Schema(_attributes(columns)))
        templates = tuple(_template(template, schema) for template in statement.punctuated_on)
        delay = _watermark(statement, schema)
        if delay is not None and schema.time is not None:
            templates += (Template(((schema.time, "+"),)),)
        schema = replace(schema, moves=schema.ordered or Template(((str(schema.time), "+"),)) in templates)
        skew = units(statement.max_skew, schema.unit, "MAX SKEW", zero=True) if statement.max_skew else None
        if statement.max_skew and schema.kind is not TimeKind.EXTERNAL:
            raise BindError("M2020", "MAX SKEW needs ORDER BY and a column", **statement.max_skew.place)
        key = known_columns(statement.primary_key, schema, "PRIMARY KEY")
        options = dict(statement.options)
        ascending = _ascending(statement, schema)
        closes = tuple(_closes(clause, statement.name, schema, catalog) for clause in statement.closes)
        periods = tuple((templates[at], units(period, MICROS, "EVERY")) for at, period in statement.every)
        references = tuple(
            bind_references(clause, statement.name, schema, key, catalog) for clause in statement.references
        )
        templates, required = tuple(dict.fromkeys(templates)), _required(columns)
        promises = delay, skew, templates, key, options, ascending, closes, required, periods, references
        return StreamDefinition(statement.name, schema, *promises)
    except MillstreamError as error:
        raise _placed(error, statement) from None


def bind_table(statement: ast.CreateTable, catalog: Catalog) -> TableDefinition:
    """Return the definition of a static relation."""
    with statement.placing():
        catalog.check_free(statement.name)
        schema = Schema(_attributes(statement.columns))
        key = known_columns(statement.primary_key, schema, "PRIMARY KEY")
        options = dict(statement.options)
        partitioned = _partitioned(options, key)
        return TableDefinition(statement.name, schema, options, key, _required(statement.columns), partitioned)


def _partitioned(options: dict[str, str], key: tuple[str, ...]) -> bool:
    """Take the option `partitioned` of a table without a connector."""
    if "connector" in options or "partitioned" not in options:
        return False
    value = str(options.pop("partitioned")).lower()
    if value not in ("true", "false"):
        raise OptionError("M6002", f"partitioned cannot be '{value}'", hint="true or false")
    if value == "true" and not key:
        raise BindError("M2127", "a partitioned table needs a key", hint="PRIMARY KEY (…)")
    return value == "true"


def _given(statement: ast.CreateStream) -> tuple[ast.ColumnDefinition, ...]:
    """The columns whose values the source gives. A declared `current_time` is the one that the system writes."""
    if not statement.current_time:
        return statement.columns
    for column in statement.columns:
        if column.name == CURRENT_TIME and type_named(column.type_name.name) is not Type.TIMESTAMP:
            hint = "The system writes it. It need not be declared."
            raise BindError("M2022", "current_time is a TIMESTAMP", hint=hint, **column.type_name.place)
    return tuple(column for column in statement.columns if column.name != CURRENT_TIME)


def _required(columns: Iterable[ast.ColumnDefinition]) -> tuple[str, ...]:
    return tuple(column.name for column in columns if column.required)


def _attributes(columns: Iterable[ast.ColumnDefinition]) -> tuple[Attribute, ...]:
    found: dict[str, Attribute] = {}
    for column in columns:
        with column.placing():
            if column.name in found:
                raise BindError("M2015", f"column '{column.name}' appears twice")
            if column.name.startswith("__"):
                raise BindError("M2015", f"'{column.name}' is a reserved name")
            with column.type_name.placing():
                type_ = type_named(column.type_name.name)
        found[column.name] = Attribute(column.name, type_)
    if not found:
        raise BindError("M2015", "at least one column is needed")
    return tuple(found.values())


def _placed(error: MillstreamError, statement: ast.CreateStream) -> MillstreamError:
    """Place the error at the column that it names, or else at the statement."""
    for mention in statement.mentions:
        if f"'{mention}'" in error.message:
            error.at(mention.line, mention.column)
    return error.at(statement.line, statement.column)


def _timed(statement: ast.CreateStream, schema: Schema) -> Schema:
    """Return the schema with its kind of time."""
    watermark = statement.watermark
    ordered = watermark is None and not statement.punctuated_on
    if statement.current_time:
        if watermark is not None:
            hint = "A stream stamped on entry is in order by itself."
            raise BindError("M2021", "WATERMARK needs a time column, not current_time", hint=hint, **watermark.place)
        return Schema(schema.attributes, TimeKind.INTERNAL, ordered=ordered)
    time = statement.order_by or (watermark.name if watermark else None)
    if time is None:
        return Schema(schema.attributes, TimeKind.LATENT, ordered=ordered)
    if time not in schema:
        hint = did_you_mean(time, (*schema.names, CURRENT_TIME))
        clause = "ORDER BY" if statement.order_by else "WATERMARK FOR"
        raise BindError("M2001", f"unknown column '{time}' in {clause}", hint=hint)
    if watermark is not None and watermark.name != time:
        message = f"WATERMARK FOR '{watermark.name}' does not fit ORDER BY '{time}'"
        raise BindError("M2021", message, hint="Both name the time column.", **watermark.place)
    type_ = schema.type_of(time)
    if type_ is not Type.TIMESTAMP and not type_.is_integer:
        hint = "A time column is a TIMESTAMP or a BIGINT."
        raise BindError("M2022", f"column '{time}' is {type_.value} and cannot order a stream", hint=hint)
    unit = 1 if type_.is_integer else MICROS
    return Schema(schema.attributes, TimeKind.EXTERNAL, time, unit, ordered)


def _watermark(statement: ast.CreateStream, schema: Schema) -> int | None:
    if statement.watermark is None:
        return None
    delay = statement.watermark.delay
    return units(delay, schema.unit, "WATERMARK", zero=True) if delay else 0


def _template(template: tuple[tuple[str, str], ...], schema: Schema) -> Template:
    names = [name for name, _ in template]
    known_columns(names, schema, "PUNCTUATED ON")
    for name, class_ in template:
        if class_ == "+" and schema.type_of(name) is Type.BOOLEAN:
            raise BindError("M2023", f"column '{name}' is BOOLEAN and has no upper bounds", hint=f"({name} #)")
    classes = dict(template)
    made = Template(tuple((name, classes[name]) for name in schema.names if classes.get(name, "-") != "-"))
    if not made.classes:
        raise BindError("M2023", "PUNCTUATED ON restricts no column", hint="give one the class + or #")
    return made


def _ascending(statement: ast.CreateStream, schema: Schema) -> tuple[str, ...]:
    columns = known_columns(statement.ascending, schema, "ASCENDING")
    for name in columns:
        type_ = schema.type_of(name)
        if name == schema.time:
            hint = "ORDER BY promises that it never falls; WATERMARK FOR turns it into punctuation."
            raise BindError("M2031", f"ASCENDING column '{name}' is the time column", hint=hint)
        if not type_.is_integer and type_ not in (Type.TIMESTAMP, Type.DATE):
            hint = "An ascending column is an INT, a BIGINT, a TIMESTAMP or a DATE."
            raise BindError("M2031", f"ASCENDING column '{name}' is {type_.value}", hint=hint)
    return columns


def _closes(clause: ast.Closes, name: str, schema: Schema, catalog: Catalog) -> Closes:
    with clause.placing():
        if clause.closing not in (None, name):
            hint = f"CREATE STREAM {clause.closing} (…) CLOSES {clause.stream} (…) BY (…)"
            message = f"CLOSES belongs in the declaration of the closing stream, not of '{name}'"
            raise BindError("M2030", message, hint=hint)
        stream = clause.stream.lower()
        if catalog.is_table(stream) or stream in catalog.derived:
            hint = "CLOSES names a stream that has columns of its own."
            raise BindError("M2030", f"'{stream}' is not a base stream", hint=hint)
        closed = catalog.stream(stream).schema
        columns = known_columns(clause.columns, closed, f"CLOSES {stream}")
        by = known_columns(clause.by, schema, "BY")
        if len(columns) != len(by):
            hint = "Each column of the closed stream has one of the closing stream."
            raise BindError("M2030", f"CLOSES {stream} names {amount(len(columns), 'column')}, BY {len(by)}", hint=hint)
        ended = [(f"{stream}.{column}", closed.type_of(column)) for column in columns]
        check_types("M2030", *zip(ended, [(column, schema.type_of(column)) for column in by], strict=True))
        return Closes(stream, columns, by)
