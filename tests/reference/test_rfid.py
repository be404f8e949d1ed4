"""The algorithms of the reference against the worked examples, and against each other."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from tests.reference.rfid import ALGORITHMS, Denoise, merged

END = Denoise.end
TABLE = """100 1 -; 200 4 2; 300 1 2; 400 1 2; 500 5 2; 600 1 2; 700 1 2; 800 1 8; 900 1 2; 1000 1 9; 1100 - 2"""
"""Time, and the tags that the readers 1 and 2 read."""
READINGS = [
    (int(time), int(tag)) for row in TABLE.split("; ") for time, *tags in [row.split()] for tag in tags if tag != "-"
]
ORDERED = [
    (1, 100), (2, 200), (1, 300), (2, 300), (1, 400), (2, 400), (2, 500), (1, 600), (2, 600), (1, 700), (2, 700),
    (1, 800), (1, 900), (2, 900), (1, 1000), (2, 1100),
]  # fmt: skip


def test_baseline() -> None:
    found = ALGORITHMS["baseline"](1000, 6).run(READINGS)
    assert found == [
        *((700, 2, ts) for ts in (200, 300, 400, 500, 600, 700)),
        *((800, 1, ts) for ts in (100, 300, 400, 600, 700, 800)),
        *((900, 1, 900), (900, 2, 900), (1000, 1, 1000), (1100, 2, 1100)),
    ]


@pytest.mark.parametrize("name", ["ordered baseline", "lazy", "eager"])
def test_in_order(name: str) -> None:
    assert [(key, ts) for _, key, ts in ALGORITHMS[name](1000, 6).run(READINGS)] == ORDERED


@pytest.mark.parametrize(
    ("name", "at"),
    [("lazy", {1250: 2, 2300: 14}), ("ordered baseline", {1250: 2, 2300: 14}), ("eager", {800: 1, 1250: 5, 2300: 10})],
)
def test_when_readings_go_out(name: str, at: dict[int, int]) -> None:
    found = ALGORITHMS[name](1000, 6).run([*READINGS, (1250, 99), (2300, 99)])
    assert [(key, ts) for _, key, ts in found] == ORDERED
    assert Counter(time for time, _, _ in found) == at


@pytest.mark.parametrize("seed", range(200))
def test_all_agree(seed: int) -> None:
    random = Random(seed)
    times = sorted(random.randint(0, 40) for _ in range(random.randint(0, 40)))
    readings = [(ts, random.randint(0, 3)) for ts in times]
    window, threshold = random.randint(0, 9), random.randint(1, 4)
    found = {name: made(window, threshold).run(readings) for name, made in ALGORITHMS.items()}
    in_order = [(key, ts) for _, key, ts in found["lazy"]]
    assert [(key, ts) for _, key, ts in found["eager"]] == in_order
    assert [(key, ts) for _, key, ts in found["ordered baseline"]] == in_order
    assert Counter((key, ts) for _, key, ts in found["baseline"]) == Counter(in_order)
    by_key = lambda key: [ts for ts, other in readings if other == key]  # noqa: E731
    meant = []
    for ts, key in readings:
        ends = [end for end in by_key(key) if ts <= end <= ts + window]
        counts = [sum(end - window <= other <= end for other in by_key(key)) for end in ends]
        if any(count >= threshold for count in counts):
            meant.append((key, ts))
    assert Counter(meant) == Counter(in_order)


def test_duplicates_are_chained() -> None:
    assert merged([(0, "a"), (1, "a"), (3, "a"), (6, "a")], 2) == [(0, "a"), (6, "a")]
