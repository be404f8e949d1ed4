"""Placeholders for the tuples of other shards, under a window that counts the tuples of a stream.

| | |
|---|---|
| computes | the tuples of this shard, unchanged; of all others the timestamp, with NULL in every other column |
| order | its input's |
| state | none |
| punctuation in → purged → out | p → nothing → p: if no tuple matches it, no placeholder does |
| progress | forwarded |
| cost | one hash of the key, one pass over the columns |

A tuple without a key counts in a window of rows, joins nothing and is not stored. So a join on one shard sees the last
n tuples of the whole stream.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

from millstream.algebra.arrays import Mask
from millstream.algebra.element import Element
from millstream.algebra.schema import TS, Schema
from millstream.runtime.operator.capabilities import KeepsPosition
from millstream.runtime.operator.contract import Input, Operator, Output
from millstream.runtime.operator.registry import Site, carries_out


@carries_out("placeholders")
class Placeholders(Operator, KeepsPosition):
    """`mine` returns a mask of the tuples that belong to this shard."""

    def __init__(self, schema: Schema, mine: Callable[[pl.DataFrame], Mask]) -> None:
        self.schema = schema
        self._mine = mine
        self._blank = [name for name in schema.names if name not in (schema.time, TS)]

    @classmethod
    def at(cls, site: Site, parameters: Mapping[str, Any]) -> Operator:
        shard_of = parameters["shard_of"]
        return cls(parameters["schema"], lambda rows: shard_of(rows, shards=site.shards) == site.number)

    def process(self, inputs: Sequence[Input]) -> Output:
        port = inputs[0]
        rows = None if port.rows is None or not port.rows.height else self._blanked(port.rows)
        return Output(rows, port.punctuations or None)

    def meet(self, port: int, element: Element) -> Output:  # noqa: ARG002
        return Output(elements=(element,))

    def _blanked(self, rows: pl.DataFrame) -> pl.DataFrame:
        mine = self._mine(rows)
        if mine.all():
            return rows
        kept = pl.lit(pl.Series(mine, dtype=pl.Boolean))
        return rows.with_columns(pl.when(kept).then(pl.col(name)).alias(name) for name in self._blank)
