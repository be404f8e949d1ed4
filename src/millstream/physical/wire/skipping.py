"""The shares of a split from which the rows are left out that no reader of the stream wants.

Whether an unwanted row is late still counts: it is counted, and it may advance time. A summary of all rows of the split
says what they have in common, as where rows are aggregated. Where a summary never suffices (a primary key, punctuation
on other columns than time, rows that cannot be read again), or where the split has a late row in itself, every shard
gets the columns that decide which rows are late, of all rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

import numpy as np
import polars as pl

from millstream.algebra.punctuation.pattern import Pattern
from millstream.ingest.paged import Split
from millstream.ingest.paged.wanted import Wanted, rows_and_punctuations
from millstream.ingest.placed_punctuations import PlacedPunctuations
from millstream.ingest.promises import time_column
from millstream.logical.catalog import StreamDefinition
from millstream.physical.wire.hashing import shard_of
from millstream.physical.wire.own_rows import OWN
from millstream.physical.wire.shard_split import ShardSplit, Target


def judged_whole(stream: StreamDefinition, now: int) -> bool:
    """Return whether shards need columns of all rows, whatever a summary says. `now`: rows cannot be read again."""
    time = time_column(stream.schema)
    if stream.primary_key or stream.punctuated - {time, *stream.ascending}:
        return True
    return bool(now) and (time is not None or bool(stream.ascending))


def deciding(
    stream: StreamDefinition, targets: tuple[Target, ...], unwanted: tuple[Pattern, ...], now: int
) -> frozenset[str]:
    """The columns of unwanted rows that are needed at any rate."""
    if judged_whole(stream, now):
        return judging(stream, targets, unwanted, None)
    time = time_column(stream.schema)
    return frozenset({*stream.ascending, *(() if time is None else (time,))})


def judging(
    stream: StreamDefinition,
    targets: tuple[Target, ...],
    unwanted: tuple[Pattern, ...],
    placed: PlacedPunctuations | None,
) -> frozenset[str]:
    """The columns of all rows by which a shard finds the late rows, its own rows, and the unwanted ones."""
    keys = [target.key for target in targets if target.raw and target.key is not None]
    found = {*stream.required, *stream.punctuated, *(() if placed is None else placed.columns)}
    return frozenset(found.union(*keys, *(pattern.attributes for pattern in unwanted)))


def with_columns(taken: Wanted, split: Split, columns: Collection[str]) -> Wanted:
    """Return the same rows with these columns of all rows, read again if some are missing."""
    known = taken.known
    if not set(columns) <= set(known.columns):
        known, _ = rows_and_punctuations(split.read([*columns]).rows)
    return replace(taken, known=known.select(name for name in known.columns if name in columns))


def summed_up_shares(whole: ShardSplit) -> Iterator[ShardSplit]:
    """Each shard's own among the wanted rows, and a summary of all rows. The first shard counts the unwanted rows."""
    rows, count, missing = whole.rows, whole.own.count, whole.count - whole.rows.height
    if whole.own.key is None or count == 1:
        yield from [whole] * count
        return
    shards = shard_of(rows, whole.own.key, count)
    for number in range(count):
        mine = shards == number
        own = rows.filter(pl.Series(mine))
        placed = None if whole.placed is None else whole.placed.among(mine)
        yield replace(whole, rows=own, placed=placed, count=own.height + (0 if number else missing))


def judged_shares(whole: ShardSplit, taken: Wanted) -> Iterator[ShardSplit]:
    """Each shard's own among the wanted rows, and the columns of all rows by which every shard judges them."""
    kept, known, key, count = taken.kept, taken.known, whole.own.key, whole.own.count
    assert kept is not None
    everything = np.ones(known.height, dtype=np.bool_)
    shards = None if key is None or count == 1 else shard_of(known, key, count)
    for number in range(count):
        mine = everything if shards is None else shards == number
        rows = taken.rows if shards is None else taken.rows.filter(pl.Series(mine[kept]))
        common = known.with_columns(pl.Series(OWN, mine & kept))
        yield replace(whole, rows=rows, count=int(mine.sum()), summary=None, common=common)
