"""A wavelet matrix: the k-th least of a range of numbers, and how many of a range are below a number.

One pass over the numbers and one over the questions for each binary digit, all ranges at once, whatever their lengths.

>>> numbers = Wavelet(np.array([3, 0, 2, 2, 1]))
>>> first, stop = np.array([0, 1]), np.array([5, 4])
>>> numbers.least(first, stop, np.array([2, 0])).tolist(), numbers.below(first, stop, np.array([2, 2])).tolist()
([2, 0], [2, 1])
"""

from __future__ import annotations

import numpy as np

from millstream.algebra.arrays import Integers, Mask, Places


class Wavelet:
    """Numbers from 0 up to less than 2^31. For each digit, the highest first: how many zeros precede each place, when
    the numbers are ordered by the digits before."""

    def __init__(self, numbers: Integers) -> None:
        self._digits = max(int(numbers.max(initial=0)).bit_length(), 1)
        self._zeros: list[Integers] = []
        for digit in reversed(range(self._digits)):
            ones = (numbers >> digit & 1).astype(np.bool_)
            zeros = np.zeros(len(numbers) + 1, dtype=np.int64)
            np.cumsum(~ones, out=zeros[1:])
            self._zeros.append(zeros)
            numbers = np.concatenate([numbers[~ones], numbers[ones]])

    def least(self, first: Places, stop: Places, place: Places) -> Integers:
        """Return the number at a place, from 0 on, of each range in ascending order."""
        found = np.zeros(len(first), dtype=np.int64)
        for zeros in self._zeros:
            low, high = zeros[first], zeros[stop]
            ones = place >= high - low
            place = np.where(ones, place - (high - low), place)
            first, stop = _follow(zeros, ones, first, low), _follow(zeros, ones, stop, high)
            found = found * 2 + ones
        return found

    def below(self, first: Places, stop: Places, limit: Integers) -> Integers:
        """Return how many numbers of each range are below its limit."""
        beyond = limit >> self._digits > 0
        found = np.where(beyond, stop - first, 0)
        for digit, zeros in zip(reversed(range(self._digits)), self._zeros, strict=True):
            ones = (limit >> digit & 1).astype(np.bool_)
            low, high = zeros[first], zeros[stop]
            found += np.where(ones & ~beyond, high - low, 0)
            first, stop = _follow(zeros, ones, first, low), _follow(zeros, ones, stop, high)
        return found


def _follow(zeros: Integers, ones: Mask, place: Places, before: Places) -> Places:
    """Return the place in the next order: zeros come before ones."""
    return np.where(ones, zeros[-1] + place - before, before)
