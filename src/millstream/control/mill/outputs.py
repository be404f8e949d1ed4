"""The output of a running query: results of its shards, merged and kept until taken.

Rows are collected. A punctuation holds for the whole query only when every shard has promised it, so it is emitted when
the last shard promises it. Punctuation on the start of a window serves operators only and is not emitted: that on its
end says the same. Neither is punctuation on a computed column, if that on the column that it follows says the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from millstream.algebra.element import Element, Page
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations, PunctuationSet
from millstream.algebra.schema import Schema, TimeKind
from millstream.runtime.engine.preference import Preference
from millstream.runtime.operator.frames import pick, stack
from millstream.runtime.sink import CollectingSink


class QueryOutput:
    """`hidden`: columns whose upper bounds are not emitted; `repeats`: columns on which no punctuation is emitted."""

    def __init__(
        self,
        schema: Schema,
        shards: int,
        hidden: frozenset[str] = frozenset(),
        repeats: frozenset[str] = frozenset(),
    ) -> None:
        self.schema = schema
        self._hidden, self._repeats = hidden, repeats
        self.rows_made = 0
        self._sink = CollectingSink(schema)
        self._promised = [PunctuationSet() for _ in range(shards)]
        self._merged = PunctuationSet()
        self._pending = Punctuations.of(())
        self.first: list[Pattern] = []
        """Rows that are desired: they precede the others of their batch, where the order is free."""
        self._batch: list[pl.DataFrame] = []
        self._free = shards > 1 or not schema.ordered or schema.kind is TimeKind.LATENT

    def deliver(self, shard: int, element: Element) -> None:
        """Take one element from a shard's sink."""
        if isinstance(element, Punctuations) and self._hidden:
            element = element.without_upper(self._hidden)
        if isinstance(element, Punctuations) and self._repeats:
            element = element.without(self._repeats)
        match element:
            case Page():
                self.rows_made += element.tuples
                rows = pick(element.frame, self.schema.names)
                if self.first and self._free:
                    self._batch.append(rows)
                else:
                    self._sink(Page(rows))
            case Punctuations() if len(self._promised) > 1 and len(element):
                self._promised[shard].add(element)
                self._pending = Punctuations.concat([self._pending, element])
                self._merge()
            case _ if len(self._promised) == 1:
                self._sink(element)

    def _merge(self) -> None:
        """Emit the pending punctuations that every shard has promised and that were not emitted before."""
        agreed = self._promised[0].covered(self._pending)
        for promised in self._promised[1:]:
            agreed &= promised.covered(self._pending)
        if agreed.any():
            fresh = self._merged.add(self._pending.where(agreed))
            if len(fresh):
                self._sink(fresh)
            self._pending = self._pending.where(~agreed)

    def take_up(self, rows: pl.DataFrame, punctuations: Sequence[Pattern]) -> None:
        """Take results that were delivered before and are still to be taken."""
        self._sink(Page(rows))
        if punctuations:
            self._sink(Punctuations.of(punctuations))

    def finish_batch(self) -> None:
        """Take the rows of a batch, the desired ones first."""
        if self._batch:
            rows, self._batch = stack(self._batch), []
            self._sink(Page(Preference(self.first, ordered=False)(rows) if self.first else rows))

    def take_rows(self) -> pl.DataFrame:
        """All rows since the last call, without the hidden timestamp."""
        self.finish_batch()
        return pick(self._sink.take_rows(), self.schema.names)

    def take_punctuations(self) -> list[Pattern]:
        return self._sink.take_punctuations()

    def snapshot(self) -> dict[str, object]:
        """The state that later punctuations depend on. Rows are not part of it: they belong to the caller of
        `take_rows`."""
        return {
            "promised": [promised.to_value() for promised in self._promised],
            "merged": self._merged.to_value(),
            "pending": self._pending,
        }

    def restore(self, values: Mapping[str, Any]) -> None:
        self._promised = [PunctuationSet.from_value(value) for value in values["promised"]]
        self._merged = PunctuationSet.from_value(values["merged"])
        self._pending = values["pending"]
