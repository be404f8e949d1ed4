"""Errors a user can act on: a code, a short primary message, a detail, a hint and a position.

The primary message is short, in lower case and without a full stop; detail and hint are sentences or commands. Every
error can be pickled, so that workers can send it to the driver.

>>> print(MillstreamError("M2001", "unknown column 'pric'", hint="did you mean 'price'?", line=2, column=8))
M2001: unknown column 'pric' (line 2, column 8)
  hint: did you mean 'price'?
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any, TypeVar

Raised = TypeVar("Raised", bound=BaseException)


_NAMED = (
    r"pass(?:word|wd|phrase)|pwd|secret|token|credential|access.?key|api.?key|account.?key|private|cookie"
    r"|auth(?!or(?!i))"
)
SECRET = re.compile(_NAMED, re.I)
"""Names of what is secret."""
_BARE = r"""(?<=://)[^\s/@'":]*:[^\s/'"]*(?=@)|(?<=bearer )[^\s;,'"]+"""
"""In addresses and headers."""
_TEXT = r"""'(?:[^']|'')*(?:'|$)|"(?:[^"\\]|\\.)*(?:"|$)"""
_SAID = re.compile(rf"""{_BARE}|(?<![\w.-])(?P<name>[\w.-]+["'`]?\s*=\s*-?)(?P<value>{_TEXT}|[^\s;&,'"()=]+)""", re.I)
_HELD = re.compile(
    rf"""{_BARE}|(?<![\w.-])(?P<name>[\w.-]*(?:{_NAMED})[\w.-]*["']{{0,2}}\s*[=:]\s*)(?!//)"""
    rf"""(?P<value>''[^']+''|{_TEXT}|[^;&,'"\n]+)""",
    re.I,
)
"""What is secret in the value of an option: in settings, addresses, headers, JSON."""


def redacted(text: str) -> str:
    """Text without the values of options whose names say that they are secret, and without those in addresses.

    >>> redacted("WITH (user = 'ann', password = 'it''s', url = 'kafka://ann:x@host/1?token=y&n=1')")
    "WITH (user = 'ann', password = '…', url = 'kafka://…@host/1?token=…&n=1')"
    """

    def said(found: re.Match[str]) -> str:
        if found["name"] is None:
            return "…"
        name, value = found["name"], found["value"]
        if SECRET.search(name):
            quote = next((each for each in ("''", "'", '"') if value.startswith(each) and value != each * 2), "")
            return f"{name}{quote}…{quote}"
        return name + _HELD.sub(said, value)

    return _SAID.sub(said, text) if any(mark in text for mark in ("=", "://", "earer ")) else text


class MillstreamError(Exception):
    """A mistake in a statement, a pattern, an input row or an option. Its texts are redacted."""

    operator = ""
    """The operator that raised it, if one has."""
    status = 2
    """The exit status of a program that ends with this error; 1 if it was raised while queries ran."""
    lasting = False
    """True if it does not pass by itself: a sink that raises it is not tried again."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        detail: str = "",
        hint: str = "",
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        message, detail, hint = map(redacted, (message, detail, hint))
        super().__init__(code, message)
        self.code, self.message, self.detail, self.hint = code, message, detail, hint
        self.line, self.column = line, column

    def at(self, line: int | None, column: int | None) -> MillstreamError:
        """Set the position in the text, unless it is known already, and return the error."""
        if self.line is None:
            self.line, self.column = line, column
        return self

    def __str__(self) -> str:
        where = "" if self.line is None else f" (line {self.line}, column {self.column})"
        parts = [f"{self.code}: {self.message}{where}"]
        parts += [f"  {self.detail}"] if self.detail else []
        parts += [f"  hint: {self.hint}"] if self.hint else []
        return "\n".join(parts).encode("utf-8", "backslashreplace").decode()  # text that can be printed

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuild, (type(self), self.__dict__)


def rebuild(kind: type[MillstreamError], fields: dict[str, Any]) -> MillstreamError:
    """Create an error of this class with these fields."""
    error = kind.__new__(kind, fields["code"], fields["message"])
    error.__dict__.update(fields)
    return error


def fresh(error: Raised) -> Raised:
    """A copy of a kept error, to raise: each raise, and each note, would add to the error itself."""
    try:
        made = copy(error)
    except Exception:  # an error of another package that cannot be copied
        return error
    made.__cause__ = error.__cause__
    return made.with_traceback(error.__traceback__)


class SqlSyntaxError(MillstreamError):
    """The text does not parse (codes M10xx)."""


class BindError(MillstreamError):
    """The text parses but names or types do not fit (codes M20xx)."""


class PlanError(MillstreamError):
    """The query is well formed but cannot run as a continuous query (codes M30xx)."""


class PatternError(MillstreamError):
    """A pattern is malformed or does not fit its schema (codes M40xx)."""


class InputError(MillstreamError):
    """An input element is not acceptable (codes M50xx)."""


class OptionError(MillstreamError):
    """An option does not exist or has a value out of range (codes M60xx)."""


class OperatorError(MillstreamError):
    """An operator failed (code M6053). `reason` is the cause; `stream` and `row` are the input on which it failed, if
    known."""

    def __init__(
        self, operator: str, reason: str, *, of: str = "", on: str = "", detail: str = "", hint: str = ""
    ) -> None:
        super().__init__("M6053", f"operator {operator}{of} failed{on}: {reason}", detail=detail, hint=hint)
        self.operator, self.reason = operator, reason
        self.stream: str | None = None
        self.row: str | None = None


class CodeError(MillstreamError):
    """A function or aggregate written in Python failed (code M6054). The host of the operator adds the operator, the
    query and the row (OperatorError)."""


class OutOfRange(OverflowError):
    """A computed value that does not fit its type. The host of the operator adds the operator, the query and the row
    (OperatorError)."""


class SeveralRows(OutOfRange):
    """A subquery, or an aggregate of a grouped window, in place of a value that has several rows."""


class ResultOutOfRange(OutOfRange):
    """The result of a whole group that does not fit its type: no single row is the cause."""


def reason_of(error: BaseException) -> str:
    """The message of an error in one line.

    >>> reason_of(ValueError("no such day\\nin that month")), reason_of(InputError("M5003", "cannot read 'a'"))
    ('ValueError: no such day', "cannot read 'a'")
    """
    if isinstance(error, OperatorError):
        return error.reason
    if isinstance(error, MillstreamError):
        return error.message
    if isinstance(error, OutOfRange):
        return str(error)
    lines = redacted(str(error)).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


_fronts: list[str] = []
"""`command line` inside `on_command_line`."""


@contextmanager
def on_command_line() -> Iterator[None]:
    """Inside, hints say what to type on the command line, not what to call in Python."""
    _fronts.append("command line")
    try:
        yield
    finally:
        _fronts.pop()


def advice(python: str, command_line: str) -> str:
    """A hint for a program, or for the command line.

    >>> with on_command_line():
    ...     print(advice("shards=2", "--shards 2"))
    --shards 2
    """
    return command_line if _fronts else python


LISTED = 16
"""Number of choices that a hint lists."""


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """A hint that names the closest choice, or lists the choices, if they are few.

    >>> did_you_mean("pric", ["price", "bidder"])
    "did you mean 'price'?"
    >>> did_you_mean("x", map(str, range(100, 140)))
    'known: 100, 101, 102, 103, 104, 105, 106, 107, and 32 more'
    """
    known = sorted(set(choices))
    close = difflib.get_close_matches(word.lower(), known, n=1, cutoff=0.6)
    if close:
        return f"did you mean '{close[0]}'?"
    if len(known) > LISTED:
        return f"known: {', '.join(known[: LISTED // 2])}, and {len(known) - LISTED // 2} more"
    return f"known: {', '.join(known)}" if known else ""
