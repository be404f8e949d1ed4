"""Aggregates written in Python: a class whose instance holds the state of one call in one partition.

| method | called | |
|---|---|---|
| `iterate(self, x, …)` | with each tuple | required |
| `initialize(self, x, …)` | with the first tuple, instead of `iterate` | |
| `terminate(self)` | for the result of the tuples so far | |
| `expire(self, x, …)` | with a tuple that leaves the window | |

A method returns None for no row, a value for one row, a tuple for a row of several columns, and a list for any number
of rows.

A vectorized aggregate has `iterate` alone. It takes the columns of tuples of one partition, in order, and returns a
column with a result for each of them.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from millstream.algebra.identity import digest
from millstream.algebra.python.definition import VALUE, Declaration, Definition, sql_name, style_of
from millstream.algebra.python.reference import Reference
from millstream.algebra.python.signature import Named, annotated_type, hints_of, parameters_of
from millstream.algebra.python.source import source_digest
from millstream.algebra.types import Type
from millstream.errors import BindError

METHODS = ("initialize", "iterate", "terminate", "expire")
LISTS = (list, Sequence, Iterable, Iterator)
"""What the annotation of a result may say for several rows."""
Returns = Named | Mapping[str, Named]
"""The type of the result, or the types of its columns by name."""


def define_aggregate(
    code: type,
    *,
    name: str | None = None,
    arguments: Sequence[Named] | None = None,
    returns: Returns | None = None,
    ignore_nulls: bool = False,
    vectorized: str | None = None,
    version: str | None = None,
) -> Definition:
    """Define an aggregate by its class. With `ignore_nulls` it is not called for a tuple with a NULL among the
    arguments. `vectorized`: 'polars' or 'arrow', `iterate` takes whole columns; None: as it is annotated. `version`
    takes the place of the source in its digest."""
    name = sql_name(name, code)
    what = f"aggregate '{name}'"
    methods = tuple(method for method in METHODS if callable(getattr(code, method, None)))
    if not isinstance(code, type) or "iterate" not in methods:
        hint = "a class with iterate, and, as needed, initialize, terminate and expire"
        raise BindError("M2110", f"{what} has no method iterate", hint=hint)
    for method in methods:
        if inspect.iscoroutinefunction(getattr(code, method)) or inspect.isasyncgenfunction(getattr(code, method)):
            hint = f"def {method}(…), without async"
            raise BindError("M2110", f"{what}, {method}, is a coroutine", hint=hint)
    parameters, required = parameters_of(code.iterate, arguments, f"{what}, iterate,", method=True)  # type: ignore[attr-defined]
    if not parameters:
        raise BindError("M2110", f"{what} has no argument", hint="iterate(self, x)")
    style = style_of(code.iterate, vectorized, what)  # type: ignore[attr-defined]
    if style != VALUE and methods != ("iterate",):
        hint = "iterate returns a column with the result of each tuple"
        raise BindError("M2110", f"{what} is vectorized and has more than iterate", hint=hint)
    if style != VALUE and ignore_nulls:
        hint = "iterate takes the NULLs of its columns, and returns a result for each tuple"
        raise BindError("M2110", f"{what} is vectorized and cannot ignore NULLs", hint=hint)
    for method in ("initialize", "expire"):
        if method in methods:
            types = [type_ for _, type_ in parameters]
            hint = f"{method} takes what iterate takes: {method}({', '.join(('self', *(n for n, _ in parameters)))})"
            others, _ = parameters_of(getattr(code, method), types, f"{what}, {method},", method=True, hint=hint)
            assert len(others) == len(parameters)
    if "terminate" in methods and not _takes_nothing(inspect.getattr_static(code, "terminate")):
        hint = "terminate(self); iterate may keep the values of the last tuple"
        raise BindError("M2110", f"{what}, terminate, has parameters", hint=hint)
    if required < len(parameters):
        raise BindError("M2110", f"{what} has a parameter with a default", hint="give it another aggregate")
    results = _results(code, methods, returns, what)
    declared = parameters, required, results, methods, ignore_nulls, style
    identity = source_digest(code, *declared) if version is None else digest((version, declared))
    reference = Reference(name, code.__module__, code.__qualname__, identity)
    several = returns is None and any(_is_list(hints_of(getattr(code, method)).get("return")) for method in methods)
    declaration = Declaration(reference, parameters, required, results, style, methods, ignore_nulls, several)
    return Definition(declaration, code)


def _takes_nothing(method: Any) -> bool:
    """True if a method can be called without arguments, as far as it is known."""
    if not inspect.isfunction(method):
        return True
    try:
        inspect.signature(method).bind(None)
    except TypeError:
        return False
    return True


def _results(code: type, methods: Iterable[str], returns: Returns | None, what: str) -> tuple[tuple[str, Type], ...]:
    """The columns of the result: as given, or as the methods are annotated."""
    if isinstance(returns, Mapping):
        named = [(column.lower(), annotated_type(written)) for column, written in returns.items()]
    elif returns is not None:
        named = [("", annotated_type(returns))]
    else:
        order = [method for method in ("terminate", "iterate", "initialize", "expire") if method in methods]
        hints = [hints_of(getattr(code, method)).get("return") for method in order]
        known = [columns for hint in hints if (columns := list(_columns(hint)))]
        named = known[0] if known else []
    found = tuple((column, type_) for column, type_ in named if type_ is not None)
    if not found or len(found) < len(named):
        hint = 'annotate terminate or iterate: -> float, or register with returns="DOUBLE"'
        raise BindError("M2110", f"the type that {what} returns is not known", hint=hint)
    return found


def _is_list(hint: Any) -> bool:
    return typing.get_origin(hint) in LISTS or any(map(_is_list, typing.get_args(hint)))


def _columns(hint: Any) -> Iterator[tuple[str, Type | None]]:
    """The columns that an annotation of a result means."""
    if hint is None or hint is type(None):
        return
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in LISTS:
        yield from _columns(inner[0])
    elif isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields"):
        hints = typing.get_type_hints(hint)
        yield from ((name.lower(), annotated_type(hints.get(name))) for name in hint._fields)
    elif origin is tuple:
        yield from ((f"column_{at}", annotated_type(part)) for at, part in enumerate(inner, 1))
    elif origin is not None and type(None) in inner and len(inner) == 2:
        yield from _columns(next(part for part in inner if part is not type(None)))
    else:
        yield "", annotated_type(hint)
