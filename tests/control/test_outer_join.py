"""Outer joins in whole queries: the rows that SQL defines, the same for every cut, shard count and strategy."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.config import Options
from tests.control.invariance.cases import Case, cases, outcome
from tests.control.test_invariance import WAYS
from tests.tries import tries


@st.composite
def outer_queries(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(["LEFT", "RIGHT", "FULL"]))
    a, b = draw(st.permutations(["s1", "s2"]))
    windows = [draw(st.sampled_from(["[RANGE 4]", "[RANGE 0]", "[RANGE 20]", ""])) for _ in range(3)]
    more = draw(st.sampled_from(["", "AND x.v <> y.v", "AND x.v > 2", "AND y.v > 2"]))
    join = f"FROM {a} AS x {windows[0]} {kind} JOIN {b} AS y {windows[1]} ON x.k = y.k {more}"
    size, slide = draw(st.sampled_from([(5, 5), (6, 2), (7, 3)]))
    pairs = f"SELECT x.k AS k, y.k AS yk, x.v AS v, y.v AS w, x.ts AS ts {join}"
    column = draw(st.sampled_from(["k", "yk"]))
    match draw(st.sampled_from(["join", "where", "over join", "groups", "union", "three"])):
        case "join":
            return pairs
        case "where":
            return f"{pairs} WHERE x.v IS NULL OR y.v IS NULL OR x.v < y.v"
        case "over join":
            by = f"[RANGE {size} SLIDE {slide}] GROUP BY {column}"
            return f"SELECT window_end, {column}, COUNT(*) AS n, COUNT(w) AS m FROM ({pairs}) AS j {by}"
        case "groups":
            return f"SELECT {column}, COUNT(*) AS n, SUM(v) AS s FROM ({pairs}) AS j GROUP BY {column}"
        case "union":
            return f"SELECT k, v FROM ({pairs}) AS j UNION ALL SELECT k, v FROM {a} AS z"
    second = draw(st.sampled_from(["LEFT", "RIGHT", "FULL", "INNER"]))
    on = draw(st.sampled_from(["x.k = z.k", "y.k = z.k", "y.v = z.v"]))
    return f"SELECT x.v, y.v AS w, z.v AS u {join} {second} JOIN {a} AS z {windows[2]} ON {on}"


@st.composite
def outer_cases(draw: st.DrawFn) -> Case:
    case = replace(draw(cases()), query=draw(outer_queries()))
    if "UNION" in case.query:
        # On each shard a union waits for tuples that may still be padded: compare after all are emitted.
        case = replace(case, elements=(*case.elements, ("s1", "[*, *, *]"), ("s2", "[*, *, *]"), ("s3", "[*, *, *]")))
    return case


@given(
    outer_cases(), st.integers(1, 1000), st.lists(st.sampled_from(sorted(WAYS)), min_size=2, max_size=2, unique=True)
)
@settings(max_examples=tries(50))
def test_no_cut_shard_or_strategy_changes_the_results(case: Case, seed: int, ways: list[str]) -> None:
    rows, *_ = outcome(case, Options(), 0)
    for way in ways:
        options, more = WAYS[way]
        assert outcome(case, options.model_copy(), seed, **more)[0] == rows, way


Pairs = Counter[tuple[int | None, int | None]]


def defined(rows: list[tuple[str, str, int]], kind: str, window: int) -> Pairs:
    """By the definition: the numbers of the tuples (stream, key, time) that form each row."""
    number = {name: [n for n, (stream, _, _) in enumerate(rows) if stream == name] for name in ("s1", "s2")}
    together = [
        (a, b)
        for a in number["s1"]
        for b in number["s2"]
        if rows[a][1] == rows[b][1] != "NULL" and abs(rows[a][2] - rows[b][2]) <= window
    ]
    matched = {n for pair in together for n in pair}
    alone: list[tuple[int | None, int | None]] = []
    alone += [(n, None) for n in number["s1"] if n not in matched and kind != "RIGHT"]
    alone += [(None, n) for n in number["s2"] if n not in matched and kind != "LEFT"]
    return Counter([*together, *alone])


@given(cases(), st.sampled_from(["LEFT", "RIGHT", "FULL"]), st.integers(0, 8), st.integers(1, 1000))
@settings(max_examples=tries(30))
def test_against_the_definition(case: Case, kind: str, window: int, seed: int) -> None:
    lines = [(stream, line) for stream, line in case.elements if stream in ("s1", "s2") and not line.startswith("[")]
    tuples = [(stream, *line.split(" | ")) for stream, line in lines]
    rows = sorted(((stream, key, int(time)) for stream, key, _, time in tuples), key=lambda row: row[2])
    elements = tuple((stream, f"{key} | {n} | {time}") for n, (stream, key, time) in enumerate(rows))
    query = f"SELECT x.v, y.v AS w FROM s1 x [RANGE {window}] {kind} JOIN s2 y [RANGE {window}] ON x.k = y.k"
    made = Case(("ordered", "punctuated", "ordered"), query, elements)
    found, _, state, _ = outcome(made, Options(shards=2, page_rows=2), seed, restart=True)
    assert found == [defined(rows, kind, window)]
    assert state == [0]
