"""Plans evaluated tuple at a time over whole, finite streams: what a plan means, without any operator.

A relation is a list of `(row, timestamp)` in order of arrival. The end of the streams closes every window and group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product
from types import MappingProxyType
from typing import Any

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.aggregate.row_call import RowCall
from millstream.algebra.early import FINAL, FINALITY, REVISION
from millstream.algebra.expression import Binary, Call, Case, Cast, Column, Expression, InList, Literal, Unary
from millstream.algebra.schema import NEVER, TS
from millstream.algebra.types import Type, micros
from millstream.algebra.window import PANE_END, WINDOW_END, WINDOW_START, Window
from millstream.logical.nodes.closing import Closing
from millstream.logical.nodes.denoise import Denoise
from millstream.logical.nodes.distinct import Distinct
from millstream.logical.nodes.divert import Divert
from millstream.logical.nodes.expensive import Expensive
from millstream.logical.nodes.impatient_join import ImpatientJoin
from millstream.logical.nodes.instrument import Instrument
from millstream.logical.nodes.key_join import KeyJoin
from millstream.logical.nodes.limit import Limit
from millstream.logical.nodes.multi_join import MultiJoin
from millstream.logical.nodes.outer_join import OuterJoin
from millstream.logical.nodes.pace import Pace
from millstream.logical.nodes.pane_aggregate import PaneAggregate
from millstream.logical.nodes.project import Project
from millstream.logical.nodes.revise import Revise
from millstream.logical.nodes.scan import Scan
from millstream.logical.nodes.select import Select
from millstream.logical.nodes.sequence import Sequence
from millstream.logical.nodes.table_join import TableJoin
from millstream.logical.nodes.table_write import TableWrite
from millstream.logical.nodes.thrifty_join import ThriftyJoin
from millstream.logical.nodes.union import Union
from millstream.logical.nodes.window_aggregate import WindowAggregate
from millstream.logical.nodes.window_join import WindowJoin
from millstream.logical.nodes.written_join import WrittenJoin
from millstream.logical.nodes.written_table import WrittenTable
from millstream.logical.plan import Plan
from millstream.physical.plan.exchange import Gather
from tests.reference.aggregate import apply
from tests.reference.over import over
from tests.reference.row_over import row_over
from tests.reference.written_table import History, as_of, written

Row = dict[str, Any]
Rows = list[tuple[Row, int]]


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


def by_time(rows: Rows) -> Rows:
    return sorted(rows, key=lambda pair: pair[1])


def named(row: Row, prefix: str | None) -> Row:
    return {f"{prefix}.{name}" if prefix else name: v for name, v in row.items()}


def keys_equal(keys: tuple[tuple[str, str], ...], left: Row, right: Row) -> bool:
    return all(left[a] is not None and left[a] == right[b] for a, b in keys)


def holds(residual: Expression | None, row: Row, ts: int) -> bool:
    return residual is None or value(residual, row, ts) is True


# --- joins ------------------------------------------------------------------------------------------------------------


def join(plan: WindowJoin | ThriftyJoin | ImpatientJoin | OuterJoin, left: Rows, right: Rows) -> Rows:
    events = sorted([(ts, 0, row) for row, ts in left] + [(ts, 1, row) for row, ts in right], key=lambda e: e[:2])
    held: tuple[Rows, Rows] = ([], [])
    windows = plan.left_window, plan.right_window
    found: Rows = []
    for ts, side, row in events:
        for other, _ in visible(held[1 - side], windows[1 - side], ts):
            a, b = (row, other) if side == 0 else (other, row)
            made = named(a, plan.left_prefix) | named(b, plan.right_prefix)
            if keys_equal(plan.keys, a, b) and holds(plan.residual, made, ts):
                found.append((made, ts))
        held[side].append((row, ts))
    return found


def outer_join(plan: OuterJoin, left: Rows, right: Rows) -> Rows:
    """The join of rows that are numbered, and the rows whose number is in no pair."""
    number = "#"
    sides = [[(row | {number: place}, ts) for place, (row, ts) in enumerate(rows)] for rows in (left, right)]
    prefixes = plan.left_prefix or "#left", plan.right_prefix or "#right"
    marked = replace(plan, left_prefix=prefixes[0], right_prefix=prefixes[1], residual=None)
    found: Rows = []
    used: list[set[int]] = [set(), set()]
    for made, ts in join(marked, *sides):
        result = {_unmarked(name): value for name, value in made.items() if not name.endswith(f".{number}")}
        if holds(plan.residual, result, ts):
            found.append((result, ts))
            for side, prefix in enumerate(prefixes):
                used[side].add(made[f"{prefix}.{number}"])
    for side, rows in enumerate((left, right)):
        schemas, own = (plan.left.schema, plan.right.schema), (plan.left_prefix, plan.right_prefix)
        nothing = named(dict.fromkeys(schemas[1 - side].names), own[1 - side])
        if plan.preserved[side]:
            found += [(named(row, own[side]) | nothing, ts) for p, (row, ts) in enumerate(rows) if p not in used[side]]
    return [({name: made[name] for name in plan.schema.names}, ts) for made, ts in found]


def _unmarked(name: str) -> str:
    return name.removeprefix("#left.").removeprefix("#right.")


def multi_join(plan: MultiJoin, *members: Rows) -> Rows:
    events = sorted(
        [(ts, side, row) for side, member in enumerate(members) for row, ts in member], key=lambda event: event[:2]
    )
    held: list[Rows] = [[] for _ in members]
    found: Rows = []
    for ts, side, row in events:
        others = [[(row, ts)] if j == side else visible(held[j], w, ts) for j, w in enumerate(plan.windows)]
        for parts in product(*others):
            keys = [tuple(part[k] for k in own) for (part, _), own in zip(parts, plan.keys, strict=True)]
            if None in keys[0] or any(own != keys[0] for own in keys):
                continue
            made: Row = {}
            for (part, _), prefix in zip(parts, plan.prefixes, strict=True):
                made |= named(part, prefix)
            if holds(plan.residual, made, ts):
                found.append((made, ts))
        held[side].append((row, ts))
    return found


def visible(rows: Rows, window: Window, now: int) -> Rows:
    if window.rows is not None:
        return rows[len(rows) - min(window.rows, len(rows)) :]
    return [(row, ts) for row, ts in rows if window.range is None or now - ts <= window.range]


def table_join(plan: TableJoin, stream: Rows, table: list[Row]) -> Rows:
    found: Rows = []
    for row, ts in stream:
        mine = named(row, plan.stream_prefix)
        made = [
            mine | named(other, plan.table_prefix)
            for other in table
            if keys_equal(plan.keys, row, other) and holds(plan.residual, mine | named(other, plan.table_prefix), ts)
        ]
        if not made and plan.outer:
            made = [mine | named(dict.fromkeys(plan.table_schema.names), plan.table_prefix)]
        found += [(result, ts) for result in made]
    return found


def written_join(plan: WrittenJoin, stream: Rows, history: History, initial: list[Row]) -> Rows:
    """Each tuple with the table as of its time."""
    return [pair for row, ts in by_time(stream) for pair in table_join(plan, [(row, ts)], as_of(history, initial, ts))]


def written_table(plan: WrittenTable, initial: list[Row], *writers: tuple[TableWrite, Rows]) -> Rows:
    """The table after each write."""
    taken = [(write.program, rows) for write, rows in writers]
    return [({plan.table: rows}, ts) for ts, rows in written(plan.table_schema.names, initial, taken)[0]]


def key_join(plan: KeyJoin, left: Rows, right: Rows) -> Rows:
    """By time, the left side first; of the earlier tuples in their window the first comes first."""
    keys, sides = plan.keys, (plan.left_prefix, plan.right_prefix)
    events = sorted([(ts, 0, row) for row, ts in left] + [(ts, 1, row) for row, ts in right], key=lambda e: e[:2])
    windows = plan.left_window, plan.right_window
    held: list[list[tuple[int, Row]]] = [[], []]
    used: list[Row] = []
    found: Rows = []
    for ts, side, row in events:
        window, partners = windows[1 - side], held[1 - side]
        live = partners[max(0, len(partners) - window.rows) :] if window.rows is not None else partners
        for time, partner in live:
            pair = (row, partner) if side == 0 else (partner, row)
            made = named(pair[0], sides[0]) | named(pair[1], sides[1])
            near = window.range is None or ts - time <= window.range
            free = not any(one is other for one in pair for other in used)
            if near and free and keys_equal(keys, *pair) and holds(plan.residual, made, ts):
                found.append((made, ts))
                used += [one for one, once in zip(pair, plan.once, strict=True) if once]
        held[side].append((ts, row))
    return found


def sequence(plan: Sequence, first: Rows, second: Rows) -> Rows:
    """Among equal timestamps the second stream goes first. RECENT keeps the latest first per key."""
    events = sorted([(ts, 1, row) for row, ts in first] + [(ts, 0, row) for row, ts in second], key=lambda e: e[:2])
    held: list[Row] = []
    found: Rows = []
    for ts, is_first, row in events:
        if is_first:
            held.append(row)
            continue
        candidates = [a for a in held if keys_equal(plan.keys, a, row)]
        pairs = [(a, named(a, plan.first_prefix) | named(row, plan.second_prefix)) for a in candidates]
        if plan.mode == "RECENT":
            made_last = [(a, made) for a, made in pairs[-1:] if holds(plan.residual, made, ts)]
            found += [(made, ts) for _, made in made_last]
            if plan.once and made_last:
                held = [a for a in held if not keys_equal(plan.keys, a, row)]
            continue
        eligible = [(a, made) for a, made in pairs if holds(plan.residual, made, ts)]
        if eligible:
            used, made = eligible[0]
            found.append((made, ts))
            held = [a for a in held if a is not used]
    return found


# --- aggregates -------------------------------------------------------------------------------------------------------


def window_aggregate(plan: WindowAggregate, rows: Rows) -> Rows:
    groups: dict[tuple[Any, ...], list[tuple[Row, int]]] = {}
    for row, ts in rows:
        key = tuple(row[name] for name in plan.group)
        for end in ends(plan, ts):
            groups.setdefault((end, *key), []).append((row, ts))
    found: Rows = []
    for (end, *key), members in groups.items():
        made: Row = {} if plan.range is None else {WINDOW_START: end - plan.range, WINDOW_END: end}
        made |= dict(zip(plan.group, key, strict=True))
        inside = [row | {TS: ts} for row, ts in members]
        made |= {call.name: (merged if plan.over_panes else apply)(call, inside) for call in plan.aggregates}
        made |= {FINALITY: FINAL} if plan.finality else {}
        found.append((made, max(ts for _, ts in members) if plan.range is None else end - 1))
    return found


def ends(plan: WindowAggregate, time: int) -> list[int | None]:
    if plan.range is None or plan.slide is None:
        return [None]
    first = (time // plan.slide + 1) * plan.slide
    return [end for end in range(first, time + plan.range + 1, plan.slide) if end - plan.range <= time < end]


def pane_aggregate(plan: PaneAggregate, rows: Rows) -> Rows:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row, ts in rows:
        end = (ts // plan.pane + 1) * plan.pane
        groups.setdefault((end, *(row[name] for name in plan.group)), []).append(row | {TS: ts})
    found: Rows = []
    for (end, *key), members in groups.items():
        made = {PANE_END: end} | dict(zip(plan.group, key, strict=True))
        for call in plan.aggregates:
            if call.function == "AVG":
                values = non_null(members, call.argument)
                made |= {f"{call.name}__sum": sum(values) if values else None, f"{call.name}__count": len(values)}
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


def by_row(plan: Any) -> bool:
    return any(isinstance(call, RowCall) for call in plan.calls)


def revise(plan: Revise, rows: Rows) -> Rows:
    """Without prods every row is the first answer for its window and group."""
    assert len({tuple(row[key] for key in plan.keys) for row, _ in rows}) == len(rows)
    return [({**row, REVISION: 1}, ts) for row, ts in rows]


MEANT: dict[str, Callable[..., Rows]] = {
    "prodder": unchanged,
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

# --- expressions ------------------------------------------------------------------------------------------------------


def value(expression: Expression, row: Row, ts: int) -> Any:
    match expression:
        case Column(name=name):
            return ts if name == TS else row[name]
        case Literal(value=made):
            return made
        case Cast(type=type_, operand=operand):
            return cast(value(operand, row, ts), type_)
        case Unary(op=op, operand=operand):
            return unary(op, value(operand, row, ts))
        case Binary(op=op, left=left, right=right):
            return binary(op, value(left, row, ts), value(right, row, ts))
        case InList(operand=operand, options=options):
            mine, others = value(operand, row, ts), [value(option, row, ts) for option in options]
            if mine is None:
                return None
            return True if mine in others else None if None in others else False
        case Case(branches=branches, otherwise=otherwise):
            for condition, made in branches:
                if value(condition, row, ts) is True:
                    return value(made, row, ts)
            return None if otherwise is None else value(otherwise, row, ts)
        case Call(function="OVERFLOWS"):
            return False  # the values of these plans are small
        case Call(function=function, arguments=arguments):
            return call(function, [value(argument, row, ts) for argument in arguments])
    raise AssertionError(expression)


def cast(made: Any, type_: Type) -> Any:
    if made is None:
        return None
    return {Type.DOUBLE: float, Type.BIGINT: int, Type.INT: int, Type.VARCHAR: str}[type_](made)


def unary(op: str, made: Any) -> Any:
    if op in ("IS NULL", "IS NOT NULL"):
        return (made is None) == (op == "IS NULL")
    if made is None:
        return None
    return -made if op == "-" else not made


def binary(op: str, left: Any, right: Any) -> Any:
    if op == "AND":
        return False if left is False or right is False else None if None in (left, right) else True
    if op == "OR":
        return True if left is True or right is True else None if None in (left, right) else False
    if left is None or right is None:
        return None
    operations: dict[str, Callable[[], Any]] = {
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
        "||": lambda: left + right,
        "=": lambda: left == right,
        "<>": lambda: left != right,
        "<": lambda: left < right,
        "<=": lambda: left <= right,
        ">": lambda: left > right,
        ">=": lambda: left >= right,
    }
    return operations[op]()


def call(function: str, arguments: list[Any]) -> Any:
    if function == "COALESCE":
        return next((argument for argument in arguments if argument is not None), None)
    assert function == "ABS", function
    return None if arguments[0] is None else abs(arguments[0])
