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

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from millstream.algebra.expression import Column
from millstream.algebra.schema import TS, Schema
from millstream.algebra.values import value
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


@value("counted")
@dataclass(frozen=True, slots=True)
class Counted:
    """What a shard needs of a stream that is counted: these columns of all tuples, and the whole of those that one of
    the keys gives to it."""

    keys: tuple[Key, ...]
    columns: frozenset[str]


def counted(plans: Iterable[node.Plan], stream: str) -> Counted | None:
    """What shards that run these plans need of a stream; None if some plan reads all of it."""
    found = [below for plan in plans for below in _counted(plan, stream)]
    known = [below for below in found if below is not None]
    if not known or len(known) < len(found):
        return None
    keys = dict.fromkeys(key for below in known for key in below.keys)
    return Counted(tuple(keys), frozenset[str]().union(*(below.columns for below in known)))


def _counted(plan: node.Plan, stream: str) -> Iterator[Counted | None]:
    """For each scan of the stream what is needed of it."""
    if isinstance(plan, Placeholders) and _read(plan) == {stream}:
        yield _decisive(plan)
    elif isinstance(plan, node.Scan) and plan.stream == stream:
        yield None
    else:
        for part in plan.inputs:
            yield from _counted(part, stream)


def _decisive(plan: Placeholders) -> Counted | None:
    """The stream's own names of the key, and the columns that say what counts; None if the key is computed."""
    below, key, needed = plan.input, plan.key, set[str]()
    while not isinstance(below, node.Scan):
        if isinstance(below, node.Select):
            needed |= below.predicate.columns()
        elif isinstance(below, node.Project):
            items = dict(below.items)
            sources = [items[name] for name in key]
            key = tuple(source.name for source in sources if isinstance(source, Column))
            if len(key) < len(sources):
                return None
            needed = {name for item in needed - {TS} for name in items[item].columns()}
        below = below.inputs[0]
    return Counted((key,), frozenset(needed - {TS}))


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
