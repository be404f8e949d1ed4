"""The time-stamp registers of an operator with several inputs, as far as the operator itself needs them.

A register holds a port's bound: no later tuple on it is older. Punctuation that carries progress raises it as well. The
operator's own progress is the lowest register; it is put out in band only when it has risen and progress came in band.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from millstream.algebra.schema import FOREVER, NEVER
from millstream.runtime.operator.contract import Input


class Registers:
    __slots__ = ("_in_band", "_told", "bounds", "limit")

    def __init__(self, count: int) -> None:
        self.bounds = [NEVER] * count
        self._told = NEVER
        self._in_band = False
        self.limit = FOREVER
        """What the operator holds back: it may still put something out with this timestamp."""

    def take(self, inputs: Sequence[Input]) -> bool:
        """Raise the registers by what a step brings; whether any has risen."""
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
        """The progress to put out after this step, or NEVER."""
        lowest = min(*self.bounds, self.limit)
        if not self._in_band or lowest <= self._told:
            return NEVER
        self._told = lowest
        return lowest

    def to_value(self) -> tuple[list[int], int]:
        return list(self.bounds), self._told

    def restore(self, value: Any) -> None:
        bounds, self._told = value
        self.bounds = list(bounds)
