"""Plan → operators in a query graph. Equal sub-plans become one operator, so that queries share it.

An operator's name has a digest of its plan and of the point from which it reads: the same query gets the same names in
every process, so a checkpoint finds its operators again. Equal plans that read from different points run side by side.
They share the operators that have no history: sources, selections, and projections that copy columns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial

import polars as pl

from millstream.algebra.early import Prod
from millstream.algebra.element import Element
from millstream.algebra.feedback import Feedback, Intent
from millstream.algebra.identity import digest
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.response import Response
from millstream.algebra.schema import FOREVER, TimeKind
from millstream.algebra.stream_id import StreamId
from millstream.algebra.upstream import Upstream
from millstream.algebra.values import kind_of
from millstream.logical.nodes.project import Project
from millstream.logical.nodes.scan import Scan
from millstream.logical.nodes.select import Select
from millstream.logical.plan import Plan
from millstream.logical.refused import refused
from millstream.physical.plan.copies import Copies
from millstream.physical.plan.operators import ALONE, build, build_pipeline
from millstream.physical.plan.tables import Tables
from millstream.runtime.engine import Graph, Sink, Source
from millstream.runtime.engine.graph import ENDED
from millstream.runtime.engine.nodes import Hear, OperatorNode, Producer
from millstream.runtime.engine.port import Port
from millstream.runtime.operator.contract import Input, Operator
from millstream.runtime.operator.propagation import NO_PUNCTUATIONS
from millstream.runtime.operator.registry import Site
from millstream.strategies import Owner

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
        hear: Callable[[StreamId], Hear],
        tables: TableFrames,
        name_of: Callable[[Plan, int], str] | None = None,
        place: tuple[int, int] = ALONE,
    ) -> None:
        self._graph, self._hear, self._frames = graph, hear, tables
        self.tables = Tables(graph, tables, lambda: self.place)
        self._name_of = name_of or operator_name
        self.place = place
        """The number of the shard, and the number of shards."""
        self._compiled: dict[_Key, _Compiled] = {}
        self._queries: dict[str, tuple[_Key, Sink]] = {}
        self._nodes: dict[str, tuple[str, ...]] = {}
        self._sources: dict[str, tuple[StreamId, Source]] = {}

    def add(self, name: str, plan: Plan, deliver: Callable[[Element], None], since: int = 0) -> None:
        """Build the operators that the graph lacks, and a sink for the query."""
        compiled = self._compile(_key(plan, since))
        shared = self.tables.attach(plan, compiled.node, ordered=_in_order(plan))
        sink = self._graph.sink(compiled.node, _discard if plan.silent else deliver, name=f"sink:{name}")
        self._queries[name] = _key(plan, since), sink
        parts = dict.fromkeys(_with_operators(_key(plan, since)))
        self._nodes[name] = (*(self._compiled[part].node.name for part in reversed(parts)), *shared, sink.name)

    def remove(self, name: str) -> None:
        """Remove a query's sink and every operator that no other query reads, also of a query whose operators could
        not all be built."""
        if (added := self._queries.pop(name, None)) is not None:
            del self._nodes[name]
            self.tables.detach(added[0][0], self._compiled[added[0]].node)
            self._graph.remove(added[1])
        needed = {part for key, _ in self._queries.values() for part in _with_operators(key)}
        for key in reversed(list(self._compiled)):
            if key not in needed:
                unread, plan = self._compiled.pop(key).node, key[0]
                if isinstance(unread, Source) and isinstance(plan, Scan):
                    self._graph.remove(unread)
                    del self._sources[plan.stream]
                elif isinstance(unread, OperatorNode) and self._graph.operators.get(unread.name) is unread:
                    self._graph.remove(unread)
                if isinstance(unread, OperatorNode) and not plan.inputs:
                    self._graph.remove(self._graph.sources[f"{unread.name}~"])
                self.tables.drop(plan)

    def reach(
        self,
        name: str,
        reached: Callable[[str], int],
        closed: Callable[[str], Punctuations | None],
        known: Set[Port | Sink],
    ) -> None:
        """Tell a query the time that its streams reached, and the punctuation that they sent, before it was added.
        `known`: the readers from before, which know it."""
        for part in dict.fromkeys(_with_operators(self._queries[name][0])):
            node = self._compiled[part].node
            if part[0].common and isinstance(node, OperatorNode):
                self._graph.reach(node, node.bound(), known)
            elif isinstance(node, Source) or all(port in known for port in node.ports):
                self._graph.reach(node, self._reached(part, reached), known, self._closed(part, closed))

    def _reached(self, key: _Key, reached: Callable[[str], int]) -> int:
        """The time that the output of a source, or of an operator from before, has reached. An operator that reads only
        streams that have ended has ended too."""
        plan, since = key
        lowest = min(reached(scan.id.whole) for scan in plan.walk() if isinstance(scan, Scan))
        node = self._compiled[key].node
        if isinstance(node, Source) or lowest == FOREVER:
            return lowest
        if node.prone:
            return node.bound()
        return self._reached(_key(chain_of(plan)[-1].inputs[0], since), reached)

    def _closed(self, key: _Key, closed: Callable[[str], Punctuations | None]) -> Punctuations:
        """The punctuation that a source, or an operator from before without a history, has emitted so far."""
        plan, since = key
        if isinstance(plan, Scan):
            return closed(plan.stream) or NO_PUNCTUATIONS
        operator, chain = self._compiled[key].operator, chain_of(plan)
        if operator is None or not all(part.forgets for part in chain):
            return NO_PUNCTUATIONS
        below = self._closed(_key(chain[-1].inputs[0], since), closed)
        return (operator.process([Input(None, below)]).punctuations or NO_PUNCTUATIONS) if len(below) else below

    def push(self, stream: str, element: Element) -> None:
        """Push an element to the queries that read a stream, if there are any."""
        if stream in self._sources:
            self._graph.push(self._sources[stream][1], element)

    def prod(self, copies: Sequence[tuple[str, Prod]], parts: Iterable[str] | None = None) -> None:
        """Push the copies of one prod to the streams that queries read. `parts`: those that it concerns; None: all."""
        read = [(self._sources[stream][1], prod) for stream, prod in copies if stream in self._sources]
        if read:
            operators = self._graph.operators
            names = None if parts is None else {name for part in parts for name in self._nodes[part]}
            among = None if names is None else {node for name in names if (node := operators.get(name)) is not None}
            self._graph.prod(read, among)

    def reads(self, stream: str) -> bool:
        """Return whether a query reads a stream, or a partial stream made of it."""
        return any(known.whole == stream for known, _ in self._sources.values())

    def sources(self) -> Collection[tuple[StreamId, Source]]:
        """The streams that queries read, each with its source in the graph."""
        return self._sources.values()

    def top(self, name: str) -> OperatorNode:
        """The topmost operator of a query."""
        node = self._queries[name][1].buffer.producer
        assert isinstance(node, OperatorNode)
        return node

    def ended(self, name: str) -> bool:
        """Return whether the output of a query is complete: no further row can come."""
        key, sink = self._queries[name]
        node = sink.buffer.producer
        over = isinstance(node, OperatorNode) and node.bound() == FOREVER
        return over or key[0].empty

    def owners(self, queries: Mapping[str, str]) -> dict[str, list[Owner]]:
        """The queries of each operator with its label there, by the operator's name; `queries`: by part."""
        found: dict[str, list[Owner]] = {}
        for part, query in queries.items():
            plan, since = self._queries[part][0]
            for inner, label in labels(plan).items():
                found.setdefault(self._compiled[_key(inner, since)].node.name, []).append((query, label))
        return found

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
            source = self._graph.source(name, plan.schema, self._hear(plan.id))
            self._sources[plan.stream] = plan.id, source
            compiled = _Compiled(source, None)
        elif not plan.inputs:
            compiled = self._without_inputs(plan, name)
        else:
            chain = chain_of(plan)
            read = chain[-1].inputs
            inputs = [self._compile(_key(part, since)).node for part in read]
            operator = build(plan, self._site(plan)) if len(chain) == 1 else build_pipeline(chain)
            ordered = tuple(map(_in_order, read))
            node = self._graph.add(
                operator,
                inputs,
                name=name,
                ordered=ordered,
                respond=partial(responded, chain),
                standing=[Feedback(Intent.ASSUMED, pattern) for pattern in refused(chain[-1])],
            )
            node.copies = Copies(chain)
            compiled = _Compiled(node, operator)
        self._compiled[key] = compiled
        self.tables.hold(plan, compiled.node)
        return compiled

    def _without_inputs(self, plan: Plan, name: str) -> _Compiled:
        """An operator that reads no other: its first port reads a source that has ended."""
        none = self._graph.source(f"{name}~", plan.schema)
        operator = build(plan, self._site(plan))
        node = self._graph.add(operator, [none], name=name)
        self._graph.push(none, ENDED)
        return _Compiled(node, operator)

    def _site(self, plan: Plan) -> Site:
        return Site({**self._frames, **self.tables.rows_for(plan)}, *self.place)


