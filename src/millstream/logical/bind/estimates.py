"""Binds `estimate`, `low`, `high` and `complete`: they speak of the first aggregate in the select list.

| | predicted as | needs |
|---|---|---|
| COUNT | a number that rises | |
| SUM | a sum | number and standard deviation of its values |
| AVG | an average | the same |
| MIN, MAX | a bound | |
| others | not at all | |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from millstream.algebra.aggregate import functions as aggregates
from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.expression import Column, Expression
from millstream.errors import PlanError
from millstream.lang import ast
from millstream.logical.bind.aggregate_call import BoundCall

KINDS = {"COUNT": "count", "SUM": "sum", "AVG": "avg", "MIN": "min", "MAX": "max"}


def first_call(items: Iterable[Expression], calls: Mapping[BoundCall, AggregateCall]) -> BoundCall | None:
    """The first aggregate in a select list."""
    by_name = {call.name: bound for bound, call in calls.items()}
    names = (name for item in items for name in _columns(item))
    return next((by_name[name] for name in names if name in by_name), None)


def _columns(item: Expression) -> Iterator[str]:
    if isinstance(item, Column):
        yield item.name
    for child in item.children():
        yield from _columns(child)


def kind_of(call: AggregateCall) -> str | None:
    """How the final value of an aggregate is predicted; None: not at all."""
    return KINDS.get(call.function) if call.type.is_numeric else None


def estimated_call(node: ast.Expr, call: BoundCall | None, calls: Mapping[BoundCall, AggregateCall]) -> BoundCall:
    """Return the aggregate that an estimate speaks of; raise PlanError if it has none."""
    hint = f"it speaks of the first aggregate in the select list: {', '.join(KINDS)} of numbers"
    if call is None:
        raise PlanError("M3038", f"{node} needs an aggregate in the select list", hint=hint, **node.place)
    if kind_of(calls[call]) is None:
        raise PlanError("M3038", f"there is no {node} of {calls[call].text}", hint=hint, **node.place)
    return call


def moments(call: BoundCall) -> tuple[BoundCall, ...]:
    """The aggregates that its prediction needs: number and standard deviation of its values."""
    if call.function.name not in ("SUM", "AVG"):
        return ()
    needed = (aggregates.lookup(name) for name in ("COUNT", "STDDEV_SAMP"))
    return tuple(BoundCall(f, call.argument, distinct=call.distinct, filter=call.filter) for f in needed)
