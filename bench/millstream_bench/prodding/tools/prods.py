"""Prods and punctuations that are written into a stored stream, each with the time of its delivery."""

from __future__ import annotations

from collections.abc import Iterable

from millstream_bench.prodding.tools.streamer import PUNCTUATION, Control


def lead_of(aggressiveness: float, slide: int) -> float:
    """Seconds before the end of a window at which it is prodded; `aggressiveness` in percent of the slide.

    >>> lead_of(25, 120), lead_of(0, 10)
    (30.0, 0.0)
    """
    return aggressiveness / 100 * slide


def prods(length: int, slide: int, aggressiveness: Iterable[float]) -> list[Control]:
    """A prod for each window that ends by `length`, at each of these percentages of the slide before its end."""
    leads = [lead_of(percent, slide) for percent in aggressiveness]
    return [Control(end - lead, end) for end in range(slide, length + 1, slide) for lead in leads if end >= lead]


def punctuations(length: int, slide: int) -> list[Control]:
    """A punctuation at the end of each slide."""
    return [Control(end, end, PUNCTUATION) for end in range(slide, length + 1, slide)]
