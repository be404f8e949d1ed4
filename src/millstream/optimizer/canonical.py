"""One spelling for equivalent conditions, so that queries can share the operators of equal sub-plans.

    Select ((5 < price) AND (auction IN (3, 1)))   →   Select ((auction IN (1, 3)) AND (price > 5))

A literal moves to the right of a comparison; conjuncts, options of IN and join keys are sorted by their text.
"""

from __future__ import annotations

from millstream.algebra.expression import Binary, Column, Expression, InList, Literal, conjunction, conjuncts, rewrite
from millstream.logical.plan import Plan
from millstream.optimizer.context import Context, bottom_up

_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def canonical_predicates(plan: Plan, context: Context) -> Plan:
    """Return the plan with all conditions in canonical spelling."""
    return bottom_up(plan, lambda node: node.canonical(canonical))


def canonical(predicate: Expression) -> Expression:
    """Return the predicate in canonical spelling."""
    parts = {str(part): part for part in (rewrite(c, _part) for c in conjuncts(predicate))}
    sorted_parts = conjunction(tuple(parts[text] for text in sorted(parts)))
    assert sorted_parts is not None
    return sorted_parts


def _part(expression: Expression) -> Expression | None:
    match expression:
        case Binary(op=op, left=left, right=right) if op in _MIRRORED:
            if _goes_right(left, right):
                return Binary(expression.type, _MIRRORED[op], rewrite(right, _part), rewrite(left, _part))
        case InList(operand=operand, options=options) if all(isinstance(o, Literal) for o in options):
            each_once = {str(option): option for option in options}
            ordered = tuple(sorted(each_once.values(), key=_order))
            if ordered != options:
                return InList(expression.type, rewrite(operand, _part), ordered)
    return None


def _order(option: Expression) -> tuple[int, float, str]:
    """Sort key of a literal: numbers by value, then all others by text."""
    value = option.value if isinstance(option, Literal) else None
    return (0, float(value), str(option)) if isinstance(value, int | float) else (1, 0.0, str(option))


def _goes_right(left: Expression, right: Expression) -> bool:
    if isinstance(left, Literal):
        return not isinstance(right, Literal)
    return isinstance(left, Column) and isinstance(right, Column) and left.name > right.name
