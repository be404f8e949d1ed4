"""Early answers: each early value is the aggregate of exactly the tuples before the prod; nothing else changes.

A query that is prodded at random runs beside an equal one that is not, sharing its operators. The answers are computed
tuple at a time from the rows inserted so far; final rows and state of the two queries are the same.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.control.job.jobs import LocalJobs
from millstream.control.mill import LocalMill
from millstream.errors import PatternError, PlanError
from tests.control.test_invariance import WAYS
from tests.tries import tries

Rows = list[tuple[int | None, int, int]]
"""Tuples (k, v, ts)."""
PRODS = ("{}", "{k = 1}", "{window_end < 10}", "{window_end <= 10}", "{window_end = 15}", "{window_end > 9, k = 0}")


def answered(rows: Rows, size: int, slide: int, least: int, prod: str) -> Counter:
    """The early rows (window_end, k, COUNT(*), SUM(v)) that a prod gets after these rows."""
    groups: dict[tuple[int, Any], list[int]] = {}
    for k, v, ts in rows:
        for end in range((ts // slide + 1) * slide, ts + size + 1, slide):
            if end - size <= ts < end:
                groups.setdefault((end, k), []).append(v)
    reached = max((ts for _, _, ts in rows), default=0)
    found: Counter = Counter()
    for (end, k), values in groups.items():
        if end > reached and len(values) >= least and matches(prod, end, k):
            found[end, k, len(values), sum(values), "early"] += 1
    return found


def matches(prod: str, end: int, k: int | None) -> bool:
    match prod:
        case "{}":
            return True
        case "{k = 1}":
            return k == 1
        case "{window_end < 10}":
            return end < 10
        case "{window_end <= 10}":
            return end <= 10
        case "{window_end = 15}":
            return end == 15
    return end > 9 and k == 0


@given(
    st.lists(st.tuples(st.sampled_from([0, 1, 2, None]), st.integers(0, 9), st.integers(0, 3)), max_size=30),
    st.lists(st.tuples(st.integers(0, 30), st.sampled_from(PRODS)), max_size=5),
    st.sampled_from([(5, 5), (10, 5), (4, 2), (2, 5)]),
    st.integers(1, 3),
    st.integers(1, 1000),
    st.sampled_from(sorted(WAYS)),
)
@settings(max_examples=tries(60))
def test_prods(
    steps: list[Any], prods: list[tuple[int, str]], window: tuple[int, int], least: int, seed: int, way: str
) -> None:
    options, more = WAYS[way]
    chance, options = random.Random(seed), options.model_copy()
    mill = LocalMill(options, jobs=LocalJobs(shards=options.shards, cached=more.get("cached", True)))
    mill.execute("CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts")
    size, slide = window
    query = (
        f"SELECT window_end, k, COUNT(*) AS n, SUM(v) AS total, finality FROM s [RANGE {size} SLIDE {slide}]"
        f" GROUP BY k HAVING COUNT(*) >= {least}"
    )
    for name in ("q", "beside"):
        mill.add_query(name, query)
    final: dict[str, Counter] = {"q": Counter(), "beside": Counter()}

    def take(early: Counter) -> None:
        mill.batch()
        for name, rows in final.items():
            taken = Counter(mill.take_rows(name).rows())
            first = Counter({row: n for row, n in taken.items() if row[-1] == "early"})
            assert first == (early if name == "q" else Counter())
            rows.update(taken - first)

    rows: Rows = []
    for number, (k, v, pause) in enumerate(steps):
        for at, prod in prods:
            if at == number:
                take(Counter())
                mill.prod("q", prod)
                take(answered(rows, size, slide, least, prod))
                assert mill.state_rows("q") == mill.state_rows("beside")
        rows.append((k, v, rows[-1][2] + pause if rows else pause))
        mill.insert("s", rows[-1:])
        if chance.random() < 0.3:
            take(Counter())
            if more.get("restart"):
                mill = mill.restarted()
    take(Counter())
    mill.punctuate("s", "[*, *, *]")
    take(Counter())
    assert final["q"] == final["beside"] and mill.state_rows("q") == 0


def test_groups_without_windows_answer_early() -> None:
    with ms.connect(local=True) as mill:
        mill.sql("CREATE STREAM s (k BIGINT, v BIGINT) PUNCTUATED ON (k #)")
        query = mill.sql("CREATE QUERY q AS SELECT k, SUM(v) AS total, finality FROM s GROUP BY k")
        mill.insert("s", [(1, 1), (2, 1), (1, 2)])
        query.prod()
        assert sorted(query.take().rows()) == [(1, 3, "early"), (2, 1, "early")]
        query.prod("{1, *, *}")
        query.feedback("![k = 2]")
        assert sorted(query.take().rows()) == [(1, 3, "early"), (2, 1, "early")]
        query.feedback("~[k = 2]")
        query.prod()
        assert query.take().rows() == [(1, 3, "early")]


@pytest.mark.parametrize(
    ("query", "prod", "code"),
    [
        ("SELECT k, COUNT(*) AS n FROM s GROUP BY k", "{k = 1}", "M4014"),
        ("SELECT k, v FROM s", "{}", "M4015"),
        ("SELECT DISTINCT k, finality FROM (SELECT k, v, COUNT(*) AS n, finality FROM s GROUP BY k, v)", "{}", "M4015"),
        ("SELECT k, COUNT(*) AS n, finality FROM s GROUP BY k", "[k = 1]", "M4011"),
        ("SELECT k, COUNT(*) AS n, finality FROM s GROUP BY k", "{nothing = 1}", "M4004"),
    ],
)
def test_mistakes(query: str, prod: str, code: str) -> None:
    mill = LocalMill()
    mill.execute("CREATE STREAM s (k BIGINT, v BIGINT)")
    mill.add_query("q", query)
    with pytest.raises(PatternError) as caught:
        mill.prod("q", prod)
    assert caught.value.code == code


def test_a_column_of_that_name_is_not_hidden() -> None:
    mill = LocalMill()
    mill.execute("CREATE STREAM s (finality BIGINT, v BIGINT) PUNCTUATED ON (finality #)")
    mill.add_query("q", "SELECT finality, COUNT(*) AS n FROM s GROUP BY finality")
    mill.insert("s", [(1, 1)])
    mill.punctuate("s", "[1, *]")
    mill.batch()
    assert mill.take_rows("q").rows() == [(1, 1)]


def test_prods_of_a_stream_from_a_program() -> None:
    with ms.connect(local=True) as mill:
        mill.sql("CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts")
        query = mill.sql("CREATE QUERY q AS SELECT window_end, SUM(v) AS total FROM s [RANGE 10] EMIT EARLY")
        mill.insert("s", [(1, 5, 1)])
        mill.prod("s", "{ts <= 10}")
        mill.prod("s")
        mill.insert("s", [(1, 5, 11)])
        assert query.take().rows() == [(10, 5), (10, 5), (10, 5)]
        for wrong in ("[ts < 5]", "{nothing = 1}", "{ts <= x}"):
            with pytest.raises(PatternError):
                mill.prod("s", wrong)


def test_a_query_is_altered_for_good() -> None:
    mill = LocalMill()
    mill.execute("CREATE STREAM s (v BIGINT, ts BIGINT) ORDER BY ts")
    mill.add_query("q", "SELECT window_end, SUM(v) AS total, finality FROM s [RANGE 10] EMIT EARLY AT 80 %")
    mill.execute("ALTER QUERY q EMIT EARLY AT 30 %")
    mill = mill.restarted()
    assert "Prodder 7 BEFORE END" in mill.execute("EXPLAIN q")
    mill.insert("s", [(1, 2), (2, 3), (4, 8)])
    mill.batch()
    assert mill.take_rows("q").rows() == [(10, 1, "early")]
    mill.add_query("other", "SELECT window_end, SUM(v) AS total, finality FROM s [RANGE 10]")
    with pytest.raises(PlanError) as caught:
        mill.execute("ALTER QUERY other EMIT EARLY AT 30 %")
    assert caught.value.code == "M3037"


def test_early_answers_before_the_end_need_windows_of_time() -> None:
    mill = LocalMill()
    mill.execute("CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts")
    with pytest.raises(PlanError) as caught:
        mill.add_query("q", "SELECT k, COUNT(*) AS n FROM s GROUP BY k EMIT EARLY AT 80 %")
    assert caught.value.code == "M3036"


def test_prods_of_a_stream_that_the_job_reads(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("k,v,ts\n1,5,1\n2,6,2\n")
    with ms.connect(local=True, shards=2) as mill:
        mill.sql(
            f"CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts WITH (connector = 'csv', path = '{tmp_path}')"
        )
        text = "SELECT window_end, k AS key, SUM(v) AS total, finality FROM s [RANGE 10 SLIDE 5] GROUP BY k"
        query = mill.sql(f"CREATE QUERY q AS {text}")
        assert query.take().rows() == []
        mill.prod("s", "{ts <= 5, k = 2}")
        assert query.take().rows() == [(5, 2, 6, "early")]
        query.prod("{window_end = 10}")
        assert sorted(query.take().rows()) == [(10, 1, 5, "early"), (10, 2, 6, "early")]
