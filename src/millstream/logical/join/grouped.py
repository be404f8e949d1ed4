"""One n-way join for some inputs of a join graph: which columns are its keys, and what is left to be tested."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from millstream.algebra.expression import Binary, Column, Expression, conjunction
from millstream.algebra.types import Type
from millstream.logical.join.graph import JoinGraph
from millstream.logical.nodes.multi_join import MultiJoin


def one_operator(graph: JoinGraph, members: Sequence[int], conditions: Sequence[Expression]) -> MultiJoin:
    """The join of inputs that have an attribute in common. Columns that are equal over all of them are keys; other
    equal ones become conditions, beside those given."""
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
    leaves = [graph.leaves[i] for i in members]
    columns = [
        tuple(leaf.plan.schema.names[leaf.names.index(name)] for name in names)
        for leaf, names in zip(leaves, keys, strict=True)
    ]
    return MultiJoin(
        tuple(leaf.plan for leaf in leaves),
        tuple(leaf.window for leaf in leaves),
        tuple(columns),
        in_order_of_text((*conditions, *equalities(graph, rest))),
        tuple(leaf.prefix for leaf in leaves),
    )


def equalities(graph: JoinGraph, pairs: Iterable[tuple[str, str]]) -> list[Expression]:
    """The conditions that pairs of output columns are equal."""
    return [Binary(Type.BOOLEAN, "=", _column(graph, one), _column(graph, other)) for one, other in pairs]


def in_order_of_text(conditions: Iterable[Expression]) -> Expression | None:
    """All conditions as one, each once."""
    found = {str(condition): condition for condition in conditions}
    return conjunction(tuple(found[text] for text in sorted(found)))


def _column(graph: JoinGraph, name: str) -> Column:
    leaf = graph.leaves[graph.owner[name]]
    return Column(leaf.plan.schema.type_of(leaf.plan.schema.names[leaf.names.index(name)]), name)
