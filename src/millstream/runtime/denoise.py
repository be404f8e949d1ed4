"""Readings without noise.

| | |
|---|---|
| computes | the tuples that lie in a window `[t - range, t]`, t the time of a tuple of the same key, with `threshold` |
| | tuples of the key or more; NULL is a key too |
| EAGER | emits a tuple once every tuple before it is known to be noise or not; in the order of time |
| LAZY | emits it once time is more than `range` past it; in the order of time |
| UNORDERED | emits it as soon as it is known not to be noise |
| state | the tuples of the last `range`, and a bit for each |
| punctuation in → purged → out | any → nothing → itself, once no tuple that may still be emitted matches it |
| progress v, or the port's bound v | → tuples below `v - range` → v, or the oldest tuple that may still be emitted |
| cost | a sort by key and time of the tuples held, for each page |

Let a tuple be the last of its window with `n` tuples of its key. If `n` reaches the threshold, none of them is noise,
and that never changes. A tuple below `bound - range` that is in no such window is noise: no later window holds it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.arrays import Integers, Mask
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import FOREVER, NEVER, TS, Schema
from millstream.runtime.operator.capabilities import AwaitsTime
from millstream.runtime.operator.contract import Input, Operator, Output
from millstream.runtime.operator.frames import where
from millstream.runtime.operator.propagation import NO_PUNCTUATIONS, Pending
from millstream.runtime.operator.registry import carries_out
from millstream.runtime.state.table import StateTable


@carries_out("denoise")
class Denoise(Operator, AwaitsTime):
    timed = True

    def __init__(
        self,
        schema: Schema,
        key: tuple[str, ...],
        range: int,
        threshold: int,
        mode: str = "EAGER",
        merges: bool = False,
    ) -> None:
        self.schema, self.merges = schema, merges
        self._key, self._range, self._threshold, self._mode = key, range, threshold, mode
        self._held = StateTable(schema.polars)
        self._true = np.zeros(0, dtype=np.bool_)
        """For each tuple held, whether it is known not to be noise."""
        self._passed = 0
        """In the order of time: the number of tuples held that have been emitted or dropped."""
        self._now = NEVER
        self._pending = Pending()
        self._progress = NEVER, NEVER
        """The highest progress received in band, and emitted."""

    def process(self, inputs: Sequence[Input]) -> Output:
        (port,) = inputs
        punctuations = NO_PUNCTUATIONS if port.punctuations is None else port.punctuations
        known = self._true
        if port.rows is not None and port.rows.height:
            self._held.append(port.rows)
            self._now = max(self._now, int(port.rows.item(-1, TS)))
            self._true = self._detected(self._held.frame())
        self._now = max(self._now, port.bound, punctuations.progress)
        rows = self._released(known)
        self._purge()
        return Output(rows, self._propagated(punctuations) or None)

    def _detected(self, held: pl.DataFrame) -> Mask:
        """Return for each tuple whether it is known not to be noise."""
        times = held.get_column(TS).to_numpy()
        keys = _codes(held, self._key)
        order = np.argsort(keys, kind="stable")  # tuples are in the order of time already
        instants, ranks = np.unique(times, return_inverse=True)
        starts = np.searchsorted(instants, _minus(times, self._range))
        # One ascending number for key and time: the ranks of times are below the number of tuples.
        size = len(instants) + 1
        places = (keys * size + ranks)[order]
        first = np.searchsorted(places, (keys * size + starts)[order])
        last = np.arange(len(order))
        full = last - first + 1 >= self._threshold
        changes = np.zeros(len(order) + 1, dtype=np.int64)
        np.add.at(changes, first[full], 1)
        np.add.at(changes, last[full] + 1, -1)
        found = np.empty(len(order), dtype=np.bool_)
        found[order] = np.cumsum(changes[:-1]) > 0
        found[: len(self._true)] |= self._true
        return found

    def _released(self, known: Mask) -> pl.DataFrame | None:
        """Return the tuples that can be emitted now; `known` are those that were known before."""
        if not len(self._true):
            return None
        if self._mode == "UNORDERED":
            chosen = self._true.copy()
            chosen[: len(known)] &= ~known
        else:
            end = self._decided()
            chosen = self._true.copy()
            chosen[: self._passed] = chosen[end:] = False
            self._passed = end
        return where(self._held.frame(), chosen) if chosen.any() else None

    def _decided(self) -> int:
        """Return the number of tuples, from the oldest on, that can be emitted or dropped."""
        expired = self._expired()
        if self._mode == "LAZY":
            return expired
        unknown = np.flatnonzero(~self._true[expired:])
        return expired + int(unknown[0]) if len(unknown) else len(self._true)

    def _expired(self) -> int:
        """Return the number of tuples that no later window holds."""
        times = self._held.frame().get_column(TS).to_numpy()
        return int(np.searchsorted(times, _minus(np.array([self._now]), self._range)[0]))

    def _purge(self) -> None:
        if len(self._true) and (gone := self._expired()):
            keep = np.arange(len(self._true)) >= gone
            self._held.keep(pl.Series(keep))
            self._true, self._passed = self._true[gone:], max(self._passed - gone, 0)

    def _open(self) -> Mask:
        """Return a mask of the tuples that may still be emitted."""
        return ~self._true if self._mode == "UNORDERED" else np.arange(len(self._true)) >= self._passed

    @property
    def _oldest(self) -> int:
        """The timestamp of the oldest tuple that may still be emitted."""
        first = self._passed
        if self._mode == "UNORDERED":
            unknown = np.flatnonzero(~self._true)
            first = int(unknown[0]) if len(unknown) else len(self._true)
        return int(self._held.frame().item(first, TS)) if first < len(self._true) else FOREVER

    # --- punctuation and time -----------------------------------------------------------------------------------------

    def _propagated(self, punctuations: Punctuations) -> Punctuations:
        received, emitted = self._progress
        received = max(received, punctuations.progress)
        self._pending.add(punctuations.with_progress(NEVER))
        free = NO_PUNCTUATIONS
        if len(self._pending):
            free = self._pending.release(where(self._held.frame(), self._open()))
        reached = min(received, self._oldest)
        self._progress = received, max(emitted, reached)
        return free.with_progress(reached if reached > emitted else NEVER)

    def output_bound(self, bounds: Sequence[int]) -> int:
        return min(bounds[0], self._oldest)

    def waiting(self) -> bool:
        return self._oldest != FOREVER

    def needs(self) -> int:
        oldest = self._oldest
        return oldest if oldest == FOREVER else oldest + self._range + 1

    # --- state --------------------------------------------------------------------------------------------------------

    def tables(self) -> Mapping[str, StateTable]:
        return {"window": self._held}

    def scalars(self) -> dict[str, Any]:
        return {
            "true": (len(self._true), np.packbits(self._true)),
            "passed": self._passed,
            "now": self._now,
            "progress": self._progress,
            "pending": self._pending.to_value(),
        }

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        count, bits = values["true"]
        self._true = np.unpackbits(bits, count=count).astype(np.bool_)
        self._passed, self._now = values["passed"], values["now"]
        self._progress = tuple(values["progress"])
        self._pending.restore(values["pending"])


def _codes(rows: pl.DataFrame, names: Sequence[str]) -> Integers:
    """Return a number for each key, below the number of rows; NULL is a key too."""
    codes = np.zeros(rows.height, dtype=np.int64)
    for name in names:
        ranks = rows.get_column(name).rank("dense").fill_null(0).to_numpy().astype(np.int64)
        _, codes = np.unique(codes * (rows.height + 1) + ranks, return_inverse=True)
    return codes


def _minus(times: Integers, range_: int) -> Integers:
    """Return times earlier by a range, NEVER at the earliest."""
    return np.where(times < NEVER + range_, NEVER, times - range_)
