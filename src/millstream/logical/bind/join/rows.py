"""ROWS windows in a join of three streams or more.

Such a window counts the tuples of its stream, and a part of a result must be in it when the newest part arrives. The
result of a binary join does not carry that count, so in a tree of joins only the stream that joins last may have such a
window. A MultiJoin counts the tuples of each stream, if all streams are joined on a common column.

A tree whose lower joins process on arrival emits results out of timestamp order, and which tuples are the last n would
depend on arrival. A MultiJoin, which counts in timestamp order, replaces such a tree too where it can.
"""

from __future__ import annotations

from collections.abc import Sequence

from millstream.algebra.expression import Expression
from millstream.algebra.names import equal_classes
from millstream.algebra.window import UNBOUNDED, Window
from millstream.errors import PlanError
from millstream.logical.bind.join.conjunct_sets import aliases, split_keys
from millstream.logical.bind.join.outer import OUTER
from millstream.logical.bind.scope import Entry
from millstream.logical.join.graph import JoinGraph, JoinInput
from millstream.logical.join.multi_join import multi_join
from millstream.logical.nodes.kinds.windowed import TwoWindowed, in_time
from millstream.logical.nodes.multi_join import MultiJoin
from millstream.logical.nodes.outer_join import OuterJoin
from millstream.logical.nodes.scan import Scan


def in_turn(entries: tuple[Entry, ...], windows: Sequence[Window]) -> tuple[Entry, ...]:
    """Return the entries of FROM in join order, given the windows of its streams. If a window counts rows, tables come
    last: it counts tuples of the stream, not results of a table join."""
    outer = any(entry.written.kind in OUTER for entry in entries if entry.plan is not None)
    if outer or not any(window.rows for window in windows):
        return entries
    return tuple(sorted(entries, key=lambda entry: entry.plan is None))


def needs_multi_join(streams: Sequence[Entry], windows: Sequence[Window]) -> bool:
    """True if these streams must be joined by one MultiJoin because a window counts rows."""
    counting = [window.rows is not None for window in windows]
    if len(streams) < 3 or not any(counting) or any(entry.written.kind in OUTER for entry in streams):
        return False
    ordered = in_time((entry.schema for entry in streams), windows)
    return any(counting[:-1]) or (ordered and list(windows).count(UNBOUNDED) > 1)


def counting_multi_join(
    streams: Sequence[Entry], windows: Sequence[Window], found: Sequence[Expression]
) -> MultiJoin | None:
    """Return the join of all streams, given the conditions that connect them; None without a common column."""
    pairs: list[tuple[str, str]] = []
    conditions: list[Expression] = []
    for conjunct in found:
        one, *others = sorted(aliases(conjunct))
        placed = split_keys([conjunct], frozenset({one}), frozenset(others))
        pairs += placed.keys
        conditions += placed.residual
    inputs = []
    for entry, window in zip(streams, windows, strict=True):
        assert entry.plan is not None
        inputs.append(JoinInput(entry.plan, entry.alias, window))
    graph = JoinGraph(tuple(inputs), equal_classes(pairs), ())
    members = range(len(inputs))
    if not any({graph.owner[name] for name in names} == set(members) for names in graph.equal):
        return None
    join = multi_join(graph, members, conditions)
    check_counting(join, streams, windows)
    return join


def check_counting(join: TwoWindowed | MultiJoin, streams: Sequence[Entry], windows: Sequence[Window]) -> None:
    """Refuse a join without any possible result: all parts but the newest must be stored. Refuse a join on arrival that
    counts rows of a stream it reads twice: which side gets a tuple first would depend on how the input is cut."""
    empty = [entry for entry, window in zip(streams[-len(windows) :], windows, strict=True) if window.rows == 0]
    if len(empty) > 1 and not isinstance(join, OuterJoin):
        names = " and ".join(f"'{entry.alias}'" for entry in empty)
        hint = "give all of them but one a window that keeps tuples; beside OVER a stream without a window keeps none"
        raise empty[1].fail("M3008", f"{names} keep no tuples, so there can be no result", hint)
    if join.merges or all(window.rows is None for window in windows):
        return
    read: set[str] = set()
    for part in join.inputs:
        scanned = {scan.stream for scan in part.walk() if isinstance(scan, Scan)}
        if twice := sorted(scanned & read):
            message = f"a ROWS window in a join of '{twice[0]}' with itself needs its tuples in timestamp order"
            hint = f"declare ORDER BY on '{twice[0]}', with WATERMARK FOR if they come in any order; or a RANGE window"
            raise streams[-1].fail("M3008", message, hint)
        read |= scanned


def uncountable(entry: Entry, streams: Sequence[Entry], *, alone: bool) -> PlanError:
    """Return the error that a tree of joins cannot count a stream's tuples; `alone`: no other stream has a ROWS
    window."""
    if any(other.written.kind in OUTER for other in streams):
        message = f"a ROWS window on '{entry.alias}' beside an outer join of three streams is not available yet"
        return entry.fail("M3008", message, "give it a RANGE window")
    other_way = f", or put '{entry.alias}' last in FROM" if alone else ""
    message = f"a ROWS window on '{entry.alias}' needs a column that all streams are joined on"
    return entry.fail("M3008", message, f"join all streams of FROM on one column{other_way}")
