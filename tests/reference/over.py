"""Running aggregates, one tuple and one expiry at a time."""

from __future__ import annotations

from typing import Any

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.schema import TS
from millstream.logical.nodes.over import Over
from tests.reference.aggregate import apply

Row = dict[str, Any]
Rows = list[tuple[Row, int]]


def over(plan: Over, rows: Rows) -> Rows:
    """All results; the end of the stream ends the last slot, and every tuple leaves an active frame."""
    frame = plan.frame
    windows: dict[tuple[Any, ...], Rows] = {}
    counts: dict[tuple[Any, ...], int] = {}
    found: Rows = []
    slots: dict[tuple[Any, ...], tuple[Row, int]] = {}
    for kind, ts, row in events(plan, rows):
        key = tuple(row[name] for name in plan.partition)
        window = windows.setdefault(key, [])
        if kind == "expiry":
            window[:] = [(held, time) for held, time in window if held is not row]
            if window:
                shifted = row | ({plan.schema.time: row[plan.schema.time] + frame.size} if plan.schema.time else {})
                found.append((shifted | results(plan, window), ts))
            continue
        window.append((row, ts))
        counts[key] = counts.get(key, 0) + 1
        if frame.size is not None:
            inside = (
                window[-frame.size - 1 :] if frame.rows else [held for held in window if held[1] >= ts - frame.size]
            )
            window[:] = inside
        made = row | results(plan, window), ts
        if frame.slots is not None:
            slots[*key, frame.slots.following(ts)] = made
        elif frame.slide is None or counts[key] % frame.slide == 0:
            found.append(made)
    return found + sorted(slots.values(), key=lambda pair: pair[1])


def events(plan: Over, rows: Rows) -> list[tuple[str, int, Row]]:
    """Tuples in the order of time, and for an active frame their expiries, after the tuples of the same time."""
    made = [("tuple", ts, dict(row)) for row, ts in rows]
    if plan.frame.active:
        assert plan.frame.size is not None
        made += [("expiry", ts + plan.frame.size, row) for _, ts, row in made]
    return sorted(made, key=lambda event: (event[1], event[0] == "expiry"))


def results(plan: Over, window: Rows) -> Row:
    members = [row | {TS: ts} for row, ts in window]
    return {call.name: lag(call, members) if call.function == "LAG" else apply(call, members) for call in plan.calls}


def lag(call: AggregateCall, members: list[Row]) -> Any:
    (offset,) = call.parameters
    return members[0][call.argument] if len(members) > offset else None
