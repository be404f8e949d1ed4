"""Sequences: pairs of a tuple b of the second input and an earlier tuple a of the first.

| | |
|---|---|
| RECENT computes | (a, b) for the latest a before b, if the predicate holds for them; an a may be in many pairs |
| RECENT with `once` | each a is in the first such pair only, and then leaves the state |
| CHRONICLE computes | (a, b) for the earliest unused a before b for which the predicate holds; both are used once |
| keys | with equality keys both modes apply to each key value separately (NULL never equals) |
| order, timestamp | in timestamp order only, the second input first among equal times; b's timestamp |
| state | RECENT: the latest a (of each key). CHRONICLE: the a's not used yet. No b is ever stored |
| punctuation of the second → purged → out | on keys only → the a's that only such b could use → itself, at once |
| punctuation of the first → purged → out | any → nothing → itself, once no stored a matches it |
| progress | the lower of both inputs', if it has risen and arrived in band; the end of the second clears the state |
| cost | RECENT: one search for the step's b's. CHRONICLE: a sort by key and running sums |

Since b is first, it never pairs with an a of the same timestamp. Restrictions of keys are emitted under the first's
name. A punctuation that an earlier one covers is not emitted. CHRONICLE with a residual predicate loops over the pairs
that the predicate allows, because the choice of one b decides what is left for the next.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.arrays import Mask, Places
from millstream.algebra.expression import Expression
from millstream.algebra.names import key_names
from millstream.algebra.punctuation.punctuations import Punctuations, PunctuationSet
from millstream.algebra.schema import FOREVER, TS, Schema
from millstream.runtime.expression.condition import Condition
from millstream.runtime.join.index import Equality
from millstream.runtime.join.kernel import JoinColumns, paired
from millstream.runtime.join.purge import Renaming, Translation
from millstream.runtime.operator.contract import Input, Operator, Output
from millstream.runtime.operator.frames import stack, where
from millstream.runtime.operator.propagation import NO_PUNCTUATIONS, Emitted, Pending
from millstream.runtime.operator.registers import Registers
from millstream.runtime.operator.registry import Site, carries_out
from millstream.runtime.state.table import StateTable

_UNUSED = "__unused"


@carries_out("sequence")
class SequenceJoin(Operator):
    """The parts that both modes share: names, order, punctuation, purge."""

    arity = 2
    merges = True
    tie_order = (1, 0)

    def __init__(
        self,
        first: Schema,
        second: Schema,
        schema: Schema,
        keys: tuple[tuple[str, str], ...] = (),
        residual: Expression | None = None,
    ) -> None:
        self.schema = schema
        self._columns = JoinColumns((first, second), schema)
        self._equality = Equality.of(first, second, schema, keys)
        self._keys = tuple(list(dict.fromkeys(pair[side] for pair in self._equality.pairs)) for side in (0, 1))
        self._same_key = Equality([(key, key) for key in self._keys[0]], [None] * len(self._keys[0]))
        self._residual = None if residual is None else Condition(residual)
        backwards = key_names([(b, a) for a, b in self._equality.pairs])
        self._translation = Translation(backwards, {}, None)
        self._canonical = Renaming({name: name for name in self._columns.names[1].values()} | backwards)
        self.table = StateTable({name: schema.polars[name] for name in self._columns.stored[0]})
        self._closed, self._any_closed = PunctuationSet(), False
        self._pending, self._emitted, self._registers = Pending(), Emitted(self._keys[0]), Registers(2)

    @classmethod
    def at(cls, site: Site, parameters: Mapping[str, Any]) -> Operator:
        del site
        rest = dict(parameters)
        recent, once = rest.pop("mode") == "RECENT", rest.pop("once", False)
        mode = (Once if once else Recent) if recent else Chronicle
        return mode(**rest)

    def process(self, inputs: Sequence[Input]) -> Output:
        first, second = (
            None if rows is None else rows.drop_nulls(self._keys[side] or TS)
            for side, rows in enumerate(self._columns.take(inputs))
        )
        rows = self._advance(first, second) if first is not None or second is not None else None
        ended = self._registers.take(inputs) and self._registers.bounds[1] == FOREVER
        punctuations = self._punctuate([port.punctuations for port in inputs], ended)
        punctuations = punctuations.with_progress(self._registers.news())
        rows = None if rows is None or not rows.height else rows
        return Output(rows, punctuations or None)

    @abstractmethod
    def _advance(self, first: pl.DataFrame | None, second: pl.DataFrame | None) -> pl.DataFrame | None:
        """Return the pairs of the step and update the state."""

    def _punctuate(self, ports: Sequence[Punctuations | None], ended: bool) -> Punctuations:
        first, second = (
            NO_PUNCTUATIONS if own is None else own.select(self._columns.names[side]) for side, own in enumerate(ports)
        )
        closing = self._translation(second)
        if len(closing):
            fresh = self._closed.add(closing)
            self._any_closed = True
            if len(fresh) and len(self.table):
                self.table.keep(~fresh.match(self.table.frame()))
        if ended:
            self.table.replace(self.table.frame().clear())
        self._pending.add(first)
        free = self._pending.release(self.table.frame()) if len(self._pending) else NO_PUNCTUATIONS
        return self._emitted.release([free, self._canonical(second)])

    def _store(self, rows: pl.DataFrame) -> None:
        if rows.height and self._any_closed:
            rows = where(rows, ~self._closed.match(rows))
        if self._registers.bounds[1] != FOREVER:
            self.table.append(rows)

    @staticmethod
    def _paired(first: pl.DataFrame, second: pl.DataFrame, rows: tuple[Places, Places]) -> pl.DataFrame | None:
        """Return the pairs of these rows, with the timestamp of the second, which is always the newer one."""
        if not len(rows[0]):
            return None
        return paired(first, second, rows, second.get_column(TS).to_numpy().take(rows[1]))

    def tables(self) -> Mapping[str, StateTable]:
        return {"first": self.table}

    def scalars(self) -> dict[str, Any]:
        return {
            "closed": self._closed.to_value(),
            "pending": self._pending.to_value(),
            "emitted": self._emitted.to_value(),
            "registers": self._registers.to_value(),
        }

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        self._closed, self._any_closed = PunctuationSet.from_value(values["closed"]), True
        self._pending.restore(values["pending"])
        self._emitted.restore(values["emitted"])
        self._registers.restore(values["registers"])


class Recent(SequenceJoin):
    """Pairs each b with the latest a before it."""

    def _advance(self, first: pl.DataFrame | None, second: pl.DataFrame | None) -> pl.DataFrame | None:
        old = self.table.frame()
        new = old.clear() if first is None else first
        pairs = None
        if second is not None and second.height and old.height + new.height:
            # The number of the step's a's that are older than each b. All old ones are.
            before = np.searchsorted(new.get_column(TS).to_numpy(), second.get_column(TS).to_numpy())
            place = self._latest(old, new, second, before)
            candidates = stack([old, new]) if new.height else old
            pairs = self._pairs(candidates, second, place)
        if new.height:
            self._replace(new)
        return pairs

    def _pairs(self, candidates: pl.DataFrame, second: pl.DataFrame, place: Places) -> pl.DataFrame | None:
        """Return the pairs of each b with the candidate at its place, for which the predicate holds."""
        pairs = self._paired(candidates, second, (place[place >= 0], np.flatnonzero(place >= 0)))
        return pairs if pairs is None or self._residual is None else self._residual.filter(pairs)

    def _latest(self, old: pl.DataFrame, new: pl.DataFrame, second: pl.DataFrame, before: Places) -> Places:
        """Return for each b the place of its a among the old ones, then the new ones, or -1."""
        if not self._keys[0]:
            return old.height + before - 1
        place = np.full(second.height, -1, dtype=np.int64)
        if old.height:
            stored, probing = self._equality.match(old, second, probing_left=False)
            place[probing] = stored
        if new.height:
            found = self._equality.latest(new, second, before - 1)
            place = np.where(found >= 0, old.height + found, place)
        return place

    def _replace(self, first: pl.DataFrame) -> None:
        keys = self._keys[0]
        if not keys:
            self.table.replace(first.clear())
            self._store(first.tail(1))
            return
        latest = first.unique(keys, keep="last", maintain_order=True)
        if len(self.table):
            self.table.keep(pl.Series(~self._same_key.shared(self.table.frame(), latest)))
        self._store(latest)


class Once(Recent):
    """Pairs each a with the first b for which it is the latest a, if the predicate holds for them."""

    def __init__(self, *inputs: Any, **options: Any) -> None:
        super().__init__(*inputs, **options)
        self._used: Places = np.empty(0, dtype=np.int64)
        """The places of the candidates that the step has used: the stored ones, then the new ones."""

    def _advance(self, first: pl.DataFrame | None, second: pl.DataFrame | None) -> pl.DataFrame | None:
        self._used = self._used[:0]
        stored = len(self.table)
        pairs = super()._advance(first, second)
        if first is None or not first.height:
            self.table.keep(pl.Series(~np.isin(np.arange(stored), self._used)))
        return pairs

    def _pairs(self, candidates: pl.DataFrame, second: pl.DataFrame, place: Places) -> pl.DataFrame | None:
        rows = place[place >= 0], np.flatnonzero(place >= 0)
        pairs = self._paired(candidates, second, rows)
        if pairs is None:
            return None
        allowed = np.arange(len(rows[0])) if self._residual is None else np.flatnonzero(self._residual.holds(pairs))
        self._used, first = np.unique(rows[0][allowed], return_index=True)
        chosen = allowed[np.sort(first)]
        return self._paired(candidates, second, (rows[0][chosen], rows[1][chosen]))

    def _replace(self, first: pl.DataFrame) -> None:
        """A new a replaces an older one even if it has been used; a used one is not stored."""
        stored = len(self.table)
        unused = ~np.isin(np.arange(stored + first.height), self._used)
        keys = self._keys[0]
        latest = first.with_columns(pl.Series(_UNUSED, unused[stored:]))
        if keys:
            kept = ~self._same_key.shared(self.table.frame(), first) if stored else np.zeros(0, dtype=np.bool_)
            self.table.keep(pl.Series(kept & unused[:stored]))
            latest = latest.unique(keys, keep="last", maintain_order=True)
        else:
            self.table.replace(first.clear())
            latest = latest.tail(1)
        self._store(latest.filter(pl.col(_UNUSED)).drop(_UNUSED))


class Chronicle(SequenceJoin):
    """Pairs each b with the earliest a before it that no other b has used."""

    def _advance(self, first: pl.DataFrame | None, second: pl.DataFrame | None) -> pl.DataFrame | None:
        old = self.table.frame()
        if second is None or not second.height:
            if first is not None:
                self._store(first)
            return None
        new = old.clear() if first is None else first
        waiting = stack([old, new]) if new.height else old
        if not waiting.height:
            return None
        times, b_times = new.get_column(TS).to_numpy(), second.get_column(TS).to_numpy()
        # Places in order of processing: old a's, then the step's tuples by time, b before a among equals.
        a_place = np.concatenate(
            [np.arange(-old.height, 0), np.arange(new.height) + np.searchsorted(b_times, times, side="right")]
        )
        b_place = np.arange(second.height) + np.searchsorted(times, b_times)
        if self._residual is None:
            live = np.flatnonzero(self._equality.shared(waiting, second)) if self._keys[0] else np.arange(len(a_place))
            left, right = self._in_turn(waiting[live], second, a_place[live], b_place)
            left = live[left]
        else:
            left, right = self._one_by_one(waiting, second, a_place, b_place)
        unused = np.ones(waiting.height, dtype=np.bool_)
        unused[left] = False
        self.table.keep(pl.Series(unused[: old.height]))
        self._store(where(new, unused[old.height :]))
        return self._paired(waiting, second, (left, right))

    def _in_turn(
        self, waiting: pl.DataFrame, second: pl.DataFrame, a_place: Places, b_place: Places
    ) -> tuple[Places, Places]:
        """Return the pairs without a predicate. Each key has a queue, which each a makes longer and each b shorter
        unless it is empty. The queue's length is a walk reflected at 0: a b finds it empty iff the plain walk reaches a
        new low. The n-th b that is served takes the n-th a."""
        place = np.concatenate([a_place, b_place])
        codes = np.zeros(len(place), dtype=np.int64)
        if self._keys[0]:
            codes = np.concatenate(self._equality.codes([(0, waiting), (1, second)])[0])
        order = np.lexsort((place, codes))
        is_a = order < waiting.height
        starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
        segment = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(order)))
        walk = _running(np.where(is_a, 1, -1), starts, segment)
        # Every key's walk is shifted below those of the keys before it, so that one running minimum suffices for all.
        shift = segment * (2 * len(order) + 2)
        low = np.minimum.accumulate(np.minimum(walk, 0) - shift) + shift
        before = np.concatenate([[0], low[:-1]])
        before[starts] = 0
        served = ~is_a & (walk >= before)
        a_rank, b_rank = (_running(counted.astype(np.int64), starts, segment) for counted in (is_a, served))
        # Within a key the ranks of a's and of served b's ascend, so one search finds each b's a.
        width = len(order) + 1
        a_at, b_at = np.flatnonzero(is_a), np.flatnonzero(served)
        found = np.searchsorted(segment[a_at] * width + a_rank[a_at], segment[b_at] * width + b_rank[b_at])
        left, right = order[a_at[found]], order[b_at] - waiting.height
        by_second = np.argsort(right)
        return left[by_second], right[by_second]

    def _one_by_one(
        self, waiting: pl.DataFrame, second: pl.DataFrame, a_place: Places, b_place: Places
    ) -> tuple[Places, Places]:
        """Return the pairs with a predicate: each b in turn takes the earliest unused a that the predicate allows."""
        left, right = self._equality.match(waiting, second, probing_left=False)
        earlier = a_place[left] < b_place[right]
        left, right = left[earlier], right[earlier]
        pairs = self._paired(waiting, second, (left, right))
        fails: Mask | None = None
        if self._residual is not None and pairs is not None:
            allowed, fails = self._residual.judge(pairs)
            wanted = allowed if fails is None else allowed | fails
            left, right, pairs = left[wanted], right[wanted], where(pairs, wanted)
            fails = None if fails is None else fails[wanted]
        used: set[int] = set()
        taken: dict[int, int] = {}
        for place, (i, j) in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
            if j not in taken and i not in used:
                if fails is not None and fails[place] and self._residual is not None and pairs is not None:
                    self._residual.verify(pairs.slice(place, 1))
                taken[j] = i
                used.add(i)
        return np.array(list(taken.values()), dtype=np.int64), np.array(list(taken), dtype=np.int64)


def _running(steps: Places, starts: Places, segment: Places) -> Places:
    """Return running sums that restart at each of the starts."""
    sums = np.cumsum(steps)
    return np.asarray(sums - np.concatenate([[0], sums])[starts][segment])
