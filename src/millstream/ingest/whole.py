"""Word of a whole piece of a stream, for shards that get only their part of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from millstream.algebra.schema import NEVER, Schema, TimeKind
from millstream.algebra.values import value
from millstream.ingest.ascending import Climb, climbs
from millstream.ingest.marks import Integers, integers


@value("whole")
@dataclass(frozen=True, slots=True)
class Whole:
    """Of what a shard gets only its part: the highest, the last and the lowest timestamp and the number of rows; by how
    much a row is older than one before it at most; how each ascending column runs; for each row of the part the highest
    timestamp before it in the whole, None if the whole is in order."""

    newest: int
    last: int
    rows: int
    oldest: int = NEVER
    lag: int = 0
    climbs: tuple[Climb, ...] = ()
    before: Integers | None = None


def whole_of(rows: pl.DataFrame, schema: Schema, ascending: Sequence[str] = ()) -> Whole:
    """Word of these rows."""
    run = climbs(rows, ascending)
    if schema.kind is not TimeKind.EXTERNAL or schema.time is None or not rows.height:
        return Whole(NEVER, NEVER, rows.height, climbs=run)
    stamps = integers(rows.get_column(schema.time))
    if bool((stamps[1:] >= stamps[:-1]).all()):
        return Whole(int(stamps[-1]), int(stamps[-1]), rows.height, int(stamps[0]), climbs=run)
    highest = np.maximum.accumulate(stamps)
    lag = int((highest - stamps).max())
    before = np.concatenate(([NEVER], highest[:-1]))
    return Whole(int(highest[-1]), int(stamps[-1]), rows.height, int(stamps.min()), lag, run, before)
