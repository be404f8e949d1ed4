"""The transcript format: text → steps.

Blocks are separated by blank lines. `#` starts a comment, unless it is a punctuation class (`(auction #)`). The first
word of a block is its kind. Several commands of one line each may share a block.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

from millstream.algebra.types import MICROS
from millstream.errors import MillstreamError, did_you_mean
from millstream.lang.durations import UNITS


class TranscriptError(MillstreamError):
    """The transcript itself is malformed (codes M70xx)."""


@dataclass(frozen=True, slots=True)
class Step:
    line: int


@dataclass(frozen=True, slots=True)
class Statement(Step):
    """A statement; with a name, a query. `error`: a regular expression that its error must match."""

    text: str
    name: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Feed(Step):
    stream: str
    elements: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class File(Step):
    """A file for the connectors of the transcript's streams."""

    name: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Expect(Step):
    query: str
    rows: tuple[tuple[int, str], ...]
    ordered: bool = False
    punctuation: bool = False


@dataclass(frozen=True, slots=True)
class Rows(Step):
    """`rows SELECT …`: the rows of a query over tables, which runs once."""

    text: str
    rows: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Count(Step):
    """`state q N`, `dropped q N`, `late s N`, `bad s N`."""

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


@dataclass(frozen=True, slots=True)
class Tell(Step):
    """`feedback q ~[…]`."""

    query: str
    text: str


@dataclass(frozen=True, slots=True)
class Prod(Step):
    """`prod q {…}`."""

    query: str
    text: str


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of a block: its first word in lower case, and the other words."""

    line: int
    word: str
    rest: list[str]

    @property
    def name(self) -> str:
        if not self.rest:
            raise self.error("M7007", f"'{self.word}' needs a name")
        return self.rest[0].lower()

    def error(self, code: str, message: str, hint: str = "") -> TranscriptError:
        return TranscriptError(code, message, hint=hint, line=self.line, column=1)


Lines = list[tuple[int, str]]
Parsed = tuple[list[Step], Lines]
"""The steps of a block, and its remaining lines."""
Parser = Callable[[Header, Lines], Parsed]


def parse_transcript(text: str) -> list[Step]:
    """Return the steps of a transcript, in order."""
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
    """Return the line without its comment; keep a `#` in quotes, inside a word, or as a punctuation class.

    >>> strip_comment("PUNCTUATED ON (auction #)  # a scheme")
    'PUNCTUATED ON (auction #)  '
    """
    quote = ""
    for i, char in enumerate(line):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            # An apostrophe without a closing one is a letter, not a quote.
            quote = char if char in line[i + 1 :] else ""
        elif char == "#" and (i == 0 or line[i - 1].isspace()) and not re.match(r"#\s*[),]", line[i:]):
            return line[:i]
    return line


def _block(lines: Lines) -> list[Step]:
    (number, text), *body = lines
    word, *rest = text.split()
    header = Header(number, word.lower(), rest)
    parser = _PARSERS.get(header.word)
    if parser is None:
        raise header.error("M7001", f"unknown block '{word}'", did_you_mean(word, _PARSERS))
    steps, left = parser(header, body)
    return steps + (_block(left) if left else [])


def _statement(header: Header, body: Lines) -> Parsed:
    name, extra = (header.name, header.rest[1:]) if header.word == "query" else (None, header.rest)
    if extra:
        body = [(header.line, " ".join(extra)), *body]
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
        raise header.error("M7002", "a statement is expected after its header line")
    return [Statement(body[0][0], "\n".join(line for _, line in body), name, error)], []


def _input(header: Header, body: Lines) -> Parsed:
    return [Feed(header.line, header.name, _stripped(body))], []


def _file(header: Header, body: Lines) -> Parsed:
    if len(header.rest) != 1:
        raise header.error("M7010", "'file' needs one name", "write for example: file bids/1.csv")
    name = PurePosixPath(header.rest[0])
    if name.is_absolute() or ".." in name.parts or not name.name:
        raise header.error("M7010", f"'{name}' is not a file below the transcript's own folder")
    return [File(header.line, str(name), tuple(line for _, line in body))], []


def _expect(header: Header, body: Lines) -> Parsed:
    name = header.name
    flags = {word.lower() for word in header.rest[1:]}
    if unknown := flags - {"ordered", "punctuation"}:
        word = min(unknown)
        hint = did_you_mean(word, ("ordered", "punctuation"))
        raise header.error("M7003", f"unknown word '{word}' after 'expect {name}'", hint)
    following = re.compile(r"expect\s+\w+(\s+(ordered|punctuation))?", re.IGNORECASE)
    end = next((i for i, (_, line) in enumerate(body) if following.fullmatch(line.strip())), len(body))
    rows = _stripped(body[:end])
    return [Expect(header.line, name, rows, "ordered" in flags, "punctuation" in flags)], body[end:]


def _rows(header: Header, body: Lines) -> Parsed:
    if not header.rest:
        raise header.error("M7002", "a SELECT is expected after 'rows'")
    return [Rows(header.line, " ".join(header.rest), _stripped(body))], []


def _stripped(lines: Lines) -> tuple[tuple[int, str], ...]:
    return tuple((number, line.strip()) for number, line in lines)


def _count(header: Header, body: Lines) -> Parsed:
    if len(header.rest) != 2 or not header.rest[1].isdigit():
        raise header.error("M7004", f"'{header.word}' needs a name and a number")
    return [Count(header.line, header.word, header.name, int(header.rest[1]))], body


def _command(header: Header, body: Lines) -> Parsed:
    if header.rest:
        raise header.error("M7008", f"'{header.word}' takes no arguments, found '{header.rest[0]}'")
    return [Batch(header.line) if header.word == "batch" else Restart(header.line)], body


def _advance(header: Header, body: Lines) -> Parsed:
    try:
        number, unit = header.rest
        micros = round(float(number) * (UNITS[unit.lower()][1] * MICROS))
        if not 0 <= micros < 1 << 60:
            raise ValueError("negative, or more than a timestamp holds")
    except (KeyError, ValueError, OverflowError):
        message, hint = "'advance' needs a number and a unit", "write for example: advance 5 SECONDS"
        raise header.error("M7005", message, hint) from None
    return [Advance(header.line, micros)], body


def _feedback(header: Header, body: Lines) -> Parsed:
    text = " ".join(header.rest[1:])
    if not text:
        raise header.error("M7011", "'feedback' needs a query and a pattern", "write for example: feedback q ~[k = 5]")
    return [Tell(header.line, header.name, text)], body


def _prod(header: Header, body: Lines) -> Parsed:
    return [Prod(header.line, header.name, " ".join(header.rest[1:]) or "{}")], body


_PARSERS: dict[str, Parser] = {
    "statement": _statement,
    "query": _statement,
    "input": _input,
    "file": _file,
    "expect": _expect,
    "rows": _rows,
    "state": _count,
    "dropped": _count,
    "late": _count,
    "bad": _count,
    "batch": _command,
    "restart": _command,
    "advance": _advance,
    "feedback": _feedback,
    "prod": _prod,
}
