"""Splits of a stream, packed for the shards that read it.

Every shard of a group gets its own rows, all punctuations, and a summary of the split: the lowest and highest time and
values of ascending columns, on any shard. So each shard can recognise late tuples and derive the same punctuation as if
it had seen all rows. Where the summary is not enough, every shard gets some columns of all rows: see `own_rows`. Where
queries only aggregate a stream, its rows are aggregated here and the partial groups are sent. A shard that finds that
some row of the split may be late reads the split again and judges every row.

The shards judge, since a late row does not count: whether a row is late depends on which rows of all earlier splits are
not. The tasks that read the splits of a batch at the same time see neither those rows nor each other's, and the offset
is fixed before any row of the batch is read. A task decides what depends on its split alone: whether a row breaks a
promise of an earlier row in the split. As a rule none does, and then the shard compares the lowest values of the split
with its promises.

Rows that no reader of the stream wants are dropped here. The summary has them all the same, so that no other row
becomes late, or on time, because of it. Where the summary is not enough, every shard gets the columns that decide of
these rows too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import polars as pl

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.schedule import Grid
from millstream.algebra.schema import TS
from millstream.errors import OperatorError
from millstream.ingest.paged import Split
from millstream.ingest.paged.wanted import NONE_SKIPPED, Wanted, read_wanted
from millstream.ingest.promises import time_column
from millstream.ingest.split_summary import SplitSummary, slack_of, summary_of
from millstream.logical.catalog import StreamDefinition
from millstream.logical.plan import Key
from millstream.physical.failure.description import FAULTS, failure_on_row, source_failure
from millstream.physical.failure.transport import as_text
from millstream.physical.plan.partial import Partial
from millstream.physical.wire.hashing import shard_of
from millstream.physical.wire.own_rows import OWN, OwnRows, hashed
from millstream.physical.wire.shard_split import PartialStream, ShardSplit, Target
from millstream.physical.wire.skipping import (
    deciding,
    judged_shares,
    judged_whole,
    judging,
    summed_up_shares,
    with_columns,
)
from millstream.physical.wire.stretches import Cut, stretches


def pack(
    stream: StreamDefinition,
    split: Split,
    columns: tuple[str, ...],
    targets: tuple[Target, ...],
    now: int = 0,
    partition: int | None = None,
    unwanted: tuple[Pattern, ...] = (),
    grids: tuple[Grid, ...] = (),
) -> Iterator[tuple[int, ShardSplit]]:
    """Read a split and yield each shard's share of it, with the shard's label. With `now`, the time of the batch, the
    split cannot be read again, and its shares carry that time and the number of the partition. Rows that match an
    `unwanted` pattern are dropped. Where time passes marks of the `grids`, the split is cut: each shard gets its share
    of one stretch after the other."""
    unwanted = () if any(target.counted is not None for target in targets) else unwanted
    try:
        taken = read_wanted(split, columns, unwanted, deciding(stream, targets, unwanted, now) if unwanted else ())
        ready = []
        for own, again, passed in stretches(taken, split, time_column(stream.schema), grids):
            skips = own.kept is not None
            summary = None if skips and judged_whole(stream, now) else _summary(stream, own, targets)
            if skips and summary is None:
                known = judging(stream, targets, unwanted, own.placed) & set(columns)
                own = with_columns(own, again, known)
            ready.append((Cut(own, again, passed), summary))
    except FAULTS as error:
        yield from _unread(stream, targets, error, now)
        return
    for number, (cut, summary) in enumerate(ready):
        for label, share in _packed(stream, cut, summary, columns, targets, now, partition, unwanted):
            yield label, replace(share, stretch=number, passed=cut.passed) if number or cut.passed else share


def _packed(
    stream: StreamDefinition,
    cut: Cut,
    summary: SplitSummary | None,
    columns: tuple[str, ...],
    targets: tuple[Target, ...],
    now: int,
    partition: int | None,
    unwanted: tuple[Pattern, ...],
) -> Iterator[tuple[int, ShardSplit]]:
    """The shares of rows that have been read."""
    taken, split = cut.taken, cut.split
    rows, placed, skips = taken.rows, taken.placed, taken.kept is not None
    for target in targets:
        key, partials = (target.key, ()) if target.raw else (None, target.partials)
        dropped = unwanted if skips or now else ()
        own = OwnRows(key, 0, len(target.labels), None if now else split, columns, partials, dropped)
        # Rows that cannot be read again go to every shard wherever a late one would affect others.
        known = None if now and (stream.ascending or not target.raw) else summary
        count = taken.known.height
        whole = ShardSplit(stream.name, rows, own, count, known, placed, now=now, partition=partition)
        shares = _without_unwanted(stream, target, whole, taken) if skips else _shares(stream, target, whole)
        for number, (label, share) in enumerate(zip(target.labels, shares, strict=True)):
            count = share.count if number == 0 or key is not None else 0
            bad = taken.bad if number == 0 and taken.bad.height else None
            skipped = taken.skipped if number == 0 else NONE_SKIPPED
            yield label, replace(share, own=replace(own, number=number), count=count, bad=bad, skipped=skipped)


def _unread(
    stream: StreamDefinition, targets: tuple[Target, ...], error: BaseException, now: int
) -> Iterator[tuple[int, ShardSplit]]:
    """Tell all shards that read a split that it cannot be read."""
    failed = {stream.name: as_text(source_failure(stream.name, error))}
    for target in targets:
        own = OwnRows(None, 0, len(target.labels), None, ())
        for label in target.labels:
            yield label, ShardSplit(stream.name, pl.DataFrame(), own, 0, now=now, failed=failed)


def _summary(stream: StreamDefinition, taken: Wanted, targets: tuple[Target, ...]) -> SplitSummary | None:
    """The summary of a split; None if it is not enough for any state of the source."""
    if stream.primary_key:
        return None
    placed = taken.placed
    alone = not stream.ascending and slack_of(stream.schema, stream.watermark) is None
    if alone and taken.kept is None and all(target.raw for target in targets):
        placed = None  # only punctuation makes a row late, and no row affects another
    return summary_of(taken.known, placed, stream.schema, stream.watermark, stream.ascending)


def _shares(stream: StreamDefinition, target: Target, whole: ShardSplit) -> Iterable[ShardSplit]:
    """The shares of a whole split, shard by shard."""
    keys = target.counted.keys if target.counted is not None else () if whole.own.key is None else (whole.own.key,)
    if whole.summary is not None and not target.raw:
        return _folded(stream, target, whole)
    if not keys or whole.own.count == 1:
        return [replace(whole, summary=None)] * whole.own.count
    return _by_key(stream, target, whole, keys)


def _without_unwanted(
    stream: StreamDefinition, target: Target, whole: ShardSplit, taken: Wanted
) -> Iterable[ShardSplit]:
    """The shares of a split from which unwanted rows are left out."""
    assert taken.kept is not None
    if whole.summary is None:
        return judged_shares(whole, taken)
    placed = None if whole.placed is None else whole.placed.among(taken.kept)
    whole = replace(whole, placed=placed, absent=True)
    return _folded(stream, target, whole) if not target.raw else summed_up_shares(whole)


def _folded(stream: StreamDefinition, target: Target, whole: ShardSplit) -> Iterator[ShardSplit]:
    """Partial groups."""
    time = whole.rows.get_column(str(stream.schema.time)).cast(pl.Int64)
    page, count = whole.rows.with_columns(time.alias(TS)), whole.own.count
    made: list[tuple[PartialStream, pl.DataFrame]] = []
    failed: dict[str, str] = {}
    for partial in target.partials:
        try:
            made.append((partial, _groups(stream.id.base, partial.partial, page)))
        except OperatorError as error:
            failed[partial.name] = as_text(error)
    placed = None if whole.placed is None else whole.placed.among(np.zeros(page.height, dtype=np.bool_))
    for number in range(count):
        groups = {partial.name: hashed(held, partial.key, number, count) for partial, held in made}
        yield replace(whole, rows=pl.DataFrame(), placed=placed, partials=groups, failed=failed)


def _by_key(stream: StreamDefinition, target: Target, whole: ShardSplit, keys: tuple[Key, ...]) -> Iterator[ShardSplit]:
    """Each shard's own rows; without a summary also the columns of all rows that the shard needs."""
    rows, counted, count = whole.rows, target.counted, whole.own.count
    shards = [shard_of(rows, key, count) for key in keys]
    wanted = {*stream.required, *(keys[0] if counted is None else counted.columns)}
    wanted |= set() if whole.placed is None else whole.placed.columns
    common = rows.select(name for name in rows.columns if name in wanted)
    for number in range(count):
        mine = np.logical_or.reduce([one == number for one in shards])
        own = rows.filter(pl.Series(mine))
        share = whole if counted is not None else replace(whole, count=own.height)
        if whole.summary is not None and counted is None:
            yield replace(share, rows=own, placed=None if whole.placed is None else whole.placed.among(mine))
        elif common.width == rows.width:
            yield replace(share, summary=None)
        else:
            yield replace(share, rows=own, summary=None, common=common.with_columns(pl.Series(OWN, mine)))


def _groups(stream: str, partial: Partial, page: pl.DataFrame) -> pl.DataFrame:
    try:
        return partial.rows(page)
    except FAULTS as error:
        raise failure_on_row("partial aggregate", stream, page, partial.rows, error) from error
