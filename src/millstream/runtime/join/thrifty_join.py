"""THRIFTY JOIN: a window join that tells each side which of its tuples find no partner.

| | |
|---|---|
| computes | what a window join computes |
| punctuation of A on keys, and no tuple of A matches it | `~[…]` on B's keys |
| time of A passes values of a key, and A holds no tuple of them | `~[…]` on the ranges of B's key between those held |
| not told | what B has closed itself, by punctuation or by its time |
| messages in a step | at most one set and `MOST` other patterns for each side; ranges that touch become one |

Matching tuples of B are not stored any more, so there is nothing to purge. Guards drop those that still arrive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from millstream.algebra.feedback import Feedback, Intent
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.punctuation.restriction import Form, Restriction, below, between, one_of
from millstream.algebra.schema import TS
from millstream.algebra.upstream import Upstream
from millstream.runtime.join.purge import times_named
from millstream.runtime.join.window_join import WindowJoin
from millstream.runtime.operator.contract import Input, Output
from millstream.runtime.operator.registry import carries_out
from millstream.runtime.operator.time_values import time_value

MOST = 64
"""Most patterns that are told to a side in a step, and values of a set."""


@dataclass(slots=True)
class _Passed:
    """How far the time of the other side has passed a key of a side. `limit`: an upper bound; `told`: the limit up to
    which ranges were told; `run`: the last range, which the next one may continue."""

    limit: Restriction | None = None
    told: Restriction | None = None
    run: Restriction | None = None


@carries_out("thrifty_join")
class ThriftyJoin(WindowJoin):
    tells_keys = False

    def __init__(self, **parameters: Any) -> None:
        super().__init__(**parameters)
        names = self._columns.names
        self._own = [{output: name for name, output in own.items()} for own in names]
        self._useless: list[list[Pattern]] = [[], []]
        """What is to be told to each side at the end of the step, over the output's names."""
        self._passed: list[dict[str, _Passed]] = [{key: _Passed() for key in self._keys[i]} for i in (0, 1)]

        times = [times_named(own, names[i]) for i, own in enumerate((parameters["left"], parameters["right"]))]
        self._timed = [{key: offset for key, offset in times[i].items() if key in self._keys[i]} for i in (0, 1)]
        """The keys at a fixed distance from the time, with the distance."""

    def process(self, inputs: Sequence[Input]) -> Output:
        output = super().process(inputs)
        for side in (0, 1):
            for key, passed in self._passed[side].items():
                self._pass(side, key, passed)
        messages = [(side, message) for side in (0, 1) for message in self._messages(side)]
        return replace(output, upstream=(*output.upstream, *messages)) if messages else output

    def _without_partners(self, side: int, released: Punctuations) -> None:
        super()._without_partners(side, released)
        on_keys = released.select({key: key for key in self._keys[side]})
        news = on_keys.keep(~self._sides[side].closes(on_keys)) if len(on_keys) else on_keys
        self._useless[1 - side] += news.select(self._keys[side]).patterns()

    # --- time -------------------------------------------------------------------------------------------------------

    def _closed_by_time(self, side: int, closed: Punctuations) -> None:
        for pattern in closed.patterns():
            if len(pattern.items) == 1 and pattern.items[0][1].is_upper:
                ((name, limit),) = pattern.items
                if name in self._passed[side]:
                    self._passed[side][name].limit = limit
                for key, offset in self._timed[side].items() if name == TS else ():
                    value = time_value(limit.hi + offset, self.schema.type_of(key))
                    self._passed[side][key].limit = None if value is None else below(value, limit.hi_closed)

    def _pass(self, side: int, key: str, passed: _Passed) -> None:
        """Note the ranges of a key that the time of the other side has passed since the last time, where that side
        holds no tuple, and which the time of this side has not passed."""
        limit, other = passed.limit, self._keys[side][key]
        if limit is None or limit == passed.told:
            return
        own = self._passed[1 - side][other].limit
        if own is not None and own.covers(limit):  # this side is ahead
            passed.told, passed.run = limit, None
            return
        if own is not None and (passed.told is None or own.covers(passed.told)):
            passed.told, passed.run = own, None
        disk = self._relocation
        if disk is None or not disk.active:
            ranges = self._between(limit, passed, self._sides[1 - side].rows.get_column(other))
            self._useless[side] += [Pattern.of({key: found}) for found in ranges[-MOST:]]
        passed.told = limit

    @staticmethod
    def _between(limit: Restriction, passed: _Passed, held: pl.Series) -> list[Restriction]:
        """Return the ranges up to the limit, behind what was told, without the held values."""
        told, run = passed.told, passed.run
        values = held.drop_nulls().unique().sort().to_list()
        inside = [v for v in values if limit.matches(v) and (told is None or not told.matches(v))]
        low, closed = (None, False) if told is None else (told.hi, not told.hi_closed)
        if run is not None:
            low, closed = run.lo, run.lo_closed
        found: list[Restriction] = []
        for value in inside:
            found.append(between(low, value, closed, False))
            low, closed = value, False
        found.append(between(low, limit.hi, closed, limit.hi_closed))
        passed.run = found[-1] if found[-1].form is Form.INTERVAL else None
        return [each for each in found if not each.is_any and not _vacant(each)]

    # --- messages ---------------------------------------------------------------------------------------------------

    def _messages(self, side: int) -> list[Upstream]:
        """Return what is to be told to a side: values of one column as one set."""
        useless, self._useless[side] = self._useless[side], []
        sets: dict[str, list[Any]] = {}
        patterns: list[Pattern] = []
        for pattern in useless:
            if len(pattern.items) == 1 and pattern.items[0][1].form is Form.ONE_OF:
                sets.setdefault(pattern.items[0][0], []).extend(pattern.items[0][1].values)
            elif pattern.items and not pattern.is_empty:
                patterns.append(pattern)
        patterns = [*(Pattern.of({name: one_of(values[-MOST:])}) for name, values in sets.items()), *patterns[-MOST:]]
        return [Feedback(Intent.ASSUMED, pattern.rename(self._own[side])) for pattern in patterns]

    def scalars(self) -> dict[str, Any]:
        passed = [{key: (p.limit, p.told, p.run) for key, p in own.items()} for own in self._passed]
        return super().scalars() | {"passed": passed}

    def restore_scalars(self, values: Mapping[str, Any]) -> None:
        super().restore_scalars(values)
        self._passed = [{key: _Passed(*held) for key, held in own.items()} for own in values["passed"]]


def _vacant(restriction: Restriction) -> bool:
    """Return whether it surely matches no value: it is empty, or between two integers beside each other."""
    if restriction.is_empty:
        return True
    lo, hi = restriction.lo, restriction.hi
    whole = isinstance(lo, int) and isinstance(hi, int)
    return whole and hi - lo <= 1 and not restriction.lo_closed and not restriction.hi_closed
