"""Columns from the names of folders: `day=2024-05-01/part-0.csv` gives each row of the file `day`.

| | |
|---|---|
| a folder `name=value` | gives the declared column of that name, in any case; the file's own column is not read |
| several of a name | the innermost counts |
| the value | is decoded (`%20`) and converted as text of a file is; `__HIVE_DEFAULT_PARTITION__` is NULL |
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import polars as pl

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.schema import Schema
from millstream.algebra.values import record
from millstream.errors import InputError
from millstream.ingest.coerce import coerce_values
from millstream.ingest.paged.files.formats import File, Format, Part
from millstream.ingest.paged.split import SplitRows, selected
from millstream.ingest.paged.wanted import Wanted
from millstream.ingest.rows import Rows

NULL = "__HIVE_DEFAULT_PARTITION__"
HINT = "declare another type, another name, or NOT NULL away"
Values = Mapping[str, pl.Series]
"""A value of each column, as a column of one row."""


def format_of(format_: Any, file: File) -> Any:
    """The format of the content of a file."""
    return format_.of(file) if isinstance(format_, Partitioned) else format_


@record("partitioned_format")
class Partitioned:
    """A format whose files may have columns in the names of their folders. `inner`: that of whole rows."""

    inner: Any

    def of(self, file: File) -> Format:
        held = self._values(file)
        inner: Format = _without(self.inner, tuple(held)) if held else self.inner
        return inner

    def _values(self, file: File) -> Values:
        return _values(str(Path(file.path).parent), self.inner) if "=" in file.path else {}

    @property
    def schema(self) -> Schema:
        schema: Schema = self.inner.schema
        return schema

    @property
    def worth(self) -> int:
        return int(self.inner.worth)

    @property
    def by_row(self) -> bool:
        return bool(self.inner.by_row)

    def check(self, file: File) -> None:
        self.of(file).check(file)

    def extent(self, file: File) -> int:
        return self.of(file).extent(file)

    def rows(self, file: File) -> int:
        return self.of(file).rows(file)

    def borders(self, part: Part) -> Sequence[int] | None:
        return self.of(part.file).borders(part)

    def first_time(self, part: Part) -> int | None:
        own = self._time(part.file)
        return self.of(part.file).first_time(part) if own is None else own

    def released(self, part: Part, until: int) -> int:
        own = self._time(part.file)
        if own is not None:
            return part.last if own <= until else part.first
        return self.of(part.file).released(part, until)

    def _time(self, file: File) -> int | None:
        """The event time of all rows of a file, if it is in the name of a folder."""
        held = self._values(file).get(str(self.schema.time))
        return None if held is None else int(held.cast(pl.Int64)[0])

    def where(self, part: Part, places: Sequence[int]) -> list[str]:
        return self.of(part.file).where(part, places)

    def read(self, part: Part, columns: Sequence[str] | None) -> SplitRows:
        names, held = selected(self.schema, columns), self._values(part.file)
        found = self.of(part.file).read(part, [name for name in names if name not in held] if held else columns)
        assert isinstance(found.rows, pl.DataFrame)
        return replace(found, rows=_with(found.rows, held, names)) if held else found

    def read_all(self, part: Part) -> Rows:
        rows, held = self.of(part.file).read_all(part), self._values(part.file)
        return replace(rows, frame=_with(rows.frame, held, self.schema.names)) if held else rows

    def read_wanted(
        self, parts: Sequence[Part], columns: Sequence[str], unwanted: tuple[Pattern, ...], deciding: Collection[str]
    ) -> Wanted | None:
        own = getattr(self.inner, "read_wanted", None)
        if own is None or any(self._values(part.file) for part in parts):
            return None
        found: Wanted = own(parts, columns, unwanted, deciding)
        return found


@lru_cache(maxsize=64)
def _without(inner: Any, names: tuple[str, ...]) -> Any:
    schema = inner.schema.with_attributes(a for a in inner.schema if a.name not in names)
    return replace(inner, schema=schema, required=tuple(name for name in inner.required if name not in names))


@lru_cache(maxsize=10_000)
def _values(folder: str, inner: Any) -> Values:
    """The values that the names of folders give to columns; raise InputError if one does not fit."""
    declared, found = {name.lower(): name for name in inner.schema.names}, dict[str, pl.Series]()
    for part in Path(folder).parts:
        written, equals, text = part.partition("=")
        name = declared.get(written.lower()) if equals else None
        if name is not None:
            made = coerce_values([None if text == NULL else unquote(text)], inner.schema.type_of(name))
            if made.wrong or (name in inner.required and made.values[0] is None):
                reason = "NULL" if text == NULL else next(iter(made.wrong.values()))
                raise InputError("M5048", f"folder '{folder}', column '{name}': {reason}", hint=HINT)
            found[name] = made.values
    if len(found) == len(declared):
        message = f"all columns are in the name of folder '{folder}'"
        raise InputError("M5048", message, hint="declare a column of the files")
    return found


def _with(rows: pl.DataFrame, held: Values, names: Sequence[str]) -> pl.DataFrame:
    """Rows with the columns of their folders."""
    own = {name: held[name].new_from_index(0, rows.height) if name in held else rows[name] for name in names}
    return pl.DataFrame(own) if own else rows
