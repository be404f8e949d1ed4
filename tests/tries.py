"""Share of the examples and of the cases that `make test` tries; `make fuzz` tries all, and more.

Which cases it takes depends on the turn, a hexadecimal number: `make test` takes that of the commit, so that other
commits try other cases, and prints it. A run with MILLSTREAM_TURN set to it repeats the choice. Without a turn, as when
one file of tests is run, a rotation is at its beginning, and what comes in some turns alone runs.
"""

import os
from collections.abc import Iterable, Sequence
from typing import TypeVar

import pytest

Item = TypeVar("Item")
Way = TypeVar("Way")

SHARE = float(os.environ.get("MILLSTREAM_TRIES", "0.12"))
TURN = os.environ.get("MILLSTREAM_TURN", "")
_AT = int(TURN or "0", 16)


def tries(stated: int) -> int:
    """Return the number of examples of a property that states a number."""
    return max(1, round(stated * SHARE))


def rotated(items: Iterable[Item], ways: Sequence[Way], keep: int) -> list[tuple[Item, Way]]:
    """Return each item with `keep` of the ways to try it, the next item with the next ones; `make fuzz` tries all."""
    if SHARE >= 1:
        return [(item, way) for item in items for way in ways]
    return [(item, ways[(at * keep + step + _AT) % len(ways)]) for at, item in enumerate(items) for step in range(keep)]


def chosen(items: Iterable[Item], of: int) -> list[Item]:
    """Return one of every `of` items: those of this turn; `make fuzz` tries all."""
    found = list(items)
    return found if SHARE >= 1 else found[_AT % of :: of]


def sometimes(at: int, of: int) -> pytest.MarkDecorator:
    """Mark what takes long and runs in one of `of` turns; without a turn it runs."""
    return pytest.mark.skipif(bool(TURN) and _AT % of != at, reason=f"runs in one of {of} turns")
