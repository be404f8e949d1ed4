"""Functions and aggregates written in Python: their declaration, which plans and journals hold, and their code."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa

from millstream.algebra.identity import digest
from millstream.algebra.python.reference import Reference
from millstream.algebra.python.signature import Named, Signature, annotated_type, hints_of, parameters_of
from millstream.algebra.python.source import source_digest
from millstream.algebra.types import Type
from millstream.algebra.values import record
from millstream.arguments import is_deferred
from millstream.errors import BindError, OptionError

VALUE, POLARS, ARROW = "value", "polars", "arrow"
STYLES = (VALUE, POLARS, ARROW)
"""What a function is called with: one value of each argument, or whole columns as Polars series or Arrow arrays."""


@record("python_declaration")
class Declaration:
    """What SQL has to know. `methods`: those of an aggregate's class; none for a function. `several`: an aggregate is
    annotated to return a list of rows."""

    reference: Reference
    parameters: tuple[tuple[str, Type], ...]
    required: int
    returns: tuple[tuple[str, Type], ...]
    style: str = VALUE
    methods: tuple[str, ...] = ()
    ignore_nulls: bool = False
    several: bool = False

    @property
    def name(self) -> str:
        return self.reference.name

    @property
    def kind(self) -> str:
        return "aggregate" if self.methods else "function"

    @property
    def signature(self) -> Signature:
        return Signature(self.parameters, self.required, self.returns)

    def __str__(self) -> str:
        style = {VALUE: "a value at a time", POLARS: "Polars columns", ARROW: "Arrow columns"}
        how = ", ".join(self.methods) if self.methods and self.style == VALUE else style[self.style]
        return f"{self.name}{self.signature}: Python {self.kind} {self.reference.place}, {how}"


@dataclass(frozen=True, slots=True)
class Definition:
    """A declaration with its code: a function, or the class of an aggregate."""

    declaration: Declaration
    code: Callable[..., Any]

    @property
    def reference(self) -> Reference:
        return self.declaration.reference


def define_function(
    code: Callable[..., Any],
    *,
    name: str | None = None,
    arguments: Sequence[Named] | None = None,
    returns: Named | None = None,
    vectorized: str | None = None,
    version: str | None = None,
) -> Definition:
    """Define a scalar function. `vectorized`: 'polars' or 'arrow'; None: as its annotations say, else a value at a
    time. `version` takes the place of the source in its digest."""
    name = sql_name(name, code)
    what = f"function '{name}'"
    if not callable(code) or isinstance(code, type):
        raise BindError("M2110", f"{what} is not a function", hint="a class is registered with aggregate")
    if is_deferred(code):
        kind = "generator" if inspect.isgeneratorfunction(code) else "coroutine"
        hint = "a plain function, with def and return: it is called for one value, or one column, of each argument"
        raise BindError("M2110", f"{what} is a {kind}", hint=hint)
    style = style_of(code, vectorized, what)
    parameters, required = parameters_of(code, arguments, what)
    if style != VALUE and not parameters:
        hint = "its columns tell it how many values to return"
        raise BindError("M2110", f"{what} is vectorized and has no parameter", hint=hint)
    result = annotated_type(hints_of(code).get("return") if returns is None else returns)
    if result is None:
        hint = 'annotate it: -> float, or register with returns="DOUBLE"'
        raise BindError("M2110", f"the type that {what} returns is not known", hint=hint)
    declared = parameters, required, result, style
    identity = source_digest(code, *declared) if version is None else digest((version, declared))
    reference = Reference(name, code.__module__, code.__qualname__, identity)
    return Definition(Declaration(reference, parameters, required, (("", result),), style), code)


def sql_name(name: str | None, code: Any) -> str:
    """The name in SQL: as given, or that of the code."""
    if not callable(code):
        hint = "register code: @mill.function above a def, @mill.aggregate above a class"
        raise BindError("M2110", f"{code!r} is neither a function nor a class", hint=hint)
    found = name or getattr(code, "__name__", "")
    if not isinstance(found, str) or not found.isidentifier():
        raise BindError("M2110", f"'{found}' cannot be the name of a function", hint='give it one: name="inverse"')
    return found.lower()


def style_of(code: Callable[..., Any], wanted: str | None, what: str) -> str:
    if wanted is not None:
        if wanted not in STYLES:
            raise OptionError("M6002", f"vectorized of {what} cannot be {wanted!r}", hint="'polars' or 'arrow'")
        return wanted
    written = {str(hint) for hint in getattr(code, "__annotations__", {}).values()}
    bases = {_base(hint) for hint in hints_of(code).values()}
    if any(issubclass(base, pl.Series) for base in bases) or written & {"pl.Series", "polars.Series"}:
        return POLARS
    arrow = pa.Array | pa.ChunkedArray
    if any(issubclass(base, arrow) for base in bases) or written & {"pa.Array", "pyarrow.Array", "pa.ChunkedArray"}:
        return ARROW
    return VALUE


def _base(hint: Any) -> type:
    while typing.get_origin(hint) is typing.Annotated:
        hint = typing.get_args(hint)[0]
    return hint if isinstance(hint, type) else object
