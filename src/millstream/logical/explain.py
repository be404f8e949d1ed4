"""A plan as text: a tree, the result on top, each node with a stable number and the properties of its stream.

Nodes are numbered from the scans up, in the order in which tuples reach them. `*` marks the time column; angle brackets
hold the kind of time and whether tuples are in its order.

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

from collections.abc import Iterable, Iterator, Sequence
from itertools import count

from millstream.algebra.schema import Schema
from millstream.logical.join.cost import costs
from millstream.logical.nodes.multi_join import MultiJoin
from millstream.logical.nodes.project import Project
from millstream.logical.nodes.window_join import WindowJoin
from millstream.logical.plan import Plan


def explain(plan: Plan) -> str:
    """Return the tree of a plan, one node per line."""
    return "\n".join(_lines(plan, count(1)))


def _lines(plan: Plan, numbers: Iterator[int], inside: bool = False) -> list[str]:
    """Return the lines of a node and its inputs; `inside`: it is part of a tree of joins whose costs are printed
    above."""
    below = isinstance(plan, WindowJoin) or (inside and isinstance(plan, Project))
    inputs = [_lines(input_, numbers, below) for input_ in plan.inputs]
    lines = [f"#{next(numbers)} {plan.describe()}  {_properties(plan.schema)}"]
    cost = costs(plan) if not inside or isinstance(plan, MultiJoin) else None
    if cost is not None:
        lines.append(f"│    {cost}")
    return [*lines, *branches(inputs)]


def branches(inputs: Sequence[Iterable[str]]) -> Iterator[str]:
    """Yield the lines of a node's inputs, with the branches of the tree."""
    for place, (first, *more) in enumerate(inputs, 1):
        last = place == len(inputs)
        yield f"{'└─' if last else '├─'} {first}"
        for line in more:
            yield f"{'   ' if last else '│  '}{line}"


def _properties(schema: Schema) -> str:
    columns = ", ".join(f"{a.name}{'*' if a.name == schema.time else ''} {a.type.value}" for a in schema)
    return f"({columns}) <{schema.kind.value}, {'ordered' if schema.ordered else 'unordered'}>"
