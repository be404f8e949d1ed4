"""Prods among the tuples of a stream, against the reference, under random cuts, shards and strategies.

Final rows, and the state once everything is closed, are the same with and without prods; every early value is the
aggregate of exactly the tuples before the prod.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.control.job.jobs import LocalJobs
from millstream.control.mill import LocalMill
from tests.control.test_invariance import WAYS
from tests.reference.early import Element, Windows, greatest, greatest_of_ends, sums
from tests.tries import tries

WINDOWS = ((5, 5), (10, 5), (4, 2), (2, 5), (5, 3))
_tuples = st.tuples(st.integers(0, 2), st.integers(-9, 9), st.integers(0, 12))
_prods = st.tuples(
    st.just("{"),
    st.sampled_from([None, "<", "<=", "=", "=", ">", ">="]),
    st.integers(0, 40),
    st.none() | st.integers(0, 2),
)
_punctuations = st.tuples(st.just("<"), st.integers(0, 8), st.none() | st.integers(0, 2))


def grammatical(drawn: list[Element]) -> list[Element]:
    """Elements with rising punctuation, and tuples that it allows."""
    made: list[Element] = []
    low, by_group = 0, {0: 0, 1: 0, 2: 0}
    for element in drawn:
        match element:
            case ("<", step, None):
                low += step
                made.append(("<", low, None))
            case ("<", step, k):
                by_group[k] = max(by_group[k], low) + step
                made.append(("<", by_group[k], k))
            case ("{", *_):
                made.append((*element,))
            case (k, v, ahead):
                made.append((k, v, max(low, by_group[k]) + ahead))
    return [*made, ("<", 200, None)]


def written(element: Element) -> str:
    match element:
        case ("<", time, None):
            return f"[ts < {time}]"
        case ("<", time, k):
            return f"[ts < {time}, k = {k}]"
        case ("{", operator, time, k):
            asked = [] if operator is None else [f"ts {operator} {time}"]
            return f"{{{', '.join([*asked, *([] if k is None else [f'k = {k}'])])}}}"
    return " | ".join(map(str, element))


def run(
    way: str, seed: int, elements: list[Element], queries: dict[str, str]
) -> tuple[dict[str, Counter[Any]], LocalMill]:
    options, more = WAYS[way]
    chance, options = random.Random(seed), options.model_copy()
    options.accumulators = chance.choice(["auto", "all"])
    mill = LocalMill(options, jobs=LocalJobs(shards=options.shards, cached=more.get("cached", True)))
    mill.execute(
        "CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts PUNCTUATED ON (ts +) PUNCTUATED ON (ts +, k #)"
    )
    for name, query in queries.items():
        mill.add_query(name, query)
    found: dict[str, Counter[Any]] = {name: Counter() for name in queries}
    for element in elements:
        mill.feed_line("s", written(element))
        if chance.random() < 0.3:
            mill.batch()
            if more.get("restart"):
                for name in queries:
                    found[name].update(mill.take_rows(name).rows())
                mill = mill.restarted()
    mill.batch()
    for name in queries:
        found[name].update(mill.take_rows(name).rows())
    return found, mill


@given(
    st.lists(_tuples | _tuples | _prods | _punctuations, max_size=40),
    st.sampled_from(WINDOWS),
    st.integers(1, 2),
    st.integers(1, 1000),
    st.sampled_from(sorted(WAYS)),
)
@settings(max_examples=tries(60))
def test_sums(drawn: list[Element], window: tuple[int, int], least: int, seed: int, way: str) -> None:
    elements = grammatical(drawn)
    source = f"FROM s [RANGE {window[0]} SLIDE {window[1]}] GROUP BY k HAVING COUNT(*) >= {least}"
    queries = {
        "q": f"SELECT window_end, k, SUM(v) AS total, finality, revision {source}",
        "silent": f"SELECT window_end, k, SUM(v) AS total {source}",
    }
    found, mill = run(way, seed, elements, queries)
    expected = Counter(sums(elements, *window, least))
    assert found["q"] == expected
    assert found["silent"] == Counter(row[:3] for row in expected.elements() if row[3] == "final")
    assert mill.state_rows("q") == mill.state_rows("silent") == 0


@given(
    st.lists(_tuples | _tuples | _prods | _punctuations, max_size=40),
    st.sampled_from(WINDOWS[:3]),
    st.sampled_from([(10, 10), (20, 10), (10, 5)]),
    st.integers(1, 1000),
    st.sampled_from(sorted(WAYS)),
)
@settings(max_examples=tries(40))
def test_the_greatest_sum(
    drawn: list[Element], inner: tuple[int, int], outer: tuple[int, int], seed: int, way: str
) -> None:
    elements = grammatical([(*element[:-1], None) if element[0] in ("<", "{") else element for element in drawn])
    sums_by_k = f"window_end AS e, k, SUM(v) AS total FROM s [RANGE {inner[0]} SLIDE {inner[1]}] GROUP BY k"
    above = f"[RANGE {outer[0]} SLIDE {outer[1]}]"
    queries = {
        "q": f"SELECT window_end, MAX(total) AS m, finality FROM (SELECT {sums_by_k}) {above}",
        "ends": f"SELECT e, MAX(total) AS m, finality FROM (SELECT {sums_by_k}) GROUP BY e",
        "starts": f"SELECT e + {inner[0]} AS e, MAX(total) AS m, finality FROM (SELECT {sums_by_k}) GROUP BY e",
    }
    queries["starts"] = queries["starts"].replace("window_end AS", "window_start AS")
    found, mill = run(way, seed, elements, queries)
    assert found["q"] == Counter(greatest(elements, inner, outer))
    assert found["ends"] == found["starts"] == Counter(greatest_of_ends(elements, inner))
    assert mill.state_rows("q") == 0


@given(st.lists(_tuples | _tuples | _prods, max_size=30), st.sampled_from(WINDOWS), st.integers(1, 1000))
@settings(max_examples=tries(20))
def test_what_prods_add_to_the_state_is_bounded(drawn: list[Element], window: tuple[int, int], seed: int) -> None:
    """By open windows times groups: those that have released panes, and those whose answers are counted."""
    elements = grammatical(drawn)[:-1]
    source = f"FROM s [RANGE {window[0]} SLIDE {window[1]}] GROUP BY k"
    queries = {
        "q": f"SELECT window_end, k, SUM(v) AS total, finality {source}",
        "counted": f"SELECT window_end, k, SUM(v) AS total, revision {source}",
        "silent": f"SELECT window_end, k, SUM(v) AS total {source}",
    }
    _, mill = run(sorted(WAYS)[0], seed, elements, queries)
    held = Windows(*window)
    for element in elements:
        if element[0] != "{":
            held.take(*element)
    assert mill.state_rows("q") <= mill.state_rows("silent") + len(held.open)
    assert mill.state_rows("counted") <= mill.state_rows("silent") + 2 * len(held.open)
