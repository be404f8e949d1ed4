"""Cuts of a sequence of file parts into splits of about equal size, at the cheapest positions.

>>> file = File("a", 0)
>>> [[part[1:] for part in split] for split in cut([Part(file, 0, 10), Part(file, 10, 30)], 2, lambda part: [16])]
[[(0, 10), (10, 16)], [(16, 30)]]
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

from millstream.ingest.paged.files.formats import File, Part

__all__ = ["File", "Part", "cut"]

NEAR = 4
"""A cut moves to a free border if that is nearer than a quarter of a split."""


def cut(parts: Sequence[Part], number: int, borders: Callable[[Part], Sequence[int] | None]) -> list[tuple[Part, ...]]:
    """Return `number` splits, or fewer if parts can only be read whole. `borders` returns the free cuts of a part, or
    None if it can only be read whole."""
    if number == 1:
        return [tuple(parts)]
    starts = [0, *accumulate(part.last - part.first for part in parts)]
    total, free, rigid = starts[-1], set(starts), list[tuple[int, int]]()
    for part, start in zip(parts, starts, strict=False):
        places = borders(part)
        rigid += [(start, start + part.last - part.first)] if places is None else []
        free.update(start + place - part.first for place in places or ())
    cheap = sorted(free)
    even = (at * total // number for at in range(1, number))
    places = [
        _snapped(place, cheap, total // number // NEAR, any(low < place < high for low, high in rigid))
        for place in even
    ]
    ends = sorted({0, *places, total})
    return [_between(parts, starts, low, high) for low, high in pairwise(ends)]


def _snapped(place: int, cheap: Sequence[int], near: int, whole: bool) -> int:
    at = bisect_left(cheap, place)
    best = min(cheap[max(at - 1, 0) : at + 1], key=lambda other: abs(other - place))
    return best if whole or abs(best - place) <= near else place


def _between(parts: Sequence[Part], starts: Sequence[int], low: int, high: int) -> tuple[Part, ...]:
    made = []
    for part, start in zip(parts, starts, strict=False):
        first, last = max(low - start, 0), min(high - start, part.last - part.first)
        if first < last:
            made.append(Part(part.file, part.first + first, part.first + last))
    return tuple(made)
