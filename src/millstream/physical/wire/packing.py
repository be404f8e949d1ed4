"""Splits of a stream, packed for the shards that read it.

Every shard of a group gets its part of the rows, all punctuations, and word of the whole split: how far time and
ascending columns have come, on whichever shard. So each shard can tell late tuples and derive the same punctuation as
if it had seen all rows. Where that does not do, some columns of all rows go to every shard: see `shares`. Where queries
only aggregate a stream, its rows are aggregated here and the partial groups are sent. A shard that finds that some row
of the split may be late reads the split again and looks at every row.

The shards judge, since a late row does not count: whether a row is late depends on which rows of all earlier splits are
not, and the tasks that read the splits of a batch at the same time see neither those nor each other. Nor does the
offset know them, which is fixed before any row of the batch is read. A task decides what depends on its split alone:
whether a row breaks what those before it in the split promise. As a rule none does, and then the shard compares the
lowest values of the split with what it has promised.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import reduce

import numpy as np
import polars as pl

from millstream.algebra.schema import TS
from millstream.ingest.paged import Split
from millstream.ingest.placed_punctuations import PlacedPunctuations
from millstream.ingest.split_summary import SplitSummary, slack_of, summary_of
from millstream.logical.catalog import StreamDefinition
from millstream.logical.plan import Key
from millstream.physical.failure.description import FAULTS, blame_rows
from millstream.physical.plan.partial import Partial
from millstream.physical.wire.hashing import shard_of
from millstream.physical.wire.own_rows import OWN, OwnRows, hashed, marked
from millstream.physical.wire.shard_split import ShardSplit, Target


def pack(
    stream: StreamDefinition, split: Split, columns: tuple[str, ...], targets: tuple[Target, ...], now: int = 0
) -> Iterator[tuple[int, ShardSplit]]:
    """Read a split; its parts, with the labels they go to. With `now` the rows are at hand only here, so that they are
    sent as they are and tell the time."""
    taken = split.read(columns)
    rows, placed = marked(taken.rows)
    word = _word_of(stream, rows, placed, targets)
    for target in targets:
        key, partials = (target.key, ()) if target.raw else (None, target.partials)
        share = OwnRows(key, 0, len(target.labels), None if now else split, columns, partials)
        # Rows that cannot be read again go to every shard wherever one of them could be late and move others.
        whole = None if now and (stream.ascending or not target.raw) else word
        parts = _parts(stream, target, ShardSplit(stream.name, rows, share, rows.height, whole, placed, now=now))
        for number, (label, part) in enumerate(zip(target.labels, parts, strict=True)):
            count = part.count if number == 0 or key is not None else 0
            bad = taken.bad if number == 0 and taken.bad.height else None
            yield label, replace(part, share=replace(share, number=number), count=count, bad=bad)


def _word_of(
    stream: StreamDefinition, rows: pl.DataFrame, placed: PlacedPunctuations | None, targets: tuple[Target, ...]
) -> SplitSummary | None:
    """Word of the whole; None where it is not enough, whatever has come before."""
    if stream.primary_key:
        return None
    alone = not stream.ascending and slack_of(stream.schema, stream.watermark) is None
    if alone and all(target.raw for target in targets):
        placed = None  # only punctuation makes a row late, and no row decides on another
    return summary_of(rows, placed, stream.schema, stream.watermark, stream.ascending)


def _parts(stream: StreamDefinition, target: Target, sent: ShardSplit) -> Iterable[ShardSplit]:
    """What is sent of a split, shard by shard."""
    keys = target.counted.keys if target.counted is not None else () if sent.share.key is None else (sent.share.key,)
    if sent.whole is not None and not target.raw:
        return _folded(stream, target, sent)
    if not keys or sent.share.count == 1:
        return [replace(sent, whole=None)] * sent.share.count
    return _dealt(stream, target, sent, keys)


def _folded(stream: StreamDefinition, target: Target, sent: ShardSplit) -> Iterator[ShardSplit]:
    """Partial groups."""
    time = sent.rows.get_column(str(stream.schema.time)).cast(pl.Int64)
    page, count = sent.rows.with_columns(time.alias(TS)), sent.share.count
    made = [(partial, _groups(stream.name, partial.partial, page)) for partial in target.partials]
    placed = None if sent.placed is None else sent.placed.among(np.zeros(page.height, dtype=np.bool_))
    for number in range(count):
        groups = {partial.name: hashed(held, partial.key, number, count) for partial, held in made}
        yield replace(sent, rows=pl.DataFrame(), placed=placed, partials=groups)


def _dealt(stream: StreamDefinition, target: Target, sent: ShardSplit, keys: tuple[Key, ...]) -> Iterator[ShardSplit]:
    """Each shard's own rows; without word of the whole also what it has to know of all."""
    rows, counted, count = sent.rows, target.counted, sent.share.count
    shards = [shard_of(rows, key, count) for key in keys]
    wanted = {*stream.required, *(keys[0] if counted is None else counted.columns)}
    wanted |= set() if sent.placed is None else sent.placed.columns
    common = rows.select(name for name in rows.columns if name in wanted)
    for number in range(count):
        mine = reduce(np.logical_or, [one == number for one in shards])
        own = rows.filter(pl.Series(mine))
        part = sent if counted is not None else replace(sent, count=own.height)
        if sent.whole is not None and counted is None:
            yield replace(part, rows=own, placed=None if sent.placed is None else sent.placed.among(mine))
        elif common.width == rows.width:
            yield replace(part, whole=None)
        else:
            yield replace(part, rows=own, whole=None, common=common.with_columns(pl.Series(OWN, mine)))


def _groups(stream: str, partial: Partial, page: pl.DataFrame) -> pl.DataFrame:
    try:
        return partial.rows(page)
    except FAULTS as error:
        raise blame_rows("partial aggregate", stream, page, partial.rows, error) from error
