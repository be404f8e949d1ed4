"""Aggregates written in SQL that queries may call without declaring them, a file for each name.

A user's aggregate of the same name hides one of these.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

EVERY = float("-inf"), float("inf")
LIMITS: dict[tuple[str, str], tuple[float, float]] = {
    ("approx_distinct", "item"): EVERY,
    ("approx_frequency", "item"): EVERY,
    ("approx_ones", "n"): (1, float("inf")),
    ("approx_quantile", "p"): (0, 1),
    ("exponential_avg", "alpha"): (0, 1),
    ("priority_sample", "k"): (1, 1000),
}
"""The least and the greatest constant that an argument can be, by aggregate and argument, where it matters."""


@cache
def names() -> frozenset[str]:
    """The names of all aggregates of the library."""
    files = resources.files(__package__).iterdir()
    return frozenset(file.name.removesuffix(".sql") for file in files if file.name.endswith(".sql"))


def text(name: str) -> str:
    """The statements that declare an aggregate: its base version, its window version, or both."""
    return (resources.files(__package__) / f"{name}.sql").read_text(encoding="utf-8")
