"""Text to tokens: sqlglot's tokenizer without keywords, plus exact positions.

Words stay words: only the grammar can tell whether `window` or `range` is a keyword in its context. sqlglot reports the
column of a token's end, so line and column are computed from its start offset.

>>> [(token.text, token.line, token.column) for token in tokenize("SELECT a\\n FROM s")]
[('SELECT', 1, 1), ('a', 1, 8), ('FROM', 2, 2), ('s', 2, 7), ('', 2, 8)]
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import Any, TypedDict

from sqlglot.errors import SqlglotError
from sqlglot.tokens import Tokenizer, TokenType

from millstream.errors import SqlSyntaxError


class Kind(Enum):
    WORD = "word"
    QUOTED = "quoted name"
    NUMBER = "number"
    STRING = "string"
    SYMBOL = "symbol"
    END = "end"


class Place(TypedDict):
    """A position in the text; both numbers start at 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Token:
    """`text` has quotes removed; `start` and `end` are offsets in the source, `end` one past the last character."""

    kind: Kind
    text: str
    start: int
    end: int
    line: int
    column: int

    @property
    def upper(self) -> str:
        """The word in upper case; empty for any other kind, so that a quoted name is never a keyword."""
        return self.text.upper() if self.kind is Kind.WORD else ""

    def is_symbol(self, *symbols: str) -> bool:
        return self.kind is Kind.SYMBOL and self.text in symbols

    @property
    def place(self) -> Place:
        return {"line": self.line, "column": self.column}

    def __str__(self) -> str:
        if self.kind is Kind.END:
            return "the end of the text"
        return f"string '{self.text}'" if self.kind is Kind.STRING else f"'{self.text}'"


class MillstreamTokenizer(Tokenizer):  # type: ignore[misc]
    KEYWORDS = {
        "==": TokenType.EQ,
        "<=": TokenType.LTE,
        ">=": TokenType.GTE,
        "<>": TokenType.NEQ,
        "!=": TokenType.NEQ,
        "||": TokenType.DPIPE,
        "::": TokenType.DCOLON,
        "=>": TokenType.FARROW,
    }
    IDENTIFIERS = ['"', "`"]
    COMMANDS: set[TokenType] = set()
    NESTED_COMMENTS = False


_KINDS = {
    TokenType.VAR: Kind.WORD,
    TokenType.IDENTIFIER: Kind.QUOTED,
    TokenType.NUMBER: Kind.NUMBER,
    TokenType.STRING: Kind.STRING,
}
_WORD = re.compile(r"[^\W\d][\w$]*")
_NUMBER = re.compile(r"\d+(\.\d*)?([eE][+-]?\d+)?")
_OTHER_NUMBER = re.compile(r"0[xXbBoO][0-9a-fA-F_]+|\d[\d_.]*_\w*")
"""Numbers as other languages write them; without this check a part of them would be an alias."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_SPELLING = {"==": "=", "!=": "<>"}
_CLOSED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`(?:[^`]|``)*`|--[^\n]*|/\*.*?\*/|[^'\"`]", re.DOTALL)


class Positions:
    """Converts offsets in a text to line and column, both from 1."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def at(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


def tokenize(text: str) -> list[Token]:
    """All tokens of the text, an END token last."""
    positions = Positions(text)
    if found := _SURROGATE.search(text):
        line, column = positions.at(found.start())
        message = f"the text is not valid Unicode: \\u{ord(found[0]):x} is half of a surrogate pair"
        raise SqlSyntaxError("M1002", message, line=line, column=column)
    try:
        raw = MillstreamTokenizer().tokenize(text)
    except SqlglotError:
        raise _unterminated(text, positions) from None
    tokens = [_token(item, text, positions) for item in raw]
    for token, after in pairwise(tokens):
        if touching(token, after) and _OTHER_NUMBER.fullmatch(text[token.start : after.end]):
            raise not_a_number(token, after)
    return [*tokens, Token(Kind.END, "", len(text), len(text), *positions.at(len(text)))]


def _token(item: Any, text: str, positions: Positions) -> Token:
    kind = _KINDS.get(item.token_type, Kind.SYMBOL)
    start, end, written = item.start, item.end + 1, item.text
    line, column = positions.at(start)
    if kind is Kind.WORD and not _WORD.fullmatch(written):
        hint = "parameters are not available: write the value itself" if written.startswith("$") else ""
        raise SqlSyntaxError("M1002", f"unexpected character in '{written}'", hint=hint, line=line, column=column)
    if kind is Kind.NUMBER and not _NUMBER.fullmatch(written):
        raise SqlSyntaxError("M1003", f"'{written}' is not a number", line=line, column=column)
    if kind is Kind.SYMBOL:
        written = _SPELLING.get(text[start:end], text[start:end])
    return Token(kind, written, start, end, line, column)


def touching(token: Token, after: Token) -> bool:
    """Whether a word follows a number without a blank, as in 10min and 1_000."""
    return token.kind is Kind.NUMBER and after.kind is Kind.WORD and token.end == after.start


def not_a_number(token: Token, after: Token) -> SqlSyntaxError:
    """The error for a number and a word that touch."""
    written = token.text + after.text
    try:
        hint = f"write {int(written, 0)}"
    except ValueError:
        hint = f"leave a blank after {token.text}"
    return SqlSyntaxError("M1003", f"'{written}' is not a number", hint=hint, **token.place)


def _unterminated(text: str, positions: Positions) -> SqlSyntaxError:
    """The error for a text that ends inside a string, a quoted name or a comment, positioned at its start."""
    offset = 0
    while match := _CLOSED.match(text, offset):
        if text.startswith("/*", offset) and not match.group().endswith("*/"):
            break
        offset = match.end()
    known = {"'": ("string", "'"), '"': ("quoted name", '"'), "`": ("quoted name", "`"), "/": ("comment", "*/")}
    what, end = known.get(text[offset : offset + 1], ("text", ""))
    line, column = positions.at(min(offset, len(text)))
    hint = f"close it with {end}" if end else ""
    return SqlSyntaxError("M1004", f"unterminated {what}", hint=hint, line=line, column=column)
