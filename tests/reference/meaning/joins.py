"""What joins and sequences mean, tuple at a time over whole streams."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from millstream.algebra.expression import Expression
from millstream.algebra.window import Window
from millstream.logical.nodes.impatient_join import ImpatientJoin
from millstream.logical.nodes.key_join import KeyJoin
from millstream.logical.nodes.multi_join import MultiJoin
from millstream.logical.nodes.outer_join import OuterJoin
from millstream.logical.nodes.sequence import Sequence
from millstream.logical.nodes.table_join import TableJoin
from millstream.logical.nodes.table_write import TableWrite
from millstream.logical.nodes.thrifty_join import ThriftyJoin
from millstream.logical.nodes.window_join import WindowJoin
from millstream.logical.nodes.written_join import WrittenJoin
from millstream.logical.nodes.written_table import WrittenTable
from tests.reference.meaning.expression import value
from tests.reference.meaning.relation import Row, Rows, by_time
from tests.reference.written_table import History, as_of, written


def named(row: Row, prefix: str | None) -> Row:
    return {f"{prefix}.{name}" if prefix else name: v for name, v in row.items()}


def keys_equal(keys: tuple[tuple[str, str], ...], left: Row, right: Row) -> bool:
    return all(left[a] is not None and left[a] == right[b] for a, b in keys)


def holds(residual: Expression | None, row: Row, ts: int) -> bool:
    return residual is None or value(residual, row, ts) is True


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
    used: tuple[list[Row], list[Row]] = ([], [])  # a row may be a tuple of both sides
    found: Rows = []
    for ts, side, row in events:
        window, partners = windows[1 - side], held[1 - side]
        live = partners[max(0, len(partners) - window.rows) :] if window.rows is not None else partners
        for time, partner in live:
            pair = (row, partner) if side == 0 else (partner, row)
            made = named(pair[0], sides[0]) | named(pair[1], sides[1])
            near = window.range is None or ts - time <= window.range
            free = not any(one is other for one, mine in zip(pair, used, strict=True) for other in mine)
            if near and free and keys_equal(keys, *pair) and holds(plan.residual, made, ts):
                found.append((made, ts))
                for one, mine, once in zip(pair, used, plan.once, strict=True):
                    if once:
                        mine.append(one)
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
