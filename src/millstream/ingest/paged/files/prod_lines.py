"""Prods among the lines of text files.

| format | a prod is |
|---|---|
| csv | a line in braces: `{ts <= 20, k = 5}` |
| json | a line with a string in braces: `"{ts <= 20, k = 5}"` |

It speaks of the columns of the stream. A line that looks like a prod and is none is a bad row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from millstream.algebra.early import Prod, parse_prod, stream_prod
from millstream.algebra.schema import Schema
from millstream.errors import PatternError
from millstream.ingest.rows import Rows


class ProdFormat(Protocol):
    """A format whose lines may be prods."""

    @property
    def schema(self) -> Schema: ...

    def prod_text(self, line: bytes) -> str | None:
        """Return the text of a line that looks like a prod; None: it is a row."""


class LineReader(Protocol):
    """Reads the lines of a format; no line is blank."""

    def at_once(self, lines: Sequence[bytes]) -> Rows | None:
        """Read all lines; None unless every line certainly fits."""

    def values(self, line: bytes) -> Sequence[Any] | str:
        """Return the values of a line in the order of the schema, or the reason why it is bad."""


def prod_of(line: bytes, format_: ProdFormat) -> Prod | str | None:
    """Return the prod on a line, or the reason why it is malformed; None: the line is a row."""
    text = format_.prod_text(line)
    if text is None:
        return None
    try:
        return stream_prod(parse_prod(text, format_.schema), format_.schema)
    except PatternError as error:
        return error.message


class RowsAmongProds:
    """Reads lines of which none is a prod; one that is malformed is a bad row."""

    def __init__(self, reader: LineReader, format_: ProdFormat) -> None:
        self._reader, self._format = reader, format_

    def at_once(self, lines: Sequence[bytes]) -> Rows | None:
        if any(self._format.prod_text(line) is not None for line in lines):
            return None
        return self._reader.at_once(lines)

    def values(self, line: bytes) -> Sequence[Any] | str:
        reason = prod_of(line, self._format)
        return reason if isinstance(reason, str) else self._reader.values(line)
