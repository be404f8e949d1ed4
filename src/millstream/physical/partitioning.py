"""Which column each stream is hashed on, so that a query can run on many shards.

A stateful operator needs all tuples of one key in one place: a join its key, an aggregate its group, a keyed sequence
its key. The wish of the topmost one is pushed down to the scans; if every operator below can live with it, each shard
runs the whole query on its part of the key space. Otherwise (two different keys) the query is cut into stages, see
`stages`, or (no key at all) everything goes to one shard. A stream with a window that counts rows goes to every shard,
see `placeholders`.

A stream that closes another one goes to every shard as a whole, wherever the closed stream's tuples go: then all shards
promise the same, as they do with any punctuation, and closed values stay neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from millstream.algebra.expression import Column
from millstream.algebra.schema import TS
from millstream.logical import plan as node
from millstream.logical.catalog import LATE
from millstream.logical.closing import Closing
from millstream.logical.multi_join import MultiJoin
from millstream.logical.outer_join import OuterJoin
from millstream.physical.exchange import Exchange, Gather
from millstream.physical.hashing import Key
from millstream.physical.placeholders import Placeholders, countable, with_placeholders

Keys = dict[str, Key]
"""Stream name → the columns it is hashed on."""
EVERYWHERE: Key = ()
"""Hashed on nothing: all shards have all of it."""


@dataclass(frozen=True, slots=True)
class Partitioned:
    """A plan as shards run it, and the columns to hash each stream on."""

    plan: node.Plan
    keys: Keys


def partitioned(plan: node.Plan) -> Partitioned | None:
    """How a query runs on many shards, or None if it needs everything in one place."""
    for anchor, key in wishes(plan):
        pushed = _push(anchor, key)
        if pushed is not None:
            return Partitioned(replaced(plan, anchor, pushed.plan), pushed.keys)
    return None


def partition_keys(plan: node.Plan) -> Keys | None:
    """The columns to hash each stream on, or None if the query needs everything in one place."""
    made = partitioned(plan)
    return None if made is None else made.keys


def replaced(plan: node.Plan, old: node.Plan, new: node.Plan) -> node.Plan:
    """The plan with another node in the place of one of its own."""
    if plan is old:
        return new
    return plan.with_inputs(tuple(replaced(part, old, new) for part in plan.inputs)) if plan.inputs else plan


def wishes(plan: node.Plan) -> Iterator[tuple[node.Plan, Key]]:
    """The topmost operator that cares, and keys over its output worth trying: all columns of its key, then each alone.
    What stands above it works tuple by tuple and does not care where."""
    match plan:
        case node.Project(input, _) | node.Select(input, _) | node.TableJoin(input) | Exchange(input):
            yield from wishes(input)
        case node.WindowJoin():
            yield from ((plan, key) for key in _subsets([_prefixed(a, plan.left_prefix) for a, _ in plan.keys]))
        case OuterJoin():
            yield from ((plan, key) for key in _subsets([_kept_key(plan, pair) for pair in plan.keys]))
        case MultiJoin():
            yield from ((plan, key) for key in _subsets([names[0] for names in plan.equal]))
        case node.Sequence():
            yield from ((plan, key) for key in _subsets([_prefixed(b, plan.second_prefix) for _, b in plan.keys]))
        case node.WindowAggregate() | node.PaneAggregate():
            yield from ((plan, key) for key in _subsets(list(plan.group)))
        case node.Union() | node.Distinct() | Gather():
            yield from ((plan, (name,)) for name in plan.schema.names)
        case Closing():
            yield plan, tuple(own for own, _ in plan.keys)
        case node.Scan():
            yield plan, plan.schema.names[:1]


def _subsets(names: list[str]) -> Iterator[Key]:
    if names:
        yield tuple(names)
    if len(names) > 1:
        yield from ((name,) for name in names)


def _prefixed(name: str, prefix: str | None) -> str:
    return f"{prefix}.{name}" if prefix else name


def _push(plan: node.Plan, key: Key) -> Partitioned | None:
    """The plan, its output hashed on `key`, and what that asks of the streams; None if that cannot be had."""
    if isinstance(plan, node.Scan):
        return Partitioned(plan, {plan.stream: key}) if can_hash(plan, key) else None
    below = keys_below(plan, key)
    if below is None:
        return None
    plan = with_placeholders(plan, below)
    parts: list[Partitioned] = []
    for part, k in zip(plan.inputs, below, strict=True):
        pushed = _push(part, k)
        if pushed is None:
            return None
        parts.append(pushed)
    keys = _all(part.keys for part in parts)
    return None if keys is None else Partitioned(plan.with_inputs(tuple(part.plan for part in parts)), keys)


def can_hash(scan: node.Scan, key: Key) -> bool:
    """Whether a stream can be hashed on a key. Late tuples cannot: to tell them, a shard needs all of their stream."""
    return TS not in key and not scan.stream.endswith(LATE)


def keys_below(plan: node.Plan, key: Key) -> list[Key] | None:
    """What hashing a node's output on `key` asks of each of its inputs, or None if the node cannot live with it."""
    match plan:
        case node.Select() | node.Distinct() | Exchange():
            return [key]
        case Closing(only_late=only_late):
            return None if only_late else [key, EVERYWHERE]
        case node.Project(_, items):
            sources = {name: e.name for name, e in items if isinstance(e, Column)}
            return [tuple(sources[k] for k in key)] if all(k in sources for k in key) else None
        case node.Union(members) | Gather(members):
            positions = [members[0].schema.names.index(k) for k in key]
            return [tuple(m.schema.names[p] for p in positions) for m in members]
        case node.TableJoin():
            own = {_prefixed(n, plan.stream_prefix): n for n in plan.input.schema.names}
            return [tuple(own[k] for k in key)] if all(k in own for k in key) else None
        case node.WindowAggregate(group=group) | node.PaneAggregate(group=group):
            return [key] if set(key) <= set(group) else None
        case Placeholders(_, own):
            return [EVERYWHERE] if key == own else None
        case node.WindowJoin():
            return _both(plan.keys, plan.left_prefix, plan.right_prefix, key) if countable(plan) else None
        case OuterJoin():
            if not countable(plan):
                return None
            pairs = {_kept_key(plan, pair): pair for pair in plan.keys}
            return [tuple(pairs[k][side] for k in key) for side in (0, 1)] if all(k in pairs for k in key) else None
        case MultiJoin():
            if not countable(plan):
                return None
            places = {name: place for place, names in enumerate(plan.equal) for name in names}
            if not all(k in places for k in key):
                return None
            return [tuple(own[places[k]] for k in key) for own in plan.keys]
        case node.Sequence():
            return _both(plan.keys, plan.first_prefix, plan.second_prefix, key)
    return None


def _kept_key(plan: OuterJoin, pair: tuple[str, str]) -> str:
    """What an outer join calls its output hashed on a key: the column of the side that is kept, which is never padded.
    With both sides kept there is none, and a name that is no column's, which no operator above can ask for."""
    left, right = _prefixed(pair[0], plan.left_prefix), _prefixed(pair[1], plan.right_prefix)
    return {"LEFT": left, "RIGHT": right}.get(plan.kept, f"{left} = {right}")


def _both(
    keys: tuple[tuple[str, str], ...], left_prefix: str | None, right_prefix: str | None, key: Key
) -> list[Key] | None:
    sides = {_prefixed(a, left_prefix): (a, b) for a, b in keys} | {_prefixed(b, right_prefix): (a, b) for a, b in keys}
    if not all(k in sides for k in key):
        return None
    return [tuple(sides[k][0] for k in key), tuple(sides[k][1] for k in key)]


def _all(parts: Iterable[Keys]) -> Keys | None:
    """The parts together, if no stream is asked for two different keys."""
    merged: Keys = {}
    for part in parts:
        if any(merged.get(stream, key) != key for stream, key in part.items()):
            return None
        merged |= part
    return merged
