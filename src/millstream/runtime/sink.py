"""A sink that keeps what a query puts out until somebody takes it.

| | |
|---|---|
| computes | nothing: rows and punctuations are collected in the order in which they come |
| state | none that a checkpoint holds; what was put out belongs to whoever takes it |
| punctuation in → purged → out | any → nothing → kept for the taker |
| cost | O(1) an element |
"""

from __future__ import annotations

import polars as pl

from millstream.algebra.element import Element, Page
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import Schema
from millstream.runtime.operator.frames import stack


class CollectingSink:
    """To be called with every element; `take_rows` and `take_punctuations` give what came since the last call."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._rows: list[pl.DataFrame] = []
        self._punctuations: list[Punctuations] = []

    def __call__(self, element: Element) -> None:
        match element:
            case Page():
                self._rows.append(element.frame)
            case Punctuations():
                self._punctuations.append(element)
            case _:
                raise TypeError(f"a query puts out no {type(element).__name__}")

    def take_rows(self) -> pl.DataFrame:
        """The rows, as they came."""
        taken, self._rows = self._rows, []
        return stack(taken) if taken else self.schema.empty()

    def take_punctuations(self) -> list[Pattern]:
        taken, self._punctuations = self._punctuations, []
        return [pattern for batch in taken for pattern in batch.patterns()]
