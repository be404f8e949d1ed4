"""EXPLAIN PHYSICAL: the stages and shards of a plan, and the tables that schedule its operators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from millstream.algebra.stream_id import StreamId
from millstream.logical.nodes.scan import Scan
from millstream.logical.plan import EVERYWHERE, Key, Plan
from millstream.logical.written import touched
from millstream.physical.plan.compile import Compiler, labels
from millstream.physical.plan.partitioning import Keys
from millstream.physical.plan.placeholders import Placeholders
from millstream.physical.plan.preparation import PreparedPart
from millstream.runtime.engine import Graph, format_table
from millstream.runtime.engine.breaks import set_schedule
from millstream.strategies import Schedule


def explain_physical(prepared: Sequence[PreparedPart], shards: int, schedule: Schedule) -> str:
    """The parts of a query, in the order in which they run."""
    query = prepared[0].part.name
    if len(prepared) == 1:
        return "\n".join(_lines(prepared[0], query, shards, schedule))
    texts = [
        "\n".join([f"stage {made.part.stage}", *_lines(made, query, shards, schedule)])
        for made in sorted(prepared, key=lambda made: (made.part.stage, made.part.name))
    ]
    return "\n\n".join(texts)


def _lines(made: PreparedPart, query: str, shards: int, schedule: Schedule) -> Iterator[str]:
    tables = touched(made.plan)
    if tables and shards > 1 and made.keys is None:
        yield f"one shard: {_all_of([target.table for target in tables])}"
    else:
        by = "".join(f", table {target.table} {_by(target.key)}" for target in tables if made.keys is not None)
        yield _spread(made.keys, shards) + by
    streams = sorted({_named(part.id) for part in made.plan.walk() if isinstance(part, Scan)})
    if streams:
        yield f"reads {', '.join(streams)}"
    for counted in dict.fromkeys(part for part in made.plan.walk() if isinstance(part, Placeholders)):
        (stream,) = (part.stream for part in counted.walk() if isinstance(part, Scan))
        yield f"{stream} is counted on every shard, which joins its own by ({', '.join(counted.key)})"
    for stream, name, _ in made.partials:
        yield f"{stream} is aggregated where it is read: {name}"
    if made.part.reader is not None:
        key = f", by ({', '.join(made.part.key)})" if made.part.key else ""
        yield f"sends {_named(StreamId(part=made.part.name))}{key}"
    graph, shown, streams_shown = Graph(), labels(made.plan), dict[str, int]()

    def name_of(part: Plan, _: int) -> str:
        """A short name for display: the stream, or the label of the operator."""
        if not isinstance(part, Scan):
            return shown[part]
        stream = _named(part.id)
        streams_shown[stream] = streams_shown.get(stream, 0) + 1
        return stream if streams_shown[stream] == 1 else f"{stream} {streams_shown[stream]}"

    Compiler(graph, lambda _: lambda _: None, {}, name_of).add("q", made.plan, lambda _: None)
    set_schedule(graph, schedule, {label: [(query, label)] for label in shown.values()})
    yield ""
    yield format_table(graph.table())
    arcs = [f"  {arc}" for arc in map(str, graph.arcs())]
    if arcs:
        yield from ["", "time is promised along", *arcs]


def _spread(keys: Keys | None, shards: int) -> str:
    if keys is None:
        return "one shard: an operator has no key to partition by" if shards > 1 else "one shard"
    hashed = dict.fromkeys(f"{_named(StreamId.of(stream))} {_by(key)}" for stream, key in sorted(keys.items()))
    return f"{shards} shard{'s' if shards > 1 else ''}: {', '.join(hashed)}"


def _all_of(tables: list[str]) -> str:
    named = f"table {tables[0]} is" if len(tables) == 1 else f"tables {', '.join(tables)} are"
    return f"{named} there, with all queries that write or read {'it' if len(tables) == 1 else 'them'}"


def _by(key: Key) -> str:
    return "everywhere" if key == EVERYWHERE else f"by ({', '.join(key)})"


def _named(stream: StreamId) -> str:
    """The displayed name of a stream; a stream between stages has the number of the part that sends it."""
    return f"exchange {stream.sender}" if stream.exchanged else str(stream)
