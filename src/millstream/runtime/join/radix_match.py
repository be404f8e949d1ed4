"""Equal integers of two columns, found by a radix sort of one of them.

Numpy sorts 16-bit numbers in linear time, by counting. So keys that are close together, like the ids in a window or the
open ones of a punctuated stream, are sorted in one pass, others in two. Where the sorted column is not many times
longer than the other one, this takes a fraction of the fixed costs of a hash join.
"""

from __future__ import annotations

import numpy as np

from millstream.algebra.arrays import Places

DIGIT = 1 << 16
SHORT, FEW = 1 << 14, 1 << 10
"""Up to `SHORT` partners are sorted whatever the probe; two passes need a probe of at most `FEW` rows too."""
TIMES = 16
"""A longer partner is sorted if it is at most this many times longer than the probe."""


def radix_match(partner: Places, probe: Places) -> tuple[Places, Places] | None:
    """Return the probing and partner rows of all pairs, by probing row, then by partner; None if another method is
    better. Neither argument is empty.

    >>> probing, found = radix_match(np.array([7, 5, 7]), np.array([7, 6, 5]))
    >>> probing.tolist(), found.tolist()
    ([0, 0, 2], [0, 2, 1])
    """
    if len(partner) > max(SHORT, TIMES * len(probe)):
        return None
    low, high = int(partner.min()), int(partner.max())
    if high - low < DIGIT:
        return _in_one_pass(partner - low, probe, low, high)
    if len(partner) > SHORT or len(probe) > FEW or high - low >= DIGIT * DIGIT:
        return None
    return _in_two_passes(partner, probe, low)


def _in_one_pass(codes: Places, probe: Places, low: int, high: int) -> tuple[Places, Places]:
    order = np.argsort(codes.astype(np.uint16), kind="stable")
    counts = np.bincount(codes, minlength=high - low + 1)
    first = np.cumsum(counts) - counts
    inside = (probe >= low) & (probe <= high)
    sought = probe - low if inside.all() else np.where(inside, probe, low) - low
    return expanded(first[sought], np.where(inside, counts[sought], 0), order)


def _in_two_passes(partner: Places, probe: Places, low: int) -> tuple[Places, Places]:
    codes = partner - low
    order = np.argsort((codes & (DIGIT - 1)).astype(np.uint16), kind="stable")
    order = order[np.argsort((codes[order] >> 16).astype(np.uint16), kind="stable")]
    ordered = partner[order]
    first = np.searchsorted(ordered, probe)
    return expanded(first, np.searchsorted(ordered, probe, side="right") - first, order)


def expanded(first: Places, counts: Places, order: Places | None = None) -> tuple[Places, Places]:
    """Return pairs, given the first partner of each probing row and their number. `order`: the sorted partner rows."""
    probing = np.repeat(np.arange(len(counts)), counts)
    shift = first - (np.cumsum(counts) - counts)
    places = np.arange(len(probing)) + np.repeat(shift, counts)
    return probing, places if order is None else order[places]
