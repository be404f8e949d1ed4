"""Binds CREATE STREAM … AS SELECT, and the companion that receives the rows whose values do not fit.

    CREATE STREAM d WITH (on_overflow = 'bad') AS SELECT a + b AS c FROM s

    d:  Project (a + b) AS c                                d__bad:  Project … AS input, … AS reason
        └─ Divert to d__bad OVERFLOWS(TRUE, (a + b))                 └─ Divert into d__bad OVERFLOWS(TRUE, (a + b))
           └─ Scan s                                                    └─ Scan s

Both are plans over the same rows, so what the companion holds depends neither on the place where the rows are read nor
on the queries that run. Both count the rows that are diverted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from millstream.algebra.expression import Call, Case, Column, Expression, Literal
from millstream.algebra.ranges import OVERFLOWS
from millstream.algebra.schema import TS
from millstream.algebra.types import Type
from millstream.errors import PlanError
from millstream.lang import ast
from millstream.logical.bind.coercion import cast
from millstream.logical.bind.query import bind_select
from millstream.logical.catalog import BAD_SCHEMA, Catalog
from millstream.logical.fused import fused
from millstream.logical.nodes.closing import Closing
from millstream.logical.nodes.divert import Divert
from millstream.logical.nodes.project import Project
from millstream.logical.nodes.scan import Scan
from millstream.logical.nodes.select import Select
from millstream.logical.plan import Plan
from millstream.logical.references import references
from millstream.options import TextOptions, one_of, read_options

_TRUE = Literal(Type.BOOLEAN, True)


class DerivedOptions(TextOptions):
    """The options of a derived stream."""

    on_overflow: Annotated[str, one_of("error", "bad")] = Field(
        default="error", description="where a row goes whose values do not fit: error (the query stops) or bad"
    )


@dataclass(frozen=True, slots=True)
class Derived:
    """The plan of a derived stream, and that of its companion for rows whose values do not fit, if it has one."""

    plan: Plan
    bad: Plan | None = None


def bind_derived(statement: ast.CreateDerivedStream, catalog: Catalog) -> Derived:
    options = read_options(DerivedOptions, dict(statement.options), f"stream {statement.name}")
    plan = bind_select(statement.select, catalog)
    if options.on_overflow == "error":
        return Derived(plan)
    if any(True for _ in references(plan)):
        hint = "Call the function in a query over the derived stream."
        raise PlanError("M3026", "on_overflow = 'bad' cannot be combined with Python functions", hint=hint)
    chain = [plan]
    while isinstance(chain[-1], Project | Select):
        chain.append(chain[-1].input)
    source = chain.pop()
    if not isinstance(source, Scan | Closing | Divert):
        hint = "Compute the values in a derived stream over one stream, and read that one."
        raise PlanError("M3026", "on_overflow = 'bad' needs a SELECT over one stream, without aggregates", hint=hint)
    found, columns = fused(chain) if chain else (None, ())
    condition = found or _TRUE
    items = {name: item for name, item in columns if not isinstance(item, Column)}
    fails = Call(Type.BOOLEAN, OVERFLOWS, (condition, *items.values()))
    name = statement.name.lower()
    made: Plan = Divert(source, fails, name)
    for node in reversed(chain):
        made = node.with_inputs((made,))
    written = _text(source), _reason(condition, items)
    return Derived(
        made, Project(Divert(source, fails, name, kept=False), tuple(zip(BAD_SCHEMA.names, written, strict=True)))
    )


def _text(source: Plan) -> Expression:
    """Return the row as a line of text, with NULL for a value that is missing."""
    parts: list[Expression] = []
    for attribute in source.schema:
        value = cast(Column(attribute.type, attribute.name), Type.VARCHAR)
        parts += [Literal(Type.VARCHAR, " | ")] if parts else []
        parts.append(Call(Type.VARCHAR, "COALESCE", (value, Literal(Type.VARCHAR, "NULL"))))
    return Call(Type.VARCHAR, "CONCAT", tuple(parts))


def _reason(condition: Expression, items: dict[str, Expression]) -> Expression:
    """Return the first column with a value that does not fit, or the condition."""

    def branch(where: str, *used: Expression) -> tuple[Expression, Expression]:
        text = f"{where}: a value of {used[-1]} does not fit its type".replace(TS, "current_time")
        return Call(Type.BOOLEAN, OVERFLOWS, used), Literal(Type.VARCHAR, text)

    branches = [branch("WHERE", condition)]
    branches += [branch(f"column '{name}'", _TRUE, item) for name, item in items.items()]
    return Case(Type.VARCHAR, tuple(branches), None)
