"""Plan → operators in a query graph. Equal sub-plans become one operator, so queries share what they have in common.

Operator names are digests of the plans they carry out: the same query gets the same names in every process, which is
how a checkpoint finds its operators again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from millstream.algebra.element import Element
from millstream.algebra.schema import Schema, TimeKind
from millstream.algebra.upstream import Upstream
from millstream.logical.nodes.project import Project
from millstream.logical.nodes.scan import Scan
from millstream.logical.nodes.select import Select
from millstream.logical.plan import Plan
from millstream.physical.operators import ALONE, build, build_pipeline
from millstream.runtime.engine import Graph, Sink, Source
from millstream.runtime.engine.nodes import Hear, Producer
from millstream.runtime.operator import Operator
from millstream.runtime.registry import Site

TableFrames = Mapping[str, pl.DataFrame]


@dataclass(slots=True)
class _Compiled:
    node: Producer
    operator: Operator | None


class Compiler:
    """Puts queries into one graph and takes them out again, while it runs."""

    def __init__(
        self,
        graph: Graph,
        hear: Callable[[str], Hear],
        tables: TableFrames,
        name_of: Callable[[Plan], str] | None = None,
        place: tuple[int, int] = ALONE,
    ) -> None:
        self._graph, self._hear, self._tables = graph, hear, tables
        self._name_of = name_of or operator_name
        self.place = place
        """The number of the shard, and how many there are."""
        self._compiled: dict[Plan, _Compiled] = {}
        self._queries: dict[str, tuple[Plan, Sink]] = {}
        self._nodes: dict[str, tuple[str, ...]] = {}
        self._sources: dict[str, Source] = {}

    def add(self, name: str, plan: Plan, deliver: Callable[[Element], None]) -> None:
        """Build what is not there yet and end it in a sink."""
        compiled = self._compile(plan)
        sink = self._graph.sink(compiled.node, deliver, name=f"sink:{name}")
        self._queries[name] = plan, sink
        parts = dict.fromkeys(_carried_out(plan))
        self._nodes[name] = (*(self._compiled[part].node.name for part in reversed(parts)), sink.name)

    def remove(self, name: str) -> None:
        """Remove a query's sink and every operator that no other query reads."""
        _, sink = self._queries.pop(name)
        del self._nodes[name]
        self._graph.remove(sink)
        needed = {part for plan, _ in self._queries.values() for part in _carried_out(plan)}
        for plan in list(self._compiled):
            if plan not in needed:
                unread = self._compiled.pop(plan).node
                if isinstance(unread, Source) and isinstance(plan, Scan):
                    self._graph.remove(unread)
                    del self._sources[plan.stream]

    def push(self, stream: str, element: Element) -> None:
        self._graph.push(self._sources[stream], element)

    def streams(self) -> dict[str, Schema]:
        return {plan.stream: plan.stream_schema for plan in self._compiled if isinstance(plan, Scan)}

    def operators(self, name: str) -> list[Operator]:
        """The operators of a query, each after those that it reads."""
        plan, _ = self._queries[name]
        found = {part: self._compiled[part].operator for part in reversed(list(_carried_out(plan)))}
        return [operator for operator in found.values() if operator is not None]

    def send(self, name: str, message: Upstream) -> None:
        """Hand a message in at the top of a query."""
        self._graph.send(self._queries[name][1], message)

    def nodes(self, name: str) -> tuple[str, ...]:
        """The names of a query's nodes in the graph: sources and operators, then its sink."""
        return self._nodes[name]

    def _compile(self, plan: Plan) -> _Compiled:
        if plan in self._compiled:
            return self._compiled[plan]
        name = self._name_of(plan)
        if isinstance(plan, Scan):
            source = self._graph.source(name, plan.schema, self._hear(plan.stream))
            self._sources[plan.stream] = source
            made = _Compiled(source, None)
        else:
            chain = _chain(plan)
            read = chain[-1].inputs
            inputs = [self._compile(part).node for part in read]
            operator = build(plan, Site(self._tables, *self.place)) if len(chain) == 1 else build_pipeline(chain)
            ordered = tuple(part.schema.ordered and part.schema.kind is not TimeKind.LATENT for part in read)
            made = _Compiled(self._graph.add(operator, inputs, name=name, ordered=ordered), operator)
        self._compiled[plan] = made
        return made


def _chain(plan: Plan) -> list[Plan]:
    """The plan and the nodes below it that one step carries out with it: a projection takes along the selections and
    projections that it reads. It depends on the plan alone, so that a restart builds the same operators."""
    chain = [plan]
    while isinstance(plan, Project) and isinstance(chain[-1], Project | Select):
        below = chain[-1].input
        if not isinstance(below, Project | Select):
            break
        chain.append(below)
    return chain


def _carried_out(plan: Plan) -> Iterator[Plan]:
    """The nodes of a plan that have an operator, or a source, of their own."""
    yield plan
    for part in _chain(plan)[-1].inputs:
        yield from _carried_out(part)


def operator_name(plan: Plan) -> str:
    """A readable, stable name: the kind of operator and a digest of all it does."""
    kind = plan.stream if isinstance(plan, Scan) else type(plan).__name__
    return f"{kind}-{hashlib.sha1(repr(plan).encode()).hexdigest()[:10]}"
