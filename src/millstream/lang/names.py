"""The names that streams, tables and queries may have."""

from __future__ import annotations

from collections.abc import Container
from itertools import count

from millstream.algebra.stream_id import MARKS
from millstream.errors import SqlSyntaxError


def new_name(text: str) -> str:
    """The name of a new stream, table or query, in lower case; raise SqlSyntaxError if it cannot be one.

    >>> new_name('My "bids"')
    'my "bids"'
    """
    check_name(text)
    if (mark := next((mark for mark in MARKS if mark in text), None)) is not None:
        hint = f"names have any characters but {' '.join(MARKS)}"
        raise SqlSyntaxError("M1002", f"'{text}' cannot be a name: it has the character {mark}", hint=hint)
    return text.lower()


def check_name(text: str) -> None:
    """Raise SqlSyntaxError if a text cannot be the name of anything, a column or an alias included."""
    if not text:
        raise SqlSyntaxError("M1002", '"" cannot be a name: it is empty')
    if not text.isprintable():
        unseen = next(character for character in text if not character.isprintable())
        raise SqlSyntaxError("M1002", f"{text!r} cannot be a name: {unseen!r} cannot be printed")
    if "." in text:
        hint = f"a dot stands between a stream and its column: s.k; {quoted(text.replace('.', '_'))} can be a name"
        raise SqlSyntaxError("M1002", f'"{text}" cannot be a name: it has a dot', hint=hint)


def free_name(taken: Container[str], stem: str) -> str:
    """The first name of those that begin with the stem that is not taken.

    >>> free_name({"query_1", "query_3"}, "query")
    'query_2'
    """
    return next(name for number in count(1) if (name := f"{stem}_{number}") not in taken)


def quoted(name: str) -> str:
    """A name as a statement may always have it."""
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
