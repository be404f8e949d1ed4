"""Joins with windows of rows on many shards: each shard counts all tuples of the stream, and joins its own.

    WindowJoin a [ROWS 5], b ON a.k = b.k           WindowJoin a [ROWS 5], b ON a.k = b.k
    ├─ Project k, v                                 ├─ Placeholders by k
    │  └─ Scan a                               →    │  └─ Project k, v
    └─ Scan b                                       │     └─ Scan a        on every shard
                                                    └─ Scan b              hashed on k

The last n tuples are those of the whole stream, wherever their keys belong. So the stream goes to every shard, through
the selections and projections that decide what counts, and there the tuples of other shards become placeholders. This
needs a join that works in the order of time: all shards then meet the tuples in the same order. What other operators
make is not in the same order on all shards, where times are equal, and is not counted this way. Nor is the kept side of
an outer join: it would put placeholders out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from millstream.algebra.schema import Schema
from millstream.logical import plan as node
from millstream.logical.multi_join import MultiJoin
from millstream.logical.outer_join import OuterJoin
from millstream.physical.hashing import Key

Join = node.WindowJoin | OuterJoin | MultiJoin


@dataclass(frozen=True, slots=True)
class Placeholders(node.Plan):
    """All tuples of the input, of which those that `key` gives to other shards have nothing but their time."""

    input: node.Plan
    key: Key

    @property
    def schema(self) -> Schema:
        return self.input.schema


def countable(plan: Join) -> bool:
    """Whether a join can run on many shards, as far as its windows of rows go."""
    if all(window.rows is None for window in _windows(plan)):
        return True
    chosen = zip(plan.inputs, _counting(plan), _takes_placeholders(plan), strict=True)
    return plan.merges and all(takes and _reads_a_stream(part) for part, counts, takes in chosen if counts)


def with_placeholders(plan: node.Plan, keys: Sequence[Key]) -> node.Plan:
    """The plan; if it is a countable join, with placeholders below its windows of rows. `keys`: what each input is
    hashed on. A stream that is read on another side as well has them there, too, since it goes to every shard."""
    if not isinstance(plan, Join) or not any(counting := _counting(plan)):
        return plan
    counted = [part for part, counts in zip(plan.inputs, counting, strict=True) if counts]
    everywhere = {stream for part in counted for stream in _read(part)}
    inputs: list[node.Plan] = []
    for part, key, takes in zip(plan.inputs, keys, _takes_placeholders(plan), strict=True):
        wrapped = takes and _reads_a_stream(part) and _read(part) <= everywhere and not isinstance(part, Placeholders)
        inputs.append(Placeholders(part, key) if wrapped else part)
    return plan.with_inputs(tuple(inputs))


def _windows(plan: Join) -> tuple[node.Window, ...]:
    return plan.windows if isinstance(plan, MultiJoin) else (plan.left_window, plan.right_window)


def _counting(plan: Join) -> list[bool]:
    """For each input whether tuples have to be counted; a window of no rows holds none, whatever comes."""
    return [bool(window.rows) for window in _windows(plan)]


def _takes_placeholders(plan: Join) -> list[bool]:
    """For each input whether a tuple without a key has no result."""
    return [not kept for kept in plan.preserved] if isinstance(plan, OuterJoin) else [True] * len(plan.inputs)


def _read(plan: node.Plan) -> set[str]:
    return {part.stream for part in plan.walk() if isinstance(part, node.Scan)}


def _reads_a_stream(plan: node.Plan) -> bool:
    """Whether a plan is a stream under selections and projections."""
    while isinstance(plan, node.Select | node.Project | Placeholders):
        plan = plan.input
    return isinstance(plan, node.Scan)
