"""Sizes of the experiments."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sizes:
    hours: int = 24
    """Hours of readings: 27,000 an hour."""
    pairs: int = 15
    """Interleaved pairs of runs with and without the code of feedback."""
    pairs_on_spark: int = 12
    steady_hours: int = 60
    """Hours of readings for these pairs in process: the start of a query is a small part of such a run."""
    chains: tuple[int, ...] = (1, 5, 10, 15)
    messages: int = 4_000
    """Messages of a chain with one for each tuple."""
    chain_rounds: int = 3
    pace_hours: int = 12
    """Hours of readings, half of them dirty: when the stream ends, the estimates of the last five minutes are all made,
    4 % of two hours and 0.7 % of twelve. Nearly a thousand batches on Spark for each plan without feedback."""
    minutes: int = 4
    """Minutes of readings in a batch, where imputation has to keep up."""
    budget: int = 170
    """Estimates per batch: a fifth of those that are needed."""
    loops: int = 200
    """Cost of an estimate, in steps of a loop."""
    broad_hours: int = 480
    """Hours of readings where nearly all are disclaimed."""
    broad_minutes: int = 1440
    """Minutes of them in a batch."""
    rounds: int = 2
    """Runs of each query with feedback and without."""
    cores: int = 2


FULL = Sizes()
QUICK = Sizes(
    hours=2,
    pairs=2,
    pairs_on_spark=2,
    steady_hours=2,
    chains=(1, 5),
    messages=500,
    chain_rounds=2,
    pace_hours=1,
    budget=400,
    loops=5,
    broad_hours=4,
    broad_minutes=120,
    rounds=1,
)
