"""Scalar functions: arguments are checked and cast here, so that the worker only computes.

MOD, NULLIF and IF are bound as the operators and CASE that they abbreviate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from millstream.algebra.aggregate import functions as aggregates
from millstream.algebra.expression import Call, Case, Expression, Literal
from millstream.algebra.types import Type
from millstream.errors import BindError, did_you_mean
from millstream.logical.bind.coercion import cast, unify
from millstream.logical.bind.foreign_functions import INSTEAD
from millstream.logical.bind.operators import binary, boolean

_PARTS = ("year", "month", "day", "hour", "minute", "second")

Builder = Callable[[str, list[Expression]], Expression]


@dataclass(frozen=True, slots=True)
class Signature:
    """The number of arguments of a function (`most` None: any number) and the builder of its expression."""

    least: int
    most: int | None
    build: Builder


def check_known(name: str, others: Iterable[str] = ()) -> None:
    """Raise BindError unless there is a scalar function of this lower-case name. `others`: names to suggest."""
    if name not in _FUNCTIONS:
        hint = INSTEAD.get(name) or did_you_mean(name, (*_FUNCTIONS, *aggregates.known(), *others))
        if hint.startswith("known"):
            docs = "'millstream docs language' has the functions, 'millstream docs aggregates' the aggregates"
            hint = f"{docs}; @millstream.function registers one written in Python"
        raise BindError("M2008", f"unknown function '{name}'", hint=hint)


def call(name: str, arguments: list[Expression]) -> Expression:
    """Return a scalar function, by its lower-case name, over typed arguments."""
    check_known(name)
    signature = _FUNCTIONS[name]
    count = len(arguments)
    if count < signature.least or (signature.most is not None and count > signature.most):
        wanted = _counted(signature.least, signature.most)
        raise BindError("M2009", f"{name.upper()} takes {wanted}, found {count}")
    return signature.build(_SPELLING.get(name, name.upper()), arguments)


def extract(part: str, operand: Expression) -> Expression:
    """Return a part of a timestamp, date or interval. SECOND and EPOCH may have a fraction; the function SECOND drops
    it."""
    if operand.type not in (Type.TIMESTAMP, Type.DATE, Type.INTERVAL, Type.NULL):
        raise BindError("M2006", f"EXTRACT needs a TIMESTAMP, not {operand.type.value}")
    if operand.type is Type.INTERVAL and part in ("YEAR", "MONTH"):
        raise BindError("M2006", f"an INTERVAL has no {part}")
    result = Type.DOUBLE if part in ("SECOND", "EPOCH") else Type.BIGINT
    if operand.type is Type.NULL:
        return Literal(result, None)
    return Call(result, "EXTRACT", (Literal(Type.VARCHAR, part), operand))


def _counted(least: int, most: int | None) -> str:
    if most is None:
        return f"at least {least} argument{'s' if least != 1 else ''}"
    span = str(least) if least == most else f"{least} to {most}"
    return f"{span} argument{'s' if most != 1 else ''}"


def _numbers(name: str, arguments: list[Expression]) -> None:
    for argument in arguments:
        if not (argument.type.is_numeric or argument.type is Type.NULL):
            raise BindError("M2006", f"{name} needs a number, not {argument.type.value}")


def _texts(name: str, arguments: list[Expression]) -> list[Expression]:
    for argument in arguments:
        if argument.type not in (Type.VARCHAR, Type.NULL):
            hint = f"CAST({argument} AS VARCHAR)"
            raise BindError("M2006", f"{name} needs a VARCHAR, not {argument.type.value}", hint=hint)
    return [cast(argument, Type.VARCHAR) for argument in arguments]


def _same(name: str, arguments: list[Expression]) -> Expression:
    """Return a function whose result has the type of its argument; ROUND may also have a number of digits."""
    _numbers(name, arguments)
    value = arguments[0] if arguments[0].type is not Type.NULL else cast(arguments[0], Type.DOUBLE)
    if len(arguments) == 2 and not (arguments[1].type.is_integer or arguments[1].type is Type.NULL):
        raise BindError("M2006", f"{name} needs an integer number of digits, not {arguments[1].type.value}")
    return Call(value.type, name, (value, *(cast(digits, Type.INT) for digits in arguments[1:])))


def _double(name: str, arguments: list[Expression]) -> Expression:
    _numbers(name, arguments)
    return Call(Type.DOUBLE, name, tuple(cast(argument, Type.DOUBLE) for argument in arguments))


def _of_texts(result: Type) -> Builder:
    return lambda name, arguments: Call(result, name, tuple(_texts(name, arguments)))


def _substring(name: str, arguments: list[Expression]) -> Expression:
    for position in arguments[1:]:
        if not (position.type.is_integer or position.type is Type.NULL):
            raise BindError("M2006", f"{name} needs integer positions, not {position.type.value}")
    places = (cast(position, Type.BIGINT) for position in arguments[1:])
    return Call(Type.VARCHAR, name, (*_texts(name, arguments[:1]), *places))


def _concat(name: str, arguments: list[Expression]) -> Expression:
    return Call(Type.VARCHAR, name, tuple(cast(argument, Type.VARCHAR) for argument in arguments))


def _choice(name: str, arguments: list[Expression]) -> Expression:
    type_, unified = unify(arguments, name)
    if type_.is_array and name != "COALESCE":
        raise BindError("M2006", f"{name} does not compare arrays")
    return Call(type_, name, tuple(unified))


def _null_if(_: str, arguments: list[Expression]) -> Expression:
    value, other = arguments
    return Case(value.type, ((binary("=", value, other), Literal(value.type, None)),), value)


def _if(name: str, arguments: list[Expression]) -> Expression:
    condition = boolean(arguments[0], name)
    type_, (value, *otherwise) = unify(arguments[1:], name)
    return Case(type_, ((condition, value),), otherwise[0] if otherwise else None)


_SPELLING = {"ceiling": "CEIL", "pow": "POWER", "substr": "SUBSTRING", "char_length": "LENGTH"}

_FUNCTIONS: dict[str, Signature] = {
    **{name: Signature(1, 1, _same) for name in ("abs", "sign", "floor", "ceil", "ceiling")},
    "round": Signature(1, 2, _same),
    **{name: Signature(1, 1, _double) for name in ("sqrt", "ln", "exp")},
    **{name: Signature(2, 2, _double) for name in ("power", "pow")},
    "mod": Signature(2, 2, lambda _, arguments: binary("%", *arguments)),
    **{name: Signature(1, 1, _of_texts(Type.VARCHAR)) for name in ("upper", "lower")},
    **{name: Signature(1, 1, _of_texts(Type.BIGINT)) for name in ("length", "char_length")},
    **{name: Signature(1, 2, _of_texts(Type.VARCHAR)) for name in ("trim", "ltrim", "rtrim")},
    **{name: Signature(2, 3, _substring) for name in ("substring", "substr")},
    "concat": Signature(1, None, _concat),
    "replace": Signature(3, 3, _of_texts(Type.VARCHAR)),
    **{name: Signature(1, None, _choice) for name in ("coalesce", "greatest", "least")},
    "nullif": Signature(2, 2, _null_if),
    "if": Signature(2, 3, _if),
    **{
        name: Signature(1, 1, lambda name, arguments: cast(extract(name, arguments[0]), Type.BIGINT)) for name in _PARTS
    },
}
