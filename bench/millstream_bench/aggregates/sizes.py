"""Sizes of the experiments."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sizes:
    columns: int = 1_000_000
    """Tuples of an aggregate that runs on columns."""
    rows: int = 100_000
    """Tuples of an aggregate that takes one tuple at a time."""
    work: int = 10_000_000
    """Tuples that a naive aggregate reads again, over all its windows; at least `few` tuples are measured."""
    few: int = 300
    windows: tuple[int, ...] = (100, 300, 1_000, 3_000, 10_000)
    rounds: int = 3
    slide_window: int = 40_000
    slides: tuple[int, ...] = (1, 10, 100, 1_000, 10_000, 20_000, 40_000)
    partitions: int = 1_000
    seconds: float = 30
    """Event time of the RFID readings."""
    tags: tuple[int, ...] = (1, 5, 50, 500, 1_000)
    """Tags a second, ten readings each."""
    noise: tuple[float, ...] = (0.01, 0.05, 0.2, 0.5)
    readings: int = 600_000
    """Readings of the sensors on Spark."""
    peer_readings: int = 1_200_000
    """Readings of the sensors on other engines."""
    readings_per_file: int = 50_000
    files_per_batch: int = 2
    warm_up: int = 2
    """Batches before the measurement."""


FULL = Sizes()
QUICK = Sizes(
    columns=20_000,
    rows=3_000,
    work=100_000,
    few=50,
    windows=(10, 30, 100),
    rounds=1,
    slide_window=400,
    slides=(1, 10, 100),
    partitions=20,
    seconds=6,
    tags=(1, 20),
    noise=(0.05, 0.5),
    readings=20_000,
    peer_readings=20_000,
    readings_per_file=2_500,
    files_per_batch=2,
    warm_up=1,
)
