"""One spelling for conditions that mean the same, so that queries that start alike have equal plans.

    Select ((5 < price) AND (auction IN (3, 1)))   →   Select ((auction IN (1, 3)) AND (price > 5))

A literal goes to the right of a comparison; conjuncts, options of IN and join keys are put in the order of their text.
"""

from __future__ import annotations

from millstream.algebra.expression import Binary, Column, Expression, InList, Literal, conjunction, conjuncts, rewrite
from millstream.logical.plan import Plan
from millstream.optimizer.context import Context, bottom_up

_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def canonical_predicates(plan: Plan, context: Context) -> Plan:
    """The plan with all its conditions in their canonical spelling."""
    return bottom_up(plan, lambda node: node.canonical(canonical))


def canonical(predicate: Expression) -> Expression:
    """The predicate in its canonical spelling."""
    parts = {str(part): part for part in (rewrite(c, _part) for c in conjuncts(predicate))}
    made = conjunction(tuple(parts[text] for text in sorted(parts)))
    assert made is not None
    return made


def _part(expression: Expression) -> Expression | None:
    match expression:
        case Binary(op=op, left=left, right=right) if op in _MIRRORED:
            if _goes_right(left, right):
                return Binary(expression.type, _MIRRORED[op], rewrite(right, _part), rewrite(left, _part))
        case InList(operand=operand, options=options) if all(isinstance(o, Literal) for o in options):
            ordered = {str(option): option for option in options}
            made = tuple(sorted(ordered.values(), key=_order))
            if made != options:
                return InList(expression.type, rewrite(operand, _part), made)
    return None


def _order(option: Expression) -> tuple[int, float, str]:
    """Numbers by value, all else by text."""
    value = option.value if isinstance(option, Literal) else None
    number = float(value) if isinstance(value, int | float) else 0.0
    return (0 if isinstance(value, int | float) else 1), number, str(option)


def _goes_right(left: Expression, right: Expression) -> bool:
    if isinstance(left, Literal):
        return not isinstance(right, Literal)
    return isinstance(left, Column) and isinstance(right, Column) and left.name > right.name
