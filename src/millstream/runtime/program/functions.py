"""Functions and casts as Python source. Short ones need no call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.algebra.expression import Call, Cast, Expression
from millstream.algebra.types import Type
from millstream.runtime.program import scalars
from millstream.runtime.program.forms import ALIKE, constant
from millstream.runtime.program.operators import fitting
from millstream.runtime.program.source import Code

if TYPE_CHECKING:
    from millstream.runtime.program.expressions import Expressions

_LIMIT = float(1 << 63)
_SIGN = "(({1} > 0) - ({1} < 0))"
_SHORT = {
    "LN": ("log({1})", "{0} > 0 or {1} != {1}"),
    "CEIL": ("copysign(ceil({1}), {1})", "isfinite({0})", "{1}"),
    "FLOOR": ("copysign(floor({1}), {1})", "isfinite({0})", "{1}"),
    "SIGN": (f"copysign({_SIGN}, {{1}})", "{0} == {1}", "{1}"),
}
"""Functions of a DOUBLE: the value, if a test holds, and otherwise; {0} evaluates the argument, {1} repeats it."""


def cast(made: Expressions, node: Cast) -> Code:
    operand = node.operand
    given, wanted = (ALIKE.get(type_, type_) for type_ in (operand.type, node.type))
    narrow = node.type in (Type.INT, Type.REAL)
    if operand.type is node.type or (given is wanted and not narrow):
        return made.value(operand)
    match given, node.type if narrow else wanted:
        case Type.NULL, _:
            return made.value(operand)
        case Type.BIGINT, Type.DOUBLE:
            return made.strict([operand], "float({0})".format)
        case Type.BIGINT, Type.VARCHAR:
            return made.strict([operand], "str({0})".format)
        case Type.DOUBLE, Type.BIGINT if operand.type is Type.DOUBLE:
            return _whole(made, operand)
        case Type.DOUBLE, Type.BIGINT:
            return Code(made.strict([operand], "truncated({0})".format).text)
        case Type.BIGINT, Type.INT:
            return Code(made.strict([operand], "shortened({0})".format).text)
        case Type.BIGINT | Type.DOUBLE, Type.REAL if operand.type is not Type.BIGINT:
            return Code(made.strict([operand], "shortened_real({0})".format).text)
    return made.through_page(node)


def _whole(made: Expressions, operand: Expression) -> Code:
    """A DOUBLE as a BIGINT; NULL if it does not fit."""
    form, fits = "int({0})", f"{-_LIMIT!r} <= {{0}} < {_LIMIT!r}"
    match operand:
        case Call(function="CEIL" | "FLOOR" as name, arguments=(Expression(type=Type.DOUBLE) as inner,)):
            form, operand = f"{name.lower()}({{1}})", inner
        case Call(function="SIGN", arguments=(Expression(type=Type.DOUBLE) as inner,)):
            form, fits, operand = _SIGN, "{0} == {1}", inner
    return _conditional(made, operand, form.replace("{0}", "{1}"), fits)


def _conditional(made: Expressions, operand: Expression, form: str, holds: str, other: str = "None") -> Code:
    """A value that depends on a test: {0} evaluates the operand, {1} repeats it. NULL if it is NULL."""
    tests, (texts,) = made.known(operand)
    text = f"({form.format(*texts)} if {holds.format(*texts)} else {other.format(*texts)})"
    return Code(f"({text} if {' and '.join(tests)} else None)" if tests else text, bool(tests) or other == "None")


def call(made: Expressions, node: Call) -> Code:
    arguments = node.arguments
    if node.function == "COALESCE":
        *some, last = map(made.value, arguments)
        text = last.text
        for code in reversed(some):
            first, again = made.named(code)
            text = f"({again} if {first} is not None else {text})"
        return Code(text, last.nullable)
    if node.function in ("GREATEST", "LEAST") and not node.type.is_float:
        values = [made.value(each) for each in arguments]
        known = not any(value.nullable for value in values)
        name = {"GREATEST": "max", "LEAST": "min"}[node.function] if known else node.function.lower()
        return Code(f"{name}({', '.join(value.text for value in values)})", not known)
    if node.function == "ABS" and node.type.is_integer:
        return made.strict(arguments, lambda text: fitting(made, node, f"abs({text})"))
    if node.function == "ABS" and node.type.is_numeric:
        return made.strict(arguments, "abs({0})".format)
    if (folded := constant(node)) is not None:
        return made.literal(folded.value)
    if len(arguments) == 1 and arguments[0].type is Type.DOUBLE and node.function in _SHORT:
        return _conditional(made, arguments[0], *_SHORT[node.function])
    if node.function == "SIGN" and arguments[0].type is Type.BIGINT:
        tests, ((first, again),) = made.known(arguments[0])
        text = f"(({first} > 0) - ({again} < 0))"
        return Code(f"({text} if {' and '.join(tests)} else None)" if tests else text, bool(tests))
    function = scalars.native(node)
    if function is None:
        return made.through_page(node)
    name = made.frame.module.constant(function, "f")
    return Code(made.strict(arguments, lambda *texts: f"{name}({', '.join(texts)})").text)
