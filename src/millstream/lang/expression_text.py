"""Expressions as a statement writes them, for hints.

>>> from millstream.lang import parse
>>> (statement,) = parse("SELECT a * (b + 1), upper(s.k), a > 1 AND (b LIKE 'it''s' OR c) FROM s")
>>> for item in statement.select.items:
...     print(text_of(item.expression))
a * (b + 1)
UPPER(s.k)
a > 1 AND (b LIKE 'it''s' OR c)
"""

from __future__ import annotations

from millstream.lang import ast
from millstream.lang.expressions import LEVELS
from millstream.lang.spelling import spelled

_LEVELS = LEVELS | {"LIKE": 4}
_TIGHTEST = 9


def text_of(node: ast.Expr | None) -> str:
    """The text of an expression of names, constants, operators, casts and functions; empty for any other."""
    return (node and _text(node, 0)) or ""


def _text(node: ast.Expr, level: int) -> str | None:
    """The text, in parentheses unless it binds at least as tightly as the level; None: it is not known."""
    match node:
        case ast.Name():
            return ".".join(map(spelled, node.parts))
        case ast.Constant():
            return _constant(node.value)
        case ast.TypedConstant():
            return f"{node.type_name} {_constant(node.text)}"
        case ast.Binary():
            own = _LEVELS[node.op]
            left, right = _text(node.left, own), _text(node.right, own + 1)
            made = None if left is None or right is None else f"{left} {node.op} {right}"
            return f"({made})" if made and own < level else made
        case ast.Unary(op="IS NULL" | "IS NOT NULL"):
            operand = _text(node.operand, _TIGHTEST)
            return operand and f"{operand} {node.op}"
        case ast.Unary(op="NOT"):
            operand = _text(node.operand, _TIGHTEST)
            return operand and (f"(NOT {operand})" if level else f"NOT {operand}")
        case ast.Cast():
            operand = _text(node.operand, 0)
            return operand and f"CAST({operand} AS {node.type_name.name})"
        case ast.Function(within=None, filter=None, over=None):
            arguments = [_text(argument, 0) for argument in node.arguments]
            inside = "*" if node.star else ", ".join(filter(None, arguments))
            return f"{node.name.upper()}({'DISTINCT ' * node.distinct}{inside})" if all(arguments) else None
    return None


def _constant(value: object) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return "NULL" if value is None else str(value).upper()
