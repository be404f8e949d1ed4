"""Puts the arguments of a call, and the results of built-in functions, into the expressions of a recognised body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from millstream.algebra.expression import Binary, Cast, Column, Expression, Literal, Unary, rewrite
from millstream.algebra.program.expression import Argument, CallValue
from millstream.logical.nodes.scan import Scan
from millstream.logical.plan import Plan


def over_arguments(expression: Expression, arguments: Mapping[str, Expression]) -> Expression:
    """The expression over the columns of the input."""

    def change(node: Expression) -> Expression | None:
        return arguments[node.name] if isinstance(node, Argument) else None

    return rewrite(expression, change)


def over_values(
    expression: Expression, arguments: Mapping[str, Expression], values: Sequence[Expression]
) -> Expression:
    """The expression over the columns of the input and the results of functions."""

    def change(node: Expression) -> Expression | None:
        return values[node.position] if isinstance(node, CallValue) else None

    return over_arguments(rewrite(expression, change), arguments)


def may_be_null(expression: Expression, plan: Plan, required: object) -> bool:
    """True unless the expression, over columns that are never NULL, has a value for each tuple."""
    match expression:
        case Literal(value=value):
            return value is None
        case Column(name=name):
            return not _is_required(name, plan, required)
        case Binary(op="+" | "-" | "*", left=left, right=right) if expression.type.is_numeric:
            return may_be_null(left, plan, required) or may_be_null(right, plan, required)
        case Unary(op="-", operand=operand):
            return may_be_null(operand, plan, required)
        case Unary(op="IS NULL" | "IS NOT NULL"):
            return False
        case Cast(operand=operand) if operand.type.is_numeric and expression.type.is_numeric:
            return operand.type.is_integer < expression.type.is_integer or may_be_null(operand, plan, required)
    return True


def _is_required(column: str, plan: Plan, required: object) -> bool:
    """True if the column comes unchanged from columns of streams that are never NULL."""
    if isinstance(plan, Scan):
        known = required if isinstance(required, dict) else {}
        return column in known.get(plan.stream, ())
    origins = plan.copied(column)
    return bool(origins) and all(_is_required(name, plan.inputs[port], required) for port, name in origins)
