"""The central property: results are the same bag for every page cut, batch cut, shard count, stage and strategy.

Random queries over random streams of every kind of time, with random tuples and punctuations, run in one piece and then
in every other way: selections, unions, joins of two and of three streams, outer joins, joins with a table, streams that
another one closes, aggregates (also over joins by another key, which need another stage), sequences, duplicates.
`test_every_operator_is_here` checks that the list covers all plan nodes.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import Phase, assume, find, given, settings
from hypothesis import strategies as st

from millstream.config import Options
from millstream.control.job.jobs import LocalJobs
from millstream.control.mill import LocalMill
from millstream.logical import nodes
from millstream.logical.plan import NODES
from tests.tries import tries

KINDS = {
    "ordered": "ORDER BY ts",
    "punctuated": "ORDER BY ts PUNCTUATED ON (ts +) PUNCTUATED ON (k #)",
    "watermarked": "ORDER BY ts WATERMARK FOR ts AS ts - 3",
    "latent": "",
}
END = 10_000


STREAMS = ("s1", "s2", "s3")
TABLE = [(0, "zero"), (1, "one"), (1, "uno"), (4, "four")]
SHAPES = (
    "select",
    "union",
    "aggregate",
    "groups",
    "join",
    "over join",
    "by another key",
    "outer",
    "three",
    "table",
    "closed",
    "sequence",
    "distinct",
    "theta",
)


@dataclass(frozen=True)
class Case:
    kinds: tuple[str, str, str]
    query: str
    elements: tuple[tuple[str, str], ...]
    closing: bool = False


def _source(draw: st.DrawFn, name: str) -> str:
    if draw(st.booleans()):
        return name
    return f"(SELECT k, v, ts FROM {name} WHERE v > {draw(st.integers(0, 4))})"


def _window(draw: st.DrawFn, kinds: tuple[str, str, str]) -> str:
    options = ["[RANGE 4]", "[RANGE 0]", "[RANGE 20]", ""]
    if kinds == ("ordered", "ordered", "ordered"):
        options += ["[ROWS 2]", "[ROWS 0]"]
    return draw(st.sampled_from(options))


@st.composite
def queries(draw: st.DrawFn, kinds: tuple[str, str, str], shape: str) -> str:
    a, b, c = (_source(draw, name) for name in draw(st.permutations(STREAMS)))
    where = draw(st.sampled_from(["", "AND x.v <> y.v", "AND x.v + y.v > 4"]))
    left, right, third = (_window(draw, kinds) for _ in range(3))
    join = f"FROM {a} AS x {left} JOIN {b} AS y {right} ON x.k = y.k {where}"
    size, slide = draw(st.sampled_from([(5, 5), (6, 2), (7, 3), (2, 5)]))
    window = f"[RANGE {size} SLIDE {slide}]"
    match shape:
        case "select":
            return f"SELECT k * 2 AS k, v, ts FROM {a} AS x WHERE k <> 1"
        case "union":
            return f"SELECT k, v, ts FROM {a} AS x UNION ALL SELECT k, v, ts FROM {b} AS y WHERE v < 4"
        case "aggregate":
            group = draw(st.sampled_from(["GROUP BY k", ""]))
            key = "k, " if group else ""
            return f"SELECT window_end, {key}COUNT(*) AS n, SUM(v) AS s, MIN(v) AS lo FROM {a} AS x {window} {group}"
        case "groups":
            return f"SELECT k, COUNT(*) AS n, AVG(v) AS mean FROM {a} AS x GROUP BY k"
        case "join":
            return f"SELECT x.k, x.v, y.v AS w, y.ts {join}"
        case "over join":
            inner = f"(SELECT x.k AS k, y.v AS v {join}) AS j"
            return f"SELECT window_end, k, COUNT(*) AS n FROM {inner} {window} GROUP BY k"
        case "by another key":
            inner = f"(SELECT x.k AS k, y.v AS v {join}) AS j"
            return f"SELECT window_end, v, COUNT(*) AS n, MAX(k) AS top FROM {inner} {window} GROUP BY v"
        case "outer":
            kind = draw(st.sampled_from(["LEFT", "RIGHT", "FULL"]))
            ranges = [draw(st.sampled_from(["[RANGE 4]", "[RANGE 20]", ""])) for _ in range(2)]
            on = f"ON x.k = y.k {where if kind == 'LEFT' else ''}"
            return f"SELECT x.k, x.v, y.v AS w FROM {a} AS x {ranges[0]} {kind} JOIN {b} AS y {ranges[1]} {on}"
        case "three":
            chosen = f"FROM {a} AS x {left}, {b} AS y {right}, {c} AS z {third} WHERE x.k = y.k AND y.k = z.k"
            return f"SELECT x.k, x.v, y.v AS w, z.v AS u {chosen} {where}"
        case "table":
            kind = draw(st.sampled_from(["JOIN", "LEFT JOIN"]))
            return f"SELECT x.v, t.name, x.ts FROM {a} AS x {kind} t ON x.k = t.k"
        case "closed":
            inner = draw(st.sampled_from(["s1", "(SELECT k, v, ts FROM s1 WHERE v > 1)"]))
            aggregate = f"SELECT x.k, COUNT(*) AS n FROM {inner} AS x GROUP BY x.k"
            return draw(st.sampled_from([aggregate, f"SELECT x.k, x.v FROM {inner} AS x", "SELECT k, v FROM s1__late"]))
        case "sequence":
            mode = draw(st.sampled_from(["RECENT", "CHRONICLE"]))
            keyed = draw(st.sampled_from(["", "AND x.k = y.k"]))
            return f"SELECT x.v, y.v AS w FROM {a} AS x, {b} AS y WHERE SEQ(x, y) MODE {mode} {keyed}"
        case "distinct":
            return f"SELECT DISTINCT k, v FROM {a} AS x"
        case _:
            return f"SELECT x.v, y.v AS w FROM {a} AS x [RANGE 3], {b} AS y [RANGE 3] WHERE x.v < y.v"


@st.composite
def cases(draw: st.DrawFn, shapes: tuple[str, ...] = SHAPES) -> Case:
    explicit = st.sampled_from([kind for kind in KINDS if kind != "latent"])
    shape = draw(st.sampled_from(shapes))
    kinds = draw(
        st.one_of(st.tuples(explicit, explicit, explicit), st.just(("ordered",) * 3), st.just(("latent",) * 3))
    )
    if shape == "sequence":  # sequences need an order that does not depend on arrival
        kinds = tuple("ordered" if kind == "latent" else kind for kind in kinds)
    query = draw(queries(kinds, shape))
    assume(query.count("[ROWS 0]") < 2)  # there would never be a result
    elements: list[tuple[str, str]] = []
    now = 0
    for _ in range(draw(st.integers(0, 30))):
        number = draw(st.integers(0, 2))
        now += draw(st.integers(0, 3))
        jitter = 0 if kinds[number] == "ordered" else draw(st.integers(-3, 0))
        key = draw(st.sampled_from(["0", "1", "2", "NULL"]))
        row = f"{key} | {draw(st.integers(0, 6))} | {now + jitter}"
        closing = draw(st.sampled_from(["", "", "", f"[*, *, < {now - 3}]", f"[{draw(st.integers(0, 2))}, *, *]"]))
        use = closing if closing and kinds[number] == "punctuated" else row
        elements.append((STREAMS[number], use))
    return Case(kinds, query, tuple(elements), shape == "closed")


def begin(case: Case, mill: LocalMill) -> None:
    for name, kind in zip(STREAMS, case.kinds, strict=True):
        clause = "CLOSES s1 (k) BY (k)" if case.closing and name == "s2" else ""
        mill.execute(f"CREATE STREAM {name} (k BIGINT, v BIGINT, ts BIGINT) {KINDS[kind]} {clause}")
    mill.execute("CREATE TABLE t (k BIGINT, name VARCHAR)")
    mill.insert("t", TABLE)
    mill.add_query("q", case.query)


def outcome(
    case: Case, options: Options, seed: int, *, restart: bool = False, cached: bool = True
) -> tuple[Counter, Counter, int]:
    """Rows and punctuations as bags, and the state held before the streams end, with batches cut at random."""
    chance = random.Random(seed)
    mill = LocalMill(options, jobs=LocalJobs(shards=options.shards, cached=cached))
    begin(case, mill)
    rows: Counter = Counter()
    emitted: Counter = Counter()

    def take() -> None:
        mill.batch()
        rows.update(mill.take_rows("q").rows())
        emitted.update(map(str, mill.take_punctuations("q")))

    for stream, line in [*case.elements, *((name, f"[*, *, < {END}]") for name in STREAMS)]:
        mill.feed_line(stream, line)
        if seed and chance.random() < 0.4:
            take()
            if restart:
                mill = mill.restarted()
    take()
    state = mill.state_rows("q")
    for name in STREAMS:
        mill.feed_line(name, "[*, *, *]")
    take()
    return rows, emitted, state


WAYS = {
    "cut": (Options(), {}),
    "one-row pages": (Options(page_rows=1), {}),
    "restarted": (Options(page_rows=3), {"restart": True}),
    "read back": (Options(page_rows=3), {"cached": False}),
    "without panes": (Options(paned=False), {}),
    "one operator for joins": (Options(multi_join="always"), {}),
    "trees of joins": (Options(multi_join="never"), {}),
    "two shards": (Options(shards=2), {}),
    "three shards": (Options(shards=3, page_rows=2), {}),
    "shards read back": (Options(shards=2, page_rows=3), {"cached": False}),
    "shards restarted": (Options(shards=3), {"restart": True}),
    "breadth first": (Options(strategy="bfs", page_rows=2), {}),
    "batches": (Options(strategy="batch:2", page_rows=2), {}),
    "round robin": (Options(strategy="rr", page_rows=2), {}),
}
SAME_PUNCTUATION = {"cut", "one-row pages", "restarted", "read back", "without panes"}
SAME_STATE = {"cut", "one-row pages", "restarted", "read back", "two shards", "three shards", "shards restarted"}


@given(cases(), st.integers(1, 1000), st.lists(st.sampled_from(sorted(WAYS)), min_size=2, max_size=2, unique=True))
@settings(max_examples=tries(80))
def test_no_cut_shard_or_strategy_changes_the_results(case: Case, seed: int, ways: list[str]) -> None:
    rows, punctuation, state = outcome(case, Options(), 0)
    for way in ways:
        options, more = WAYS[way]
        found = outcome(case, options.model_copy(), seed, **more)
        assert found[0] == rows, way
        assert way not in SAME_PUNCTUATION or found[1] == punctuation, way
        assert way not in SAME_STATE or found[2] == state, way


nodes.load()


def stems(case: Case) -> set[str]:
    """The nodes that a case runs on two shards."""
    mill = LocalMill(Options(shards=2))
    begin(case, mill)
    return {part.stem for made in mill.prepare("q", mill.queries["q"].plan) for part in made.plan.walk()}


@pytest.mark.parametrize("stem", sorted(stem for stem, node in NODES.items() if node.runs))
def test_every_operator_is_here(stem: str) -> None:
    if NODES[stem].__module__.startswith("millstream."):
        tried = settings(max_examples=2000, phases=[Phase.generate], database=None)
        assert stem in stems(find(cases(), lambda case: stem in stems(case), settings=tried))
