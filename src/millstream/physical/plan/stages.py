"""A query in stages, where it needs its tuples hashed on one key first and on another key later.

    WindowAggregate BY b.seller        stage 1, hashed on b.seller
    └─ WindowJoin a.id = b.auction     stage 0, both hashed on the auction

The key of the topmost operator is pushed down as far as possible; there the plan is cut. The plan below the cut becomes
a part of its own, cut again if necessary. It sends its output to the shards of the part that reads it: rows by the hash
of their key, punctuation and time to all of them. There a `Gather` unites the output of all sending shards; a promise
holds when all of them have made it, and output that is sent in the order of time stays in that order.

It is cut as well below an operator that reads the time of an input whose shards have times of their own: a union waits
for the oldest group of any shard, not of its own shard alone. The same goes for punctuation (`held_punctuation`).

An operator without a key (an aggregate of everything) runs on one shard; its inputs run on many. A plan is not cut and
runs on one shard if it has operators above a cut whose result depends on the position of tuples of equal time (count
windows, sequences), if it reads the late tuples of a stream that another one closes, or if it writes or reads a table
that streams write.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from millstream.algebra.schema import Schema
from millstream.algebra.stream_id import StreamId, part_below
from millstream.errors import PlanError
from millstream.logical.nodes.closing import Closing
from millstream.logical.nodes.kinds.common import Leaf
from millstream.logical.nodes.scan import Scan
from millstream.logical.nodes.written_table import WrittenTable
from millstream.logical.plan import Key, Plan
from millstream.logical.written import touched
from millstream.optimizer.context import bottom_up
from millstream.physical.plan.consensus import agreed
from millstream.physical.plan.exchange import Exchange, Gather
from millstream.physical.plan.partitioning import (
    Keys,
    Partitioned,
    can_hash,
    keys_below,
    out_of_step,
    partitioned,
    replaced,
    wishes,
)
from millstream.physical.plan.placeholders import with_placeholders


@dataclass(frozen=True, slots=True)
class QueryPart:
    """A part of a query that runs in one stage. `keys`: the columns that its streams are hashed on; None: it runs on
    one shard. `reader`: the part that reads it, by the hash of `key`; None: it is the top of the query."""

    name: str
    plan: Plan
    keys: Keys | None
    stage: int = 0
    reader: str | None = None
    key: Key | None = None


def parts(query: str, plan: Plan, shards: int) -> list[QueryPart]:
    """Return the parts of a query, readers before the parts they read; one part if it need not be cut."""
    if tables := touched(plan):
        return [_on_tables(query, plan, tables, shards)]
    if shards == 1 or any(isinstance(part, Closing) and part.only_late for part in plan.walk()):
        return [QueryPart(query, plan, None)]
    made = _parts(query, plan, shards)
    if any(part.answers for part in plan.walk()):
        made = [replace(part, plan=_sending_early(part.plan)) for part in made]
    positional = any(below.positional for part in made if part.stage > 0 for below in part.plan.walk())
    return [uncut(query, plan)] if positional else made


def _sending_early(plan: Plan) -> Plan:
    return plan.altered(early=True) if isinstance(plan, Exchange) else plan


def _on_tables(query: str, plan: Plan, tables: list[WrittenTable], shards: int) -> QueryPart:
    """A query that writes or reads tables that streams write: on one shard, or on those of a partitioned table. Whether
    it is possible does not depend on the number of shards."""
    spread = [table for table in tables if table.partitioned]
    if not spread:
        return QueryPart(query, plan, None)
    (table, *_), key = spread, ", ".join(spread[0].key)
    if len(tables) > 1:
        message = f"a query with the partitioned table '{table.table}' and another table that streams write"
        raise PlanError("M3082", message, hint="leave out WITH (partitioned = true)")
    made = Partitioned(plan, {}) if plan is table else partitioned(plan)
    if made is None:
        hint = f"compare all columns of its key with columns of one stream, ({key}), or leave out partitioned = true"
        raise PlanError(
            "M3082", f"the query does not go by the key of the partitioned table '{table.table}'", hint=hint
        )
    return QueryPart(query, made.plan, made.keys) if shards > 1 else QueryPart(query, plan, None)


def uncut(query: str, plan: Plan) -> QueryPart:
    """The whole query in one stage, on one shard if necessary."""
    made = partitioned(plan)
    return QueryPart(query, plan, None) if made is None else QueryPart(query, made.plan, made.keys)


def depth(made: list[QueryPart]) -> int:
    """Number of stages that these parts need."""
    return max(part.stage for part in made) + 1


def _parts(name: str, plan: Plan, shards: int) -> list[QueryPart]:
    whole = uncut(name, plan)
    cut = _best_cut(plan) if whole.keys is None else None
    if cut is None:
        return [whole]
    below: list[QueryPart] = []
    gathered: dict[int, Plan] = {}
    hashed: Keys = {}
    for number, (sub, key) in enumerate(cut.subs):
        top, *rest = _parts(part_below(name, number), Exchange(sub), shards)
        count = shards if top.keys is not None else 1
        streams = [str(StreamId(part=top.name, shard=n)) for n in range(count)]
        gathered[number] = Gather(tuple(Scan(stream, sub.schema) for stream in streams))
        hashed |= dict.fromkeys(streams, key)
        below += [QueryPart(top.name, top.plan, top.keys, top.stage, name, key if cut.keyed else None), *rest]
    stage = 1 + max(part.stage for part in below if part.reader == name)
    filled = bottom_up(cut.plan, lambda part: gathered[part.number] if isinstance(part, _Hole) else part)
    return [QueryPart(name, filled, hashed if cut.keyed else None, stage), *below]


@dataclass(slots=True)
class _Cut:
    """`plan` has a `_Hole` for each of the `subs`, given with the key that their output is hashed on."""

    keyed: bool
    subs: list[tuple[Plan, Key]] = field(default_factory=list)
    plan: Plan = field(init=False)
    _keys: Keys = field(default_factory=dict)

    def hole(self, plan: Plan, key: Key) -> Plan:
        if (plan, key) not in self.subs:
            self.subs.append((plan, key))
        return _Hole(self.subs.index((plan, key)), plan.schema)

    def fit(self, plan: Plan, key: Key) -> Plan:
        """Return the plan, hashed on `key`, cut where the key cannot be pushed down."""
        if self._blocked(plan, key):
            return self.hole(plan, key)
        if isinstance(plan, Scan):
            self._keys[plan.stream] = key
            return plan
        below = keys_below(plan, key)
        assert below is not None
        plan = with_placeholders(plan, below)
        inputs = [
            self.hole(part, k) if apart else self.fit(part, k)
            for part, k, apart in zip(plan.inputs, below, out_of_step(plan, below), strict=True)
        ]
        if any(_holes(part) for part in inputs):
            # Input from an earlier stage cannot meet a stream: the stream goes through that stage too.
            inputs = [
                part if _holes(part) else self.hole(given, k)
                for part, given, k in zip(inputs, plan.inputs, below, strict=True)
            ]
        made = (agreed(plan, n, part, k) for n, (part, k) in enumerate(zip(inputs, below, strict=True)))
        return plan.with_inputs(tuple(made))

    def _blocked(self, plan: Plan, key: Key) -> bool:
        """Return whether the key fails to reach the first stateful operator, or the stream."""
        if isinstance(plan, Scan):
            return not can_hash(plan, key) or self._keys.get(plan.stream, key) != key
        below = keys_below(plan, key)
        if below is None or (plan.stateless and self._blocked(plan.inputs[0], below[0])):
            return True
        # A stream meets the stream that closes it in the first stage.
        return isinstance(plan, Closing) and any(map(self._blocked, plan.inputs, below))


@dataclass(frozen=True, slots=True)
class _Hole(Leaf):
    """A cut in the plan: the place of another part of the query."""

    stem = "hole"
    runs = False

    number: int
    given: Schema

    @property
    def schema(self) -> Schema:
        return self.given

    def describe(self) -> str:
        return f"Hole {self.number}"

    def hash_keys(self) -> Iterable[Key]:
        return ()


def _holes(plan: Plan) -> bool:
    return any(isinstance(part, _Hole) for part in plan.walk())


def _best_cut(plan: Plan) -> _Cut | None:
    """Return the cut with the fewest parts, or None if cutting does not help."""
    found: list[_Cut] = []
    for anchor, key in wishes(plan):
        if keys_below(anchor, key) is None:
            continue
        cut = _Cut(keyed=True)
        cut.plan = replaced(plan, anchor, cut.fit(anchor, key))
        found.append(cut)
    return min(found, key=lambda cut: len(cut.subs)) if found else _below_keyless(plan)


def _below_keyless(plan: Plan) -> _Cut | None:
    """Return the cut below an operator without a key, which runs on one shard; its inputs may run on many. An input
    that needs one shard as well runs beside it."""
    anchor = plan
    while anchor.stateless or _on_one_shard(anchor.inputs):
        anchor = anchor.inputs[0]
    if not any(_worth_it(part) for part in anchor.inputs):
        return None
    cut = _Cut(keyed=False)
    top = anchor.with_inputs(tuple(cut.hole(part, ()) for part in anchor.inputs))
    cut.plan = replaced(plan, anchor, top)
    return cut


def _on_one_shard(inputs: tuple[Plan, ...]) -> bool:
    """Return whether there is one input, with state, whose last operators run on one shard."""
    return len(inputs) == 1 and stateful(inputs[0]) and _parts("", inputs[0], 2)[0].keys is None


def _worth_it(plan: Plan) -> bool:
    """Return whether a plan holds state that could be spread over shards."""
    return stateful(plan) and any(part.keys is not None for part in _parts("", plan, 2))


def stateful(plan: Plan) -> bool:
    """Return whether the operators of a plan hold tuples or groups."""
    return any(not part.stateless and not isinstance(part, Scan | Closing) for part in plan.walk())
