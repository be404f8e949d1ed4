"""Operators as Python source: arithmetic, comparisons, AND, OR and NOT of three values.

DOUBLEs compare as in Polars: NaN equals NaN and is greater than any other number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.algebra.expression import Binary, Expression, Literal, Unary, calls_code
from millstream.algebra.ranges import LIMITS
from millstream.algebra.types import Type
from millstream.runtime.program import scalars
from millstream.runtime.program.forms import calls_last, constant, has_nan, needs_nan, same_kind, unconverted
from millstream.runtime.program.source import Code

if TYPE_CHECKING:
    from millstream.runtime.program.expressions import Expressions

COMPARISONS = {"=": "==", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_WITH_NAN = {
    "=": "({0} == {1} or {2} != {2} and {3} != {3})",
    "<>": "({0} != {1} and ({2} == {2} or {3} == {3}))",
    "<": "({0} < {1} or {3} != {3} and {2} == {2})",
    "<=": "({0} <= {1} or {3} != {3})",
    ">": "({0} > {1} or {2} != {2} and {3} == {3})",
    ">=": "({0} >= {1} or {2} != {2})",
}
"""Comparisons of DOUBLEs: {0} and {1} evaluate the operands, {2} and {3} repeat them."""
_INSTANTS = (Type.TIMESTAMP, Type.INTERVAL)


def binary(made: Expressions, node: Binary) -> Code:
    op, (left, right) = node.op, calls_last(node)
    if op in ("AND", "OR"):
        helper, late = ("both", "both_used") if op == "AND" else ("either", "either_used")
        texts = made.value(left).text, made.value(right).text
        if made.may_overflow(node) or calls_code(node):
            return Code(f"{late}(lambda: {texts[0]}, lambda: {texts[1]})")
        return Code(f"{helper}({texts[0]}, {texts[1]})")
    if op in COMPARISONS:
        if not same_kind(left.type, right.type):
            return made.through_page(node)
        tests, text = compared(made, op, node)
        return Code(f"({text} if {' and '.join(tests)} else None)") if tests else Code(f"({text})", False)
    if op == "||":
        return made.strict([left, right], lambda a, b: f"{a} + {b}")
    if op == "LIKE":
        return _like(made, node)
    if node.type in _INSTANTS and left.type in _INSTANTS and right.type in _INSTANTS:
        sign = 1 if op == "+" else -1
        said = made.frame.module.constant(str(node))
        form = f"moved({{0}}, {{1}}, {sign}, {said}, {node.type.value!r})"
        return made.strict([left, right], form.format)
    if not (node.type.is_numeric and left.type.is_numeric and right.type.is_numeric):
        return made.through_page(node)
    return _arithmetic(made, node)


def _arithmetic(made: Expressions, node: Binary) -> Code:
    op = node.op
    operands = [node.left, node.right]
    if op == "%":
        return _remainder(made, node)
    if node.type is Type.REAL:
        return made.through_page(node)
    if node.type is Type.DOUBLE:
        # Python converts an integer beside a float itself
        operands = [unconverted(node.left, node.right), unconverted(node.right, node.left)]
    if op == "/":
        return _quotient(made, *operands)
    if node.type is not Type.BIGINT:
        return made.strict(operands, f"{{0}} {op} {{1}}".format)
    return made.strict(operands, lambda a, b: fitting(made, node, f"{a} {op} {b}"))


def _remainder(made: Expressions, node: Binary) -> Code:
    divides = made.facts.of(node.right)
    if divides.low > 0 and not divides.nullable and node.left.type is node.right.type is Type.BIGINT:
        if made.facts.of(node.left).low >= 0:
            return made.strict([node.left, node.right], "{0} % {1}".format)
        tests, ((first, again), (divisor, _)) = made.known(node.left, node.right)
        text = f"{again} % {divisor} if {first} >= 0 else -(-{again} % {divisor})"
        return Code(f"(({text}) if {' and '.join(tests)} else None)") if tests else Code(f"({text})", False)
    return Code(made.strict([node.left, node.right], "remainder({0}, {1})".format).text)


def _quotient(made: Expressions, left: Expression, right: Expression) -> Code:
    right = constant(right) or right
    if isinstance(right, Literal) and right.value:
        return made.strict([left, right], "{0} / {1}".format)
    tests, ((dividend, _), (first, again)) = made.known(left, right)
    return Code(f"({dividend} / {again} if {' and '.join([*tests, first])} else None)")


def fitting(made: Expressions, node: Expression, text: str) -> str:
    """The value of an integer, if it fits its type."""
    low, high = made.facts.exceeds(node)
    if not low and not high:
        return text
    least, most = LIMITS[node.type]
    name, said = made.frame.temporary(), made.frame.module.constant(str(node))
    fits = f"{f'{least} <= ' if low else ''}({name} := {text}){f' <= {most}' if high else ''}"
    return f"({name} if {fits} else out_of_range({said}, '{node.type.value}', {name}))"


def compared(made: Expressions, op: str, node: Binary) -> tuple[list[str], str]:
    """Tests that the operands are not NULL, and the comparison after them."""
    nan = has_nan(node.left.type) and needs_nan(op, node)
    tests, ((left, left_again), (right, right_again)) = made.known(node.left, node.right, once=not nan)
    if not nan:
        return tests, f"{left} {COMPARISONS[op]} {right}"
    return tests, _WITH_NAN[op].format(left, right, left_again, right_again)


def unary(made: Expressions, node: Unary) -> Code:
    operand = node.operand
    match node.op:
        case "NOT":
            return Code(f"inverted({made.value(operand).text})")
        case "IS NULL":
            return Code(f"({made.value(operand).text} is None)", False)
        case "IS NOT NULL":
            return Code(f"({made.value(operand).text} is not None)", False)
        case "-" if node.type.is_integer:
            return made.strict([operand], lambda text: fitting(made, node, f"-{text}"))
        case "-" if node.type.is_numeric:
            return made.strict([operand], "-{0}".format)
    return made.through_page(node)


def _like(made: Expressions, node: Binary) -> Code:
    if not isinstance(node.right, Literal) or node.right.value is None:
        return made.through_page(node)
    name = made.frame.module.constant(scalars.like(str(node.right.value)), "f")
    return made.strict([node.left], f"{name}({{0}})".format)
