"""A position in a list of tokens, to inspect, take or reject the next token."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn, TypeVar

from millstream.errors import SqlSyntaxError, did_you_mean
from millstream.lang import ast, foreign
from millstream.lang.names import check_name, new_name
from millstream.lang.tokens import Kind, Token, tokenize

Item = TypeVar("Item")

MAXIMUM_DEPTH = 60
"""Maximum nesting depth of expressions and subqueries."""

RESERVED = frozenset({
    "ALL", "AND", "AS", "BETWEEN", "CROSS", "DISTINCT", "ELSE", "END", "EXCEPT", "FALSE", "FROM", "FULL", "GROUP",
    "HAVING", "IN", "INNER", "INTERSECT", "INTO", "IS", "JOIN", "LEFT", "LIKE", "LIMIT", "NATURAL", "NOT", "NULL",
    "OFFSET", "ON", "OR", "ORDER", "OVER", "RIGHT", "SELECT", "THEN", "TRUE", "UNION", "USING", "WHEN", "WHERE",
    "WINDOW", "WITH",
})  # fmt: skip
"""Words that are names only if quoted: each of them continues or ends a clause."""
_OPENED = {")": "(", "]": "[", "}": "{"}
"""The bracket that each of these closes."""


class Cursor:
    def __init__(self, text: str) -> None:
        self.text = text
        self._tokens = tokenize(text)
        self._index = 0
        self._depth = 0
        self.subquery: Callable[[Cursor], ast.Query] | None = None
        """The grammar of subqueries inside expressions; None outside queries and statements."""
        self.in_body = False
        """True in a block of an aggregate, and in conditions and values of UPDATE and DELETE."""

    @property
    def token(self) -> Token:
        return self._tokens[self._index]

    @property
    def ended(self) -> bool:
        return self.token.kind is Kind.END

    @property
    def previous(self) -> Token:
        return self._tokens[max(self._index - 1, 0)]

    def ahead(self, count: int = 1) -> Token:
        return self._tokens[min(self._index + count, len(self._tokens) - 1)]

    def advance(self) -> Token:
        taken = self.token
        if taken.kind is not Kind.END:
            self._index += 1
        return taken

    def at(self, *words: str) -> bool:
        """True if these words come next."""
        return all(self.ahead(i).upper == word for i, word in enumerate(words))

    def at_any(self, *words: str) -> bool:
        return self.token.upper in words

    def accept(self, *words: str) -> Token | None:
        """Take these words if they come next, and return the first."""
        if not self.at(*words):
            return None
        first = self.token
        self._index += len(words)
        return first

    def expect(self, *words: str) -> Token:
        for word in words:
            if not self.at(word):
                self.fail(word)
            self.advance()
        return self.previous

    def at_symbol(self, *symbols: str) -> bool:
        return self.token.is_symbol(*symbols)

    def accept_symbol(self, *symbols: str) -> Token | None:
        return self.advance() if self.at_symbol(*symbols) else None

    def expect_symbol(self, symbol: str) -> Token:
        if not self.at_symbol(symbol):
            self.fail(f"'{symbol}'")
        return self.advance()

    def at_name(self) -> bool:
        kind = self.token.kind
        return kind is Kind.QUOTED or (kind is Kind.WORD and self.token.upper not in RESERVED)

    def name(self, what: str) -> str:
        """Take a name, folded to lower case. A quoted name may be a keyword, but names never contain a dot."""
        if not self.at_name():
            quotable = self.token.kind in (Kind.WORD, Kind.STRING)
            self.fail(what, hint=f'write "{self.token.text}" in double quotes' if quotable else "")
        token = self.advance()
        try:
            check_name(token.text)
        except SqlSyntaxError as error:
            raise error.at(token.line, token.column) from None
        return token.text.lower()

    def new_name(self, what: str) -> str:
        """Take the name of a new stream, table or query."""
        name, token = self.name(what), self.previous
        try:
            return new_name(name)
        except SqlSyntaxError as error:
            raise error.at(token.line, token.column) from None

    def names(self, what: str) -> tuple[str, ...]:
        """Take names in parentheses."""
        return self.in_parentheses(lambda cursor: cursor.name(what))

    def in_parentheses(self, parse: Callable[[Cursor], Item]) -> tuple[Item, ...]:
        """Take one or more items in parentheses, separated by commas."""
        self.expect_symbol("(")
        found = [parse(self)]
        while not self.accept_symbol(")"):
            if not self.accept_symbol(","):
                self.fail("',' or ')'")
            found.append(parse(self))
        return tuple(found)

    def listed(self, parse: Callable[[Cursor], Item]) -> tuple[Item, ...]:
        """Take one or more items, separated by commas."""
        found = [parse(self)]
        while self.accept_symbol(","):
            found.append(parse(self))
        return tuple(found)

    def choice(self, choices: Sequence[str], expected: str) -> str:
        """Take one of these words."""
        if self.token.upper not in choices:
            self.fail(expected, hint=self.suggestion(choices))
        return self.advance().upper

    def integer(self, what: str) -> int:
        if self.token.kind is not Kind.NUMBER or not self.token.text.isdigit() or len(self.token.text) > 18:
            self.fail(what)
        return int(self.advance().text)

    def string(self, what: str) -> str:
        if self.token.kind is not Kind.STRING:
            self.fail(what)
        return self.advance().text

    def suggestion(self, choices: Iterable[str]) -> str:
        """A hint for the next token if it is a word that resembles one of the choices. The message lists them."""
        hint = did_you_mean(self.token.upper, (choice.lower() for choice in choices)) if self.token.upper else ""
        return "" if hint.startswith("known") else hint

    def _punctuation(self, expected: str) -> str:
        """A hint about a bracket that is not closed, or a comma that is missing, at a token that was not expected."""
        start = next((place + 1 for place in range(self._index - 1, -1, -1) if self._tokens[place].is_symbol(";")), 0)
        opened: list[Token] = []
        closed = False
        """Whether the token closes a bracket."""
        for token in self._tokens[start:]:
            if token.is_symbol(";"):
                break
            if token.is_symbol("(", "[", "{"):
                opened.append(token)
            elif token.is_symbol(")", "]", "}") and opened and opened[-1].text == _OPENED[token.text]:
                opened.pop()
                closed = closed or token is self.token
        left = [token for token in opened if token.start < self.token.start]
        if self.at_symbol(")", "]", "}") and not closed and not left:
            return f"{self.token} closes nothing: no '{_OPENED[self.token.text]}' is open"
        if left and (self.ended or self.at_symbol(";", "[", "]", "}") or self.token.upper in RESERVED):
            return f"{left[-1]} in line {left[-1].line}, column {left[-1].column} is not closed"
        begins = self.token.kind in (Kind.STRING, Kind.NUMBER, Kind.QUOTED) or self.at_name()
        comma = "','" in expected or (expected == "')'" and self.previous.kind is not Kind.SYMBOL)
        return f"is a comma missing before {self.token}?" if begins and comma else ""

    def fail(self, expected: str, *, hint: str = "", keywords: Sequence[str] = ()) -> NoReturn:
        """Raise SqlSyntaxError: the next token is not the expected one. A construct of another dialect is named, and
        so is a misspelt one of the keywords, which may have been taken as an alias."""
        # the statements of a body are not those of a script
        if not self.in_body and (found := foreign.find(self._tokens, self._index)):
            self.error(found.code, found.message, hint=found.hint, token=found.token)
        if keywords and (word := foreign.misspelt(self._tokens, self._index, keywords)):
            token, meant = word
            self.error("M1001", f"expected {expected}, found {token}", hint=f"did you mean {meant}?", token=token)
        self.error("M1001", f"expected {expected}, found {self.token}", hint=hint or self._punctuation(expected))

    def error(self, code: str, message: str, *, hint: str = "", token: Token | None = None) -> NoReturn:
        token = token or self.token
        raise SqlSyntaxError(code, message, hint=hint, **token.place)

    def not_yet(self, what: str, *, token: Token | None = None, hint: str = "") -> NoReturn:
        self.error("M1090", f"{what}: not available yet", token=token, hint=hint)

    @contextmanager
    def like(self, example: str) -> Iterator[None]:
        """Give errors raised inside this example as a hint, unless they have one."""
        try:
            yield
        except SqlSyntaxError as error:
            error.hint = error.hint or f"such as {example}"
            raise

    @contextmanager
    def inside_body(self) -> Iterator[None]:
        """Parse the body of an aggregate, which has a grammar of its own: no construct of another dialect is named."""
        outside, self.in_body = self.in_body, True
        try:
            yield
        finally:
            self.in_body = outside

    @contextmanager
    def subqueries(self, grammar: Callable[[Cursor], ast.Query]) -> Iterator[None]:
        """Accept subqueries inside expressions."""
        outside, self.subquery = self.subquery, grammar
        try:
            yield
        finally:
            self.subquery = outside

    @contextmanager
    def body(self, grammar: Callable[[Cursor], ast.Query]) -> Iterator[None]:
        """Accept subqueries inside expressions, and queries without FROM."""
        with self.inside_body(), self.subqueries(grammar):
            yield

    @contextmanager
    def nested(self) -> Iterator[None]:
        """Enter a nesting level; the limit keeps any text from exhausting the stack."""
        self._depth += 1
        if self._depth > MAXIMUM_DEPTH:
            self.error("M1005", f"nested deeper than {MAXIMUM_DEPTH} levels")
        try:
            yield
        finally:
            self._depth -= 1
