"""The stretches of a split between the places where queries prod themselves.

A prod of a query stands before the first tuple, or punctuation, that takes time to a mark. Which one that is depends on
all rows of the stream, in their order, so the task that reads a split cuts it there. It does not know the time before
the split. A shard does, and leaves out marks that had been passed before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from millstream.algebra.arrays import Integers
from millstream.algebra.schedule import Grid
from millstream.algebra.schema import NEVER
from millstream.ingest.marks import passings
from millstream.ingest.paged import Split
from millstream.ingest.paged.stretch import Stretch
from millstream.ingest.paged.wanted import NONE_SKIPPED, Wanted
from millstream.ingest.placed_punctuations import PlacedPunctuations, integers

Passed = tuple[tuple[tuple[int, int], int, int, int], ...]
"""For each grid of which time passes a mark at the start of a stretch: the time known before it, that of the newest row
before it, and the time that is reached; NEVER: none of the split."""


class Cut(NamedTuple):
    """A stretch, as it was read and as it can be read again."""

    taken: Wanted
    split: Split
    passed: Passed


def stretches(taken: Wanted, split: Split, time: str | None, grids: Collection[Grid]) -> Iterator[Cut]:
    """Cut a split where time passes marks."""
    if time is None or not grids:
        yield Cut(taken, split, ())
        return
    placed = taken.placed if taken.placed is not None else PlacedPunctuations.interleave(())
    found: dict[tuple[int, int], list[tuple[tuple[int, int], int, int, int]]] = {(0, 0): []}
    times = integers(taken.known.get_column(time))
    for grid in grids:
        for each in passings(times, placed, time, NEVER, grid):
            at = each.rows, each.punctuations
            found.setdefault(at, []).append(((grid.step, grid.earlier), each.known, each.newest, each.reached))
    if len(found) == 1:
        yield Cut(taken, split, tuple(found[0, 0]))
        return
    wanted = None if taken.kept is None else np.concatenate(([0], np.cumsum(taken.kept)))
    places = sorted(found)
    ends = [*places[1:], (taken.known.height, len(placed))]
    for number, (first, last) in enumerate(zip(places, ends, strict=True)):
        ending = number == len(places) - 1
        piece = _sliced(taken, wanted, first, last)
        piece = replace(
            piece,
            bad=taken.bad if ending else taken.bad.clear(),
            skipped=taken.skipped if number == 0 else NONE_SKIPPED,
        )
        again = Stretch(split, first[0], last[0], ending, (first[1], last[1]))
        yield Cut(piece, again, tuple(found[first]))


def _sliced(taken: Wanted, wanted: Integers | None, first: tuple[int, int], last: tuple[int, int]) -> Wanted:
    """The rows, and punctuations, between two places. `wanted`: the number of wanted rows before each row."""
    start, count = first[0], last[0] - first[0]
    own = taken.placed.slice(first[1], last[1]) if taken.placed is not None and first[1] < last[1] else None
    placed = None if own is None else PlacedPunctuations(own.punctuations, own.positions - start)
    known = taken.known.slice(start, count)
    if taken.kept is None or wanted is None:
        return replace(taken, rows=taken.rows.slice(start, count), known=known, placed=placed)
    kept = taken.kept[start : start + count]
    before, end = int(wanted[start]), int(wanted[start + count])
    return replace(taken, rows=taken.rows.slice(before, end - before), known=known, kept=kept, placed=placed)
