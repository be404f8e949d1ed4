"""A sink that keeps results in the driver's memory until the program takes them."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import ClassVar

import polars as pl

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.schema import TS, Schema
from millstream.errors import OptionError
from millstream.runtime.sink import CollectedPunctuations
from millstream.sinks.modes import KNOWING


class MemorySink:
    """`take_rows` and `take_punctuations` return the results since the last call, also while batches are written.

    A memory sink serves one query: it recognises repeated batches by their ids, which two queries would share."""

    modes: ClassVar = KNOWING

    def __init__(self) -> None:
        self._lock = Lock()
        self._last = -1
        self._query = ""
        self._schema: Schema | None = None
        self._rows: list[pl.DataFrame] = []
        self._punctuations = CollectedPunctuations()

    def open(self, query: str, schema: Schema) -> None:
        if self._schema is not None and (query, schema) != (self._query, self._schema):
            message = f"this sink keeps the results of query '{self._query}', not of '{query}'"
            raise OptionError("M6043", message, hint="make a sink for each query")
        self._query, self._schema = query, schema

    def write(self, batch: int, rows: pl.DataFrame, punctuations: Sequence[Pattern]) -> None:
        with self._lock:
            if batch > self._last:
                self._rows += [rows] if rows.height else []
                self._punctuations.add(punctuations)
                self._last = batch

    def close(self) -> None:
        """Keep the remaining results: they can still be taken."""

    def take_rows(self) -> pl.DataFrame:
        with self._lock:
            taken, self._rows = self._rows, []
        if taken:
            return pl.concat(taken)
        return pl.DataFrame() if self._schema is None else self._schema.empty().drop(TS)

    def take_punctuations(self) -> list[Pattern]:
        with self._lock:
            return self._punctuations.take()
