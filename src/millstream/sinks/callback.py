"""A sink that calls a function with every batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import polars as pl

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.schema import Schema
from millstream.sinks.modes import KNOWING


class CallbackSink:
    """Within one process the function returns once for each batch id. A batch is repeated if its call failed or its
    process crashed; the function can recognise it by the id."""

    modes: ClassVar = KNOWING

    def __init__(self, function: Callable[[int, pl.DataFrame], None]) -> None:
        self._function = function
        self._last = -1

    def open(self, query: str, schema: Schema) -> None:
        pass

    def write(self, batch: int, rows: pl.DataFrame, punctuations: Sequence[Pattern]) -> None:  # noqa: ARG002
        if batch > self._last:
            self._function(batch, rows)
            self._last = batch

    def close(self) -> None:
        pass
