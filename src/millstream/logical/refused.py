"""What a selection refuses of its input, where the input can give it up before it is complete.

`HAVING COUNT(*) < 10` drops a group that has reached ten tuples, however many follow: the aggregate need not hold it.
A condition on one column refuses the values beyond its bounds.

| condition | refuses |
|---|---|
| `c < v`, `c <= v` | `[c >= v]`, `[c > v]` |
| `c > v`, `c >= v` | `[c <= v]`, `[c < v]` |
| `c = v`, `c IN (…)` | `[c > v]` and `[c < v]`, of the greatest and the least value |
"""

from __future__ import annotations

from collections.abc import Iterator

from millstream.algebra.expression import Binary, Column, Expression, InList, Literal, conjuncts
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import Restriction, above, below
from millstream.logical.nodes.instrument import Instrument
from millstream.logical.nodes.select import Select
from millstream.logical.plan import Plan

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def refused(plan: Plan) -> list[Pattern]:
    """Return the patterns that a node drops of its input, as far as the input watches them."""
    if isinstance(plan, Instrument):
        return [plan.pattern] if plan.stands else []
    if not isinstance(plan, Select):
        return []
    found = [
        Pattern.of({name: restriction})
        for condition in conjuncts(plan.predicate)
        for name, restriction in _beyond(condition)
    ]
    return [pattern for pattern in found if not pattern.is_empty and plan.input.watched(pattern) is not None]


def _beyond(condition: Expression) -> Iterator[tuple[str, Restriction]]:
    """Yield what a condition on one column refuses."""
    match condition:
        case Binary(op=op, left=Literal(value=value), right=Column(name=name)) if op in _MIRRORED:
            yield from _outside(name, _MIRRORED[op], value)
        case Binary(op=op, left=Column(name=name), right=Literal(value=value)) if op in _MIRRORED:
            yield from _outside(name, op, value)
        case InList(operand=Column(name=name), options=options):
            values = [option.value for option in options if isinstance(option, Literal) and option.value is not None]
            if values and len(values) == len(options):
                yield from ((name, above(max(values))), (name, below(min(values))))


def _outside(name: str, op: str, value: object) -> Iterator[tuple[str, Restriction]]:
    if op in ("<", "<=", "="):
        yield name, above(value, op == "<")
    if op in (">", ">=", "="):
        yield name, below(value, op == ">")
