"""Errors on their way through Spark.

An error of a task or of the source reaches the driver as text inside one of Spark's exceptions, between stack traces of
Java and Python. A Millstream error is therefore written as a line that can be found in that text and read back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from millstream import errors
from millstream.errors import MillstreamError

MARK = "millstream-error:"
_FIELDS = ("code", "message", "detail", "hint", "operator", "reason", "stream", "row")


class Reported(MillstreamError):
    """An error whose text is such a line."""

    def __init__(self, error: MillstreamError) -> None:
        super().__init__(error.code, error.message, detail=error.detail, hint=error.hint)
        self.error = error

    def __str__(self) -> str:
        held = {name: value for name, value in vars(self.error).items() if name in _FIELDS}
        kind = next(kind.__name__ for kind in type(self.error).__mro__ if kind.__module__ == errors.__name__)
        return f"{MARK} {json.dumps({'kind': kind, **held})}"


@contextmanager
def reporting() -> Iterator[None]:
    """Make Millstream errors raised inside readable from Spark's exceptions."""
    try:
        yield
    except Reported:
        raise
    except MillstreamError as error:
        raise Reported(error) from error


def as_text(error: MillstreamError) -> str:
    """An error as text that `read_error` reads."""
    return str(Reported(error))


def read_error(text: str) -> MillstreamError:
    """The error that `as_text` has written."""
    error = read_report(text)
    return MillstreamError("M6053", text) if error is None else error


def read_report(text: str) -> MillstreamError | None:
    """Return the error that is written somewhere in a text, if there is one.

    >>> text = f"aborted\\n  {Reported(errors.InputError('M5040', 'no file', hint='look'))}\\n\\tat java.lang"
    >>> read_report(text)
    InputError('M5040', 'no file')
    >>> class Refused(errors.OptionError): ...
    >>> read_report(as_text(Refused("M6041", "not a folder of results")))
    OptionError('M6041', 'not a folder of results')
    >>> read_report("Job aborted")
    """
    _, found, rest = text.rpartition(MARK)
    if not found:
        return None
    try:
        held = json.JSONDecoder().raw_decode(rest.lstrip())[0]
        kind = getattr(errors, held.pop("kind"))
        return errors.rebuild(kind, {"line": None, "column": None, **held})
    except (ValueError, KeyError, AttributeError):
        return None
