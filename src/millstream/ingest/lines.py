"""Tuples as text: `a | b | c`, as in transcripts.

A field is bare or quoted. Quotes, single or double, are needed only around text that would otherwise be read
differently: a `|`, leading or trailing blanks, the word NULL. Inside quotes, a doubled quote is one quote. A bare NULL
is NULL.

>>> split_line("it's | 'a | b'")
[Field(text="it's", quoted=False), Field(text='a | b', quoted=True)]
>>> write_line((7, "it's", "a | b", None, "NULL"))
"7 | it's | 'a | b' | NULL | 'NULL'"
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from millstream.algebra.punctuation.value_text import write_value
from millstream.algebra.schema import Schema
from millstream.algebra.types import BLANKS, Type, parse_value, short

QUOTES = "'\""
_STARTS = QUOTES + "[{(#"
"""First characters that need quotes: a reader would expect something other than bare text."""


class Field(NamedTuple):
    text: str
    quoted: bool


def split_line(line: str) -> list[Field]:
    """Split a line into fields; raise ValueError if a quote is not closed or text follows it."""
    fields: list[Field] = []
    at = 0
    while True:
        start = at + len(line[at:]) - len(line[at:].lstrip(BLANKS))
        if line[start : start + 1] and line[start] in QUOTES:
            end = closing_quote(line, start)
            quote = line[start]
            field = Field(line[start + 1 : end].replace(quote * 2, quote), True)
            bar = line.find("|", end)
            rest = line[end + 1 : bar if bar >= 0 else len(line)].strip(BLANKS)
            if rest:
                raise ValueError(f"unexpected text after a quote: {rest}")
        else:
            bar = line.find("|", at)
            field = Field(line[at : bar if bar >= 0 else len(line)].strip(BLANKS), False)
        fields.append(field)
        if bar < 0:
            return fields
        at = bar + 1


def closing_quote(line: str, start: int) -> int:
    """Return the position of the quote that closes the one at `start`, or raise ValueError. A doubled quote is data."""
    quote = line[start]
    end = line.find(quote, start + 1)
    while end >= 0 and line[end + 1 : end + 2] == quote:
        end = line.find(quote, end + 2)
    if end < 0:
        raise ValueError("a quote is not closed")
    return end


def parse_line(line: str, schema: Schema) -> tuple[Any, ...]:
    """Return the values of a line by the schema's types; raise ValueError with a reason if it does not fit.

    >>> parse_line("5 | NULL", Schema.of(("k", Type.BIGINT), ("x", Type.DOUBLE)))
    (5, None)
    """
    fields = split_line(line)
    if len(fields) != len(schema):
        raise ValueError(f"expected {len(schema)} values, found {len(fields)}")
    return tuple(_value(field, a.name, a.type) for field, a in zip(fields, schema, strict=True))


def _value(field: Field, name: str, type_: Type) -> Any:
    if not field.quoted and is_null(field.text, type_):
        return None
    if type_ is Type.VARCHAR:
        return field.text
    try:
        return read(field.text, type_)
    except ValueError as error:
        raise ValueError(f"column '{name}': {error}") from None


def is_null(text: str, type_: Type) -> bool:
    """True if an unquoted text means NULL: `NULL`, and in columns other than VARCHAR `null` in any case."""
    return text == "NULL" or (type_ is not Type.VARCHAR and text.lower() == "null")


def read(text: str, type_: Type) -> Any:
    """Parse a value; raise ValueError with a reason that names the type."""
    try:
        return parse_value(text, type_)
    except OverflowError:
        raise ValueError(f"{short(text)} is out of range for {type_.value}") from None
    except ValueError as error:
        reason = str(error)
        known = type_.value in reason and len(reason) < 200
        raise ValueError(reason if known else f"{short(text)!r} is not a value of type {type_.value}") from None


def write_line(values: Iterable[Any]) -> str:
    """Write a line that `split_line` splits into the same texts."""
    return " | ".join(map(_write, values))


def _write(value: Any) -> str:
    if not isinstance(value, str):
        return write_value(value)
    text = value
    plain = text == text.strip() and "|" not in text and text.upper() != "NULL" and text[:1] not in tuple(_STARTS)
    return text if plain and text else "'" + text.replace("'", "''") + "'"
