"""The in-process host: a whole Millstream in one Python process, on a virtual clock.

It runs statements, feeds streams, and drives the engine batch by batch. Transcripts, `EXPLAIN`, the experiments on
scheduling and fast tests stand on it; the Spark data plane hosts the same operators.

>>> mill = LocalMill()
>>> _ = mill.execute("CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts")
>>> _ = mill.execute("CREATE QUERY q AS SELECT k FROM s WHERE k > 1")
>>> mill.insert("s", [(1, 10), (2, 11)])
>>> mill.batch()
>>> mill.take_rows("q").rows()
[(2,)]
"""

from __future__ import annotations

import pickle
from typing import Any

from millstream.algebra.element import Element
from millstream.algebra.upstream import TimeRequest, Upstream
from millstream.config import Options
from millstream.control.base import Mill, RunningQuery
from millstream.control.outputs import QueryOutput
from millstream.control.shards import ShardGroup
from millstream.errors import OptionError
from millstream.logical.plan import Plan
from millstream.physical.partitioning import Keys
from millstream.physical.plotting import Plotted, plot
from millstream.physical.stages import QueryPart, uncut
from millstream.runtime.engine import NodeStatistics

__all__ = ["LocalMill", "RunningQuery"]

GroupKey = tuple[tuple[str, tuple[str, ...]], ...] | None


class LocalMill(Mill):
    def __init__(self, options: Options | None = None) -> None:
        super().__init__(options)
        self._groups: dict[GroupKey, ShardGroup] = {}
        self._group_of: dict[str, ShardGroup] = {}
        self._planned: dict[str, Options] = {}
        """The options under which each query was planned."""

    def _attach(self, name: str, plan: Plan, *, punctuated: bool) -> QueryOutput:  # noqa: ARG002
        (whole,) = self.plot(name, plan)
        group = self._group(whole.keys)
        output = QueryOutput(plan.schema, len(group.graphs))
        group.add(name, whole.plan, output.deliver)
        self._group_of[name] = group
        self._planned[name] = self.options.model_copy()
        return output

    def plot(self, name: str, plan: Plan) -> list[Plotted]:
        part = uncut(name, plan) if self.options.shards > 1 else QueryPart(name, plan, None)
        return [Plotted(part, part.plan)]

    def _sink_to(self, query: RunningQuery) -> None:
        if query.sink is not None and str(query.sink).lower() != "memory":
            hint = "the in-process host keeps results in memory"
            raise OptionError("M6003", f"unknown sink '{query.sink}'", hint=hint)

    def _detach(self, name: str) -> None:
        self._group_of.pop(name).remove(name)
        del self._planned[name]

    def _group(self, keys: Keys | None) -> ShardGroup:
        key = None if keys is None else tuple(sorted(keys.items()))
        if key not in self._groups:
            self._groups[key] = ShardGroup(keys, self.options, self._ets, self.tables)
        return self._groups[key]

    def _configure(self) -> None:
        for group in self._groups.values():
            group.configure(self.options)

    def _push(self, stream: str, element: Element) -> None:
        for group in self._groups.values():
            group.push(stream, element)

    def _run(self) -> None:
        for group in self._groups.values():
            group.run()

    def _beat(self) -> None:
        for group in self._groups.values():
            group.heartbeat()
        self._run()

    def _ets(self, stream: str) -> Any:
        """How an idle source promises a timestamp."""
        sources = self._sources

        def hear(message: Upstream) -> int | None:
            if not isinstance(message, TimeRequest):
                return None
            return sources[stream].ets() if stream in sources else self.clock.now()

        return hear

    def group(self, name: str) -> ShardGroup:
        """The shards that run a query."""
        return self._group_of[self.query(name).name]

    def state_rows(self, name: str) -> int:
        return sum(operator.state_rows() for operator in self.group(name).operators(name.lower()))

    def request_punctuation(self, name: str) -> None:
        self.batch()
        self.group(name).request_punctuation(name.lower())

    def statistics(self, name: str) -> list[dict[str, NodeStatistics]]:
        """A reading of the operators that run a query (and those it shares the graph with), shard by shard."""
        return [graph.statistics() for graph in self.group(name).graphs]

    # --- checkpoint -----------------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """All state: statements, clock, sources, buffers, operators."""
        self.batch()
        return pickle.dumps(
            {
                "statements": [(*key, text) for key, (text, _) in self._statements.items()],
                "options": self.options.model_dump(),
                "planned": {name: options.model_dump() for name, options in self._planned.items()},
                "now": self.clock.now(),
                "next_beat": self._next_beat,
                "sources": {name: source.snapshot() for name, source in self._sources.items()},
                "tables": self.tables,
                "groups": {key: group.snapshot() for key, group in self._groups.items()},
                "outputs": {name: query.output.snapshot() for name, query in self.queries.items()},
            }
        )

    @classmethod
    def restore(cls, checkpoint: bytes) -> LocalMill:
        """A new mill that goes on where the snapshot was taken."""
        held = pickle.loads(checkpoint)
        mill = cls(Options(**held["options"]))
        mill._reach(held["now"])
        current = mill.options
        for kind, name, text in held["statements"]:
            mill.options = Options(**held["planned"][name]) if kind == "query" else current
            mill.execute(text)
            if name in mill.tables:
                mill.tables[name] = held["tables"][name]
        mill.options = current
        mill._configure()
        mill._next_beat = held["next_beat"]
        for name, values in held["sources"].items():
            mill._sources[name].restore(values)
        for key, values in held["groups"].items():
            if key in mill._groups:
                mill._groups[key].restore(values)
        for name, values in held["outputs"].items():
            mill.queries[name].output.restore(values)
        return mill


class PlanningMill(LocalMill):
    """Explains queries as Spark would run them."""

    def plot(self, name: str, plan: Plan) -> list[Plotted]:
        read = {stream.name: stream for stream in self.catalog.streams if stream.options.get("connector")}
        return plot(name, plan, read, self.options.shards)
