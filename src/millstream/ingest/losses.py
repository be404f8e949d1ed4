"""The late and bad rows of a stream, and what is known of their cause.

| | |
|---|---|
| `causes` | number of late rows by cause: `order`, `skew` (a promised time), `ascending`, `key`, `punctuation` |
| `delays` | of rows that are late by time: number of rows by the power of √√2 below their delay |
| `longest` | the longest delay: the highest time accepted before the row, minus its own |
| `oldest` | the row with that delay: its time, and the highest time before it |
| `runs` | how often such a row is older than the row before it; few runs of many rows are files in the wrong order |
| `reasons` | kinds of bad rows: their number, and the first of them |
| `kept` | whether its punctuation is as declared |

A late row with a delay `d` is accepted if the stream declares a watermark of at least `d`: rows that are late by time
raise no watermark, so the delay of one does not depend on the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import field, replace

import numpy as np
import polars as pl

from millstream.algebra.arrays import Integers, Mask
from millstream.algebra.schema import NEVER
from millstream.algebra.values import record
from millstream.ingest.kept import Kept

KINDS = 20
"""Number of kinds of bad rows that are told apart."""
_STEPS = 4
"""Bins of delays in a doubling."""
_PLACE = r" \(((?:line|row) \d+ of [^()]+)\)$"
"""The end of the reason of a bad row of a file: where it is."""
_VALUE = r"(?s)^(column '.*?'): .* (is not a value of type .*|is out of range for .*)$"


@record("bad_kind")
class BadKind:
    """Bad rows with the same reason but for the value: their number, and the first with its text and its place."""

    number: int
    reason: str
    input: str
    place: str | None = None


@record("losses")
class Losses:
    accepted: int = 0
    late: int = 0
    bad: int = 0
    causes: Mapping[str, int] = field(default_factory=dict)
    delays: Mapping[int, int] = field(default_factory=dict)
    longest: int = 0
    oldest: tuple[int, int] | None = None
    runs: int = 0
    reasons: Mapping[str, BadKind] = field(default_factory=dict)
    kept: Kept = field(default_factory=Kept)

    @property
    def rows(self) -> int:
        return self.accepted + self.late + self.bad

    @property
    def known(self) -> bool:
        """True if it says anything."""
        return bool(self.rows or self.kept.known)

    def __add__(self, other: Losses) -> Losses:
        if not other.causes and not other.reasons:
            return replace(
                self,
                accepted=self.accepted + other.accepted,
                late=self.late + other.late,
                bad=self.bad + other.bad,
                kept=self.kept + other.kept,
            )
        return Losses(
            self.accepted + other.accepted,
            self.late + other.late,
            self.bad + other.bad,
            dict(Counter(self.causes) + Counter(other.causes)),
            dict(Counter(self.delays) + Counter(other.delays)),
            max(self.longest, other.longest),
            self.oldest if self.longest >= other.longest else other.oldest,
            self.runs + other.runs,
            _merged(self.reasons, other.reasons),
            self.kept + other.kept,
        )

    def delay_of(self, share: float) -> int:
        """A delay that at most this share of the rows late by time exceeds, about a fifth too long at most."""
        left = (1 - share) * sum(self.delays.values())
        for step in sorted(self.delays, reverse=True):
            left -= self.delays[step]
            if left < 0:
                return min(self.longest, int(2 ** ((step + 1) / _STEPS)) + 1)
        return self.longest


def late_rows(stamps: Integers, before: Integers, late: Mask, causes: Mapping[str, Mask]) -> Losses:
    """Describe the late rows of a batch; a row has the first cause that applies. `before`: the highest time accepted
    before each row."""
    found: dict[str, int] = {}
    rest, by_time = late.copy(), np.zeros_like(late)
    for cause, mask in causes.items():
        applies = rest & mask
        found |= {cause: number} if (number := int(applies.sum())) else {}
        rest &= ~applies
        if cause in ("order", "skew"):
            by_time |= applies
    places = np.flatnonzero(by_time & (before > NEVER))
    delays = before[places] - stamps[places]
    places, delays = places[delays > 0], delays[delays > 0]
    if not len(places):
        return Losses(causes=found)
    worst = int(delays.argmax())
    numbers = np.bincount((np.log2(delays) * _STEPS).astype(np.int64))
    steps = np.flatnonzero(numbers)
    falls = (places == 0) | (stamps[places] < stamps[places - 1])
    return Losses(
        causes=found,
        delays=dict(zip(steps.tolist(), numbers[steps].tolist(), strict=True)),
        longest=int(delays[worst]),
        oldest=(int(stamps[places[worst]]), int(before[places[worst]])),
        runs=int(falls.sum()),
    )


def bad_rows(bad: pl.DataFrame) -> Losses:
    """Describe the bad rows of a batch."""
    reason = pl.col("reason")
    kinds = bad.select(
        "input",
        reason.str.extract(_PLACE).alias("place"),
        reason.str.replace(_PLACE, "").alias("reason"),
    ).with_columns(reason.str.replace(_VALUE, "${1}: a value ${2}").alias("kind"))
    found = kinds.group_by("kind", maintain_order=True).agg(pl.len(), pl.all().first())
    made = {
        kind: BadKind(number, reason, text, place)
        for kind, number, reason, text, place in found.select("kind", "len", "reason", "input", "place").iter_rows()
    }
    return Losses(reasons=_most(made))


def _merged(one: Mapping[str, BadKind], other: Mapping[str, BadKind]) -> Mapping[str, BadKind]:
    if not other:
        return one
    made = dict(one)
    for kind, held in other.items():
        made[kind] = replace(made[kind], number=made[kind].number + held.number) if kind in made else held
    return _most(made)


def _most(kinds: dict[str, BadKind]) -> dict[str, BadKind]:
    """The most frequent kinds."""
    if len(kinds) <= KINDS:
        return kinds
    return dict(sorted(kinds.items(), key=lambda item: -item[1].number)[:KINDS])
