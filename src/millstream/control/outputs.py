"""What a running query has put out and nobody has taken yet, put together from its shards.

Rows are simply collected. A punctuation holds for the whole query only when every shard has promised it, so it is put
out when the last shard does.
"""

from __future__ import annotations

import polars as pl

from millstream.algebra.pattern import Pattern
from millstream.algebra.punctuation import Punctuations, PunctuationSet
from millstream.algebra.schema import TS, Schema
from millstream.runtime.sink import CollectingSink


class QueryOutput:
    def __init__(self, schema: Schema, shards: int) -> None:
        self.schema = schema
        self.rows_out = 0
        self._sink = CollectingSink(schema)
        self._promised = [PunctuationSet() for _ in range(shards)]
        self._merged: set[Pattern] = set()
        self._pending: list[Pattern] = []

    def deliver(self, shard: int, element: pl.DataFrame | Punctuations) -> None:
        """Take one element from a shard's sink."""
        if isinstance(element, pl.DataFrame):
            self.rows_out += element.height
            self._sink(element)
        elif len(self._promised) == 1:
            self._sink(element)
        elif len(element):
            self._promised[shard].add(element)
            self._pending += element.patterns()
            self._merge()

    def _merge(self) -> None:
        """Put out what the last shard has promised now, each pattern once."""
        waiting: list[Pattern] = []
        for pattern in self._pending:
            if pattern in self._merged:
                continue
            if all(promised.covers(pattern) for promised in self._promised):
                self._merged.add(pattern)
                self._sink(Punctuations.of([pattern]))
            else:
                waiting.append(pattern)
        self._pending = waiting

    def take_rows(self) -> pl.DataFrame:
        """All rows since the last call, without the hidden timestamp."""
        return self._sink.take_rows().drop(TS)

    def take_punctuations(self) -> list[Pattern]:
        return self._sink.take_punctuations()

    def snapshot(self) -> dict[str, object]:
        """The part that later punctuations depend on; rows already out are the taker's."""
        return {
            "promised": [promised.to_value() for promised in self._promised],
            "merged": sorted(self._merged, key=str),
            "pending": self._pending,
        }

    def restore(self, values: dict[str, object]) -> None:
        promised, merged, pending = values["promised"], values["merged"], values["pending"]
        assert isinstance(promised, list) and isinstance(pending, list) and isinstance(merged, list)
        self._promised = [PunctuationSet.from_value(value) for value in promised]
        self._merged = set(merged)
        self._pending = pending
