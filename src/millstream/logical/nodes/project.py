"""Projection: named expressions over the input's columns (and its hidden timestamp, as the column `__ts`).

A condition on the result is pushed below, with its columns replaced by the expressions behind them. Punctuation is
passed on, under the new names, if the projection copies all columns that it restricts, or copies all but
time and computes something that rises with it. If it copies time as well, operators above learn both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from millstream.algebra.expression import Column, Expression, rewrite
from millstream.algebra.monotone import Rises, first_of_each, monotone, rising
from millstream.algebra.names import Groups, projected_names
from millstream.algebra.response import Reach, Rule
from millstream.algebra.schema import TS, Attribute, Schema, TimeKind
from millstream.algebra.time_limits import substituted
from millstream.logical.contract.offers import Offers, distinct
from millstream.logical.contract.state_parts import StatePart
from millstream.logical.nodes.kinds.common import Stateless
from millstream.logical.plan import Conditions, Names, Need, Plan, Pushed, columns_read


@dataclass(frozen=True, slots=True)
class Project(Stateless):
    stem = "project"
    passes_prods = True
    passes_answers = True
    rules = (
        Rule("columns that are copies", Reach.EVERY, passes="the same, under the names below"),
        Rule("a computed column", why="the values that it is computed of are not known"),
    )

    input: Plan
    items: tuple[tuple[str, Expression], ...]

    @property
    def schema(self) -> Schema:
        source = self.input.schema
        attributes = tuple(Attribute(name, expression.type) for name, expression in self.items)
        copied = [(name, e.name) for name, e in self.items if isinstance(e, Column)]
        time = next((name for name, column in copied if column in (source.time, TS)), None)
        known = source.times | {TS: 0}
        offsets = {name: known[column] for name, column in copied if column in known and name != time}
        follows = tuple(item for item in self._followed(source) if item[0] != time and item[0] not in offsets)
        return replace(source, attributes=attributes, time=time, follows=follows, offsets=tuple(offsets.items()))

    def _followed(self, source: Schema) -> Iterator[tuple[str, Expression]]:
        """Yield the columns that follow time: they rise with a column that does, or with the hidden timestamp."""
        trails = source.trails
        for name, expression in self.items if source.kind is not TimeKind.LATENT else ():
            found = monotone(expression)
            if found is not None and found.rises and (found.column in trails or found.column == TS):
                yield name, substituted(expression, trails)

    @property
    def forgets(self) -> bool:
        return all(isinstance(item, Column) for _, item in self.items)

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
        copied, offers = self._copied(), inputs[0]
        first, others = first_of_each(rising(self.items, self.input.schema.trails), copied)
        found = _translated(offers, copied, tuple(first.values()))
        more = [_translated(offers, copied, (rises,), only=rises.column).templates for rises in others]
        return replace(found, templates=distinct(chain(found.templates, *more)))

    def _copied(self) -> dict[str, str]:
        return projected_names(self.items, self.input.schema, self.input.equal_columns)

    def repeats(self) -> dict[str, str]:
        """Map computed columns to the columns on which punctuation says the same already."""
        copied = self._copied()
        first, others = first_of_each(rising(self.items, self.input.schema.trails), copied)
        told = copied | {column: rises.name for column, rises in first.items()}
        return {rises.name: told[rises.column] for rises in others}

    def parameters(self) -> dict[str, Any]:
        inputs = {"input_schema": self.input.schema, "equal": self.input.equal_columns}
        return inputs | self.values("schema", "items")


def _translated(offers: Offers, copied: Mapping[str, str], computed: tuple[Rises, ...], only: str = "") -> Offers:
    """Return the offers over copied and computed columns; `only`: those that restrict this column."""
    every = {**copied, **{rises.column: rises.name for rises in computed}}
    standing = {rises.column for rises in computed if not rises.strict}
    kept = (o for o in offers.templates if all(o.class_of(c) == "+" for c in o.attributes & standing))
    templates = tuple(o for o in kept if not only or only in o.attributes)
    computes = {rises.column for rises in computed}
    templates = tuple(replace(o, key=None) if o.attributes & computes else o for o in templates)
    references = replace(offers, templates=()).renamed(copied).references
    return replace(replace(offers, templates=templates).renamed(every), references=references)


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
