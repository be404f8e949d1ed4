"""Share of the examples that `make test` tries; `make fuzz` tries all, and more."""

import os
from collections.abc import Iterable, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Way = TypeVar("Way")

SHARE = float(os.environ.get("MILLSTREAM_TRIES", "0.25"))


def tries(stated: int) -> int:
    """Return the number of examples of a property that states a number."""
    return max(1, round(stated * SHARE))


def rotated(items: Iterable[Item], ways: Sequence[Way], keep: int) -> list[tuple[Item, Way]]:
    """Return each item with `keep` of the ways to try it, the next item with the next ones; `make fuzz` tries all."""
    if SHARE >= 1:
        return [(item, way) for item in items for way in ways]
    return [(item, ways[(at * keep + step) % len(ways)]) for at, item in enumerate(items) for step in range(keep)]
