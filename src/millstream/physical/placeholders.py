"""Joins with windows of rows on many shards: each shard counts all tuples of the stream, and joins its own.

    WindowJoin a [ROWS 5], b ON a.k = b.k           WindowJoin a [ROWS 5], b ON a.k = b.k
    ├─ Project k, v                                 ├─ Placeholders by k
    │  └─ Scan a                               →    │  └─ Project k, v
    └─ Scan b                                       │     └─ Scan a        on every shard
                                                    └─ Scan b              hashed on k

The last n tuples are those of the whole stream, wherever their keys belong. So the stream goes to every shard, through
the selections and projections that decide what counts, and there the tuples of other shards become placeholders. This
needs a join that works in the order of time: all shards then meet the tuples in the same order. What other operators
make is not in the same order on all shards, where times are equal, and is not counted this way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from millstream.algebra.schema import Schema
from millstream.logical import plan as node
from millstream.logical.multi_join import MultiJoin
from millstream.physical.hashing import Key

Join = node.WindowJoin | MultiJoin


@dataclass(frozen=True, slots=True)
class Placeholders(node.Plan):
    """All tuples of the input, of which those that `key` gives to other shards have nothing but their time."""

    input: node.Plan
    key: Key

    @property
    def schema(self) -> Schema:
        return self.input.schema


def windows(plan: Join) -> tuple[node.Window, ...]:
    """Those of a join's inputs."""
    return plan.windows if isinstance(plan, MultiJoin) else (plan.left_window, plan.right_window)


def countable(plan: Join) -> bool:
    """Whether a join can run on many shards, as far as its windows of rows go."""
    counting = _counting(plan)
    return not any(counting) or (plan.merges and all(map(_reads_a_stream, _chosen(plan, counting))))


def with_placeholders(plan: node.Plan, keys: Sequence[Key]) -> node.Plan:
    """The plan; if it is a countable join, with placeholders below its windows of rows. `keys`: what each input is
    hashed on. A stream that is read on another side as well has them there, too, since it goes to every shard."""
    if not isinstance(plan, Join) or not any(counting := _counting(plan)):
        return plan
    everywhere = {scan.stream for part in _chosen(plan, counting) for scan in _scans(part)}
    inputs: list[node.Plan] = []
    for part, key, counts in zip(plan.inputs, keys, counting, strict=True):
        again = _reads_a_stream(part) and any(scan.stream in everywhere for scan in _scans(part))
        wrapped = (counts or again) and not isinstance(part, Placeholders)
        inputs.append(Placeholders(part, key) if wrapped else part)
    return plan.with_inputs(tuple(inputs))


def _counting(plan: Join) -> list[bool]:
    """For each input whether tuples have to be counted; a window of no rows holds none, whatever comes."""
    return [bool(window.rows) for window in windows(plan)]


def _chosen(plan: Join, which: Sequence[bool]) -> list[node.Plan]:
    return [part for part, chosen in zip(plan.inputs, which, strict=True) if chosen]


def _scans(plan: node.Plan) -> list[node.Scan]:
    return [part for part in plan.walk() if isinstance(part, node.Scan)]


def _reads_a_stream(plan: node.Plan) -> bool:
    """Whether a plan is a stream under selections and projections."""
    while isinstance(plan, node.Select | node.Project | Placeholders):
        plan = plan.input
    return isinstance(plan, node.Scan)
