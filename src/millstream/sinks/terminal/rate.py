"""Rows per second over the last seconds."""

from __future__ import annotations

from collections import deque

WINDOW = 10.0
"""Length of the period in seconds."""


class Rate:
    """
    >>> rate = Rate(0.0)
    >>> rate.add(3.0, 1000)
    >>> rate.at(5.0), rate.at(10.0), rate.at(13.0)
    (200.0, 100.0, 0.0)
    """

    def __init__(self, begin: float) -> None:
        self._begin = begin
        self._counts: deque[tuple[float, int]] = deque()

    def add(self, now: float, rows: int) -> None:
        self._counts.append((now, rows))
        self._forget(now)

    def at(self, now: float) -> float:
        self._forget(now)
        # Within the first second the quotient would be too high.
        seconds = min(max(now - self._begin, 1.0), WINDOW)
        return sum(rows for _, rows in self._counts) / seconds

    def _forget(self, now: float) -> None:
        while self._counts and self._counts[0][0] <= now - WINDOW:
            self._counts.popleft()
