"""The central property: results are the same bag for every page cut, batch cut, shard count and strategy.

Random queries (graphs of selections, unions, joins, aggregates, sequences, duplicates) over random streams of every
kind of time, random tuples and punctuations among them, run in one piece and then in every other way.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.config import Options
from millstream.control.mill import LocalMill
from tests.tries import tries

KINDS = {
    "ordered": "ORDER BY ts",
    "punctuated": "ORDER BY ts PUNCTUATED ON (ts +) PUNCTUATED ON (k #)",
    "watermarked": "ORDER BY ts WATERMARK FOR ts AS ts - 3",
    "latent": "",
}
END = 10_000


@dataclass(frozen=True)
class Case:
    kinds: tuple[str, str]
    query: str
    elements: tuple[tuple[str, str], ...]


def _source(draw: st.DrawFn, name: str) -> str:
    if draw(st.booleans()):
        return name
    return f"(SELECT k, v, ts FROM {name} WHERE v > {draw(st.integers(0, 4))})"


def _window(draw: st.DrawFn, kinds: tuple[str, str]) -> str:
    options = ["[RANGE 4]", "[RANGE 0]", "[RANGE 20]", ""]
    if kinds == ("ordered", "ordered"):
        options += ["[ROWS 2]", "[ROWS 0]"]
    return draw(st.sampled_from(options))


@st.composite
def queries(draw: st.DrawFn, kinds: tuple[str, str]) -> str:
    a, b = (_source(draw, name) for name in draw(st.permutations(["s1", "s2"])))
    shape = draw(
        st.sampled_from(["select", "union", "aggregate", "join", "over join", "sequence", "distinct", "theta"])
    )
    where = draw(st.sampled_from(["", "AND x.v <> y.v", "AND x.v + y.v > 4"]))
    left, right = _window(draw, kinds), _window(draw, kinds)
    join = f"FROM {a} AS x {left} JOIN {b} AS y {right} ON x.k = y.k {where}"
    size, slide = draw(st.sampled_from([(5, 5), (6, 2), (7, 3), (2, 5)]))
    match shape:
        case "select":
            return f"SELECT k * 2 AS k, v, ts FROM {a} AS x WHERE k <> 1"
        case "union":
            return f"SELECT k, v, ts FROM {a} AS x UNION ALL SELECT k, v, ts FROM {b} AS y WHERE v < 4"
        case "aggregate":
            group = draw(st.sampled_from(["GROUP BY k", ""]))
            key = "k, " if group else ""
            return (
                f"SELECT window_end, {key}COUNT(*) AS n, SUM(v) AS s, MIN(v) AS lo "
                f"FROM {a} AS x [RANGE {size} SLIDE {slide}] {group}"
            )
        case "join":
            return f"SELECT x.k, x.v, y.v AS w, y.ts {join}"
        case "over join":
            return (
                f"SELECT window_end, k, COUNT(*) AS n FROM (SELECT x.k AS k, y.v AS v {join}) AS j "
                f"[RANGE {size} SLIDE {slide}] GROUP BY k"
            )
        case "sequence":
            mode = draw(st.sampled_from(["RECENT", "CHRONICLE"]))
            keyed = draw(st.sampled_from(["", "AND x.k = y.k"]))
            return f"SELECT x.v, y.v AS w FROM {a} AS x, {b} AS y WHERE SEQ(x, y) MODE {mode} {keyed}"
        case "distinct":
            return f"SELECT DISTINCT k, v FROM {a} AS x"
        case _:
            return f"SELECT x.v, y.v AS w FROM {a} AS x [RANGE 3], {b} AS y [RANGE 3] WHERE x.v < y.v"


@st.composite
def cases(draw: st.DrawFn) -> Case:
    explicit = st.sampled_from([kind for kind in KINDS if kind != "latent"])
    kinds = draw(st.one_of(st.tuples(explicit, explicit), st.just(("latent", "latent"))))
    query = draw(queries(kinds))
    if "SEQ(" in query:  # sequences need an order that does not depend on arrival
        kinds = tuple("ordered" if kind == "latent" else kind for kind in kinds)  # type: ignore[assignment]
    elements: list[tuple[str, str]] = []
    now = 0
    for _ in range(draw(st.integers(0, 30))):
        number = draw(st.integers(0, 1))
        now += draw(st.integers(0, 3))
        jitter = 0 if kinds[number] == "ordered" else draw(st.integers(-3, 0))
        key = draw(st.sampled_from(["0", "1", "2", "NULL"]))
        row = f"{key} | {draw(st.integers(0, 6))} | {now + jitter}"
        closing = draw(st.sampled_from(["", "", "", f"[*, *, < {now - 3}]", f"[{draw(st.integers(0, 2))}, *, *]"]))
        use = closing if closing and kinds[number] == "punctuated" else row
        elements.append((f"s{number + 1}", use))
    return Case(kinds, query, tuple(elements))


def outcome(case: Case, options: Options, seed: int, *, restart: bool = False) -> tuple[Counter, Counter, int]:
    """Rows and punctuations as bags, and the state held at the end, with batches cut at random."""
    chance = random.Random(seed)
    mill = LocalMill(options)
    for number, kind in enumerate(case.kinds, 1):
        mill.execute(f"CREATE STREAM s{number} (k BIGINT, v BIGINT, ts BIGINT) {KINDS[kind]}")
    mill.add_query("q", case.query)
    rows: Counter = Counter()
    said: Counter = Counter()
    ends = [(f"s{n}", f"[*, *, < {END}]") for n in (1, 2)]
    for stream, line in [*case.elements, *ends]:
        mill.feed_line(stream, line)
        if seed and chance.random() < 0.4:
            mill.batch()
            rows.update(mill.take_rows("q").rows())
            said.update(map(str, mill.take_punctuations("q")))
            if restart:
                mill = mill.restarted()
    mill.batch()
    rows.update(mill.take_rows("q").rows())
    said.update(map(str, mill.take_punctuations("q")))
    return rows, said, mill.state_rows("q")


WAYS = {
    "cut": (Options(), False),
    "one-row pages": (Options(page_rows=1), False),
    "restarted": (Options(page_rows=3), True),
    "without panes": (Options(paned=False), False),
    "two shards": (Options(shards=2), False),
    "three shards": (Options(shards=3, page_rows=2), False),
    "breadth first": (Options(strategy="bfs", page_rows=2), False),
    "batches": (Options(strategy="batch:2", page_rows=2), False),
    "round robin": (Options(strategy="rr", page_rows=2), False),
}
SAME_PUNCTUATION = {"cut", "one-row pages", "restarted", "without panes"}
SAME_STATE = {"cut", "one-row pages", "restarted", "two shards", "three shards"}


@given(cases(), st.integers(1, 1000), st.lists(st.sampled_from(sorted(WAYS)), min_size=2, max_size=2, unique=True))
@settings(max_examples=tries(60))
def test_no_cut_shard_or_strategy_changes_the_results(case: Case, seed: int, ways: list[str]) -> None:
    rows, punctuation, state = outcome(case, Options(), 0)
    for way in ways:
        options, restart = WAYS[way]
        found = outcome(case, options.model_copy(), seed, restart=restart)
        assert found[0] == rows, way
        assert way not in SAME_PUNCTUATION or found[1] == punctuation, way
        assert way not in SAME_STATE or found[2] == state, way
