"""Constructs of other dialects, and clauses at the wrong place: named when a text does not parse, with what to write.

They are looked up only after the grammar has failed, around the token that it cannot use, so a valid text is never
refused here. A pattern is a list of tokens; `name`, `number` and `string` stand for any token of that kind. `^` is the
start of a statement.

>>> from millstream.lang.tokens import tokenize
>>> print(find(tokenize("SELECT a FROM s EMIT CHANGES"), 5).message)
EMIT: not available
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import NamedTuple

from millstream.lang.foreign.misplaced import MISPLACED
from millstream.lang.foreign.queries import QUERIES
from millstream.lang.foreign.statements import CREATED, STATEMENTS
from millstream.lang.tokens import Kind, Token


@dataclass(frozen=True, slots=True)
class Foreign:
    """A construct found in a text: the token that it starts with, and what to say."""

    token: Token
    code: str
    message: str
    hint: str


def find(tokens: Sequence[Token], at: int) -> Foreign | None:
    """The construct around the token `at`, which the grammar cannot use: it contains the token, or ends just before
    it. Of several, the one with the most keywords, or else the last."""
    start = next((place + 1 for place in range(at - 1, -1, -1) if tokens[place].is_symbol(";")), 0)
    found: list[tuple[int, int, Pattern]] = []
    for begin in range(max(start, at - 5), at + 1):
        for pattern in (pattern for name in _names(tokens[begin]) for pattern in _patterns().get(name, ())):
            near = at <= begin + len(pattern.words) and (begin == start or not pattern.anchored)
            if near and _matches(tokens, start, pattern.statement) and _matches(tokens, begin, pattern.words):
                found.append((sum(not word.islower() for word in pattern.words), begin, pattern))
    if not found:
        return None
    _, begin, best = max(found)
    return Foreign(tokens[begin], best.code, best.message, best.hint)


def is_function(word: str) -> bool:
    """Return whether a function of another dialect has this name in capitals."""
    return f"{word} (" in QUERIES


def misspelt(tokens: Sequence[Token], at: int, expected: Sequence[str]) -> tuple[Token, str] | None:
    """The word at a place, or the one before it, which was read as an alias, if it resembles one of these keywords."""
    for place in (at, at - 1):
        word = tokens[place].upper if place > 0 else ""
        likeness = 0.7 if len(word) > 3 else 0.8
        if len(word) > 2 and word not in expected and (close := get_close_matches(word, expected, 1, likeness)):
            return tokens[place], close[0]
    return None


class Pattern(NamedTuple):
    statement: tuple[str, ...]
    """The first words of the statement."""
    anchored: bool
    """True if the construct starts the statement."""
    words: tuple[str, ...]
    code: str
    message: str
    hint: str


@cache
def _patterns() -> dict[str, list[Pattern]]:
    """The patterns by their first token."""
    found: dict[str, list[Pattern]] = {}
    absent = {**STATEMENTS, **CREATED, **QUERIES}
    entries = [(text, "M1090", f"{what}: not available", hint) for text, (what, hint) in absent.items()]
    entries += [(text, "M1001", message, hint) for text, (message, hint) in MISPLACED.items()]
    for text, *said in entries:
        statement, _, words = text.rpartition(" … ")
        anchored = not statement and words.startswith("^ ")
        wanted = tuple(words.removeprefix("^ ").split() if anchored else words.split())
        made = Pattern(tuple(statement.split())[1:], anchored, wanted, *said)
        found.setdefault(wanted[0], []).append(made)
    return found


def _first(token: Token) -> str:
    return token.upper or (token.text if token.kind is Kind.SYMBOL else "")


def _matches(tokens: Sequence[Token], begin: int, wanted: Sequence[str]) -> bool:
    if begin + len(wanted) > len(tokens):
        return False
    return all(want in _names(token) for want, token in zip(wanted, tokens[begin:], strict=False))


def _names(token: Token) -> Iterator[str]:
    """What a pattern may call a token."""
    yield _first(token)
    if token.kind in (Kind.WORD, Kind.QUOTED):
        yield "name"
    elif token.kind in (Kind.NUMBER, Kind.STRING):
        yield token.kind.value
