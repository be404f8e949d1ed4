"""Binds calls of functions written in Python: arguments are checked, and cast to the declared types."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.algebra.expression import Expression, PythonCall
from millstream.algebra.python.definition import Declaration
from millstream.errors import BindError
from millstream.lang.python_function import PythonFunction
from millstream.logical.bind.coercion import cast, cast_hint, common, read_as


def python_call(node: PythonFunction, arguments: Sequence[Expression]) -> PythonCall:
    declared = node.declared
    assert isinstance(declared, Declaration)
    return PythonCall(declared.signature.type, declared.reference, python_arguments(declared, arguments))


def python_arguments(declared: Declaration, arguments: Sequence[Expression]) -> tuple[Expression, ...]:
    """Return the arguments in the declared types; raise BindError if there are too few or too many, or if one has a
    type that is not converted implicitly."""
    parameters, required = declared.parameters, declared.required
    if not required <= len(arguments) <= len(parameters):
        count = str(required) if required == len(parameters) else f"{required} to {len(parameters)}"
        message = f"{declared.name} takes {count} argument{'s' if count != '1' else ''}, found {len(arguments)}"
        raise BindError("M2009", message, hint=f"{declared.name}{declared.signature}")
    found: list[Expression] = []
    for argument, (name, wanted) in zip(arguments, parameters, strict=False):
        given = read_as(argument, wanted)
        fraction = given.type.is_numeric and wanted.is_numeric and not wanted.is_integer
        if not fraction and common(given.type, wanted) is not wanted:
            hint = cast_hint(argument, wanted)
            message = f"argument '{name}' of {declared.name} is a {wanted.value}, not {given.type.value}"
            raise BindError("M2006", message, hint=hint)
        found.append(cast(given, wanted))
    return tuple(found)
