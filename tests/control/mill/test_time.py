"""Time on demand: which streams promise it, and who is given a promise."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.types import MICROS
from millstream.config import Options
from millstream.control.mill import LocalMill
from tests.tries import tries

STREAMS = """
CREATE STREAM a (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts MAX SKEW 0;
CREATE STREAM b (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts MAX SKEW 0
"""
UNION = "(SELECT k, v, ts FROM a UNION ALL SELECT k, v, ts FROM b) AS u"
BY_K = f"SELECT window_end, k, COUNT(*) AS n FROM {UNION} [RANGE 5 SLIDE 5] GROUP BY k"
ALL = f"SELECT window_end, COUNT(*) AS n FROM {UNION} [RANGE 5 SLIDE 5]"
JOINED = "SELECT x.k AS k, y.v AS v, y.ts FROM a AS x [RANGE 4] JOIN b AS y [RANGE 4] ON x.k = y.k"
BY_V = f"SELECT window_end, v, COUNT(*) AS n FROM ({JOINED}) AS j [RANGE 6 SLIDE 2] GROUP BY v"
OUTER = "SELECT x.k, x.v, y.v AS w FROM a AS x [RANGE 4] LEFT JOIN b AS y [RANGE 4] ON x.k = y.k"
RECENT = "SELECT x.v, y.v AS w FROM a AS x, b AS y WHERE SEQ(x, y) MODE RECENT AND x.k = y.k"
QUERIES = (BY_K, ALL, BY_V, OUTER, RECENT)
WAYS = (
    Options(shards=2),
    Options(shards=3, page_rows=2),
    Options(strategy="rr"),
    Options(strategy="bfs", page_rows=1),
    Options(strategy="dfs", shards=2),
    Options(ets="punctuation"),
    Options(ets="punctuation", strategy="rr", shards=2),
)


def opened(**options: object) -> LocalMill:
    mill = LocalMill(Options(**options))
    mill.execute(STREAMS)
    return mill


def rows(mill: LocalMill, query: str = "q") -> list[tuple[object, ...]]:
    mill.batch()
    return sorted(mill.take_rows(query).rows())


@pytest.mark.parametrize("shards", [1, 2])
def test_a_promise_is_given_to_a_query_in_other_shards_too(shards: int) -> None:
    mill = opened(shards=shards)
    mill.add_query("q", BY_K)
    mill.insert("a", [(1, 1, 1)])
    mill.insert("b", [(1, 1, 1)])
    mill.advance(9 * MICROS)
    assert rows(mill) == [(5, 1, 2)]
    mill.add_query("later", f"SELECT DISTINCT v FROM {UNION}")
    mill.insert("b", [(1, 7, 10)])
    assert rows(mill, "later") == [(7,)]


@pytest.mark.parametrize("shards", [1, 2])
def test_a_promise_of_a_dropped_stream_does_not_bind_another_of_its_name(shards: int) -> None:
    mill = opened(shards=shards)
    mill.add_query("q", BY_K)
    mill.add_query("kept", "SELECT k FROM a")
    mill.insert("a", [(1, 1, 1)])
    mill.insert("b", [(1, 1, 1)])
    mill.advance(90 * MICROS)
    assert rows(mill) == [(5, 1, 2)]
    mill.execute("DROP QUERY q; DROP STREAM b; CREATE STREAM b (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts MAX SKEW 0")
    mill.add_query("q", "SELECT k, ts FROM a UNION ALL SELECT k, ts FROM b")
    mill.insert("a", [(1, 1, 95)])
    mill.insert("b", [(2, 2, 93)])
    assert rows(mill) == [(2, 93)]
    mill.insert("b", [(2, 2, 96)])
    assert rows(mill) == [(1, 95)]
    assert mill.counts("b")["late"] == 0


def test_a_stream_that_holds_nothing_back_is_not_asked() -> None:
    mill = opened()
    mill.add_query("q", ALL)
    mill.insert("a", [(1, 1, 1)])
    mill.insert("b", [(1, 1, 9)])
    mill.advance(8 * MICROS)
    assert rows(mill) == [(5, 1)]
    mill.insert("b", [(1, 1, 10)])
    assert mill.counts("b")["late"] == 0


Step = tuple[str, tuple[int, int, int] | int]


def outcome(mill: LocalMill, query: str, steps: list[Step], cuts: set[int]) -> tuple[list[Counter], list[int]]:
    """Rows between clock moves, and the numbers of late tuples."""
    mill.execute(STREAMS)
    mill.add_query("q", query)
    found: list[Counter] = []
    for number, (stream, value) in enumerate([*steps, ("advance", 30)]):
        if isinstance(value, int):
            mill.advance(value * MICROS)
            found.append(Counter(mill.take_rows("q").rows()))
        else:
            mill.insert(stream, [value])
        if number in cuts:
            mill.batch()
    return found, [mill.counts(stream)["late"] for stream in "ab"]


@st.composite
def scripts(draw: st.DrawFn) -> list[Step]:
    steps: list[Step] = []
    now = 0
    for _ in range(draw(st.integers(2, 14))):
        if draw(st.integers(0, 3)) == 0:
            steps.append(("advance", draw(st.integers(1, 5))))
        now += draw(st.integers(0, 3))
        steps.append((draw(st.sampled_from("ab")), (draw(st.integers(0, 1)), draw(st.integers(0, 2)), now)))
    return steps


@given(st.sampled_from(QUERIES), scripts(), st.sampled_from(WAYS), st.sets(st.integers(0, 20)))
@settings(max_examples=tries(120))
def test_the_same_tuples_wait_and_are_late_everywhere(
    query: str, steps: list[Step], way: Options, cuts: set[int]
) -> None:
    assert outcome(LocalMill(way.model_copy()), query, steps, cuts) == outcome(LocalMill(), query, steps, set())


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_tuples_of_another_key_that_wait_do_not_hold_back_a_padded_row(shards: int) -> None:
    mill = opened(shards=shards)
    mill.add_query("q", OUTER)
    mill.insert("a", [(1, 0, 3)])
    mill.insert("b", [(0, 2, 6), (1, 2, 8)])
    assert rows(mill) == [(1, 0, None)]
    assert mill.state_rows("q") == 0
    mill.insert("a", [(0, 0, 4)])
    assert rows(mill) == [] and mill.state_rows("q") == 1  # (0, 2, 6) waits for it
    mill.insert("a", [(1, 0, 7)])
    assert rows(mill) == [(0, 0, 2)]
