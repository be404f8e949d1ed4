"""How good an early answer was, and what it gained: the measures of prodding.

>>> accuracy(60, 50), accuracy(120, 50), accuracy(-3, -4), accuracy(0, 0), accuracy(1, 0)
(80.0, -40.0, 75.0, 100.0, 0.0)
>>> latency(first=5, result=11), latency(first=7, result=11), percentage_gain([4.0, 6.0], [8.0, 12.0])
(6, 4, 50.0)
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean


def accuracy(early: float, final: float) -> float:
    """How near an early value is to its final one, in percent; negative if it is off by more than the final one."""
    if final == 0:
        return 100.0 if early == 0 else 0.0
    return 100 * (abs(final) - abs(final - early)) / abs(final)


def latency(first: float, result: float) -> float:
    """The time from the arrival of the first tuple of a window to its result."""
    return result - first


def percentage_gain(early: Sequence[float], final: Sequence[float]) -> float:
    """How much shorter the latency of early answers is than that of their final ones, of the averages, in percent."""
    return 100 * (mean(final) - mean(early)) / mean(final)
