"""The columns that each stream is hashed on, so that a query can run on many shards.

A stateful operator needs all tuples of one key on one shard: a join its key, an aggregate its group, a keyed sequence
its key. The key of the topmost one is pushed down to the scans; if it fits every operator below, each shard runs the
whole query on its part of the key space. Otherwise (two different keys) the query is cut into stages, see `stages`, or
(no key at all) it runs on one shard. It is also cut between an operator whose output has a time that depends on what a
shard holds (`Plan.holds_time`) and the next one that reads the time; likewise for punctuation, see `held_punctuation`.
A stream with a window that counts rows goes to every shard, see `placeholders`.

Each node names the keys worth trying and what a key requires of its inputs (`Plan.hash_keys`, `Plan.keys_below`). A
stream that closes another one goes to every shard as a whole, whichever shards read the closed stream: then all shards
make the same promises, as with any punctuation, and closed values stay neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from millstream.algebra.schema import TS
from millstream.logical.nodes.scan import Scan
from millstream.logical.plan import Key, Plan
from millstream.physical.plan.consensus import agreed
from millstream.physical.plan.held_punctuation import reads_held
from millstream.physical.plan.placeholders import countable, with_placeholders

Keys = dict[str, Key]
"""Stream name → the columns it is hashed on."""


@dataclass(frozen=True, slots=True)
class Partitioned:
    """The plan that shards run, and the columns to hash each stream on."""

    plan: Plan
    keys: Keys


def partitioned(plan: Plan) -> Partitioned | None:
    """Return the query for many shards, or None if it must run on one."""
    for anchor, key in wishes(plan):
        pushed = _push(anchor, key)
        if pushed is not None:
            return Partitioned(replaced(plan, anchor, pushed.plan), pushed.keys)
    return None


def partition_keys(plan: Plan) -> Keys | None:
    """Return the columns to hash each stream on, or None if the query must run on one shard."""
    made = partitioned(plan)
    return None if made is None else made.keys


def replaced(plan: Plan, old: Plan, new: Plan) -> Plan:
    """The plan with one of its nodes replaced."""
    if plan is old:
        return new
    return plan.with_inputs(tuple(replaced(part, old, new) for part in plan.inputs)) if plan.inputs else plan


def wishes(plan: Plan) -> Iterator[tuple[Plan, Key]]:
    """The topmost stateful operator, with each key over its output worth trying. The operators above it work tuple by
    tuple, on any shard."""
    if plan.stateless:
        yield from wishes(plan.inputs[0])
    else:
        yield from ((plan, key) for key in plan.hash_keys())


def _push(plan: Plan, key: Key) -> Partitioned | None:
    """Return the plan with its output hashed on `key`, and the keys of its streams; None if that is impossible."""
    if isinstance(plan, Scan):
        return Partitioned(plan, {plan.stream: key}) if can_hash(plan, key) else None
    below = keys_below(plan, key)
    if below is None or any(out_of_step(plan, below)):
        return None
    plan = with_placeholders(plan, below)
    inputs: list[Plan] = []
    keys: Keys = {}
    for place, (part, wanted) in enumerate(zip(plan.inputs, below, strict=True)):
        pushed = _push(part, wanted)
        if pushed is None or any(keys.get(stream, known) != known for stream, known in pushed.keys.items()):
            return None
        inputs.append(agreed(plan, place, pushed.plan, wanted))
        keys |= pushed.keys
    return Partitioned(plan.with_inputs(tuple(inputs)), keys)


def out_of_step(plan: Plan, below: list[Key]) -> list[bool]:
    """Return for each input, hashed on its key, whether its shards have times of their own, although the node reads the
    time, or likewise punctuation. Such an input is in an earlier stage: its time is then the lowest of all shards, as
    on a single one, and its punctuation holds once all shards have emitted it."""
    timed = [plan.reads_time and _holds_time(part) for part in plan.inputs]
    return [one or other for one, other in zip(timed, reads_held(plan, below), strict=True)]


def _holds_time(plan: Plan) -> bool:
    return plan.holds_time or any(_holds_time(part) for part in plan.inputs)


def can_hash(scan: Scan, key: Key) -> bool:
    """Return whether a stream can be hashed on a key. A stream of late tuples cannot: to find them, a shard needs all
    of their stream."""
    return TS not in key and scan.id.companion != "late"


def keys_below(plan: Plan, key: Key) -> list[Key] | None:
    """Return the key that each input needs for the node's output to be hashed on `key`; None if that is impossible."""
    return plan.keys_below(key) if countable(plan) else None
