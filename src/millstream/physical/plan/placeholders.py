"""Joins with windows of rows on many shards: each shard counts all tuples of the stream, and joins its own.

    WindowJoin a [ROWS 5], b ON a.k = b.k           WindowJoin a [ROWS 5], b ON a.k = b.k
    ├─ Project k, v                                 ├─ Placeholders by k
    │  └─ Scan a                               →    │  └─ Project k, v
    └─ Scan b                                       │     └─ Scan a        on every shard
                                                    └─ Scan b              hashed on k

The last n tuples are those of the whole stream, whichever shards their keys belong to. So the stream goes to every
shard, through the selections and projections that decide which tuples count; after them the tuples of other shards
become placeholders. This needs a join that works in the order of time: then all shards process the tuples in the same
order. The output of other operators may differ in order between shards where times are equal, and is not counted this
way. Nor is the preserved side of an outer join: it would emit placeholders.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from millstream.algebra.expression import Column, calls_code
from millstream.algebra.names import Groups
from millstream.algebra.response import Rule
from millstream.algebra.schema import TS
from millstream.algebra.values import value
from millstream.logical.nodes.kinds.common import Passing, Stateless
from millstream.logical.nodes.kinds.joining import Joining
from millstream.logical.nodes.project import Project
from millstream.logical.nodes.scan import Scan
from millstream.logical.nodes.select import Select
from millstream.logical.plan import EVERYWHERE, Key, Plan
from millstream.physical.wire.hashing import shard_of


@dataclass(frozen=True, slots=True)
class Placeholders(Stateless, Passing):
    """All tuples of the input; those that `key` assigns to other shards keep only their time."""

    stem = "placeholders"
    rules = (Rule("any column", why="the join above counts all tuples"),)

    input: Plan
    key: Key

    def describe(self) -> str:
        return "Placeholders"

    @property
    def equal_columns(self) -> Groups:
        """The time of a placeholder differs from the column that it equals."""
        return ()

    def keys_below(self, key: Key) -> list[Key] | None:
        return [EVERYWHERE] if key == self.key else None

    def parameters(self) -> dict[str, Any]:
        return {"schema": self.schema, "shard_of": partial(shard_of, key=self.key)}


@value("counted")
@dataclass(frozen=True, slots=True)
class Counted:
    """The needs of a shard that counts a stream: these columns of all tuples, and all columns of tuples that one of the
    keys assigns to it."""

    keys: tuple[Key, ...]
    columns: frozenset[str]


def counted(plans: Iterable[Plan], stream: str) -> Counted | None:
    """Return what shards that run these plans need of a stream; None if some plan reads all of it."""
    found = [below for plan in plans for below in _counted(plan, stream)]
    known = [below for below in found if below is not None]
    if not known or len(known) < len(found):
        return None
    keys = dict.fromkeys(key for below in known for key in below.keys)
    return Counted(tuple(keys), frozenset[str]().union(*(below.columns for below in known)))


def _counted(plan: Plan, stream: str) -> Iterator[Counted | None]:
    """The needs of each scan of the stream."""
    if isinstance(plan, Placeholders) and _read(plan) == {stream}:
        yield _decisive(plan)
    elif isinstance(plan, Scan) and plan.stream == stream:
        yield None
    else:
        for part in plan.inputs:
            yield from _counted(part, stream)


def _decisive(plan: Placeholders) -> Counted | None:
    """The key by its names in the stream, and the columns that decide which tuples count; None if the key is
    computed."""
    below, key, needed = plan.input, plan.key, set[str]()
    while not isinstance(below, Scan):
        if isinstance(below, Select):
            needed |= below.predicate.columns()
        elif isinstance(below, Project):
            items = dict(below.items)
            sources = [items[name] for name in key]
            key = tuple(source.name for source in sources if isinstance(source, Column))
            if len(key) < len(sources):
                return None
            # A Python function sees every tuple, so it must see the columns of every tuple.
            called = {name for item in items.values() if calls_code(item) for name in item.columns()}
            needed = {name for item in needed - {TS} for name in items[item].columns()} | called
        below = below.inputs[0]
    return Counted((key,), frozenset(needed - {TS}))


def countable(plan: Plan) -> bool:
    """Return whether windows of rows allow a node to run on many shards."""
    if not isinstance(plan, Joining) or all(side.rows is None for side in plan.sides):
        return True
    counting = [(side, part) for side, part in zip(plan.sides, plan.inputs, strict=True) if side.rows]
    return plan.merges and all(not side.preserved and reads_a_stream(part) for side, part in counting)


def with_placeholders(plan: Plan, keys: Sequence[Key]) -> Plan:
    """Return the plan; a countable join gets placeholders below its windows of rows. `keys`: the key of each input. A
    counted stream that another side reads as well has placeholders there too, since it goes to every shard."""
    if not isinstance(plan, Joining) or not any(side.rows for side in plan.sides):
        return plan
    counted = [part for side, part in zip(plan.sides, plan.inputs, strict=True) if side.rows]
    everywhere = {stream for part in counted for stream in _read(part)}
    inputs: list[Plan] = []
    for side, part, key in zip(plan.sides, plan.inputs, keys, strict=True):
        # A tuple without a key has no result, unless its side is preserved.
        takes = not side.preserved and reads_a_stream(part) and _read(part) <= everywhere
        inputs.append(Placeholders(part, key) if takes and not isinstance(part, Placeholders) else part)
    return plan.with_inputs(tuple(inputs))


def _read(plan: Plan) -> set[str]:
    return {part.stream for part in plan.walk() if isinstance(part, Scan)}


def reads_a_stream(plan: Plan) -> bool:
    """Return whether a plan is a stream under selections and projections."""
    while isinstance(plan, Select | Project | Placeholders):
        plan = plan.input
    return isinstance(plan, Scan)
