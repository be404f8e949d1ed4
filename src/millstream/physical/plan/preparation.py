"""A query prepared for its shards: cut into parts, with aggregates split where sources can aggregate partially."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import TimeKind
from millstream.algebra.stream_id import StreamId
from millstream.logical.catalog import StreamDefinition
from millstream.logical.plan import Plan
from millstream.logical.written import touched
from millstream.physical.plan.partial import Partial, split_aggregate
from millstream.physical.plan.partitioning import Keys, partition_keys
from millstream.physical.plan.stages import QueryPart, parts
from millstream.physical.shard.topology import scans
from millstream.physical.wire.records import OpenGroup, Reading, Sending, StartQuery


@dataclass(frozen=True, slots=True)
class PreparedPart:
    """A part of a query, ready to be placed: the plan that shards run, and the partial aggregations of sources
    (stream, partial stream, aggregation)."""

    part: QueryPart
    plan: Plan
    partials: tuple[tuple[str, str, Partial], ...] = ()
    reads: frozenset[str] = frozenset()

    @property
    def keys(self) -> Keys | None:
        return self.part.keys if self.part.keys is None or not self.partials else partition_keys(self.plan)

    @property
    def table(self) -> str:
        """The partitioned table whose shards run it; empty: none."""
        spread = [target.table for target in touched(self.plan) if target.partitioned and self.part.keys is not None]
        return spread[0] if spread else ""

    def _tables(self) -> set[str]:
        """The tables whose rows it has from the start: static ones, and one that streams begin to write."""
        if self.plan.keeps:
            return {self.plan.keeps}
        return {part.looks_up for part in self.plan.walk()} - {""}

    def start(
        self,
        query: str,
        groups: Mapping[str, OpenGroup],
        streams: Mapping[str, StreamDefinition],
        tables: Mapping[str, pl.DataFrame],
        *,
        punctuated: bool,
        readings: Mapping[str, Reading] | None = None,
        reached: Mapping[str, int] | None = None,
        closed: Mapping[str, Punctuations] | None = None,
    ) -> StartQuery:
        """The record that starts this part, given the groups of the query's parts, the readings of streams with a
        connector, and the time and the punctuation of other streams so far. The topmost part has the name of the
        query."""
        part, sending = self.part, None
        if part.reader is not None:
            reader = groups[part.reader]
            sending = Sending(str(StreamId(part=part.name)), reader.labels, part.key, reader.stage)
        return StartQuery(
            groups[part.name].group,
            query if sending is None else part.name,
            self.plan,
            {name: tables[name] for name in self._tables()},
            {name: streams[name] for name in self.reads if name in streams},
            self.partials,
            punctuated or sending is not None,
            None if sending is None else query,
            sending,
            readings={name: reading for name, reading in (readings or {}).items() if name in self.reads},
            reached={name: time for name, time in (reached or {}).items() if name in self.reads},
            closed={name: sent for name, sent in (closed or {}).items() if name in self.reads},
        )


def prepare(query: str, plan: Plan, streams: Mapping[str, StreamDefinition], shards: int) -> list[PreparedPart]:
    """Return the parts of a query. Aggregates are split where they read one of the `streams` that jobs read
    themselves."""
    prepared: list[PreparedPart] = []
    for part in parts(query, plan, shards):
        running, partials = part.plan, list[tuple[str, str, Partial]]()
        while (found := split_aggregate(running)) is not None and _can_aggregate(streams.get(found.stream)):
            partials.append((found.stream, found.partial_stream, found.partial))
            running = found.plan
        reads = {scan.id.source for scan in scans(part.plan) if not scan.id.exchanged}
        prepared.append(PreparedPart(part, running, tuple(partials), frozenset(reads)))
    return prepared


def _can_aggregate(stream: StreamDefinition | None) -> bool:
    """Return whether the tasks that read a stream can aggregate it: only time can make its tuples late."""
    if stream is None or stream.schema.kind is not TimeKind.EXTERNAL or stream.primary_key:
        return False
    return stream.punctuated <= {stream.schema.time}