def responded(chain: Sequence[Plan], pattern: Pattern) -> Response:
    """Return the response of an operator to feedback; `chain`: the nodes that it runs, the topmost first."""
    response = chain[0].respond(pattern)
    for plan in chain[1:]:
        (below,) = response.omitted
        if below is None:
            return replace(response, omitted=(None,) * len(chain[-1].inputs))
        response = plan.respond(below)
    return response


def chain_of(plan: Plan) -> list[Plan]:
    """The plan and the nodes below it that one operator runs with it: a projection includes the selections and
    projections that it reads. The chain depends on the plan alone, so that a restart builds the same operators."""
    chain = [plan]
    while isinstance(plan, Project) and isinstance(chain[-1], Project | Select):
        below = chain[-1].input
        if not isinstance(below, Project | Select):
            break
        chain.append(below)
    return chain


def _discard(element: Element) -> None:
    """Take the output of a query without results."""
    del element


def _in_order(plan: Plan) -> bool:
    return plan.schema.ordered and plan.schema.kind is not TimeKind.LATENT


def _key(plan: Plan, since: int) -> _Key:
    if plan.common:
        return plan, 0
    return plan, 0 if all(part.forgets for part in plan.walk()) else since


def in_common(first: tuple[Plan, int], second: tuple[Plan, int]) -> list[Plan]:
    """The operators and sources that two queries share, given their plans and the points from which they read; the
    topmost first, without those below a shared one."""
    others = set(_with_operators(_key(*second)))

    def topmost(key: _Key) -> Iterator[Plan]:
        if key in others:
            yield key[0]
            return
        for part in chain_of(key[0])[-1].inputs:
            yield from topmost(_key(part, key[1]))

    return list(dict.fromkeys(topmost(_key(*first))))


def _with_operators(key: _Key) -> Iterator[_Key]:
    """The nodes of a plan that have an operator, or a source, of their own."""
    yield key
    for part in chain_of(key[0])[-1].inputs:
        yield from _with_operators(_key(part, key[1]))


def labels(plan: Plan) -> dict[Plan, str]:
    """A short name for each operator of a plan: its kind, numbered from the second on, from the top down."""
    found: dict[Plan, str] = {}
    numbers: dict[str, int] = {}
    for part, _ in _with_operators((plan, 0)):
        if part not in found and not isinstance(part, Scan):
            kind = type(part).__name__
            numbers[kind] = numbers.get(kind, 0) + 1
            found[part] = kind if numbers[kind] == 1 else f"{kind} {numbers[kind]}"
    return found


def operator_name(plan: Plan, since: int = 0) -> str:
    """A readable, stable name: the kind of operator, and a digest of its plan and of the point it reads from."""
    words = kind_of(type(plan)).name.split("_")
    kind = plan.stream if isinstance(plan, Scan) else "".join(map(str.capitalize, words))
    return f"{kind}-{digest((plan, since))[:10]}"
