"""Random numbers without a state: what is drawn for an element is a hash of the seed, the purpose and its number.

The hash is SplitMix64, so element n is drawn in a few operations on 64-bit integers, on any machine alike, without
drawing those before it. Everything that follows from a draw is integer arithmetic too: no rounding differs between
machines.

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
"""The highest limit of a draw."""


class Draws:
    """One sequence of draws, unlike those of other seeds and purposes."""

    __slots__ = ("_key",)

    def __init__(self, seed: int, purpose: str) -> None:
        digest = hashlib.blake2b(f"{seed} {purpose}".encode(), digest_size=8).digest()
        self._key = np.uint64(int.from_bytes(digest, "little"))

    def words(self, numbers: Integers) -> Words:
        """64 random bits for each number."""
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
        """For each number one of 0 … limit - 1, all alike likely; a limit is at least 1 and at most `MOST`."""
        word = self.words(numbers)
        word >>= _HALF
        word *= np.uint64(limit) if isinstance(limit, int) else limit.view(np.uint64)
        word >>= _HALF
        return word.view(np.int64)

    def around(self, numbers: Integers, spread: int) -> Integers:
        """For each number a deviation from zero, shaped like a bell, never beyond `spread`."""
        word = self.words(numbers)
        total = np.zeros(len(word), dtype=np.int64)
        for shift in (0, 16, 32, 48):
            total += ((word >> np.uint64(shift)) & np.uint64(0xFFFF)).view(np.int64)
        return (total - 2 * 0xFFFF) * spread // (2 * 0xFFFF)
