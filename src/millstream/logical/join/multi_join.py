"""A MultiJoin of some inputs of a join graph: its keys, and the conditions that remain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from millstream.algebra.expression import Binary, Column, Expression, conjunction
from millstream.algebra.types import Type
from millstream.logical.join.graph import JoinGraph
from millstream.logical.nodes.multi_join import MultiJoin


def multi_join(graph: JoinGraph, members: Sequence[int], conditions: Sequence[Expression]) -> MultiJoin:
    """Return the join of inputs with a common attribute. Columns that are equal over all of them become keys; other
    equal columns become conditions, in addition to `conditions`."""
    keys: list[list[str]] = [[] for _ in members]
    rest: list[tuple[str, str]] = []
    for equal in graph.equal:
        owned = [[name for name in equal if graph.owner[name] == i] for i in members]
        if all(owned):
            for own, names in zip(keys, owned, strict=True):
                own.append(names[0])
                rest += [(names[0], other) for other in names[1:]]
        else:
            inside = [name for names in owned for name in names]
            rest += [(inside[0], other) for other in inside[1:]]
    inputs = [graph.inputs[i] for i in members]
    return MultiJoin(
        tuple(input_.plan for input_ in inputs),
        tuple(input_.window for input_ in inputs),
        tuple(tuple(map(input_.own_name, names)) for input_, names in zip(inputs, keys, strict=True)),
        in_order_of_text((*conditions, *equalities(graph, rest))),
        tuple(input_.prefix for input_ in inputs),
    )


def equalities(graph: JoinGraph, pairs: Iterable[tuple[str, str]]) -> list[Expression]:
    """Return the conditions that pairs of output columns are equal."""
    return [Binary(Type.BOOLEAN, "=", _column(graph, one), _column(graph, other)) for one, other in pairs]


def in_order_of_text(conditions: Iterable[Expression]) -> Expression | None:
    """Return the conjunction of the conditions, each once."""
    found = {str(condition): condition for condition in conditions}
    return conjunction(tuple(found[text] for text in sorted(found)))


def _column(graph: JoinGraph, name: str) -> Column:
    owner = graph.inputs[graph.owner[name]]
    return Column(owner.plan.schema.type_of(owner.own_name(name)), name)
