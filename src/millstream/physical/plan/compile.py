"""Plan → operators in a query graph. Equal sub-plans become one operator, so that queries share it.

An operator's name has a digest of its plan and of the point from which it reads: the same query gets the same names in
every process, so a checkpoint finds its operators again. Equal plans that read from different points run side by side.
They share sources, which hold no past tuples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from millstream.algebra.element import Element
from millstream.algebra.identity import digest
from millstream.algebra.schema import TimeKind
from millstream.algebra.upstream import Upstream
from millstream.algebra.values import kind_of
from millstream.logical.nodes.project import Project
from millstream.logical.nodes.scan import Scan
from millstream.logical.nodes.select import Select
from millstream.logical.plan import Plan
from millstream.physical.plan.operators import ALONE, build, build_pipeline
from millstream.runtime.engine import Graph, Sink, Source
from millstream.runtime.engine.nodes import Hear, Producer
from millstream.runtime.operator.contract import Operator
from millstream.runtime.operator.registry import Site

TableFrames = Mapping[str, pl.DataFrame]
_Key = tuple[Plan, int]
"""A plan, and the point from which it reads."""


@dataclass(slots=True)
class _Compiled:
    node: Producer
    operator: Operator | None


class Compiler:
    """Adds queries to a running graph and removes them."""

    def __init__(
        self,
        graph: Graph,
        hear: Callable[[str], Hear],
        tables: TableFrames,
        name_of: Callable[[Plan, int], str] | None = None,
        place: tuple[int, int] = ALONE,
    ) -> None:
        self._graph, self._hear, self._tables = graph, hear, tables
        self._name_of = name_of or operator_name
        self.place = place
        """The number of the shard, and the number of shards."""
        self._compiled: dict[_Key, _Compiled] = {}
        self._queries: dict[str, tuple[_Key, Sink]] = {}
        self._nodes: dict[str, tuple[str, ...]] = {}
        self._sources: dict[str, Source] = {}

    def add(self, name: str, plan: Plan, deliver: Callable[[Element], None], since: int = 0) -> None:
        """Build the operators that the graph lacks, and a sink for the query."""
        compiled = self._compile(_key(plan, since))
        sink = self._graph.sink(compiled.node, deliver, name=f"sink:{name}")
        self._queries[name] = _key(plan, since), sink
        parts = dict.fromkeys(_with_operators(_key(plan, since)))
        self._nodes[name] = (*(self._compiled[part].node.name for part in reversed(parts)), sink.name)

    def remove(self, name: str) -> None:
        """Remove a query's sink and every operator that no other query reads."""
        _, sink = self._queries.pop(name)
        del self._nodes[name]
        self._graph.remove(sink)
        needed = {part for key, _ in self._queries.values() for part in _with_operators(key)}
        for key in list(self._compiled):
            if key not in needed:
                unread, plan = self._compiled.pop(key).node, key[0]
                if isinstance(unread, Source) and isinstance(plan, Scan):
                    self._graph.remove(unread)
                    del self._sources[plan.stream]

    def push(self, stream: str, element: Element) -> None:
        """Push an element to the queries that read a stream, if there are any."""
        if stream in self._sources:
            self._graph.push(self._sources[stream], element)

    def operators(self, name: str) -> list[Operator]:
        """The operators of a query, each after those that it reads."""
        key, _ = self._queries[name]
        found = {part: self._compiled[part].operator for part in reversed(list(_with_operators(key)))}
        return [operator for operator in found.values() if operator is not None]

    def send(self, name: str, message: Upstream) -> None:
        """Send a message upstream from the sink of a query."""
        self._graph.send(self._queries[name][1], message)

    def nodes(self, name: str) -> tuple[str, ...]:
        """The names of a query's nodes in the graph: sources and operators, then its sink."""
        return self._nodes[name]

    def _compile(self, key: _Key) -> _Compiled:
        if key in self._compiled:
            return self._compiled[key]
        plan, since = key
        name = self._name_of(plan, since)
        if isinstance(plan, Scan):
            source = self._graph.source(name, plan.schema, self._hear(plan.stream))
            self._sources[plan.stream] = source
            compiled = _Compiled(source, None)
        else:
            chain = _chain(plan)
            read = chain[-1].inputs
            inputs = [self._compile(_key(part, since)).node for part in read]
            operator = build(plan, Site(self._tables, *self.place)) if len(chain) == 1 else build_pipeline(chain)
            ordered = tuple(part.schema.ordered and part.schema.kind is not TimeKind.LATENT for part in read)
            compiled = _Compiled(self._graph.add(operator, inputs, name=name, ordered=ordered), operator)
        self._compiled[key] = compiled
        return compiled


def _chain(plan: Plan) -> list[Plan]:
    """The plan and the nodes below it that one operator runs with it: a projection includes the selections and
    projections that it reads. The chain depends on the plan alone, so that a restart builds the same operators."""
    chain = [plan]
    while isinstance(plan, Project) and isinstance(chain[-1], Project | Select):
        below = chain[-1].input
        if not isinstance(below, Project | Select):
            break
        chain.append(below)
    return chain


def _key(plan: Plan, since: int) -> _Key:
    return plan, 0 if isinstance(plan, Scan) else since


def _with_operators(key: _Key) -> Iterator[_Key]:
    """The nodes of a plan that have an operator, or a source, of their own."""
    yield key
    for part in _chain(key[0])[-1].inputs:
        yield from _with_operators(_key(part, key[1]))


def operator_name(plan: Plan, since: int = 0) -> str:
    """A readable, stable name: the kind of operator, and a digest of its plan and of the point it reads from."""
    words = kind_of(type(plan)).name.split("_")
    kind = plan.stream if isinstance(plan, Scan) else "".join(map(str.capitalize, words))
    return f"{kind}-{digest((plan, since))[:10]}"
