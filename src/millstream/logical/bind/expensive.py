"""`EXPENSIVE(TABLE s, expression AS name, budget => n)` in FROM."""

from __future__ import annotations

from millstream.algebra.expression import Expression
from millstream.algebra.types import Type
from millstream.errors import BindError
from millstream.lang import ast
from millstream.logical.bind.expressions import ExpressionBinder
from millstream.logical.bind.scope import Entry, Scope
from millstream.logical.nodes.expensive import Expensive
from millstream.logical.plan import Plan

_WHERE = "EXPENSIVE"


def worked_on(written: ast.JoinedSource, plan: Plan, alias: str) -> Plan:
    """Return the plan of an entry of FROM with the work that it asks for."""
    clause = written.source.work
    if clause is None:
        return plan
    schema = plan.schema
    with clause.placing():
        if clause.name in schema.times:
            hint = f"compute another column: AS estimated_{clause.name}"
            raise BindError("M2015", f"EXPENSIVE cannot replace the time column '{clause.name}'", hint=hint)
        if clause.name.startswith("__"):
            raise BindError("M2015", f"'{clause.name}' is a reserved name")
        if clause.budget < 1:
            raise BindError("M2024", f"the budget of EXPENSIVE must be positive, found {clause.budget}")
        if clause.aside is not None and clause.aside < 0:
            hint = "aside => 3: one tuple from aside after three others; aside => 0: only if no other waits"
            raise BindError("M2024", f"aside is a number of tuples, found {clause.aside}", hint=hint)
        if clause.shed and clause.aside is not None:
            hint = "aside => n works on them later; shed => TRUE drops them"
            raise BindError("M2024", "EXPENSIVE puts tuples aside, or sheds them, but not both", hint=hint)
        expression = _bound(clause, Scope((Entry(alias, schema, written, plan),)))
    return Expensive(plan, clause.name, expression, clause.budget, clause.guard, clause.aside, clause.shed)


def _bound(clause: ast.Work, scope: Scope) -> Expression:
    made = ExpressionBinder(scope, _WHERE).bind(clause.expression)
    if made.type is Type.NULL:
        raise BindError("M2005", "the type of a NULL is not known", hint="CAST(NULL AS DOUBLE)")
    return made
