"""The partitions of a DataFrame in a batch.

Spark keeps the order of rows within a partition and none between partitions. Rows of one partition are judged in their
order. Rows of several are united here into one split without an order, which the source judges by the time before the
batch, as Spark does with its watermark. Every shard has a share of every split, so all shards unite alike.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from millstream.ingest.ascending import Span
from millstream.ingest.paged.wanted import Skipped
from millstream.ingest.placed_punctuations import TIME_LIMIT
from millstream.ingest.source import StreamSource
from millstream.ingest.split_summary import SplitSummary, summary_of
from millstream.physical.wire.shard_split import ShardSplit
from millstream.physical.wire.stretches import Passed


def united(splits: Sequence[ShardSplit], sources: Mapping[str, StreamSource]) -> list[ShardSplit]:
    """Return a shard's splits of a batch; those of a DataFrame with rows in several partitions are one."""
    found: defaultdict[str, list[ShardSplit]] = defaultdict(list)
    for split in splits:
        if split.partition is not None and split.stream in sources:
            found[split.stream].append(split)
    several = {name: parts for name, parts in found.items() if len({part.partition for part in parts}) > 1}
    made = [split for split in splits if split.stream not in several]
    return [*made, *(_one(parts, sources[name]) for name, parts in several.items())]


def _one(parts: list[ShardSplit], source: StreamSource) -> ShardSplit:
    parts = [part.filled() for part in parts]
    if any(part.summary is not None for part in parts):
        parts = [part if part.summary is not None else _summed_up(part, source) for part in parts]
    bad = [part.bad for part in parts if part.bad is not None]
    return replace(
        parts[0],
        rows=pl.concat([part.rows for part in parts]),
        count=sum(part.count for part in parts),
        summary=_merged([part.summary for part in parts if part.summary is not None]),
        bad=pl.concat(bad) if bad else None,
        skipped=sum((part.skipped for part in parts), start=Skipped()),
        absent=any(part.absent for part in parts),
        passed=_passed(parts),
        partition=None,
        unordered=True,
    )


def _passed(parts: list[ShardSplit]) -> Passed:
    """The marks that may be passed among the rows, as if they were sorted by time."""
    reached: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
    for part in parts:
        for grid, _, _, time in part.passed:
            reached[grid].add(time)
    return tuple((grid, min(times), time, time) for grid, times in reached.items() for time in sorted(times))


def _summed_up(part: ShardSplit, source: StreamSource) -> ShardSplit:
    """The shard's own rows, and a summary of all rows in place of the others: none depends on another."""
    return replace(part, rows=part.own.among(part.rows), summary=summary_of(part.rows, None, source.schema, TIME_LIMIT))


def _merged(summaries: list[SplitSummary]) -> SplitSummary | None:
    """The summary of all partitions; None if their rows are all here."""
    if not summaries:
        return None
    filled = [summary for summary in summaries if summary.rows]
    spans = {
        column: Span(min(s.spans[column].lowest for s in filled), max(s.spans[column].highest for s in filled))
        for column in (filled[0].spans if filled else ())
    }
    return SplitSummary(sum(summary.rows for summary in filled), spans)
