"""EXPLAIN PHYSICAL: how a plan is spread over shards, and the transition table that schedules its operators."""

from __future__ import annotations

from millstream.logical.plan import Plan, Scan
from millstream.physical.compile import Compiler
from millstream.physical.partitioning import partition_keys
from millstream.runtime.engine import Graph, format_table


def explain_physical(plan: Plan, shards: int, strategy: str) -> str:
    keys = partition_keys(plan)
    if keys is None:
        spread = "one shard: some operator needs everything in one place"
    else:
        hashed = ", ".join(f"{stream} by ({', '.join(key)})" for stream, key in sorted(keys.items()))
        spread = f"{shards} shard{'s' if shards > 1 else ''}: {hashed}"
    graph = Graph()
    name, _, size = strategy.partition(":")
    graph.set_strategy(name, k=int(size or 1))
    numbers: dict[str, int] = {}

    def name_of(part: Plan) -> str:
        """Short names for reading: the stream, or the kind of operator, numbered where there are several."""
        kind = part.stream if isinstance(part, Scan) else type(part).__name__
        numbers[kind] = numbers.get(kind, 0) + 1
        return kind if numbers[kind] == 1 else f"{kind} {numbers[kind]}"

    Compiler(graph, lambda _: lambda: None, {}, name_of).add("q", plan, lambda _: None)
    if name == "rr":
        graph.cut_into_paths()
    arcs = [f"  {arc}" for arc in map(str, graph.arcs())]
    streams = sorted({part.stream for part in plan.walk() if isinstance(part, Scan)})
    lines = [spread, f"reads {', '.join(streams)}", "", format_table(graph.table())]
    return "\n".join([*lines, "", "time is promised along", *arcs] if arcs else lines)
