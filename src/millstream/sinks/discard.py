"""A sink that keeps nothing: for queries that are run for their side effects, and to measure without output."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.schema import Schema


class DiscardSink:
    def open(self, query: str, schema: Schema) -> None:
        pass

    def write(self, batch: int, rows: pl.DataFrame, punctuations: Sequence[Pattern]) -> None:
        pass

    def close(self) -> None:
        pass
