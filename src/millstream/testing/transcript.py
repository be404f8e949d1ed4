"""The transcript format: text → steps.

Blocks are separated by blank lines; `#` starts a comment, except where it is a punctuation class (`(auction #)`).
The first line of a block says what it is; commands that need only one line may follow one another in a block.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from millstream.algebra.types import MICROS
from millstream.errors import MillstreamError, did_you_mean

UNITS = {
    "MICROSECOND": 1,
    "MILLISECOND": 1_000,
    "SECOND": MICROS,
    "MINUTE": 60 * MICROS,
    "HOUR": 3_600 * MICROS,
    "DAY": 86_400 * MICROS,
}


class TranscriptError(MillstreamError):
    """The transcript itself is malformed (codes M70xx)."""


@dataclass(frozen=True, slots=True)
class Step:
    line: int


@dataclass(frozen=True, slots=True)
class Statement(Step):
    """A statement, or with a name a query; `error` is a regular expression that its failure must match."""

    text: str
    name: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Feed(Step):
    stream: str
    elements: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Expect(Step):
    query: str
    rows: tuple[tuple[int, str], ...]
    ordered: bool = False
    punctuation: bool = False


@dataclass(frozen=True, slots=True)
class Count(Step):
    """`state q N`, `late s N`, `bad s N`."""

    what: str
    name: str
    number: int


@dataclass(frozen=True, slots=True)
class Batch(Step):
    pass


@dataclass(frozen=True, slots=True)
class Restart(Step):
    pass


@dataclass(frozen=True, slots=True)
class Advance(Step):
    micros: int


Lines = list[tuple[int, str]]
Parsed = tuple[list[Step], Lines]
"""The steps of a block, and the lines that are left of it."""
Parser = Callable[[int, list[str], Lines], Parsed]


def parse_transcript(text: str) -> list[Step]:
    """All steps of a transcript, in order."""
    steps: list[Step] = []
    block: Lines = []
    for number, raw in enumerate([*text.splitlines(), ""], 1):
        line = strip_comment(raw).rstrip()
        if line.strip():
            block.append((number, line))
        elif block and not raw.strip():
            steps += _block(block)
            block = []
    return steps


def strip_comment(line: str) -> str:
    """The line without its comment; a `#` in quotes, inside a word, or as a punctuation class is kept.

    >>> strip_comment("PUNCTUATED ON (auction #)  # a scheme")
    'PUNCTUATED ON (auction #)  '
    """
    quote = ""
    for i, char in enumerate(line):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            # An apostrophe that no other closes is a letter, not a quote.
            quote = char if char in line[i + 1 :] else ""
        elif char == "#" and (i == 0 or line[i - 1].isspace()) and not re.match(r"#\s*[),]", line[i:]):
            return line[:i]
    return line


def _block(lines: Lines) -> list[Step]:
    number, header = lines[0]
    word, *rest = header.split()
    parser = _PARSERS.get(word.lower())
    if parser is None:
        hint = did_you_mean(word, _PARSERS)
        raise TranscriptError("M7001", f"unknown block '{word}'", hint=hint, line=number, column=1)
    steps, left = parser(number, rest, lines[1:])
    return steps + (_block(left) if left else [])


def _statement(number: int, words: list[str], body: Lines) -> Parsed:
    return _text_block(number, None, words, body)


def _query(number: int, words: list[str], body: Lines) -> Parsed:
    name = _name(number, "query", words)
    return _text_block(number, name, words[1:], body)


def _text_block(number: int, name: str | None, extra: list[str], body: Lines) -> Parsed:
    if extra:
        body = [(number, " ".join(extra)), *body]
    error = None
    if body and (found := re.match(r"\s*error(\s+(.*))?$", body[0][1], re.IGNORECASE)):
        error = (found[2] or "").strip()
        try:
            re.compile(error)
        except re.error as wrong:
            message = f"'{error}' is not a regular expression: {wrong}"
            raise TranscriptError("M7009", message, line=body[0][0], column=1) from None
        body = body[1:]
    if not body:
        raise TranscriptError("M7002", "a statement is expected after its header line", line=number, column=1)
    return [Statement(body[0][0], "\n".join(line for _, line in body), name, error)], []


def _input(number: int, words: list[str], body: Lines) -> Parsed:
    return [Feed(number, _name(number, "input", words), _stripped(body))], []


def _expect(number: int, words: list[str], body: Lines) -> Parsed:
    name = _name(number, "expect", words)
    flags = {word.lower() for word in words[1:]}
    if unknown := flags - {"ordered", "punctuation"}:
        word = min(unknown)
        hint = did_you_mean(word, ("ordered", "punctuation"))
        raise TranscriptError("M7003", f"unknown word '{word}' after 'expect {name}'", hint=hint, line=number, column=1)
    following = re.compile(r"expect\s+\w+(\s+(ordered|punctuation))?", re.IGNORECASE)
    end = next((i for i, (_, line) in enumerate(body) if following.fullmatch(line.strip())), len(body))
    rows = _stripped(body[:end])
    return [Expect(number, name, rows, "ordered" in flags, "punctuation" in flags)], body[end:]


def _stripped(lines: Lines) -> tuple[tuple[int, str], ...]:
    return tuple((number, line.strip()) for number, line in lines)


def _count(what: str) -> Parser:
    def parse(number: int, words: list[str], body: Lines) -> Parsed:
        if len(words) != 2 or not words[1].isdigit():
            raise TranscriptError("M7004", f"'{what}' wants a name and a number", line=number, column=1)
        return [Count(number, what, words[0].lower(), int(words[1]))], body

    return parse


def _alone(what: str, kind: type[Step]) -> Parser:
    def parse(number: int, words: list[str], body: Lines) -> Parsed:
        if words:
            message = f"'{what}' stands alone, found '{words[0]}'"
            raise TranscriptError("M7008", message, line=number, column=1)
        return [kind(number)], body

    return parse


def _advance(number: int, words: list[str], body: Lines) -> Parsed:
    unit = words[1].upper().removesuffix("S") if len(words) == 2 else ""
    try:
        micros = round(float(words[0]) * UNITS[unit])
        if not 0 <= micros < 1 << 60:
            raise ValueError("time does not go back, nor beyond what a timestamp holds")
    except (IndexError, KeyError, ValueError, OverflowError):
        hint = "write for example: advance 5 SECONDS"
        raise TranscriptError(
            "M7005", "'advance' wants a number and a unit", hint=hint, line=number, column=1
        ) from None
    return [Advance(number, micros)], body


def _later(what: str) -> Parser:
    def parse(number: int, _: list[str], __: Lines) -> Parsed:
        raise TranscriptError("M7006", f"'{what}' is not available yet", line=number, column=1)

    return parse


def _name(number: int, what: str, words: list[str]) -> str:
    if not words:
        raise TranscriptError("M7007", f"'{what}' wants a name", line=number, column=1)
    return words[0].lower()


_PARSERS: dict[str, Parser] = {
    "statement": _statement,
    "query": _query,
    "input": _input,
    "expect": _expect,
    "state": _count("state"),
    "late": _count("late"),
    "bad": _count("bad"),
    "batch": _alone("batch", Batch),
    "restart": _alone("restart", Restart),
    "advance": _advance,
    "feedback": _later("feedback"),
    "prod": _later("prod"),
}
