"""The tables that streams write, in the graph of a shard: the operators that keep their rows, and their writers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import polars as pl

from millstream.algebra.element import Page
from millstream.algebra.program.program import Program
from millstream.logical.nodes.table_write import TableWrite
from millstream.logical.nodes.written_table import WrittenTable
from millstream.logical.plan import Plan
from millstream.physical.wire.hashing import shard_of
from millstream.runtime.engine import Graph, ports
from millstream.runtime.engine.merge import MergeNode
from millstream.runtime.engine.nodes import Producer
from millstream.runtime.table.written_table import WrittenTable as TableOperator


@dataclass(slots=True)
class _Held:
    plan: WrittenTable
    node: MergeNode
    operator: TableOperator


class Tables:
    """`frames`: the rows of tables that streams begin to write; `place`: the number of the shard, and of all shards."""

    def __init__(self, graph: Graph, frames: Mapping[str, pl.DataFrame], place: Callable[[], tuple[int, int]]) -> None:
        self._graph, self._frames, self._place = graph, frames, place
        self._held: dict[str, _Held] = {}

    def hold(self, plan: Plan, node: Producer) -> None:
        """Note the node of a table, if the plan is one."""
        if isinstance(plan, WrittenTable):
            assert isinstance(node, MergeNode) and isinstance(node.operator, TableOperator)
            self._held[plan.table] = _Held(plan, node, node.operator)

    def drop(self, plan: Plan) -> None:
        if plan.keeps in self._held and self._held[plan.keeps].plan == plan:
            del self._held[plan.keeps]

    def rows_for(self, plan: Plan) -> dict[str, pl.DataFrame | None]:
        """The rows of tables that a new operator begins with: those of its own table, or of one that it reads."""
        if isinstance(plan, WrittenTable):
            return {plan.table: self._own(plan, self._frames.get(plan.table))}
        found = {part.keeps: self._held.get(part.keeps) for part in plan.inputs if part.keeps}
        return {name: None if held is None else held.operator.content() for name, held in found.items()}

    def fetch(self, number: int, names: Iterable[str]) -> None:
        """Let tables report their rows, as far as they are in this shard."""
        for name in names:
            if name in self._held:
                self._held[name].operator.fetch(number)

    def write_once(self, name: str, program: Program, rows: pl.DataFrame | None) -> None:
        """Run a statement on a table."""
        if (held := self._held.get(name)) is None:
            return
        held.operator.settle(held.node.bound())
        if (changes := held.operator.once(program, self._own(held.plan, rows))) is not None:
            held.node.buffer.append(Page(changes))
            self._graph.run()

    def _own(self, table: WrittenTable, rows: pl.DataFrame | None) -> pl.DataFrame | None:
        """Those of the rows of a table that belong to this shard."""
        if rows is None or not table.partitioned:
            return rows
        number, shards = self._place()
        return rows.filter(pl.Series(shard_of(rows, table.key, shards) == number))

    def attach(self, plan: Plan, writer: Producer, *, ordered: bool) -> tuple[str, ...]:
        """Let a table read a writer, if the plan is one; return the names of the nodes with which the writer fails."""
        if not isinstance(plan, TableWrite) or (held := self._held.get(plan.writes)) is None:
            return ()
        held.operator.settle(held.node.bound())
        held.operator.attach(plan.program)
        ports.attach(self._graph, held.node, writer, ordered=ordered)
        return (held.node.name,)

    def detach(self, plan: Plan, writer: Producer) -> None:
        """End the reading of a writer, if the plan is one."""
        if (held := self._held.get(plan.writes)) is not None:
            held.operator.settle(held.node.bound())
            held.operator.detach(ports.detach(self._graph, held.node, writer))
            held.node.arrange()
