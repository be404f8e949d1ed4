"""Plans evaluated tuple at a time over whole, finite streams: what a plan means, without any operator.

A relation is a list of `(row, timestamp)` in order of arrival. The end of the streams closes every window and group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from millstream.algebra.aggregate.row_call import RowCall
from millstream.algebra.early import COMPLETE, ESTIMATES, REVISION
from millstream.algebra.schema import NEVER
from millstream.algebra.types import micros
from millstream.logical.nodes.assess import Assess
from millstream.logical.nodes.closing import Closing
from millstream.logical.nodes.denoise import Denoise
from millstream.logical.nodes.distinct import Distinct
from millstream.logical.nodes.divert import Divert
from millstream.logical.nodes.expensive import Expensive
from millstream.logical.nodes.instrument import Instrument
from millstream.logical.nodes.limit import Limit
from millstream.logical.nodes.pace import Pace
from millstream.logical.nodes.project import Project
from millstream.logical.nodes.revise import Revise
from millstream.logical.nodes.scan import Scan
from millstream.logical.nodes.select import Select
from millstream.logical.nodes.table_join import TableJoin
from millstream.logical.nodes.time_punctuation import TimePunctuation
from millstream.logical.nodes.union import Union
from millstream.logical.nodes.written_join import WrittenJoin
from millstream.logical.plan import Plan
from millstream.physical.plan.exchange import Gather
from tests.reference.meaning.aggregates import pane_aggregate, window_aggregate
from tests.reference.meaning.expression import value
from tests.reference.meaning.joins import (
    join,
    key_join,
    multi_join,
    outer_join,
    sequence,
    table_join,
    written_join,
    written_table,
)
from tests.reference.meaning.relation import Row, Rows, by_time
from tests.reference.over import over
from tests.reference.row_over import row_over
from tests.reference.written_table import History


def run(
    plan: Plan,
    streams: Mapping[str, Rows],
    tables: Mapping[str, list[Row]],
    histories: Mapping[str, History] = MappingProxyType({}),
) -> Rows:
    """All results of the plan. `tables`: the rows of static tables, and those of others before the first write;
    `histories`: the rows of tables that streams write."""
    if isinstance(plan, Scan):
        return streams[plan.stream]
    if isinstance(plan, WrittenJoin):
        stream = run(plan.input, streams, tables, histories)
        return written_join(plan, stream, histories[plan.table], tables.get(plan.table, []))
    inputs = [run(part, streams, tables, histories) for part in plan.inputs]
    return (
        table_join(plan, *inputs, tables[plan.table])
        if isinstance(plan, TableJoin)
        else MEANT[plan.stem](plan, *inputs)
    )


def select(plan: Select, rows: Rows) -> Rows:
    return [(row, ts) for row, ts in rows if value(plan.predicate, row, ts) is True]


def divert(plan: Divert, rows: Rows) -> Rows:
    return [(row, ts) for row, ts in rows if (value(plan.fails, row, ts) is True) is not plan.kept]


def project(plan: Project, rows: Rows) -> Rows:
    return [({name: value(e, row, ts) for name, e in plan.items}, ts) for row, ts in rows]


def union(plan: Union | Gather, *members: Rows) -> Rows:
    names = plan.schema.names
    return by_time([(dict(zip(names, row.values(), strict=True)), ts) for member in members for row, ts in member])


def pace(plan: Pace, *members: Rows) -> Rows:
    """The members arrive one after the other."""
    names, highest = plan.schema.names, NEVER
    found: Rows = []
    for row, _ in [pair for member in members for pair in member]:
        made = dict(zip(names, row.values(), strict=True))
        if (own := made[plan.column]) is None:
            continue
        ts = own if isinstance(own, int) else micros(own)
        highest = max(highest, ts)
        if ts >= highest - plan.tolerance:
            found.append((made, ts))
    return found


def instrument(plan: Instrument, rows: Rows) -> Rows:
    """Once, at the start: it ignores what it disclaims. Later feedback depends on the batches."""
    return [(row, ts) for row, ts in rows if not (plan.stands and plan.pattern.matches(row))]


def limit(plan: Limit, rows: Rows) -> Rows:
    return rows[: plan.count]


def distinct(plan: Distinct, rows: Rows) -> Rows:
    seen: dict[tuple[Any, ...], tuple[Row, int]] = {}
    for row, ts in by_time(rows):
        seen.setdefault(tuple(row.values()), (row, ts))
    return list(seen.values())


def denoise(plan: Denoise, rows: Rows) -> Rows:
    """In the order of time; a tuple is no noise if a window that ends at a tuple of its key, and holds it, is full."""
    keys = [tuple(row[name] for name in plan.key) for row, _ in rows]
    times = [ts for _, ts in rows]

    def full(key: tuple[Any, ...], end: int) -> bool:
        members = [ts for other, ts in zip(keys, times, strict=True) if other == key and end - plan.range <= ts <= end]
        return len(members) >= plan.threshold

    found: Rows = []
    for key, (row, ts) in zip(keys, rows, strict=True):
        ends = [end for other, end in zip(keys, times, strict=True) if other == key and ts <= end <= ts + plan.range]
        if any(full(key, end) for end in ends):
            found.append((row, ts))
    return by_time(found)


def expensive(plan: Expensive, rows: Rows) -> Rows:
    """In the end, whatever the budget; `tests/reference/expensive.py` has the order of the work."""
    return [({**row, plan.name: value(plan.expression, row, ts)}, ts) for row, ts in rows]


def closing(plan: Closing, rows: Rows, closings: Rows) -> Rows:
    """In the order of time; a tuple goes before a closing of the same time."""
    closed: dict[tuple[Any, ...], int] = {}
    for row, ts in by_time(closings):
        closed.setdefault(tuple(row[other] for _, other in plan.keys), ts)
    keys = [tuple(row[own] for own, _ in plan.keys) for row, _ in rows]
    late = [None not in key and key in closed and closed[key] < ts for key, (_, ts) in zip(keys, rows, strict=True)]
    return [pair for pair, after in zip(rows, late, strict=True) if after == plan.only_late]


def unchanged(plan: Plan, rows: Rows) -> Rows:
    """What goes to other shards, or would stand for them: with one shard there are none."""
    return rows


def time_punctuation(plan: TimePunctuation, rows: Rows) -> Rows:
    return [({**row, plan.copy: row[plan.column]}, ts) for row, ts in rows]


def by_row(plan: Any) -> bool:
    return any(isinstance(call, RowCall) for call in plan.calls)


def revise(plan: Revise, rows: Rows) -> Rows:
    """Without prods every row is the first answer for its window and group."""
    assert len({tuple(row[key] for key in plan.keys) for row, _ in rows}) == len(rows)
    return [({**row, REVISION: 1}, ts) for row, ts in rows]


def assess(plan: Assess, rows: Rows) -> Rows:
    """Without prods every row is final, and is its own estimate."""
    if not plan.estimates:
        return rows
    known = [(row, None if row[plan.value] is None else float(row[plan.value]), ts) for row, ts in rows]
    return [({**row, **dict.fromkeys(ESTIMATES[:3], value), COMPLETE: 1.0}, ts) for row, value, ts in known]


MEANT: dict[str, Callable[..., Rows]] = {
    "assess": assess,
    "prodder": unchanged,
    "time_punctuation": time_punctuation,
    "revise": revise,
    "select": select,
    "divert": divert,
    "project": project,
    "impatient_join": join,
    "instrument": instrument,
    "limit": limit,
    "pace": pace,
    "thrifty_join": join,
    "union": union,
    "gather": union,
    "consensus": unchanged,
    "exchange": unchanged,
    "placeholders": unchanged,
    "distinct": distinct,
    "denoise": denoise,
    "expensive": expensive,
    "closing": closing,
    "window_join": join,
    "outer_join": outer_join,
    "key_join": key_join,
    "multi_join": multi_join,
    "table_join": table_join,
    "table_write": unchanged,
    "written_table": written_table,
    "written_join": written_join,
    "sequence": sequence,
    "window_aggregate": window_aggregate,
    "pane_aggregate": pane_aggregate,
    "over": lambda plan, rows: row_over(plan, rows) if by_row(plan) else over(plan, rows),
}
"""What each node means, by its stem, given the rows of its inputs; a scan has those of its stream."""
