"""The values of a result as short texts for a terminal: in the form of transcripts, and harmless to print."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
from polars import selectors
from rich.cells import cell_len, set_cell_size

from millstream.algebra.schema import Schema
from millstream.algebra.types import Type, format_value

Cell = str | None
"""A text, or None for NULL."""

LONGEST = 1000
"""Characters of a value that are looked at; no terminal shows more."""


def cells(rows: pl.DataFrame, schema: Schema) -> Iterator[tuple[Cell, ...]]:
    """The rows as text, in the order of the schema's columns."""
    # The shortest number that is this 32-bit one, not all the digits of the 64-bit one that Python makes of it.
    reals = [pl.col(a.name).cast(pl.String).cast(pl.Float64) for a in schema if a.type is Type.REAL]
    visible = rows.select(schema.names).with_columns(reals)
    try:
        values = visible.rows()
    except (ValueError, OverflowError):
        # A time outside the years 1 to 9999, which Python cannot hold.
        values = visible.with_columns(selectors.temporal().cast(pl.String)).rows()
    for row in values:
        yield tuple(None if value is None else harmless(format_value(value)) for value in row)


def harmless(text: str) -> str:
    r"""One line without control characters, so that a value cannot move the cursor or change colours.

    >>> print(harmless("two\nlines, \x1b[31mred"))
    two\nlines, \x1b[31mred
    """
    text = text[:LONGEST]
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shorten(text: str, width: int) -> str:
    """At most so many columns of the terminal wide.

    >>> shorten("incandescent", 6), shorten("warm", 6)
    ('incan…', 'warm')
    """
    return text if cell_len(text) <= width else set_cell_size(text, width - 1) + "…"


def align(text: str, width: int, *, right: bool) -> str:
    """Filled up with spaces to a width."""
    space = " " * (width - cell_len(text))
    return space + text if right else text + space


def to_the_right(type_: Type) -> bool:
    """Whether values of the type print as numbers."""
    return type_.is_numeric or type_ is Type.INTERVAL
