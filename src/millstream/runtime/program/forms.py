"""Other forms of expressions, and tests on them, that their source needs."""

from __future__ import annotations

from millstream.algebra.expression import Binary, Call, Cast, Expression, InList, Literal, calls_code
from millstream.algebra.types import Type
from millstream.runtime.program import scalars

ALIKE = {Type.INT: Type.BIGINT, Type.REAL: Type.DOUBLE, Type.DECIMAL: Type.DOUBLE}
"""Types whose values are those of another one in Python."""


def has_nan(type_: Type) -> bool:
    """True if NaN is among the values of a type."""
    return ALIKE.get(type_, type_) is Type.DOUBLE


def any_equal(node: InList) -> Expression:
    """`x IN (a, b)` as `x = a OR x = b`."""
    tests = [Binary(Type.BOOLEAN, "=", node.operand, option) for option in node.options]
    found: Expression = tests[0]
    for test in tests[1:]:
        found = Binary(Type.BOOLEAN, "OR", found, test)
    return found


def same_kind(left: Type, right: Type) -> bool:
    return Type.NULL in (left, right) or ALIKE.get(left, left) is ALIKE.get(right, right)


def unconverted(node: Expression, other: Expression) -> Expression:
    """The integer inside a cast to DOUBLE, if the other operand is a float."""
    own = isinstance(node, Cast) and node.operand.type.is_integer
    floats = other.type is Type.DOUBLE and not (isinstance(other, Cast) and other.operand.type.is_integer)
    return node.operand if own and floats and isinstance(node, Cast) else node


def needs_nan(op: str, node: Binary) -> bool:
    """True if a comparison of DOUBLEs has to care for NaN: Python's own differs where the greater side is NaN, or both
    sides of an equality."""
    left, right = _may_be_nan(node.left), _may_be_nan(node.right)
    return left and right if op in ("=", "<>") else right if op in ("<", "<=") else left


def _may_be_nan(node: Expression) -> bool:
    whole = isinstance(node, Cast) and node.operand.type.is_integer
    return not whole and not (isinstance(node, Literal) and node.value == node.value)


def calls_last(node: Binary) -> tuple[Expression, Expression]:
    """The operands; of AND and OR, one without Python functions first."""
    swaps = node.op in ("AND", "OR") and calls_code(node.left) and not calls_code(node.right)
    return (node.right, node.left) if swaps else (node.left, node.right)


def constant(node: Expression) -> Literal | None:
    """The value of a function of constants; None if it is something else, or NULL."""
    if isinstance(node, Literal):
        return None if node.value is None else node
    if not isinstance(node, Call) or (function := scalars.native(node)) is None:
        return None
    values = [each.value for each in map(constant, node.arguments) if each is not None]
    if len(values) < len(node.arguments) or (found := function(*values)) is None:
        return None
    return Literal(node.type, found)
