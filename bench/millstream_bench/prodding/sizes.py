"""Sizes of the experiments."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sizes:
    seeds: int = 20
    """Streams of each kind, with different random values."""
    length: int = 2000
    """Seconds of a stream with uniform or normal values."""
    lengths: tuple[int, ...] = (1000, 1500, 2000)
    delayed_seeds: int = 5
    hours: float = 2.5
    """Hours of a real detector."""
    burst_seeds: int = 5
    repeats: tuple[int, ...] = (1, 2, 4)
    """How often the log with bursts is repeated."""
    pairs: int = 15
    """Interleaved pairs of runs with prods and without."""
    spark_pairs: int = 10
    """Such pairs on Spark."""
    slides: int = 40
    """Slides of a run whose overhead is measured."""
    per_slide: int = 20_000
    """Tuples of a slide there."""
    paced_slides: int = 10
    """Slides of a run whose latency is measured, at a fixed rate of arrivals."""
    paced_scale: float = 10.0
    """Seconds of such a stream in a second on Spark; twice as many in process."""
    spark_length: int = 200
    """Seconds of a stream that is replayed on Spark."""
    scale: float = 2.0
    """Seconds of it in a second."""
    burst_seconds: int = 95
    """Seconds of the log with bursts that are replayed on Spark."""
    cores: int = 2


FULL = Sizes()
QUICK = Sizes(
    seeds=1,
    length=200,
    lengths=(200,),
    delayed_seeds=1,
    hours=0.7,
    burst_seeds=1,
    repeats=(1,),
    pairs=2,
    spark_pairs=2,
    slides=6,
    per_slide=2000,
    paced_slides=4,
    paced_scale=10.0,
    spark_length=60,
    scale=3.0,
    burst_seconds=40,
)
