"""Partial aggregation: sources aggregate their tuples before these are sent to shards, and shards merge.

    WindowAggregate [RANGE 10 SLIDE 10] BY k SUM(v)      →   WindowAggregate [RANGE 10 SLIDE 10] BY k SUM(v) of partials
    └─ Project k, v                                          └─ Scan s~4be0…
       └─ Select v > 1
          └─ Scan s                                          and, where s is read: Partial, page by page

A row of the partial stream represents the tuples of one page, pane and group. Its columns are the time, if the
aggregate reads one, the group columns, and the partial results. Its timestamp is the least among the page's tuples of
the pane (or of the pane and group): it lies in the same windows as they do, it breaks no promise on time that they
keep, and it is in order if they are. The partial stream has those punctuations of the stream that restrict time and
group columns alone: no others close a group. So both ends together emit what the aggregate emits by itself; only sums
of fractions may differ in the last digits, since they are added in another order.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import polars as pl

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.expression import Column
from millstream.algebra.identity import digest
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import NEVER, TS, Attribute, Schema
from millstream.algebra.values import value
from millstream.algebra.windower import Windower
from millstream.logical import two_levels
from millstream.logical.fused import fused
from millstream.logical.nodes.kinds.grouped import Grouped
from millstream.logical.nodes.project import Project
from millstream.logical.nodes.scan import Scan
from millstream.logical.plan import Plan
from millstream.optimizer.context import bottom_up
from millstream.physical.plan.operators import build_pipeline
from millstream.physical.plan.placeholders import reads_a_stream
from millstream.runtime.aggregate.bucket import drop_idle_bounds
from millstream.runtime.aggregate.pane_fold import PaneFold
from millstream.runtime.operator.contract import Input
from millstream.runtime.pipeline.pipeline import Pipeline


@value("partial")
@dataclass(frozen=True)
class Partial:
    """A partial aggregation at a source: `input` is a scan under selections and projections, `gaps` are windows that
    leave some times out. A plain value; its operators are built when
    they are first needed, in the process that needs them."""

    input: Plan
    panes: Windower
    group: tuple[str, ...]
    aggregates: tuple[AggregateCall, ...]
    gaps: Windower | None = None

    @cached_property
    def schema(self) -> Schema:
        """The schema of the partial stream."""
        source = self.input.schema
        time = (Attribute(source.time, source.type_of(source.time)),) if source.time is not None else ()
        groups = tuple(Attribute(name, source.type_of(name)) for name in self.group)
        return source.with_attributes((*time, *groups, *(part for call in self.aggregates for part in call.partials)))

    @property
    def columns(self) -> frozenset[str]:
        """The columns that it reads, with the time of the stream."""
        *_, scan = self._chain
        condition, items = fused(self._chain[:-1])
        read = set() if condition is None else condition.columns()
        read.update(*(item.columns() for _, item in items))
        return frozenset(read | {scan.schema.time or TS}) - {TS}

    def rows(self, page: pl.DataFrame) -> pl.DataFrame:
        """Return the partial results of a page of the stream, which has at least `columns` and the hidden timestamp."""
        pipeline, fold = self._steps
        kept = pipeline.process([Input(page)]).rows if page.height else None
        if kept is not None and self.gaps is not None:
            kept = kept.filter(self.gaps.holds(pl.col(TS)))
        if kept is None or not kept.height:
            return self.schema.empty()
        made = fold(kept)
        if self.schema.time is not None:
            time = made.get_column(TS).cast(self.schema.type_of(self.schema.time).polars)
            made = made.with_columns(time.alias(self.schema.time))
        return made.select(*self.schema.names, TS)

    def pass_on(self, punctuations: Punctuations) -> Punctuations:
        """Return the punctuation of the partial stream that follows from that of the stream. It leaves out bounds on
        time that complete no pane beyond those of an earlier bound of the batch: no aggregate acts on them."""
        for stage in self._steps[0].stages[:-1]:
            punctuations = stage.pass_on(punctuations)
        time = self.schema.time
        known = (*self.group, *([time] if time is not None else []))
        punctuations = punctuations.select({name: name for name in known})
        if time is None or len(punctuations) < 2:
            return punctuations
        return drop_idle_bounds(punctuations, time, self.panes, NEVER).punctuations

    @property
    def _chain(self) -> list[Plan]:
        """The plan nodes, topmost first: a projection to the columns that are aggregated, the input, the scan last."""
        source = self.input.schema
        needed = dict.fromkeys((*self.group, *(name for call in self.aggregates for name in call.columns)))
        chain: list[Plan] = [Project(self.input, tuple((name, Column(source.type_of(name), name)) for name in needed))]
        while chain[-1].inputs:
            chain += chain[-1].inputs
        return chain

    @cached_property
    def _steps(self) -> tuple[Pipeline, PaneFold]:
        reductions = [made for call in self.aggregates for made in call.reductions()]
        fold = PaneFold(pl.col(TS), self.panes, self.group, reductions, TS, least=True)
        return build_pipeline(self._chain[:-1]), fold

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, slots=True)
class PartialSplit:
    """`plan` reads `partial_stream` where the original plan read `stream`."""

    stream: str
    partial_stream: str
    partial: Partial
    plan: Plan


def split_aggregate(plan: Plan) -> PartialSplit | None:
    """Split a plan at its first aggregate that can be split, or return None. The new plan may have another one.

    An aggregate can be split if it reads a stream through nothing but selections and projections, two levels pay
    (`logical/two_levels.py`), and no two columns would have the same name in the partial stream. A function that
    needs all values of a group at once (COUNT of distinct values, a median) is not mergeable, nor is one that depends
    on their order (the first, the last): shards compute these.
    """
    aggregates = [node for node in plan.walk() if isinstance(node, Grouped)]
    found = next(((node, made) for node in aggregates if (made := _partial(node)) is not None), None)
    if found is None:
        return None
    aggregate, partial = found
    scan = next(partial.input.walk())
    assert isinstance(scan, Scan)
    name = str(replace(scan.id, partial=digest(partial)[:10]))
    merging = aggregate.altered(input=Scan(name, partial.schema), partials=True)
    return PartialSplit(scan.stream, name, partial, bottom_up(plan, lambda p: merging if p == aggregate else p))


def _partial(node: Grouped) -> Partial | None:
    """The partial aggregation for an aggregate; None if it cannot be split."""
    panes = two_levels.of_sources(node) if reads_a_stream(node.input) else None
    if panes is None or node.windows is None:
        return None
    gaps = node.windows if node.windows.gaps else None
    made = Partial(node.input, panes, node.group, node.aggregates, gaps)
    names = made.schema.names
    return made if len(set(names)) == len(names) else None
