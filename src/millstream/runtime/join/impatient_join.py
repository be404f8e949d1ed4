"""IMPATIENT JOIN: a window join that tells its right side which keys the left side holds.

| | |
|---|---|
| computes | what a window join computes |
| new keys of stored left tuples | `?[…]` to the right side: tuples with these keys are wanted first |
| messages in a step | one, with at most `MOST` values of each key column, if there are new keys |
| state | the keys that were told and are still stored; at `MOST_TOLD` of them nothing more is told |

The order in which right tuples arrive does not change the results, only when they are emitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from millstream.algebra.feedback import Feedback, Intent
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import one_of
from millstream.runtime.join.window_join import WindowJoin
from millstream.runtime.operator.contract import Input, Output
from millstream.runtime.operator.keys import numbers
from millstream.runtime.operator.registry import carries_out

MOST = 256
"""Most values of a column in a message."""
MOST_TOLD = 4_096
"""Most keys that were told and are still stored."""


@carries_out("impatient_join")
class ImpatientJoin(WindowJoin):
    def __init__(self, **parameters: Any) -> None:
        super().__init__(**parameters)
        own = {output: name for name, output in self._columns.names[1].items()}
        self._wanted = {key: own[other] for key, other in self._keys[0].items()}
        """The keys of the left side, and the equal columns of the right input."""
        self._asked: dict[tuple[Any, ...], None] = {}

    def process(self, inputs: Sequence[Input]) -> Output:
        arrived = inputs[0].rows is not None
        output = super().process(inputs)
        if not arrived or not self._wanted:
            return output
        held = self._held()
        self._asked = {key: None for key in self._asked if key in held}
        room = min(MOST, MOST_TOLD - len(self._asked))
        fresh = [key for key in held if key not in self._asked][:room]
        if not fresh:
            return output
        self._asked |= dict.fromkeys(fresh)
        columns = zip(self._wanted.values(), zip(*fresh, strict=True), strict=True)
        pattern = Pattern.of({name: one_of(values) for name, values in columns})
        if pattern.is_empty:
            return output
        return replace(output, upstream=(*output.upstream, (1, Feedback(Intent.DESIRED, pattern))))

    def _held(self) -> dict[tuple[Any, ...], None]:
        """The keys of the stored left tuples, without NaN, which no pattern matches."""
        rows: pl.DataFrame = self._sides[0].rows.select(list(self._wanted))
        return dict.fromkeys(rows.filter(numbers(rows)).unique(maintain_order=True).rows())

    def scalars(self) -> dict[str, Any]:
        return super().scalars() | {"told": list(self._asked)}

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        super().restore_scalars(values)
        self._asked = dict.fromkeys(tuple(key) for key in values["told"])
