"""Projection: named expressions over the input's columns (and its hidden timestamp, as the column `__ts`).

A condition on the result is pushed below, with its columns replaced by the expressions behind them. Punctuation is
passed on, under the new names, if the projection copies all columns that it restricts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from millstream.algebra.expression import Column, Expression, rewrite
from millstream.algebra.names import Groups, projected_names
from millstream.algebra.schema import TS, Attribute, Schema
from millstream.logical.contract.offers import Offers
from millstream.logical.contract.state_parts import StatePart
from millstream.logical.nodes.kinds.common import Stateless
from millstream.logical.plan import Conditions, Names, Need, Plan, Pushed, columns_read


@dataclass(frozen=True, slots=True)
class Project(Stateless):
    stem = "project"

    input: Plan
    items: tuple[tuple[str, Expression], ...]

    @property
    def schema(self) -> Schema:
        source = self.input.schema
        attributes = tuple(Attribute(name, expression.type) for name, expression in self.items)
        time = next((n for n, e in self.items if isinstance(e, Column) and e.name == source.time), None)
        return replace(source, attributes=attributes, time=time if source.time is not None else None)

    def describe(self) -> str:
        return f"Project {', '.join(_described(name, e) for name, e in self.items)}"

    def push(self, conditions: Conditions) -> Pushed:
        items = dict(self.items)

        def computed(part: Expression) -> Expression | None:
            return items.get(part.name) if isinstance(part, Column) and part.name != TS else None

        return Pushed(self, (tuple(rewrite(condition, computed) for condition in conditions),))

    def pruned(self, kept: Names) -> tuple[Plan, tuple[Need, ...]]:
        items = tuple(item for item in self.items if item[0] in kept) or self.items[:1]
        return replace(self, items=items), (Need(columns_read(*(e for _, e in items))),)

    def copied(self, column: str) -> tuple[tuple[int, str], ...]:
        item = dict(self.items)[column]
        return ((0, item.name),) if isinstance(item, Column) and item.name in self.input.schema else ()

    @property
    def equal_columns(self) -> Groups:
        return ()

    def passes_on(self, inputs: tuple[Offers, ...], parts: tuple[StatePart, ...]) -> Offers:
        return inputs[0].renamed(projected_names(self.items, self.input.schema, self.input.equal_columns))

    def parameters(self) -> dict[str, Any]:
        inputs = {"input_schema": self.input.schema, "equal": self.input.equal_columns}
        return inputs | self.values("schema", "items")


def narrowed(plan: Plan, names: tuple[str, ...]) -> Plan:
    """Return the plan with just these columns, in this order."""
    if names == plan.schema.names:
        return plan
    columns = dict(copies(plan.schema))
    return Project(plan, tuple((name, columns[name]) for name in names))


def copies(schema: Schema) -> tuple[tuple[str, Expression], ...]:
    """Return the items that copy every column under its own name."""
    return tuple((attribute.name, Column(attribute.type, attribute.name)) for attribute in schema)


def _described(name: str, expression: Expression) -> str:
    if isinstance(expression, Column) and expression.name == name:
        return name
    return f"{expression} AS {name}"
