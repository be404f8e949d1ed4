"""Sizes of the experiments."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sizes:
    """Numbers of tuples count all streams together."""

    long: int = 5_000_000
    """Tuples of the long join whose state is recorded."""
    swept: int = 200_000
    """Tuples of each run in small steps."""
    windowed: int = 120_000
    plain: int = 2_000_000
    """Tuples of the comparison without punctuation."""
    plain_rounds: int = 7
    rounds: int = 3
    seconds: int = 60
    """Length of the joins of several streams, at 100 tuples a second and stream."""
    fast_rate: int = 10_000
    """Tuples a second and stream at the faster rate."""
    stepped: int = 600_000
    """Tuples of the interval joins in steps of any size."""
    steps: tuple[int, ...] = (500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000)
    """Sizes of these steps, in tuples."""
    held: int = 1_000_000
    """Tuples held by the join on disk."""
    limit: int = 64 << 20
    """Its memory limit in bytes."""
    events: int = 10_000_000
    """Events of the open auctions on Spark."""
    events_per_file: int = 100_000


FULL = Sizes()
QUICK = Sizes(
    long=32_000,
    swept=4_000,
    windowed=3_000,
    plain=8_000,
    plain_rounds=1,
    rounds=1,
    seconds=12,
    fast_rate=200,
    stepped=12_000,
    steps=(500, 2_000, 6_000),
    held=40_000,
    limit=1 << 20,
    events=400_000,
    events_per_file=50_000,
)
