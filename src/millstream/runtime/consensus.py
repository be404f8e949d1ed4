"""Punctuation that takes effect in all shards at the same time.

| | |
|---|---|
| computes | its input, unchanged |
| state | the punctuation received, that of it which other shards have not, and what they have that this shard lacks |
| punctuation in → purged → out | p → nothing → p at once if it `passes`, otherwise once all shards have received p |
| progress | the input's |
| cost | none for tuples; a report, a record and a batch for punctuation that waits |

An operator before it holds punctuation back while it stores matching tuples, so that each shard emits it at a time of
its own. The shards report what they have received (`waiting_for`). What some of them lack is announced to all: a shard
may have received it as other punctuation, which covers it, since operators do not repeat what they have emitted. When
all have reported it, the driver writes a record and the host calls `agree`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations, PunctuationSet
from millstream.algebra.punctuation.restriction import Form
from millstream.algebra.schema import FOREVER, Schema
from millstream.runtime.operator.capabilities import AwaitsShards, HoldsNothing, Reports
from millstream.runtime.operator.contract import Input, Operator, Output
from millstream.runtime.operator.registry import carries_out

MOST_UNFILED = 64
"""The most steps whose punctuation is not yet in one set."""


@carries_out("consensus")
class Consensus(Operator, HoldsNothing, AwaitsShards, Reports):
    """Punctuation passes at once if it restricts exactly one of the sets `passing` of columns, or if its matching
    tuples are on one shard: it names a single value of a column of each class in `key`."""

    def __init__(
        self, schema: Schema, passing: tuple[tuple[str, ...], ...] = (), key: tuple[tuple[str, ...], ...] = ()
    ) -> None:
        self.schema = schema
        self._passing = {frozenset(names) for names in passing}
        self._key = key
        self._waiting: dict[Pattern, None] = {}
        self._announced: dict[Pattern, None] = {}
        self._received = PunctuationSet()
        self._unfiled: list[Punctuations] = []

    def process(self, inputs: Sequence[Input]) -> Output:
        (port,) = inputs
        punctuations = port.punctuations
        if punctuations is None or not len(punctuations):
            return Output(port.rows, punctuations)
        if punctuations.progress == FOREVER:  # all inputs have ended, in all shards
            self._waiting, self._announced = {}, {}
            return Output(port.rows, punctuations)
        self._unfiled.append(punctuations)
        if len(self._unfiled) == MOST_UNFILED:
            self._filed()
        return Output(port.rows, self._passed(punctuations))

    def _passed(self, punctuations: Punctuations) -> Punctuations:
        """Return what passes at once, and keep the rest."""
        passes = np.zeros(len(punctuations), dtype=np.bool_)
        for group in punctuations.parts.groups:
            singles = {name for name, op in group.shape if op == "="}
            passes[group.positions] = self._passes(group.attributes, singles)
        for position, pattern in punctuations.parts.odd:
            passes[position] = self._passes(pattern.attributes, _singles(pattern))
        if not passes.all():
            self._waiting |= dict.fromkeys(punctuations.keep(~passes).patterns())
        return punctuations.keep(passes)

    def _passes(self, attributes: frozenset[str], singles: set[str]) -> bool:
        return attributes in self._passing or all(not singles.isdisjoint(names) for names in self._key)

    def waiting_for(self) -> tuple[Pattern, ...]:
        """The punctuation that waits for the other shards."""
        if self._announced:
            announced = [*self._announced]
            known = self._filed().covered(Punctuations.of(announced)).to_list()
            for pattern in (pattern for pattern, covered in zip(announced, known, strict=True) if covered):
                del self._announced[pattern]
                self._waiting[pattern] = None
        return tuple(self._waiting)

    def report(self) -> tuple[Pattern, ...] | None:
        return self.waiting_for() or None

    def announce(self, patterns: Iterable[Pattern]) -> None:
        self._announced |= dict.fromkeys(pattern for pattern in patterns if pattern not in self._waiting)

    def agree(self, patterns: Iterable[Pattern]) -> Punctuations:
        agreed = [pattern for pattern in patterns if any(own.covers(pattern) for own in self._waiting)]
        covered = [own for own in self._waiting if any(pattern.covers(own) for pattern in agreed)]
        for own in covered:
            del self._waiting[own]
        self._announced = {own: None for own in self._announced if not any(each.covers(own) for each in agreed)}
        return Punctuations.of(agreed)

    def scalars(self) -> dict[str, Any]:
        received = self._filed().to_value()
        return {"waiting": tuple(self._waiting), "announced": tuple(self._announced), "received": received}

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        self._waiting, self._announced = dict.fromkeys(values["waiting"]), dict.fromkeys(values["announced"])
        self._received, self._unfiled = PunctuationSet.from_value(values["received"]), []

    def _filed(self) -> PunctuationSet:
        """All punctuation received."""
        if self._unfiled:
            self._received.admit(Punctuations.concat(self._unfiled))
            self._unfiled = []
        return self._received


def _singles(pattern: Pattern) -> set[str]:
    return {name for name, part in pattern.items if part.form is Form.ONE_OF and len(part.values) == 1}
