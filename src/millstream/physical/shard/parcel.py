"""A parcel: the state of a part of a query in one shard, to be given to the same part in another one.

It has the part's operators with their tables and registers, the elements that wait between them, and the sources of its
streams. A part that starts again reads its streams under other names: nodes and streams correspond by their position in
the plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from millstream.algebra import values
from millstream.algebra.stream_id import StreamId
from millstream.physical.shard.topology import scans
from millstream.runtime.engine import snapshot
from millstream.runtime.engine.snapshot import NodeStates

if TYPE_CHECKING:
    from millstream.physical.shard.host import ShardHost


@values.value("parcel")
@dataclass(frozen=True, slots=True)
class Parcel:
    """`nodes`: the names of the part's nodes, in order; `scans`: the streams it scans, in order; `tables`: the content
    of state tables, by node and name; `sources`: the states of the sources of streams; `times`: by stream, the time
    that it has promised and the last that it has returned to a request; `wanted`: the streams that promise the time in
    every batch."""

    now: int
    nodes: tuple[str, ...]
    scans: tuple[str, ...]
    states: NodeStates
    tables: dict[str, dict[str, pl.DataFrame]]
    sources: dict[str, dict[str, Any]]
    times: dict[str, tuple[int | None, int | None]]
    wanted: tuple[str, ...]


def packed(host: ShardHost, name: str) -> bytes:
    """The parcel of a part; all other parts are removed from the shard."""
    host.fail([other for other in host.setup.running if other != name])
    query, nodes = host.setup.queries[name], host.compiler.nodes(name)
    read = [scan.id for scan in scans(query.plan)]
    streams = {*query.streams, *(name for stream in read for name in stream.names[:2])}
    operators = {node: host.graph.operators[node].operator for node in nodes if node in host.graph.operators}
    parcel = Parcel(
        host.clock.now(),
        nodes,
        tuple(map(str, read)),
        snapshot.take_nodes(host.graph, nodes),
        {node: {key: table.frame() for key, table in op.tables().items()} for node, op in operators.items()},
        {stream: host.sources[stream].snapshot() for stream in query.streams},
        {
            stream: (host.promises.promised.get(stream), host.promises.answered.get(stream))
            for stream in sorted(streams)
        },
        tuple(sorted(host.promises.wanted & streams)),
    )
    return values.encode(parcel)


def unpark(host: ShardHost, name: str, data: bytes) -> None:
    """Give a part that has just been started what it held."""
    parcel: Parcel = values.decode(data, "what the operators of a query held")
    query = host.setup.queries[name]
    again = zip(map(StreamId.of, parcel.scans), scans(query.plan), strict=True)
    streams = {name: other for old, new in again for name, other in zip(old.names, new.id.names, strict=True)}
    names = dict(zip(parcel.nodes, host.compiler.nodes(name), strict=True))
    host.reach(parcel.now)
    for old, tables in parcel.tables.items():
        for key, table in host.graph.operators[names[old]].operator.tables().items():
            table.replace(tables[key])
    snapshot.restore_nodes(host.graph, parcel.states, names)
    for old, state in parcel.sources.items():
        host.sources[streams[old]].restore({**state, "counts": (0, 0, 0)})
    for old, (promised, answered) in parcel.times.items():
        if promised is not None:
            host.promises.promised[streams[old]] = promised
        if answered is not None:
            host.promises.answered[streams[old]] = answered
    host.promises.wanted.update(streams[old] for old in parcel.wanted)
