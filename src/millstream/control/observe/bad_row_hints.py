"""What to declare, or to write, so that rows like a bad one are accepted."""

from __future__ import annotations

import re

from millstream.algebra.schema import Attribute
from millstream.algebra.types import Type
from millstream.ingest.losses import BadKind
from millstream.ingest.paged.files.other_kinds import CONVERTED
from millstream.ingest.paged.files.text import NO_TEXT
from millstream.lang.spelling import spelled as named
from millstream.logical.catalog import StreamDefinition

_WIDER = {Type.INT: Type.BIGINT, Type.BIGINT: Type.DOUBLE, Type.REAL: Type.DOUBLE}
_NULLS = {"", "-", "--", "?", ".", "na", "n/a", "#n/a", "nan", "nil", "none", "null", "\\n", "missing", "unknown"}
"""Texts that often mean NULL, in lower case."""
_COMMAS = re.compile(r"[+-]?\d[\d.]*(,\d+)+(\.\d+)?")
"""A number with a decimal comma, or with commas between thousands."""
_ONE_OBJECT = "a file of JSON has one object on each line, and no [ ] around them"
_SECONDS = "'2024-01-31 12:00:00' or in seconds since 1970"
_EPOCH = re.compile(r"[+-]?\d{12,}(\.\d+)?")
"""Milliseconds, microseconds or nanoseconds since 1970: as seconds they are thousands of years."""


def what_to_declare(stream: StreamDefinition, kind: BadKind) -> str:
    """The hint for bad rows of a kind; empty if there is none."""
    column = next((a for a in stream.schema if kind.reason.startswith(f"column '{a.name}'")), None)
    connector = stream.options.get("connector", "").lower()
    if kind.reason.startswith(NO_TEXT):
        return CONVERTED[:1].lower() + CONVERTED[1:]
    if column is not None:
        return _of_column(stream, column, kind.reason, csv=connector == "csv")
    if connector == "json":
        return _ONE_OBJECT if kind.reason.startswith(("malformed JSON", "not a JSON object")) else ""
    return "check the option delimiter" if connector == "csv" and kind.reason.startswith("expected") else ""


def _of_column(stream: StreamDefinition, column: Attribute, reason: str, *, csv: bool) -> str:
    name, problem = named(column.name), reason.partition(": ")[2]
    if reason.endswith("must not be NULL"):
        return f"leave rows without {name} out, or declare {name} neither as time nor key nor NOT NULL"
    if problem.startswith("text is not valid Unicode"):
        return f"write {name} in whole characters: decode its bytes with errors = 'replace'"
    if " is out of range " in reason:
        return _in_range(stream, column, problem.partition(" is out of range ")[0])
    value = problem.rpartition(" is not ")[0].strip("'")
    if value.startswith(("{", "[")) and not column.type.is_array:
        return f"nested values are not read: write {name} as text, or its values into columns of their own"
    if column.type.is_numeric and _COMMAS.fullmatch(value):
        return f"write {name} with a decimal point and no commas, such as 1234.5"
    if column.type.is_integer and _is_number(value) and column.name != stream.schema.time:
        return f"declare {name} DOUBLE"
    missing = f"if '{value}' means NULL, set the option null = '{value}', or " if csv and _may_be_null(value) else ""
    if column.type is Type.TIMESTAMP:
        return f"{missing}write {name} as {_SECONDS}"
    if column.name == stream.schema.time:
        return f"write {name} as a whole number, or declare {name} TIMESTAMP"
    return f"{missing}declare {name} VARCHAR" if column.type is not Type.VARCHAR else f"write {name} as text"


def _in_range(stream: StreamDefinition, column: Attribute, value: str) -> str:
    name, wider = named(column.name), _WIDER.get(column.type)
    if column.type is Type.TIMESTAMP and _EPOCH.fullmatch(value):
        return f"write {name} as {_SECONDS}, not in milliseconds or microseconds; or declare {name} BIGINT"
    if column.name == stream.schema.time and wider is not Type.BIGINT:
        return f"leave rows out that have no time in {name}, such as those with the largest number"
    return f"declare {name} {wider.value}" if wider is not None else ""


def _may_be_null(value: str) -> bool:
    return value.strip().lower() in _NULLS


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
