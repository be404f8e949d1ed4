"""Which column each stream is hashed on, so that a query can run on many shards.

A stateful operator needs all tuples of one key in one place: a join its key, an aggregate its group, a keyed sequence
its key. The wish of the topmost one is pushed down to the scans; if every operator below can live with it, each shard
runs the whole query on its part of the key space. Otherwise (two different keys) the query is cut into stages, see
`stages`, or (no key at all) everything goes to one shard. A stream with a window that counts rows goes to every shard,
see `placeholders`.

Each node says which keys are worth trying and what a key asks of its inputs (`Plan.hash_keys`, `Plan.keys_below`). A
stream that closes another one goes to every shard as a whole, wherever the closed stream's tuples go: then all shards
promise the same, as they do with any punctuation, and closed values stay neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from millstream.algebra.schema import TS
from millstream.logical.catalog import LATE
from millstream.logical.nodes.scan import Scan
from millstream.logical.plan import Key, Plan
from millstream.physical.plan.placeholders import countable, with_placeholders

Keys = dict[str, Key]
"""Stream name → the columns it is hashed on."""


@dataclass(frozen=True, slots=True)
class Partitioned:
    """A plan as shards run it, and the columns to hash each stream on."""

    plan: Plan
    keys: Keys


def partitioned(plan: Plan) -> Partitioned | None:
    """How a query runs on many shards, or None if it needs everything in one place."""
    for anchor, key in wishes(plan):
        pushed = _push(anchor, key)
        if pushed is not None:
            return Partitioned(replaced(plan, anchor, pushed.plan), pushed.keys)
    return None


def partition_keys(plan: Plan) -> Keys | None:
    """The columns to hash each stream on, or None if the query needs everything in one place."""
    made = partitioned(plan)
    return None if made is None else made.keys


def replaced(plan: Plan, old: Plan, new: Plan) -> Plan:
    """The plan with another node in the place of one of its own."""
    if plan is old:
        return new
    return plan.with_inputs(tuple(replaced(part, old, new) for part in plan.inputs)) if plan.inputs else plan


def wishes(plan: Plan) -> Iterator[tuple[Plan, Key]]:
    """The topmost operator that cares, and keys over its output worth trying. What stands above it works tuple by tuple
    and does not care where."""
    if plan.stateless:
        yield from wishes(plan.inputs[0])
    else:
        yield from ((plan, key) for key in plan.hash_keys())


def _push(plan: Plan, key: Key) -> Partitioned | None:
    """The plan, its output hashed on `key`, and what that asks of the streams; None if that cannot be had."""
    if isinstance(plan, Scan):
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


def can_hash(scan: Scan, key: Key) -> bool:
    """Whether a stream can be hashed on a key. Late tuples cannot: to tell them, a shard needs all of their stream."""
    return TS not in key and not scan.stream.endswith(LATE)


def keys_below(plan: Plan, key: Key) -> list[Key] | None:
    """What hashing a node's output on `key` asks of each of its inputs, or None if the node cannot live with it."""
    return plan.keys_below(key) if countable(plan) else None


def _all(parts: Iterable[Keys]) -> Keys | None:
    """The parts together, if no stream is asked for two different keys."""
    merged: Keys = {}
    for part in parts:
        if any(merged.get(stream, key) != key for stream, key in part.items()):
            return None
        merged |= part
    return merged
