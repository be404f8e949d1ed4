"""Stateless random numbers: the draw for an element is a hash of the seed, the purpose and the element's number.

The hash is SplitMix64: element n takes a few operations on 64-bit integers, without drawing the elements before it, and
is the same on all machines. Whatever is computed from a draw is integer arithmetic too, so that no rounding differs
between machines.

>>> draws = Draws(7, "price")
>>> draws.below(np.arange(4), 100).tolist() == [int(draws.below(np.array([n]), 100)[0]) for n in range(4)]
True
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from millstream.algebra.arrays import Integers

Words = npt.NDArray[np.uint64]

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_HALF = np.uint64(32)
MOST = 1 << 31
"""Highest limit of a draw."""


class Draws:
    """A sequence of draws, independent of those with other seeds or purposes."""

    __slots__ = ("_key",)

    def __init__(self, seed: int, purpose: str) -> None:
        digest = hashlib.blake2b(f"{seed} {purpose}".encode(), digest_size=8).digest()
        self._key = np.uint64(int.from_bytes(digest, "little"))

    def words(self, numbers: Integers) -> Words:
        """Return 64 random bits for each number."""
        word = numbers.astype(np.uint64)
        shifted = np.empty_like(word)
        word *= _GAMMA
        word += self._key
        for shift, factor in ((30, _FIRST), (27, _SECOND)):
            np.right_shift(word, np.uint64(shift), out=shifted)
            word ^= shifted
            word *= factor
        np.right_shift(word, np.uint64(31), out=shifted)
        word ^= shifted
        return word

    def below(self, numbers: Integers, limit: int | Integers) -> Integers:
        """Return for each number one of 0 … limit - 1, uniformly distributed; limits are 1 to `MOST`."""
        word = self.words(numbers)
        word >>= _HALF
        word *= np.uint64(limit) if isinstance(limit, int) else limit.view(np.uint64)
        word >>= _HALF
        return word.view(np.int64)

    def around(self, numbers: Integers, spread: int) -> Integers:
        """Return for each number a deviation from zero, bell-shaped, at most `spread`."""
        word = self.words(numbers)
        total = np.zeros(len(word), dtype=np.int64)
        for shift in (0, 16, 32, 48):
            total += ((word >> np.uint64(shift)) & np.uint64(0xFFFF)).view(np.int64)
        return (total - 2 * 0xFFFF) * spread // (2 * 0xFFFF)
