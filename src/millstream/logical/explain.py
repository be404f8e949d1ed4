"""A plan as text: a tree, the result on top, each node with a stable number and what is known of its stream.

Nodes are numbered from the scans up, in the order in which tuples meet them. `*` marks the time column; in angle
brackets stand the kind of time and whether tuples come in its order.

>>> from millstream.algebra.schema import Schema, TimeKind
>>> from millstream.algebra.types import Type
>>> from millstream.logical.nodes.distinct import Distinct
>>> from millstream.logical.nodes.scan import Scan
>>> schema = Schema.of(("k", Type.INT), ("ts", Type.BIGINT), kind=TimeKind.EXTERNAL, time="ts")
>>> print(explain(Distinct(Scan("s", schema))))
#2 Distinct  (k INT, ts* BIGINT) <external, ordered>
└─ #1 Scan s  (k INT, ts* BIGINT) <external, ordered>
"""

from __future__ import annotations

from collections.abc import Iterator

from millstream.algebra.schema import Schema
from millstream.logical.join_cost import costs
from millstream.logical.nodes.multi_join import MultiJoin
from millstream.logical.nodes.project import Project
from millstream.logical.nodes.window_join import WindowJoin
from millstream.logical.plan import Plan


def explain(plan: Plan) -> str:
    """The tree of a plan, one node a line."""
    numbers = iter(range(1, 1 + sum(1 for _ in plan.walk())))
    return "\n".join(_lines(_numbered(plan, numbers)))


class _Numbered:
    """A node with its number; equal sub-plans at different places are different nodes here."""

    def __init__(self, plan: Plan, number: int, inputs: tuple[_Numbered, ...]) -> None:
        self.plan, self.number, self.inputs = plan, number, inputs


def _numbered(plan: Plan, numbers: Iterator[int]) -> _Numbered:
    inputs = tuple(_numbered(input_, numbers) for input_ in plan.inputs)
    return _Numbered(plan, next(numbers), inputs)


def _lines(tree: _Numbered, inside: bool = False) -> Iterator[str]:
    """The lines of a node and of what it reads; `inside`: it is part of a tree of joins whose costs have been told."""
    yield f"#{tree.number} {tree.plan.describe()}  {_properties(tree.plan.schema)}"
    told = costs(tree.plan) if not inside or isinstance(tree.plan, MultiJoin) else None
    if told is not None:
        yield f"│    {told}"
    for position, input_ in enumerate(tree.inputs):
        last = position == len(tree.inputs) - 1
        below = isinstance(tree.plan, WindowJoin) or (inside and isinstance(tree.plan, Project))
        first_line, *more = _lines(input_, below)
        yield f"{'└─' if last else '├─'} {first_line}"
        for line in more:
            yield f"{'   ' if last else '│  '}{line}"


def _properties(schema: Schema) -> str:
    columns = ", ".join(f"{a.name}{'*' if a.name == schema.time else ''} {a.type.value}" for a in schema)
    return f"({columns}) <{schema.kind.value}, {'ordered' if schema.ordered else 'unordered'}>"
