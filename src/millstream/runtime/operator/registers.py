"""The time-stamp registers that an operator with several inputs keeps for itself.

A register holds a port's bound: no later tuple on the port is older. Punctuation with progress raises it too. The
operator's own progress is the lowest register; it is emitted in band only if it has risen and progress arrived in band.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from millstream.algebra.schema import FOREVER, NEVER
from millstream.runtime.operator.contract import Input


class Registers:
    __slots__ = ("_emitted", "_in_band", "bounds", "limit")

    def __init__(self, count: int) -> None:
        self.bounds = [NEVER] * count
        self._emitted = NEVER
        self._in_band = False
        self.limit = FOREVER
        """The lowest timestamp of the results that the operator holds back."""

    def take(self, inputs: Sequence[Input]) -> bool:
        """Raise the registers by the bounds and progress of a step; return whether any has risen."""
        risen = False
        self._in_band = False
        for index, port in enumerate(inputs):
            bound = port.bound
            if port.punctuations is not None and port.punctuations.progress > NEVER:
                bound = max(bound, port.punctuations.progress)
                self._in_band = True
            if bound > self.bounds[index]:
                self.bounds[index] = bound
                risen = True
        return risen

    def news(self) -> int:
        """Return the progress to emit after this step, or NEVER."""
        lowest = min(*self.bounds, self.limit)
        if not self._in_band or lowest <= self._emitted:
            return NEVER
        self._emitted = lowest
        return lowest

    def to_value(self) -> tuple[list[int], int]:
        return list(self.bounds), self._emitted

    def restore(self, value: Any) -> None:
        bounds, self._emitted = value
        self.bounds = list(bounds)
