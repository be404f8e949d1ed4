"""Equal integers of two columns, found by a radix sort of one of them.

Numpy sorts 16-bit numbers in linear time, by counting. So keys that are close together, like the ids in a window or the
open ones of a punctuated stream, are sorted in one pass, others in two. Where the sorted column is not many times
longer than the other one, this takes a fraction of the fixed costs of a hash join.
"""

from __future__ import annotations

import numpy as np

from millstream.algebra.arrays import Places
from millstream.runtime.join.stretches import Stretches

DIGIT = 1 << 16
SHORT, FEW = 1 << 14, 1 << 10
"""Up to `SHORT` partners are sorted whatever the probe; two passes need a probe of at most `FEW` rows too."""
TIMES = 16
"""A longer partner is sorted if it is at most this many times longer than the probe."""


def radix_match(partner: Places, probe: Places) -> Stretches | None:
    """Return the partners of all probing rows; None if another method is better. Neither argument is empty.

    >>> probing, found = radix_match(np.array([7, 5, 7]), np.array([7, 6, 5])).pairs()
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


def _in_one_pass(codes: Places, probe: Places, low: int, high: int) -> Stretches:
    order = np.argsort(codes.astype(np.uint16), kind="stable")
    counts = np.bincount(codes, minlength=high - low + 1)
    first = np.cumsum(counts) - counts
    inside = (probe >= low) & (probe <= high)
    sought = probe - low if inside.all() else np.where(inside, probe, low) - low
    return Stretches(first[sought], np.where(inside, counts[sought], 0), order)


def _in_two_passes(partner: Places, probe: Places, low: int) -> Stretches:
    codes = partner - low
    order = np.argsort((codes & (DIGIT - 1)).astype(np.uint16), kind="stable")
    order = order[np.argsort((codes[order] >> 16).astype(np.uint16), kind="stable")]
    ordered = partner[order]
    first = np.searchsorted(ordered, probe)
    return Stretches(first, np.searchsorted(ordered, probe, side="right") - first, order)
