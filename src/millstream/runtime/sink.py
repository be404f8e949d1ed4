"""A sink that collects the output of a query until the caller takes it.

| | |
|---|---|
| computes | nothing: rows and punctuations are collected in order of arrival |
| state | none in a checkpoint: collected output belongs to the caller |
| punctuation in → purged → out | any → nothing → kept for the caller |
| cost | O(1) an element |
"""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from millstream.algebra.element import Element, Page
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations, PunctuationSet
from millstream.algebra.schema import Schema
from millstream.runtime.operator.frames import stack

MANY = 1000
"""Punctuations kept as they came."""


class CollectedPunctuations:
    """Punctuations until they are taken. A program that takes rows alone leaves them: beyond `MANY`, those that others
    cover go, and neighbours become one."""

    def __init__(self) -> None:
        self._held: list[Pattern] = []
        self._most = MANY

    def add(self, patterns: Iterable[Pattern]) -> None:
        self._held += patterns
        if len(self._held) > self._most:
            folded = PunctuationSet()
            folded.admit(Punctuations.of(self._held))
            self._held = folded.patterns()
            self._most = max(MANY, 2 * len(self._held))

    def take(self) -> list[Pattern]:
        taken, self._held, self._most = self._held, [], MANY
        return taken


class CollectingSink:
    """Called with every element; `take_rows` and `take_punctuations` return those collected since the last call."""

    def __init__(self, schema: Schema) -> None:
        self.schema, self._empty = schema, schema.empty()
        self._rows: list[pl.DataFrame] = []
        self._punctuations = CollectedPunctuations()

    def __call__(self, element: Element) -> None:
        match element:
            case Page():
                self._rows.append(element.frame)
            case Punctuations():
                self._punctuations.add(element.patterns())
            case _:
                raise TypeError(f"a query does not emit a {type(element).__name__}")

    def take_rows(self) -> pl.DataFrame:
        """Return the collected rows, in order of arrival."""
        taken, self._rows = self._rows, []
        return stack(taken) if taken else self._empty

    def take_punctuations(self) -> list[Pattern]:
        return self._punctuations.take()
