"""Checks of outer joins in FROM."""

from __future__ import annotations

from millstream.lang import ast
from millstream.logical.bind.scope import Entry

OUTER = ("LEFT", "RIGHT", "FULL")


def check_outer(entry: Entry, before: tuple[Entry, ...], sequence: ast.SequenceTest | None) -> None:
    """Refuse an outer join that cannot run continuously or would not have its SQL meaning."""
    kind, streams = entry.written.kind, [other for other in before if other.plan is not None]
    if entry.plan is None:
        if kind != "LEFT" or not streams:
            hint = "LEFT JOIN the table to a stream."
            raise entry.fail("M3020", f"a {kind} JOIN would keep rows of a table, which never end", hint)
        return
    if not streams:
        if kind != "RIGHT" or len(before) != 1:
            hint = "Begin with the stream and LEFT JOIN the tables to it."
            raise entry.fail("M3020", f"a {kind} JOIN would keep rows of a table, which never end", hint)
        return
    if sequence is not None:
        raise entry.fail("M3020", f"SEQ cannot be combined with a {kind} JOIN of streams", "use JOIN")
    if kind == "LEFT":
        return
    if entry.written.using:
        name = entry.written.using[0]
        hint = f"write ON …{name} = {entry.alias}.{name}; COALESCE makes one column of both"
        raise entry.fail("M3020", f"USING of a {kind} JOIN is not available yet", hint)
    if any(other.written.kind == "CROSS" for other in before):
        hint = "write JOIN … ON in place of the comma"
        raise entry.fail("M3020", f"a {kind} JOIN after a comma or a CROSS JOIN is not available yet", hint)


def cuts_off(entry: Entry, before: tuple[Entry, ...]) -> bool:
    """True if the entry's join pads rows of the entries before it, so that no later condition may be tested below
    it."""
    streams = any(other.plan is not None for other in before)
    return entry.plan is not None and streams and entry.written.kind in ("RIGHT", "FULL")
