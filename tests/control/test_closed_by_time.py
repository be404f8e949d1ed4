"""Queries over ordered streams whose state only time closes, against a tuple-at-a-time meaning: the rows that have come
out before the end, and the state, whatever the cuts, shards and strategies."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.config import Options
from millstream.control.mill import LocalMill
from tests.tries import tries

Tuple = tuple[int, int, int]
"""Time, key, and a unique number."""
LAST = 400
"""No time of a test is later."""
RISING: dict[str, Callable[[int], float | str]] = {
    "ts": lambda t: t,
    "ts + 5": lambda t: t + 5,
    "ts * 2 - 1": lambda t: t * 2 - 1,
    "3 - (1 - ts)": lambda t: t + 2,
    "FLOOR(ts / 10)": lambda t: t // 10,
    "CAST(ts AS DOUBLE)": float,
    "CAST(CAST(CAST(ts * 3600 AS TIMESTAMP) AS DATE) AS VARCHAR)": lambda t: f"1970-01-{t // 24 + 1:02}",
    "SUBSTRING(CAST(CAST(ts AS TIMESTAMP) AS VARCHAR), 1, 16)": lambda t: f"1970-01-01 00:{t // 60:02}",
}
BETWEEN: dict[str, Callable[[int, int], bool]] = {
    "l.ts = r.ts": lambda a, b: a == b,
    "l.ts >= r.ts": lambda a, b: a >= b,
    "l.ts > r.ts - 5": lambda a, b: a > b - 5,
    "r.ts + 2 <= l.ts": lambda a, b: b + 2 <= a,
    "r.ts >= l.ts + 3": lambda a, b: b >= a + 3,
    "l.ts * 2 < r.ts": lambda a, b: a * 2 < b,
}
"""Conditions between the times of two streams."""
TWICE = "l.ts * 2 < r.ts"
"""It bounds r, but no column of l."""


class Run:
    """Two ordered streams, fed in random order and cut into random batches."""

    def __init__(self, seed: int, shards: int, strategy: str, query: str) -> None:
        draw = random.Random(seed)
        self.came: dict[str, list[Tuple]] = {"l": [], "r": []}
        mill = self.mill = LocalMill(Options(shards=shards, strategy=strategy, page_rows=draw.choice([1, 3, 8192])))
        for name in self.came:
            mill.execute(f"CREATE STREAM {name} (ts BIGINT, k BIGINT, v BIGINT) ORDER BY ts")
        mill.add_query("q", query)
        now = dict.fromkeys(self.came, 0)
        for number in range(draw.randrange(40)):
            name = draw.choice("lr")
            now[name] += draw.choice([0, 0, 1, 2, 7])
            self.came[name].append((now[name], draw.randrange(2), number))
            mill.insert(name, self.came[name][-1:])
            if draw.random() < 0.3:
                mill.batch()
        mill.batch()

    @property
    def rows(self) -> Counter[tuple[object, ...]]:
        return Counter(self.mill.take_rows("q").rows())

    def time(self, name: str) -> int:
        return max((ts for ts, _, _ in self.came[name]), default=-1)


several = given(st.integers(0, 2**40), st.sampled_from([1, 3]), st.sampled_from(["dfs", "bfs", "batch:3"]))


@pytest.mark.parametrize("expression", RISING)
@settings(max_examples=tries(12))
@several
def test_groups_close(expression: str, seed: int, shards: int, strategy: str) -> None:
    query = f"SELECT t, k, COUNT(*) AS n FROM (SELECT {expression} AS t, k FROM l) AS x GROUP BY t, k"
    run, value = Run(seed, shards, strategy, query), RISING[expression]
    groups = Counter((value(ts), k) for ts, k, _ in run.came["l"])
    closed = {key: n for key, n in groups.items() if key[0] < value(run.time("l"))}
    assert run.rows == Counter({(*key, n): 1 for key, n in closed.items()})
    assert run.mill.state_rows("q") == len(groups) - len(closed)


@settings(max_examples=tries(30))
@several
def test_groups_of_groups_close(seed: int, shards: int, strategy: str) -> None:
    inner = "SELECT t, COUNT(*) AS n FROM (SELECT ts AS t FROM l UNION ALL SELECT ts AS t FROM r) AS u GROUP BY t"
    run = Run(seed, shards, strategy, f"SELECT window_end, SUM(n) AS n FROM ({inner}) AS x [RANGE 5] ")
    bound = min(run.time("l"), run.time("r"))
    windows = Counter(ts // 5 * 5 + 5 for name in "lr" for ts, _, _ in run.came[name])
    assert run.rows == Counter({(end, n): 1 for end, n in windows.items() if end <= bound})


@pytest.mark.parametrize("condition", BETWEEN)
@settings(max_examples=tries(12))
@several
def test_joins_keep_what_may_still_match(condition: str, seed: int, shards: int, strategy: str) -> None:
    run = Run(seed, shards, strategy, f"SELECT l.v, r.v AS w FROM l, r WHERE l.k = r.k AND {condition}")
    holds, (left, right) = BETWEEN[condition], run.came.values()
    assert run.rows == Counter((a[2], b[2]) for a in left for b in right if a[1] == b[1] and holds(a[0], b[0]))
    kept = [a for a in left if condition == TWICE or any(holds(a[0], t) for t in range(run.time("r"), LAST))]
    kept += [b for b in right if any(holds(t, b[0]) for t in range(run.time("l"), LAST))]
    assert run.mill.state_rows("q") == len(kept)


@pytest.mark.parametrize("condition", BETWEEN)
@settings(max_examples=tries(8))
@several
def test_outer_joins_pad_what_matches_nothing_any_more(condition: str, seed: int, shards: int, strategy: str) -> None:
    run = Run(seed, shards, strategy, f"SELECT l.v, r.v AS w FROM l LEFT JOIN r ON l.k = r.k AND {condition}")
    holds, (left, right) = BETWEEN[condition], run.came.values()
    pairs = [(a[2], b[2]) for a in left for b in right if a[1] == b[1] and holds(a[0], b[0])]
    hopes = {a[2] for a in left if condition == TWICE or any(holds(a[0], t) for t in range(run.time("r"), LAST))}
    alone = {a[2] for a in left} - {v for v, _ in pairs} - hopes
    assert run.rows == Counter([*pairs, *((v, None) for v in alone)])
