"""`WITH PACE ON MAX(a.ts, b.ts) 1 MINUTE`: the union of the query, paced by a column.

The column is named as in the result, or by the stream and the column that it copies. Several names must mean the same
column of the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from millstream.algebra.expression import Column
from millstream.algebra.types import MICROS, Type
from millstream.errors import BindError, PlanError, did_you_mean
from millstream.lang import ast
from millstream.logical.nodes.pace import Pace
from millstream.logical.nodes.project import Project
from millstream.logical.nodes.union import Union
from millstream.logical.plan import Plan
from millstream.logical.windows import units

Members = Sequence[tuple[ast.Query, Plan]]
"""The members of a union as written, each with its plan."""


def paced(clause: ast.Pacing, plan: Plan, members: Members) -> Plan:
    """Return the plan with its union paced; a query without UNION ALL is a union of one."""
    schema = plan.schema
    found = {column: name for name in clause.columns for column in [_column(name, plan, members)]}
    if len(found) > 1:
        (first, _), (second, name) = list(found.items())[:2]
        message = f"PACE by two columns of the result, '{first}' and '{second}'"
        raise PlanError("M3032", message, hint="give them the same position in all members of the union", **name.place)
    ((column, name),) = found.items()
    type_ = schema.type_of(column)
    if not type_.is_integer and type_ is not Type.TIMESTAMP:
        message = f"PACE needs a TIMESTAMP or BIGINT column, '{column}' is {type_.value}"
        raise BindError("M2026", message, **name.place)
    unit = 1 if type_.is_integer else MICROS
    tolerance = units(clause.tolerance, unit, "the lateness of PACE")
    return Pace(plan.members if isinstance(plan, Union) else (plan,), column, tolerance, clause.feedback)


def _column(name: ast.Name, plan: Plan, members: Members) -> str:
    """Return the column of the result that a name means."""
    names = plan.schema.names
    if len(name.parts) == 1:
        if name.parts[0] not in names:
            hint = did_you_mean(name.parts[0], names) or "name a column of the select list"
            raise BindError("M2001", f"no column '{name}' to pace by", hint=hint, **name.place)
        return name.parts[0]
    alias, column = name.parts
    known = [(own, member) for query, member in members for own in _aliases(query) if own == alias]
    if not known:
        every = [own for query, _ in members for own in _aliases(query)]
        raise BindError("M2011", f"unknown alias '{alias}'", hint=did_you_mean(alias, every), **name.place)
    for _, member in known:
        for position, copied in enumerate(_copied(member)):
            if copied in (column, str(name)):
                return names[position]
    hint = "add it to the select list"
    raise BindError("M2001", f"the select list has no column '{name}' to pace by", hint=hint, **name.place)


def _aliases(query: ast.Query) -> Iterable[str]:
    if isinstance(query, ast.Select):
        for joined in query.sources:
            source = joined.source
            if source.alias or isinstance(source.relation, str):
                yield source.alias or str(source.relation)


def _copied(plan: Plan) -> Iterable[str | None]:
    """Return for each column of a member the column that it copies."""
    if isinstance(plan, Project):
        return [item.name if isinstance(item, Column) else None for _, item in plan.items]
    return plan.schema.names


def refuse_pacing(tail: Iterable[ast.Tail]) -> None:
    """Refuse the clause, and EMIT EARLY, in a query over tables."""
    for clause in tail:
        if isinstance(clause, ast.Pacing):
            raise PlanError("M3032", "WITH PACE needs a stream", hint="leave it out", **clause.place)
        if isinstance(clause, ast.Emit):
            raise PlanError("M3035", "EMIT EARLY needs a stream", hint="leave it out", **clause.place)
