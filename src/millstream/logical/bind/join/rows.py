"""ROWS windows in a join of three streams or more.

Such a window counts the tuples of its stream, and a part of a result is in it or not when the newest part comes. The
result of a join of two tells nothing of that count, so that in a tree of joins only the stream that joins last may have
such a window. One operator for all streams counts each of them, if they are joined on a common column.

A tree whose lower joins work on arrival hands its results on in no order of time, and which tuples are the last n would
depend on when they come. So one operator takes such joins as well, if it can: it counts in the order of time.
"""

from __future__ import annotations

from collections.abc import Sequence

from millstream.algebra.expression import Expression
from millstream.algebra.names import equal_classes
from millstream.algebra.window import UNBOUNDED, Window
from millstream.errors import PlanError
from millstream.logical.bind.from_clause import Entry
from millstream.logical.bind.join.conjunct_sets import aliases, split_keys
from millstream.logical.bind.join.outer import OUTER
from millstream.logical.join.graph import JoinGraph, Leaf
from millstream.logical.join.grouped import one_operator
from millstream.logical.nodes.kinds.windowed import in_time
from millstream.logical.nodes.multi_join import MultiJoin
from millstream.logical.nodes.outer_join import OuterJoin
from millstream.logical.nodes.scan import Scan
from millstream.logical.nodes.window_join import WindowJoin


def in_turn(entries: tuple[Entry, ...], windows: Sequence[Window]) -> tuple[Entry, ...]:
    """The entries of FROM in the order in which they are joined, given the windows of its streams: if one counts rows,
    tables come last, for it counts tuples of the stream and not what a table makes of them."""
    outer = any(entry.written.kind in OUTER for entry in entries if entry.plan is not None)
    if outer or not any(window.rows for window in windows):
        return entries
    return tuple(sorted(entries, key=lambda entry: entry.plan is None))


def in_one_operator(streams: Sequence[Entry], windows: Sequence[Window]) -> bool:
    """Whether a join of these streams is to be one operator because some window counts rows."""
    counting = [window.rows is not None for window in windows]
    if len(streams) < 3 or not any(counting) or any(entry.written.kind in OUTER for entry in streams):
        return False
    timely = in_time((entry.schema for entry in streams), windows)
    return any(counting[:-1]) or (timely and list(windows).count(UNBOUNDED) > 1)


def counting_join(streams: Sequence[Entry], windows: Sequence[Window], found: Sequence[Expression]) -> MultiJoin | None:
    """The join of all streams, given the conditions that connect some of them; None if they share no column."""
    pairs: list[tuple[str, str]] = []
    conditions: list[Expression] = []
    for conjunct in found:
        one, *others = sorted(aliases(conjunct))
        placed = split_keys([conjunct], frozenset({one}), frozenset(others))
        pairs += placed.keys
        conditions += placed.residual
    leaves = []
    for entry, window in zip(streams, windows, strict=True):
        assert entry.plan is not None
        leaves.append(Leaf(entry.plan, entry.alias, window))
    graph = JoinGraph(tuple(leaves), equal_classes(pairs), ())
    members = range(len(leaves))
    if not any({graph.owner[name] for name in names} == set(members) for names in graph.equal):
        return None
    made = one_operator(graph, members, conditions)
    check_counting(made, streams, windows)
    return made


def check_counting(
    join: WindowJoin | OuterJoin | MultiJoin, streams: Sequence[Entry], windows: Sequence[Window]
) -> None:
    """Refuse a join of which no result can ever come, for all parts but the newest are kept ones; and one on arrival
    that counts rows of a stream it reads twice: which side gets a tuple first would depend on how the input is cut."""
    empty = [entry for entry, window in zip(streams[-len(windows) :], windows, strict=True) if window.rows == 0]
    if len(empty) > 1 and not isinstance(join, OuterJoin):
        names = " and ".join(f"'{entry.alias}'" for entry in empty)
        hint = "give all of them but one a window that keeps tuples; beside OVER a stream without a window keeps none"
        raise empty[1].fail("M3008", f"{names} keep no tuples, so that no result can come", hint)
    if join.merges or all(window.rows is None for window in windows):
        return
    read: set[str] = set()
    for part in join.inputs:
        scanned = {scan.stream for scan in part.walk() if isinstance(scan, Scan)}
        if twice := sorted(scanned & read):
            message = f"a ROWS window in a join of '{twice[0]}' with itself needs its tuples in the order of time"
            hint = f"declare ORDER BY on '{twice[0]}', with WATERMARK FOR if they come in any order; or a RANGE window"
            raise streams[-1].fail("M3008", message, hint)
        read |= scanned


def uncountable(entry: Entry, streams: Sequence[Entry], *, alone: bool) -> PlanError:
    """A tree of joins cannot count the tuples of a stream; `alone`: no other one has a ROWS window."""
    if any(other.written.kind in OUTER for other in streams):
        message = f"a ROWS window on '{entry.alias}' beside an outer join of three streams is not available yet"
        return entry.fail("M3008", message, "give it a RANGE window")
    other_way = f", or put '{entry.alias}' last in FROM" if alone else ""
    message = f"a ROWS window on '{entry.alias}' needs a column that all streams are joined on"
    return entry.fail("M3008", message, f"join all streams of FROM on one column{other_way}")
