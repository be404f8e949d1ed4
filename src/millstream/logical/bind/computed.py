"""Columns computed below an operator that reads columns only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from millstream.algebra.expression import Column, Expression
from millstream.algebra.schema import TS
from millstream.logical.nodes.project import Project, copies
from millstream.logical.plan import Plan


@dataclass(slots=True)
class ComputedColumns:
    """Expressions over a plan, each once, and the columns that hold them."""

    input: Plan
    found: dict[Expression, str] = field(default_factory=dict)

    def column(self, bound: Expression, stem: str) -> str:
        """Return the column that holds the expression: the column itself, or one to be computed."""
        if isinstance(bound, Column) and bound.name != TS:
            return bound.name
        if bound not in self.found:
            self.found[bound] = unused(f"{stem}_1", (*self.input.schema.names, *self.found.values()))
        return self.found[bound]

    def plan(self) -> Plan:
        """Return the input with a projection on top that computes the columns."""
        if not self.found:
            return self.input
        computed = tuple((name, expression) for expression, name in self.found.items())
        return Project(self.input, copies(self.input.schema) + computed)


def unused(name: str, taken: Iterable[str]) -> str:
    """Return the name, or the first one with another number that is not taken.

    >>> unused("sum_v", ["sum_v"]), unused("argument_1", ["argument_1", "argument_2"]), unused("n", [])
    ('sum_v_1', 'argument_3', 'n')
    """
    known = {*taken}
    stem, _, last = name.rpartition("_")
    stem, number = (stem, int(last)) if last.isdigit() and stem else (name, 0)
    while name in known:
        number += 1
        name = f"{stem}_{number}"
    return name
