"""The types of a Python function: from its annotations, or as given.

| annotation | type |
|---|---|
| `int`, `float`, `str`, `bool` | BIGINT, DOUBLE, VARCHAR, BOOLEAN |
| `datetime`, `date`, `timedelta` | TIMESTAMP, DATE, INTERVAL |
| `X \\| None`, `Optional[X]` | that of X |
| `Annotated[X, "REAL"]` | the named type |
| `pl.Series`, `pa.Array` | none: the type is named, by `Annotated` or when the function is registered |
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from millstream.algebra.type_names import type_named
from millstream.algebra.types import Type
from millstream.amounts import amount
from millstream.errors import BindError

_TYPES = {
    bool: Type.BOOLEAN,
    int: Type.BIGINT,
    float: Type.DOUBLE,
    str: Type.VARCHAR,
    datetime: Type.TIMESTAMP,
    date: Type.DATE,
    timedelta: Type.INTERVAL,
}
Named = str | type | Type
"""A type as a program writes it: "DOUBLE", `float`, `Type.DOUBLE`."""


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters with their types, the number of those that have no default, and the types of the result: one for
    each column, with its name."""

    parameters: tuple[tuple[str, Type], ...]
    required: int
    returns: tuple[tuple[str, Type], ...]

    @property
    def type(self) -> Type:
        return self.returns[0][1]

    def __str__(self) -> str:
        """The types as SQL.

        >>> print(Signature((("x", Type.DOUBLE), ("y", Type.INT)), 1, (("", Type.VARCHAR),)))
        (x DOUBLE [, y INT]) RETURNS VARCHAR
        """
        texts = [f"{name} {type_.value}" for name, type_ in self.parameters]
        needed, left = ", ".join(texts[: self.required]), texts[self.required :]
        for text in left:
            needed += f" [, {text}]" if needed else f"[{text}]"
        result = ", ".join(f"{name} {type_.value}".strip() for name, type_ in self.returns)
        return f"({needed}) RETURNS {result if len(self.returns) == 1 else f'({result})'}"


def hints_of(code: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a function that can be resolved."""
    try:
        return typing.get_type_hints(code, include_extras=True)
    except Exception:  # a name that exists for type checkers only
        known = {type_.__name__: type_ for type_ in _TYPES}
        written = getattr(code, "__annotations__", {})
        return {name: known[hint] for name, hint in written.items() if hint in known}


def parameters_of(
    code: Callable[..., Any], given: Sequence[Named] | None, what: str, *, method: bool = False, hint: str = ""
) -> tuple[tuple[tuple[str, Type], ...], int]:
    """Return the parameters with their types, and the number of those without a default. `method`: without `self`.
    `hint`: what to write if the number of parameters is not that of the given types."""
    found = list(inspect.signature(code).parameters.values())[1 if method else 0 :]
    for parameter in found:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.KEYWORD_ONLY):
            hint = "SQL passes arguments by position; name each one"
            stars = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(parameter.kind.name, "*, ")
            raise BindError("M2110", f"{what} has the parameter '{stars}{parameter.name}'", hint=hint)
    if given is not None and len(given) != len(found):
        are = "is" if len(given) == 1 else "are"
        message = f"{what} has {amount(len(found), 'parameter')}, and {amount(len(given), 'argument type')} {are} given"
        raise BindError("M2110", message, hint=hint or "a type for each parameter")
    hints = hints_of(code)
    made: list[tuple[str, Type]] = []
    for number, parameter in enumerate(found):
        written = hints.get(parameter.name) if given is None else given[number]
        type_ = annotated_type(written)
        if type_ is None:
            hint = 'annotate it with int, float, str, …, or register with arguments=["DOUBLE", …]'
            raise BindError("M2110", f"the type of parameter '{parameter.name}' of {what} is not known", hint=hint)
        made.append((parameter.name.lower(), type_))
    required = sum(parameter.default is parameter.empty for parameter in found)
    return tuple(made), required


def annotated_type(written: Any) -> Type | None:
    """Return the type that an annotation means; None if it means none."""
    if isinstance(written, Type):
        return written
    if isinstance(written, str):
        return type_named(written)
    if isinstance(written, type) and written in _TYPES:
        return _TYPES[written]
    origin, arguments = typing.get_origin(written), typing.get_args(written)
    if origin is typing.Annotated:
        return annotated_type(next((part for part in arguments[1:] if isinstance(part, str | Type)), arguments[0]))
    if origin in (typing.Union, types.UnionType):
        known = [part for part in arguments if part is not type(None)]
        return annotated_type(known[0]) if len(known) == 1 else None
    return None
