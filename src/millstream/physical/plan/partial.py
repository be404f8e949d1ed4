"""Partial aggregation: sources aggregate their tuples before these are sent to shards, and shards merge.

    WindowAggregate [RANGE 10 SLIDE 10] BY k SUM(v)      →   WindowAggregate [RANGE 10 SLIDE 10] BY k SUM(v) of partials
    └─ Project k, v                                          └─ Scan s~4be0…
       └─ Select v > 1
          └─ Scan s                                          and, where s is read: Partial, page by page

A row of the partial stream stands for the tuples of one page, pane and group. Its columns are the time, if the
aggregate reads one, the group columns, and the partial results. Its timestamp is the least among the page's tuples of
the pane (or of the pane and group): it lies in the same windows as they do, it breaks no promise on time that they
keep, and it comes in order if they do. The punctuation is that of the stream as far as it restricts time and group
columns alone: nothing else closes a group. So both ends together put out what the aggregate puts out by itself; only
sums of fractions may differ in the last digits, since they are added in another order.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import polars as pl

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.expression import Column
from millstream.algebra.identity import digest
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import NEVER, TS, Attribute, Schema
from millstream.algebra.values import value
from millstream.logical.nodes.kinds.grouped import Grouped
from millstream.logical.nodes.project import Project
from millstream.logical.nodes.scan import Scan
from millstream.logical.plan import Plan
from millstream.optimizer.context import bottom_up
from millstream.physical.plan.operators import build_pipeline, fused
from millstream.physical.plan.placeholders import reads_a_stream
from millstream.runtime.aggregate.bucket import drop_idle_bounds, window_ids
from millstream.runtime.aggregate.pane_fold import PaneFold
from millstream.runtime.operator.contract import Input
from millstream.runtime.pipeline.pipeline import Pipeline


@value("partial")
@dataclass(frozen=True)
class Partial:
    """What a source does with its tuples: `input` is a scan under selections and projections, `pane` how long a pane
    is, `gaps` the range and slide of windows that leave some times out. A plain value; what it runs is made when it is
    first needed, in the process that needs it."""

    input: Plan
    pane: int
    group: tuple[str, ...]
    aggregates: tuple[AggregateCall, ...]
    gaps: tuple[int, int] | None = None

    @cached_property
    def schema(self) -> Schema:
        """The schema of the partial stream."""
        source = self.input.schema
        time = (Attribute(source.time, source.type_of(source.time)),) if source.time is not None else ()
        groups = tuple(Attribute(name, source.type_of(name)) for name in self.group)
        return source.with_attributes((*time, *groups, *(part for call in self.aggregates for part in call.partials)))

    @property
    def columns(self) -> frozenset[str]:
        """The columns of the stream that it reads, with its time."""
        *_, scan = self._chain
        condition, items = fused(self._chain[:-1])
        read = set() if condition is None else condition.columns()
        read.update(*(item.columns() for _, item in items))
        return frozenset(read | {scan.schema.time or TS}) - {TS}

    def rows(self, page: pl.DataFrame) -> pl.DataFrame:
        """The partial results of a page of the stream, which has at least `columns` and the hidden timestamp."""
        pipeline, fold = self._steps
        kept = pipeline.process([Input(page)]).rows if page.height else None
        if kept is not None and self.gaps is not None:
            first, last = window_ids(pl.col(TS), *self.gaps)
            kept = kept.filter(first <= last)
        if kept is None or not kept.height:
            return self.schema.empty()
        made = fold(kept)
        if self.schema.time is not None:
            time = made.get_column(TS).cast(self.schema.type_of(self.schema.time).polars)
            made = made.with_columns(time.alias(self.schema.time))
        return made.select(*self.schema.names, TS)

    def pass_on(self, punctuations: Punctuations) -> Punctuations:
        """The punctuation of the partial stream that follows from that of the stream. Bounds on time that complete no
        pane beyond what an earlier one of the batch completes are left out: no aggregate acts on them."""
        for stage in self._steps[0].stages[:-1]:
            punctuations = stage.pass_on(punctuations)
        time = self.schema.time
        known = (*self.group, *([time] if time is not None else []))
        punctuations = punctuations.select({name: name for name in known})
        if time is None or len(punctuations) < 2:
            return punctuations
        return drop_idle_bounds(punctuations, time, self.pane, NEVER).punctuations

    @property
    def _chain(self) -> list[Plan]:
        """What is carried out, the topmost first: at the top a projection to what is aggregated, the scan at last."""
        source = self.input.schema
        arguments = [call.argument for call in self.aggregates if call.argument is not None]
        needed = dict.fromkeys((*self.group, *arguments))
        chain: list[Plan] = [Project(self.input, tuple((name, Column(source.type_of(name), name)) for name in needed))]
        while chain[-1].inputs:
            chain += chain[-1].inputs
        return chain

    @cached_property
    def _steps(self) -> tuple[Pipeline, PaneFold]:
        reductions = [made for call in self.aggregates for made in call.reductions()]
        fold = PaneFold(pl.col(TS), self.pane, self.group, reductions, TS, least=True)
        return build_pipeline(self._chain[:-1]), fold

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, slots=True)
class PartialSplit:
    """`plan` reads the partial stream where the whole plan read `stream`."""

    stream: str
    partial: Partial
    plan: Plan

    @property
    def partial_stream(self) -> str:
        return _name(self.stream, self.partial)


def split_aggregate(plan: Plan) -> PartialSplit | None:
    """The plan parted at its first aggregate that can be parted, or None. What is left of the plan may have another.

    An aggregate can be parted if it reads a stream through nothing but selections and projections, its windows are over
    the stream's time, and its functions are mergeable. A function that has to see all values of a group at once (COUNT
    of distinct ones, a median) is not, nor is one that depends on their order (the first, the last).

    Not parted although it could be: windows over another column and groups without windows, which are stamped with
    their newest tuple and close by punctuation, so that there is no telling how long they stay; groups by the time
    itself, or panes so short, that hardly two tuples would share a partial result; and columns that would have the same
    name in the partial stream.
    """
    for node in plan.walk():
        if isinstance(node, Grouped) and (partial := _partial(node)) is not None:
            return _parted(plan, node, partial)
    return None


def _partial(node: Grouped) -> Partial | None:
    """What sources can do for an aggregate, if it can be parted."""
    if node.panes is None or not reads_a_stream(node.input) or node.input.schema.time in node.group:
        return None
    pane, gaps = node.panes
    made = Partial(node.input, pane, node.group, node.aggregates, gaps)
    names = made.schema.names
    mergeable = all(call.mergeable for call in node.aggregates)
    return made if mergeable and len(set(names)) == len(names) else None


def _parted(plan: Plan, node: Grouped, partial: Partial) -> PartialSplit:
    scan = next(partial.input.walk())
    assert isinstance(scan, Scan)
    merging = node.altered(input=Scan(_name(scan.stream, partial), partial.schema), partials=True)
    rewritten = bottom_up(plan, lambda part: merging if part == node else part)
    return PartialSplit(scan.stream, partial, rewritten)


def _name(stream: str, partial: Partial) -> str:
    return f"{stream}~{digest(partial)[:10]}"
