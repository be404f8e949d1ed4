"""Functions and casts as Python source. Short ones need no call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.algebra.expression import Call, Cast, Literal
from millstream.algebra.types import Type
from millstream.runtime.program import scalars
from millstream.runtime.program.forms import ALIKE
from millstream.runtime.program.operators import fitting
from millstream.runtime.program.source import Code

if TYPE_CHECKING:
    from millstream.runtime.program.expressions import Expressions


def cast(made: Expressions, node: Cast) -> Code:
    operand = node.operand
    given, wanted = (ALIKE.get(type_, type_) for type_ in (operand.type, node.type))
    narrow = node.type in ALIKE and operand.type is not node.type
    if given is wanted and not narrow:
        return made.value(operand)
    match given, node.type:
        case Type.NULL, _:
            return made.value(operand)
        case Type.BIGINT, Type.DOUBLE:
            return made.strict([operand], "float({0})".format)
        case Type.BIGINT, Type.VARCHAR:
            return made.strict([operand], "str({0})".format)
        case Type.DOUBLE, Type.BIGINT:
            return Code(made.strict([operand], "truncated({0})".format).text)
        case Type.BIGINT, Type.INT:
            return Code(made.strict([operand], "shortened({0})".format).text)
    return made.through_page(node)


def call(made: Expressions, node: Call) -> Code:
    arguments = node.arguments
    if node.function == "COALESCE":
        *some, last = map(made.value, arguments)
        text = last.text
        for code in reversed(some):
            first, again = made.named(code)
            text = f"({again} if {first} is not None else {text})"
        return Code(text, last.nullable)
    if node.function in ("GREATEST", "LEAST") and node.type is not Type.DOUBLE:
        return Code(f"{node.function.lower()}({', '.join(made.value(each).text for each in arguments)})")
    if node.function == "ABS" and node.type is Type.BIGINT:
        return made.strict(arguments, lambda text: fitting(made, node, f"abs({text})"))
    if node.function == "ABS" and node.type is Type.DOUBLE:
        return made.strict(arguments, "abs({0})".format)
    function = scalars.native(node)
    if function is None:
        return made.through_page(node)
    if all(isinstance(each, Literal) and each.value is not None for each in arguments):
        return made.literal(function(*(each.value for each in arguments if isinstance(each, Literal))))
    name = made.frame.module.constant(function, "f")
    return Code(made.strict(arguments, lambda *texts: f"{name}({', '.join(texts)})").text)
