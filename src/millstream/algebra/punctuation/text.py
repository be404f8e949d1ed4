"""The text form of patterns: parser and formatter.

By position `[<= 10, *, 5]`, by name `[ts <= 10, auction = 5]`. The restriction of an attribute is `*`, a value, `= v`,
`< v`, `<= v`, `> v`, `>= v` (also `≤`, `≥`), a range `[2, 5)` with `∞` for an unbounded end, a set `{1, 2}`, or `∅`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

from millstream.algebra.punctuation.restriction import ANY, NOTHING, Restriction, between, compare, equal, one_of
from millstream.algebra.punctuation.value_text import QUOTES, read_value, unquote, write_value
from millstream.algebra.schema import Schema
from millstream.algebra.types import Type
from millstream.errors import PatternError, did_you_mean

_NAMED = re.compile(r'\s*("(?:[^"]|"")+"|[^\W\d][\w.]*)(?:\s+[iI][nN](?=\s*[{\[(∅])|\s*(?=[<>=≤≥{\[(∅*]))')
_SQL = re.compile(
    r'\s*("(?:[^"]|"")+"|[^\W\d][\w.]*)(?:\s*(?P<sign>!=|<>)|\s+(?P<word>between|not|is|like|in(?!\s*[{\[∅]))(?!\w))',
    re.I,
)
"""A column, then a condition that SQL has and a pattern has not."""
_TWO_PATTERNS = "Give two patterns: one with < and one with >."
_INSTEAD = {
    "!=": _TWO_PATTERNS,
    "<>": _TWO_PATTERNS,
    "between": "Write {0} in [1, 5] for the values from 1 to 5.",
    "in": "Write {0} in {{1, 2}} for one of them, {0} in [1, 2] for all from 1 to 2, {0} (1, 2) for those between.",
}
_ALTERNATIVES = re.compile(r"\s(and|or)\s.*[<>=]", re.I)
_COMPARISON = re.compile(r"(<=|>=|<|>|=|≤|≥)")
_SPELLED = {"≤": "<=", "≥": ">="}
_INFINITE = {"∞", "+∞", "-∞"}
_STARTS_VALUE = "[({,<>=≤≥"
_OPEN, _CLOSE = "[({", "])}"


def write_restrictions(restrictions: dict[str, Restriction], schema: Schema) -> str:
    """Format restrictions by position; raise PatternError for an attribute that the schema does not have."""
    for name in restrictions:
        if name not in schema:
            raise _unknown(name, schema)
    parts = [restrictions.get(a.name, ANY).format(partial(write_value, type_=a.type)) for a in schema]
    return f"[{', '.join(parts)}]"


def read_restrictions(text: str, schema: Schema) -> dict[str, Restriction]:
    """Parse the restrictions of the attributes that the text mentions."""
    start = len(text) - len(text.lstrip())
    if text[start : start + 1] != "[":
        hint = "Write the whole pattern in […]."
        raise PatternError("M4001", "a pattern starts with '['", detail=_place(text, start), hint=hint)
    end, items = split(text, start, "]")
    if text[end + 1 :].strip():
        raise PatternError("M4003", "unexpected text after ']'", detail=_place(text, end + 1), hint="Remove the rest.")
    for place, item in enumerate(items):
        text_is_meant = len(items) == len(schema) and schema.attributes[place].type is Type.VARCHAR
        _refuse_sql(text, item, schema, words=not text_is_meant)
    named = [(item, found) for item in items if (found := _NAMED.match(item.text))]
    if not named:
        return _by_position(text, items, schema)
    if len(named) < len(items):
        hint = "Name every restricted attribute, or give one restriction for each in order; quote text like 'a = b'."
        raise PatternError("M4005", "restrictions by name and by position are mixed", detail=f"In {text}", hint=hint)
    restrictions: dict[str, Restriction] = {}
    for item, found in named:
        name = _column(found[1], schema)
        rest = Item(item.text[found.end() :], item.start + found.end())
        read = _Reader(text, name, schema.type_of(name)).restriction(rest)
        restrictions[name] = restrictions.get(name, ANY).intersect(read)
    return restrictions


def _refuse_sql(text: str, item: Item, schema: Schema, *, words: bool) -> None:
    """Raise PatternError if a restriction is a condition of SQL that patterns do not have. Without `words` it may be a
    bare text, such as `name in words`."""
    found = _SQL.match(item.text)
    if found is None or not any(known.lower() == _unquoted(found[1]).lower() for known in schema.names):
        return
    if not words and found["word"] and item.text[found.end() :].lstrip()[:1] != "(":
        return
    used = (found["sign"] or found["word"]).lower()
    hint = _INSTEAD.get(used, "A pattern has =, <, <=, >, >=, ranges and sets; only * matches NULL.").format(found[1])
    reason = "in (…) could be a set or a range" if used == "in" else f"a pattern has no {used.upper()}"
    place = _place(text, item.start + found.start(found.lastgroup or 0))
    raise PatternError("M4006", f"column '{_unquoted(found[1])}': {reason}", detail=place, hint=hint)


def _by_position(text: str, items: list[Item], schema: Schema) -> dict[str, Restriction]:
    if len(items) != len(schema):
        message = f"{len(items)} restrictions for {len(schema)} attributes"
        hint = f"The attributes are {schema}. To restrict only some of them, name them."
        raise PatternError("M4002", message, detail=f"In {text}", hint=hint)
    return {a.name: _Reader(text, a.name, a.type).restriction(item) for item, a in zip(items, schema, strict=True)}


@dataclass(frozen=True, slots=True)
class Item:
    """A part of a text and its offset."""

    text: str
    start: int


def split(text: str, start: int, closing: str) -> tuple[int, list[Item]]:
    """Split the content of the bracket that opens at `start` at its commas; also return the offset where it closes.

    Quotes count only where a value starts, so that a bare `O'Brien` is a word. An inner `[2, 5)` is one item.

    >>> split("[a, {1, 2}] rest", 0, "]")
    (10, [Item(text='a', start=1), Item(text=' {1, 2}', start=3)])
    """
    items: list[Item] = []
    inner: list[str] = []
    begin = at = start + 1
    previous = ","
    while at < len(text):
        char = text[at]
        if char in QUOTES and previous in _STARTS_VALUE:
            at = _end_of_quoted(text, at)
            if at < 0:
                break
        elif char in _OPEN:
            inner.append("}" if char == "{" else "])")
        elif char in _CLOSE and not inner:
            if char != closing:
                detail = _place(text, at)
                raise PatternError("M4001", f"unexpected '{char}'", detail=detail, hint=f"Close it with '{closing}'.")
            if items or text[begin:at].strip():
                items.append(Item(text[begin:at], begin))
            return at, items
        elif char in _CLOSE:
            if char not in inner.pop():
                detail = _place(text, at)
                raise PatternError("M4001", f"unexpected '{char}'", detail=detail, hint="Check the brackets.")
        elif char == "," and not inner:
            items.append(Item(text[begin:at], begin))
            begin = at + 1
        if not text[at].isspace():
            previous = text[at]
        at += 1
    hint = "A quote is not closed." if at < 0 else f"Add '{closing}'."
    raise PatternError("M4001", "the pattern is not closed", detail=_place(text, start), hint=hint)


def _end_of_quoted(text: str, at: int) -> int:
    """Offset of the closing quote of the text that opens at `at`, or -1."""
    quote = text[at]
    end = text.find(quote, at + 1)
    while end >= 0 and text[end + 1 : end + 2] == quote:
        end = text.find(quote, end + 2)
    return end


@dataclass(frozen=True, slots=True)
class _Reader:
    """Parses restrictions of one attribute; `whole` is the complete text, for error positions."""

    whole: str
    column: str
    type: Type

    def restriction(self, item: Item) -> Restriction:
        text = item.text.strip()
        if text in ("*", "∅"):
            return ANY if text == "*" else NOTHING
        if not text:
            self._fail("M4006", item, "no restriction", "Write * to match any value.")
        if text[0] == "{":
            return one_of(self._value(part, item) for part in self._parts(text, item, "}"))
        if text[0] in "[(":
            return self._range(text, item)
        if text[:2] in ("<>", "!="):
            self._fail("M4006", item, f"a pattern has no {text[:2]}", _TWO_PATTERNS)
        found = _COMPARISON.match(text)
        if found is None:
            return equal(self._value(text, item))
        op, rest = _SPELLED.get(found[0], found[0]), text[found.end() :].strip()
        if op == "=" and rest in ("*", "∅"):
            return ANY if rest == "*" else NOTHING
        if not rest:
            self._fail("M4006", item, f"no value after '{op}'", "Write a value, as in <= 10.")
        if rest[0] == "{" and rest[-1] == "}":
            self._fail("M4006", item, f"a set after '{op}'", f"Write {self.column} in {rest}, or quote the text.")
        if op != "=":
            self._check_ordered(item)
        return compare(op, self._value(rest, item))

    def _range(self, text: str, item: Item) -> Restriction:
        parts = self._parts(text, item, "])")
        if len(parts) != 2:
            self._fail("M4006", item, f"a range has two ends, not {len(parts)}", "Write [2, 5), or {1, 2} for a set.")
        self._check_ordered(item)
        lo, hi = (None if part.strip() in _INFINITE else self._value(part, item) for part in parts)
        found = between(lo, hi, lo_closed=text[0] == "[", hi_closed=text[-1] == "]")
        if found.is_empty:
            self._fail("M4006", item, f"the range {text} is empty", "Write ∅ to match nothing.")
        return found

    def _parts(self, text: str, item: Item, closing: str) -> list[str]:
        if text[-1] not in closing:
            self._fail("M4006", item, f"unexpected text in {text}", f"Close it with '{closing[0]}'.")
        end, items = split(text, 0, text[-1])
        if end != len(text) - 1:
            self._fail("M4006", item, f"unexpected text in {text}", "Separate the restrictions by commas.")
        return [part.text for part in items]

    def _value(self, text: str, item: Item) -> Any:
        if not text.strip():
            self._fail("M4006", item, "a value is missing", "Write an empty text as ''.")
        if (found := _ALTERNATIVES.search(text)) and text.strip()[0] not in QUOTES:
            hint = "Separate columns by commas; give a pattern for each alternative, or quote the text."
            self._fail("M4006", item, f"a pattern has no {found[1].upper()}", hint)
        try:
            return read_value(text, self.type)
        except ValueError as error:
            self._fail("M4007", item, str(error), f"'{self.column}' has type {self.type.value}.")

    def _check_ordered(self, item: Item) -> None:
        if self.type is Type.BOOLEAN:
            self._fail("M4008", item, "BOOLEAN values have no order", "Write true, false or *.")

    def _fail(self, code: str, item: Item, reason: str, hint: str) -> NoReturn:
        where = item.start + len(item.text) - len(item.text.lstrip())
        raise PatternError(code, f"column '{self.column}': {reason}", detail=_place(self.whole, where), hint=hint)


def _column(written: str, schema: Schema) -> str:
    name = _unquoted(written)
    if name in schema:
        return name
    for known in schema.names:
        if known.lower() == name.lower():
            return known
    raise _unknown(name, schema)


def _unquoted(written: str) -> str:
    return unquote(written) if written[0] == '"' else written


def _unknown(name: str, schema: Schema) -> PatternError:
    return PatternError("M4004", f"unknown column '{name}'", hint=did_you_mean(name, schema.names))


def _place(text: str, at: int) -> str:
    return f"At character {at + 1} of {text[:200]}" if text.strip() else "The pattern is empty."
