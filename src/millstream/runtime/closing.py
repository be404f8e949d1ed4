"""A stream closed by another one: the close of an auction ends its bids.

| | |
|---|---|
| computes | the first input's tuples, except the late ones; `only_late`: the late ones alone, without punctuation |
| a tuple is late | iff a tuple of the closing input with its key was processed before it |
| order | merging: by timestamp, a tuple before a close of the same time; otherwise on arrival |
| state | no tuples; the closed keys, neighbouring integers as one entry (`PunctuationSet`) |
| punctuation of the first in → out | p, unless an earlier one covers it; the closed keys that p covers are forgotten |
| a tuple of the closing input in → out | `[key = its key]`, once; NULL and NaN, which it never matches, close nothing |
| progress | the first input's |
| cost | a look-up of the arriving keys among the closed ones |

No punctuation of the closing input excludes late tuples, so closed keys are kept until the first input itself promises
that they will not arrive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.arrays import Mask
from millstream.algebra.punctuation.column_order import canonical
from millstream.algebra.punctuation.group import Group
from millstream.algebra.punctuation.grouping import Parts
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import NEVER, TS, Schema
from millstream.runtime.operator.capabilities import Counts
from millstream.runtime.operator.contract import Input, Operator, Output
from millstream.runtime.operator.frames import where
from millstream.runtime.operator.keys import joined, numbers
from millstream.runtime.operator.propagation import NO_PUNCTUATIONS, Emitted
from millstream.runtime.operator.registry import carries_out

_CLOSED_AT = "__closed_at"


class Closed(Emitted):
    """The closed keys, as emitted punctuation."""

    __slots__ = ()

    def match(self, rows: pl.DataFrame) -> Mask:
        """Return the mask of the tuples that emitted punctuation excludes."""
        return self._known.match(rows).to_numpy()


@carries_out("closing")
class Closing(Operator, Counts):
    """`keys` pairs columns of the first input with columns of the closing one; `late` counts late tuples."""

    arity = 2

    def __init__(
        self, schema: Schema, keys: tuple[tuple[str, str], ...], merges: bool = False, *, only_late: bool = False
    ) -> None:
        self.schema, self.merges, self.only_late = schema, merges, only_late
        self.tie_order = (0, 1)
        self.late = 0
        self._pairs = keys
        self._keys = [own for own, _ in keys]
        self._closed = Closed(self._keys)

    def process(self, inputs: Sequence[Input]) -> Output:
        rows, closings = inputs[0].rows, self._closings(inputs[1].rows)
        if rows is not None and rows.height:
            late = self._late(rows, closings)
            self.late += int(np.count_nonzero(late))
            rows = _kept(rows, late if self.only_late else ~late)
        own = inputs[0].punctuations if inputs[0].punctuations is not None else NO_PUNCTUATIONS
        closed = NO_PUNCTUATIONS if closings is None else _equalities(closings.select(self._keys))
        out = self._closed.release([own, closed]) if len(own) or len(closed) else NO_PUNCTUATIONS
        out = (NO_PUNCTUATIONS if self.only_late else out).with_progress(own.progress)
        return Output(rows, out or None)

    def _closings(self, rows: pl.DataFrame | None) -> pl.DataFrame | None:
        """Return the keys closed in this step, under the first input's names, with the time of each close."""
        if rows is None or not rows.height:
            return None
        keys = [canonical(rows.get_column(other)).alias(own) for own, other in self._pairs]
        closings = pl.DataFrame([*keys, rows.get_column(TS).alias(_CLOSED_AT)]).drop_nulls(self._keys)
        closings = closings.filter(numbers(closings))
        return closings if closings.height else None

    def _late(self, rows: pl.DataFrame, closings: pl.DataFrame | None) -> Mask:
        """Return the mask of the tuples that arrive after their key was closed."""
        late = self._closed.match(rows)
        if self.merges and closings is not None:
            first = closings.group_by(self._keys).agg(pl.col(_CLOSED_AT).min())
            keys = pl.DataFrame([canonical(rows.get_column(key)) for key in self._keys])
            closed = joined(keys, first, self._keys, "left").get_column(_CLOSED_AT)
            late = late | (closed < rows.get_column(TS)).fill_null(False).to_numpy()
        return late

    def output_bound(self, bounds: Sequence[int]) -> int:
        return bounds[0]

    def counts(self) -> Mapping[str, int]:
        return {"late": self.late}

    def scalars(self) -> dict[str, Any]:
        return {"closed": self._closed.to_value(), "late": self.late}

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        self._closed.restore(values["closed"])
        self.late = values["late"]


def _kept(rows: pl.DataFrame, mask: Mask) -> pl.DataFrame | None:
    if mask.all():
        return rows
    return where(rows, mask) if mask.any() else None


def _equalities(keys: pl.DataFrame) -> Punctuations:
    """Return `[k = v, …]` for each key once."""
    keys = keys.unique(maintain_order=True)
    group = Group.of({name: ("=", keys.get_column(name)) for name in keys.columns}, np.arange(keys.height))
    return Punctuations(keys.height, NEVER, parts=Parts((group,), ()))
