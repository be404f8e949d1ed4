"""Values of a result as short texts for a terminal: written as in transcripts, without control characters."""

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
"""Characters of a value that are kept; no terminal shows more."""


def cells(rows: pl.DataFrame, schema: Schema) -> Iterator[tuple[Cell, ...]]:
    """Return the rows as text, in the order of the schema's columns."""
    # Through text, so that a 32-bit float keeps its shortest form and not the digits of its 64-bit equal.
    texts, doubles = (pl.String(), pl.List(pl.String())), (pl.Float64(), pl.List(pl.Float64()))
    reals = [
        pl.col(a.name).cast(texts[a.type.is_array]).cast(doubles[a.type.is_array])
        for a in schema
        if a.type in (Type.REAL, Type.REAL_ARRAY)
    ]
    visible = rows.select(schema.names).with_columns(reals)
    try:
        values = visible.rows()
    except (ValueError, OverflowError):
        # A time outside the years 1 to 9999, which Python cannot represent.
        arrays = pl.col(*(Type(kind).polars for kind in ("TIMESTAMP[]", "DATE[]", "INTERVAL[]"))).cast(texts[1])
        values = visible.with_columns(selectors.temporal().cast(pl.String), arrays).rows()
    for row in values:
        yield tuple(None if value is None else harmless(format_value(value)) for value in row)


def harmless(text: str) -> str:
    r"""Return one line without control characters: a value cannot move the cursor or change colours.

    >>> print(harmless("two\nlines, \x1b[31mred"))
    two\nlines, \x1b[31mred
    """
    text = text[:LONGEST]
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shorten(text: str, width: int) -> str:
    """Cut a text to at most `width` columns of the terminal.

    >>> shorten("incandescent", 6), shorten("warm", 6)
    ('incan…', 'warm')
    """
    return text if cell_len(text) <= width else set_cell_size(text, width - 1) + "…"


def align(text: str, width: int, *, right: bool) -> str:
    """Pad a text with spaces to a width."""
    space = " " * (width - cell_len(text))
    return space + text if right else text + space


def is_right_aligned(type_: Type) -> bool:
    """Return whether values of the type print as numbers."""
    return type_.is_numeric or type_ is Type.INTERVAL
