"""The promises of a source so far: they decide which tuples are late and which punctuations are redundant.

Bounds on time alone are kept as one number. The first punctuation of any other kind creates a punctuation set, which
holds everything from then on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.arrays import Integers, Mask
from millstream.algebra.punctuation.punctuations import Punctuations, PunctuationSet
from millstream.algebra.schema import FOREVER, NEVER, Schema, TimeKind
from millstream.ingest.placed_punctuations import NO_KEY, PlacedPunctuations


class Promises:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._time = time_column(schema)
        self._key = NO_KEY  # the strongest bound on time alone
        self._all: PunctuationSet | None = None
        self._progress = NEVER

    @property
    def none(self) -> bool:
        """True if the source has promised nothing yet."""
        return self._all is None and self._key == NO_KEY

    @property
    def ended(self) -> bool:
        return self._progress == FOREVER

    @property
    def progress(self) -> int:
        """The progress that the source has sent."""
        return self._progress

    @property
    def bound(self) -> int:
        """Lower bound on the time of all later tuples."""
        return NEVER if self._key == NO_KEY else -(-self._key // 2)

    def closed(self) -> Punctuations:
        """All punctuation so far but bounds on time alone, and what other punctuation covers."""
        if self._all is None:
            return Punctuations.of(())
        groups, numbers, odd = self._all.held()
        known = [Punctuations.from_group(group) for group in groups if group.attributes != {self._time}]
        known += [Punctuations.from_column(name, "=", values) for name, values in numbers.items()]
        return Punctuations.concat([*known, Punctuations.of(p for p in odd if p.attributes != {self._time})])

    def broken(self, rows: pl.DataFrame, stamps: Integers, placed: PlacedPunctuations, keys: Integers) -> Mask:
        """Return a mask of the rows that match an earlier promise, or a punctuation before them in the batch."""
        found = np.zeros(rows.height, dtype=np.bool_)
        if self._all is not None:
            found |= self._all.match(rows).to_numpy()
        others = keys == NO_KEY
        if self._time is not None and (self._key > NO_KEY or not others.all()):
            strongest = np.maximum.accumulate(np.concatenate(([self._key], keys)))
            if not _all_above(stamps, placed.positions, strongest):
                places = np.concatenate(([0], placed.positions, [rows.height]))
                found |= 2 * stamps < np.repeat(strongest, np.diff(places))
        if others.any():
            kept = placed.keep(others)
            first = kept.punctuations.first_match(rows)
            matched = first.is_not_null().to_numpy()
            position = kept.positions[first.fill_null(0).to_numpy()]
            found |= matched & (position <= np.arange(rows.height))
        return found

    def add(self, placed: PlacedPunctuations, keys: Integers) -> Punctuations:
        """Add punctuations; return those that no earlier one covers, with progress if time advanced."""
        strongest = np.maximum.accumulate(np.concatenate(([self._key], keys)))
        if self._all is None and (keys > NO_KEY).all():
            fresh = placed.punctuations.keep(keys > strongest[:-1])
        else:
            self._all = self._all if self._all is not None else self._everything()
            fresh = self._all.add(placed.punctuations)
        self._key = int(strongest[-1])
        progress = self._key // 2 if self._key > NO_KEY else NEVER
        if any(not group.shape for group in placed.punctuations.parts.groups):
            progress = FOREVER  # the stream has ended
        if progress <= self._progress:
            return fresh.with_progress(NEVER)
        self._progress = progress
        return fresh.with_progress(progress)

    def _everything(self) -> PunctuationSet:
        """Return a punctuation set with the strongest bound on time."""
        made = PunctuationSet()
        if self._time is not None and self._key > NO_KEY:
            bound = pl.Series([self._key // 2], dtype=pl.Int64).cast(self._schema.type_of(self._time).polars)
            made.add(Punctuations.from_column(self._time, "<=" if self._key % 2 else "<", bound))
        return made

    def to_value(self) -> dict[str, Any]:
        kept = None if self._all is None else self._all.to_value()
        return {"key": self._key, "progress": self._progress, "all": kept}

    def restore(self, value: dict[str, Any]) -> None:
        self._key, self._progress = value["key"], value["progress"]
        self._all = None if value["all"] is None else PunctuationSet.from_value(value["all"])


def time_column(schema: Schema) -> str | None:
    """Return the column that timestamps come from; None if the clock stamps the tuples."""
    return schema.time if schema.kind is TimeKind.EXTERNAL else None


def _all_above(stamps: Integers, positions: Integers, strongest: Integers) -> bool:
    """Return whether the tuples are in order and none is below a bound before it. In order, it suffices to compare the
    first tuple after each bound."""
    if not len(stamps) or not (stamps[1:] >= stamps[:-1]).all():
        return False
    after = np.concatenate(([0], positions))
    inside = after < len(stamps)
    return bool((2 * stamps[after[inside]] >= strongest[inside]).all())
