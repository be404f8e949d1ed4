"""Arguments of a program's calls, checked when they are given: not when they are first used, batches later."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

from millstream.errors import OptionError


def check_function(function: Any, takes: str, owner: str, *, code: str = "M6002") -> None:
    """Raise OptionError unless this is a plain function of these arguments, named with blanks between them. What a
    function of C takes may be unknown; then it is accepted.

    >>> check_function(lambda rows: None, "batch rows", "a sink")
    Traceback (most recent call last):
    millstream.errors.OptionError: M6002: a sink cannot be a function of (rows)
      hint: it is called as function(batch, rows)
    """
    names = takes.split()
    hint = f"it is called as function({', '.join(names)})"
    if not callable(function):
        raise OptionError(code, f"{owner} cannot be {function!r}", hint=f"a function; {hint}")
    if is_deferred(function):
        raise OptionError(code, f"{owner} cannot be a coroutine or a generator", hint="a plain function, with def")
    if (signature := unfit(function, len(names))) is not None:
        raise OptionError(code, f"{owner} cannot be a function of {signature}", hint=hint)


def is_deferred(function: Callable[..., Any]) -> bool:
    """True if a call runs nothing of the function's body."""
    kinds = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
    return any(kind(function) for kind in kinds)


def unfit(function: Callable[..., Any], number: int) -> str | None:
    """The signature of a function that cannot be called with this number of arguments; None if it can."""
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return None
    try:
        signature.bind(*range(number))
    except TypeError:
        return str(signature).partition(" ->")[0]
    return None


def check_seconds(value: Any, name: str) -> None:
    """Raise OptionError unless this is a number of seconds, or None."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise OptionError("M6002", f"{name} cannot be {value!r}", hint=f"a number of seconds: {name}=60")


def check_flag(value: Any, name: str) -> None:
    """Raise OptionError unless this is True or False."""
    if not isinstance(value, bool):
        raise OptionError("M6002", f"{name} cannot be {value!r}", hint="True or False")


def check_text(value: Any, name: str, such_as: str) -> None:
    """Raise OptionError unless this is a text."""
    if not isinstance(value, str):
        raise OptionError("M6002", f"{name} cannot be {value!r}", hint=f"a text, such as {such_as!r}")
