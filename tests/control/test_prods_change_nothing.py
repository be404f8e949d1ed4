"""Final rows and the state in the end are the same with prods and without, through every operator and any window."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.config import Options
from millstream.control.mill import LocalMill
from tests.control.test_prods_through import AVERAGE, QUERIES, SMALL
from tests.tries import tries

BOTH = "(SELECT k, v, ts FROM s UNION ALL SELECT k, w AS v, ts FROM t)"
SHAPES = {
    **QUERIES,
    "union": f"SUM(v) AS n FROM {BOTH} [RANGE 10]",
    "join": "SUM(a.v) AS n FROM s [RANGE 5] a, t [RANGE 5] b WHERE a.k = b.k WINDOW [RANGE 10]",
    "groups": f"k, COUNT(*) AS n FROM {BOTH} [RANGE 10] GROUP BY k",
    "having": f"MAX(total) AS n FROM {SMALL} [RANGE 10] HAVING MAX(total) < 9",
}
WINDOWS = ("[RANGE 10]", "[RANGE 10 SLIDE 5]", "[RANGE 20 SLIDE 10]", "[RANGE 9 SLIDE 6]")
PRODS = ("{}", "{ts <= 15}", "{ts = 20}", "{k = 1}")


def elements(chance: random.Random) -> list[tuple[str, Any]]:
    """Tuples of two streams in the order of time, with prods among them."""
    times = {"s": 0, "t": 0}
    made: list[tuple[str, Any]] = []
    for _ in range(chance.randint(4, 25)):
        stream = chance.choice("st")
        if chance.random() < 0.3:
            made.append((stream, chance.choice(PRODS)))
        else:
            times[stream] += chance.randint(0, 6)
            made.append((stream, (chance.randint(1, 3), chance.randint(0, 9), times[stream])))
    return [*made, *((stream, f"[*, *, < {end}]") for end in (60, 1000) for stream in "st")]


def run(query: str, fed: list[tuple[str, Any]], *, prods: bool, shards: int, seed: int, early: str) -> Any:
    mill = LocalMill(Options.read(shards=shards, contracts="off"))
    mill.execute("CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts")
    mill.execute("CREATE STREAM t (k BIGINT, w BIGINT, ts BIGINT) ORDER BY ts")
    mill.execute(AVERAGE)
    mill.add_query("q", f"SELECT window_end, finality, revision, {query} {early if prods else ''}")
    chance, rows = random.Random(seed), list[tuple[Any, ...]]()
    for stream, element in fed:
        if not isinstance(element, str):
            mill.insert(stream, [element])
        elif prods or not element.startswith("{"):
            mill.feed_line(stream, element)
        if chance.random() < 0.2:
            mill.batch()
            rows += mill.take_rows("q").rows()
    mill.batch()
    rows += mill.take_rows("q").rows()
    final = sorted(((end, *values) for end, kind, _, *values in rows if kind == "final"), key=repr)
    return final, mill.state_rows("q")


@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=tries(24), deadline=None)
@given(
    window=st.sampled_from(WINDOWS),
    seed=st.integers(0, 1 << 30),
    shards=st.sampled_from([1, 3]),
    early=st.sampled_from(["", "", "EMIT EARLY EVERY 4", "EMIT EARLY AT 50 %"]),
)
def test_final_rows_and_state(name: str, window: str, seed: int, shards: int, early: str) -> None:
    query = SHAPES[name]
    place = query.rindex("[RANGE 10]")
    query = query[:place] + window + query[place + len("[RANGE 10]") :]
    fed = elements(random.Random(seed))
    without = run(query, fed, prods=False, shards=shards, seed=seed, early="")
    assert run(query, fed, prods=True, shards=shards, seed=seed + 1, early=early) == without
