"""What aggregates mean, tuple at a time over whole streams. The end of a stream closes every window and group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.early import FINAL, FINALITY
from millstream.algebra.schema import TS
from millstream.algebra.window import PANE_END, WINDOW_END, WINDOW_START
from millstream.algebra.windower import Hopping
from millstream.logical.nodes.pane_aggregate import PaneAggregate
from millstream.logical.nodes.window_aggregate import WindowAggregate
from tests.reference.aggregate import apply
from tests.reference.meaning.relation import Row, Rows


def window_aggregate(plan: WindowAggregate, rows: Rows) -> Rows:
    groups: dict[tuple[Any, ...], list[tuple[Row, int]]] = {}
    for row, ts in rows:
        key = tuple(row[name] for name in plan.group)
        for end in ends(plan, ts):
            groups.setdefault((end, *key), []).append((row, ts))
    found: Rows = []
    for (end, *key), members in groups.items():
        made: Row = {} if end is None else {WINDOW_START: end - lengths(plan)[0], WINDOW_END: end}
        made |= dict(zip(plan.group, key, strict=True))
        inside = [row | {TS: ts} for row, ts in members]
        made |= {call.name: (merged if plan.over_panes else apply)(call, inside) for call in plan.aggregates}
        made |= {FINALITY: FINAL} if plan.finality else {}
        found.append((made, max(ts for _, ts in members) if end is None else end - 1))
    return found


def ends(plan: WindowAggregate, time: int) -> list[int | None]:
    if plan.windows is None:
        return [None]
    range_, slide = lengths(plan)
    first = (time // slide + 1) * slide
    return [end for end in range(first, time + range_ + 1, slide) if end - range_ <= time < end]


def lengths(plan: WindowAggregate | PaneAggregate) -> tuple[int, int]:
    """Range and slide."""
    assert isinstance(plan.windows, Hopping)
    return plan.windows.range, plan.windows.slide


def pane_aggregate(plan: PaneAggregate, rows: Rows) -> Rows:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row, ts in rows:
        end = (ts // lengths(plan)[0] + 1) * lengths(plan)[0]
        groups.setdefault((end, *(row[name] for name in plan.group)), []).append(row | {TS: ts})
    found: Rows = []
    for (end, *key), members in groups.items():
        made = {PANE_END: end} | dict(zip(plan.group, key, strict=True))
        for call in plan.aggregates:
            if call.function == "AVG":
                values = non_null(members, call.argument)
                made |= {f"{call.name}__sum": sum(values) if values else None, f"{call.name}__count": len(values)}
                made |= {f"{call.name}__high": sum(value >> 32 for value in values)} if call.of else {}
            else:
                made[call.name] = apply(call, members)
        found.append((made, end - 1))
    return found


def non_null(rows: list[Row], name: str | None) -> list[Any]:
    return [row[name] for row in rows if name is None or row[name] is not None] if name else [1] * len(rows)


def merged(call: AggregateCall, panes: list[Row]) -> Any:
    if call.function == "AVG":
        count = sum(pane[f"{call.name}__count"] for pane in panes)
        total = sum(pane[f"{call.name}__sum"] or 0 for pane in panes)
        return total / count if count else None
    values = [pane[call.name] for pane in panes if pane[call.name] is not None]
    if call.function == "COUNT":
        return sum(values)
    merge: dict[str, Callable[[list[Any]], Any]] = {"SUM": sum, "MIN": min, "MAX": max}
    return merge[call.function](values) if values else None
