"""THRIFTY JOIN and IMPATIENT JOIN: joins that tell their inputs what they find out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from millstream.algebra.window import Window
from millstream.lang import ast
from millstream.logical.bind.join.key_join import key_joined
from millstream.logical.bind.join.outer import OUTER
from millstream.logical.bind.scope import Entry
from millstream.logical.nodes.impatient_join import ImpatientJoin
from millstream.logical.nodes.thrifty_join import ThriftyJoin

Issuing = ThriftyJoin | ImpatientJoin
ISSUING: Mapping[str, type[Issuing]] = {"THRIFTY": ThriftyJoin, "IMPATIENT": ImpatientJoin}


def check_keys(word: str | None, keys: Sequence[object], entry: Entry) -> None:
    """Refuse the words without an equality: there would be nothing to tell."""
    if word and not keys:
        hint = "add an equality to ON, such as a.k = b.k, or leave it out"
        raise entry.fail("M3034", f"{word} JOIN without a key", hint)


def check_issuing(entries: Sequence[Entry], windows: Sequence[Window], sequence: ast.SequenceTest | None) -> None:
    """Refuse the words where every tuple counts, with or without a partner."""
    for entry in entries:
        word = entry.written.issues
        if not word:
            continue
        if entry.written.kind in OUTER:
            hint = f"{word} JOIN, or {entry.written.kind} JOIN, which keeps tuples without a partner"
            raise entry.fail("M3034", f"{word} {entry.written.kind} JOIN is not possible", hint)
        if entry.plan is None:
            raise entry.fail("M3034", f"{word} JOIN with a table", "leave it out: a table sends no punctuation")
        if sequence is not None or key_joined(entries) or any(window.rows is not None for window in windows):
            what = "SEQ" if sequence is not None else "KEY JOIN" if key_joined(entries) else "a ROWS window"
            raise entry.fail("M3034", f"{word} JOIN together with {what}", "there every tuple counts")
