"""Tuples of one input by key and, within a key, by position: the partners of a probing tuple are one stretch of them.

The position is a timestamp or a tuple's number in its stream, so a window is a stretch of positions. The number of
results of a probing tuple is the product of the lengths of its stretches, known before any result is built. If one
stretch is empty there are none (early failing), whatever the order of the inputs.

>>> partners = Partners(np.array([1, 0, 1, 1]), np.array([10, 20, 30, 40]), np.array([True, True]))
>>> first, count = partners.find(np.array([1, 0]), np.array([20, 0]), np.array([99, 20]))
>>> [partners.rows[a : a + n].tolist() for a, n in zip(first, count, strict=True)]
[[2, 3], []]
"""

from __future__ import annotations

import numpy as np

from millstream.algebra.arrays import Mask, Places

_ROOM = 1 << 62


class Partners:
    """`codes`: the numbers of the keys. `positions`: None if all tuples of a key are partners. Only tuples with
    `wanted` keys are indexed."""

    __slots__ = ("_base", "_ends", "_joint", "_span", "_spots", "rows")

    def __init__(self, codes: Places, positions: Places | None, wanted: Mask) -> None:
        rows = np.flatnonzero(wanted[codes])
        if positions is not None and len(rows):
            own = positions[rows]
            if not (own[1:] >= own[:-1]).all():
                rows = rows[np.argsort(own, kind="stable")]
        picked = codes[rows]
        order = by_code(picked, len(wanted))
        self.rows = rows[order]
        """Row numbers of the tuples, by key and position."""
        self._ends = np.cumsum(np.bincount(picked, minlength=len(wanted)))
        self._joint: Places | None = None
        self._spots: Places | None = None
        self._base, self._span = 0, 1
        if positions is not None and len(rows):
            self._place(picked[order], positions[self.rows], len(wanted))

    def _place(self, codes: Places, positions: Places, count: int) -> None:
        """Number the pairs of key and position in ascending order."""
        self._base = int(positions.min())
        self._span = int(positions.max()) - self._base + 2
        if self._span * count >= _ROOM:
            self._spots, positions = np.unique(positions, return_inverse=True)
            self._base, self._span = 0, len(self._spots) + 1
        self._joint = codes * self._span + (positions - self._base)

    def find(self, codes: Places, low: Places | None, high: Places | None) -> tuple[Places, Places]:
        """Return for each probing key the first partner in `rows` with `low <= position < high`, and their number."""
        ends = self._ends[codes]
        starts = np.where(codes > 0, self._ends[codes - 1], 0)
        first = starts if low is None else self._search(codes, low)
        last = ends if high is None else self._search(codes, high)
        return first, np.maximum(last - first, 0)

    def _search(self, codes: Places, limits: Places) -> Places:
        if self._joint is None:
            return np.zeros(len(codes), dtype=np.int64)
        if self._spots is not None:
            limits = np.searchsorted(self._spots, limits)
        inside = np.clip(limits, self._base, self._base + self._span - 1) - self._base
        return np.searchsorted(self._joint, codes * self._span + inside)


def by_code(codes: Places, count: int) -> Places:
    """Return the stable order of numbers below `count`: sixteen bits at a time, which numpy sorts by counting."""
    order = np.argsort((codes & 0xFFFF).astype(np.uint16), kind="stable")
    shift = 16
    while count > 1 << shift:
        digit = ((codes[order] >> shift) & 0xFFFF).astype(np.uint16)
        order = order[np.argsort(digit, kind="stable")]
        shift += 16
    return order


def combined(stretches: list[tuple[Places, Places]], probing: Places) -> tuple[Places, list[Places]]:
    """Return all combinations of a probing tuple with one tuple of each of its stretches (first and length, none
    empty): the probing tuples, and for each stretch the places in it."""
    places: list[Places] = []
    at = np.arange(len(probing))
    for first, count in stretches:
        own_first, own_count = first[at], count[at]
        if (own_count == 1).all():
            places.append(own_first)
            continue
        ends = np.cumsum(own_count)
        repeated = np.repeat(np.arange(len(at)), own_count)
        places = [place[repeated] for place in places]
        places.append(np.arange(int(ends[-1])) + (own_first - ends + own_count)[repeated])
        at = at[repeated]
    return probing[at], places
