"""Rows per second over the last seconds."""

from __future__ import annotations

from collections import deque

WINDOW = 10.0
"""Length of the period in seconds; at least `BATCHES` batches, if batches take longer."""
BATCHES = 3


class Rate:
    """Rows come at a moment, or evenly over the seconds before it. `begin`: when the first ones may have come; None:
    with the first ones. `least`: seconds that the period lasts at least, which keeps the first quotients from being
    too high.

    >>> rate = Rate(0.0)
    >>> rate.add(3.0, 1000)
    >>> rate.at(5.0), rate.at(10.0), rate.at(13.0)
    (200.0, 100.0, 0.0)
    >>> batches = Rate()
    >>> batches.add(20.0, 9000, seconds=20.0)
    >>> batches.at(20.0), batches.at(40.0), batches.at(80.0)
    (450.0, 225.0, 0.0)
    """

    def __init__(self, begin: float | None = None, least: float = 1.0) -> None:
        self._begin, self._least = begin, least
        self._counts: deque[tuple[float, float, int]] = deque()
        self._longest: deque[tuple[float, float]] = deque()
        """The spans that are longer than all after them, each with its end."""

    def add(self, now: float, rows: int, seconds: float = 0.0) -> None:
        """Count rows that came in the last `seconds`."""
        if self._begin is None:
            self._begin = now - seconds
        self._counts.append((now - seconds, now, rows))
        while self._longest and self._longest[-1][0] <= seconds:
            self._longest.pop()
        self._longest.append((seconds, now))
        while self._counts[0][1] <= now - self._window():
            _, end, _ = self._counts.popleft()
            if self._longest[0][1] <= end:
                self._longest.popleft()

    def _window(self) -> float:
        longest = next(iter(self._longest), (0.0, 0.0))
        return max(WINDOW, BATCHES * longest[0])

    def at(self, now: float) -> float:
        if self._begin is None:
            return 0.0
        since = max(self._begin, now - self._window())
        came = sum(rows * _share(begin, end, since) for begin, end, rows in [*self._counts])
        return came / max(now - since, self._least)


def _share(begin: float, end: float, since: float) -> float:
    """The share of a span of time that is after a moment."""
    if begin >= since and end > since:
        return 1.0
    return max(end - since, 0.0) / (end - begin) if end > begin else 0.0
