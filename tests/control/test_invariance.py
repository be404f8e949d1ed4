"""The central property: results are the same bag for every page cut, batch cut, shard count, stage and strategy, at
every point where one looks, and so is the state.

Random queries over random streams of every kind of time, with random tuples, punctuations and moves of the clock, run
in one piece and then in every other way: selections, unions, joins of two and of three streams, outer joins, joins with
a table, streams that another one closes, aggregates (also over joins by another key, which need another stage),
sequences, duplicates. The same tuples are late in all of them. `test_every_operator_is_here` checks that the list
covers all plan nodes. DataFrames of several partitions are left out: which of their rows are late depends on the
batches (`tests/physical/wire/test_partitions.py`).
"""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import Phase, assume, find, given, settings
from hypothesis import strategies as st

from millstream.algebra.types import MICROS
from millstream.config import Options
from millstream.control.job.jobs import LocalJobs
from millstream.control.mill import LocalMill
from millstream.control.mill.draining import finish
from millstream.logical import nodes
from millstream.logical.plan import NODES
from tests.time_kinds import IN_ORDER, KINDS
from tests.tries import tries

ADVANCE = "advance"
"""An element that moves the clock by its number of seconds, in place of a stream."""
LOOK = "look"
"""An element where the results so far are compared."""
END = 10_000


STREAMS = ("s1", "s2", "s3")
TABLE = [(0, "zero"), (1, "one"), (1, "uno"), (4, "four")]
SHAPES = (
    "select",
    "union",
    "aggregate",
    "groups",
    "functions",
    "functions by another key",
    "join",
    "over join",
    "by another key",
    "outer",
    "three",
    "table",
    "closed",
    "sequence",
    "key join",
    "distinct",
    "denoise",
    "expensive",
    "theta",
    "windows of windows",
    "by window",
    "joined windows",
    "windows and tuples",
    "groups and tuples",
    "windows of groups",
    "joined groups",
    "padded and tuples",
    "slots and tuples",
    "merged window",
    "by rising time",
    "having",
    "running",
    "diverted",
    "written table",
)


FUNCTIONS = (
    "COUNT(DISTINCT v)",
    "SUM(DISTINCT v) FILTER (WHERE v > 1)",
    "ROUND(STDDEV(v), 9)",
    "ROUND(VAR_POP(v), 9)",
    "MEDIAN(v)",
    "QUANTILE(v, 0.3)",
    "FIRST(v)",
    "LAST(v) FILTER (WHERE v < 5)",
    "CAST(ARRAY_AGG(v) AS VARCHAR)",
    "CAST(ARRAY_AGG(DISTINCT v) AS VARCHAR)",
    "STRING_AGG(v, '-')",
    "BOOL_OR(v > 4)",
    "COUNT(*) FILTER (WHERE v > 2)",
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


def in_seconds(query: str) -> str:
    """The query with windows over the clock."""
    timed = re.sub(r"\b(RANGE|SLIDE) (\d+)", r"\1 \2 SECONDS", query)
    return re.sub(r"(ROWS \w+ PRECEDING SLIDE \d+) SECONDS", r"\1", timed)


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
        case "functions" | "functions by another key":
            calls = draw(st.lists(st.sampled_from(FUNCTIONS), min_size=1, max_size=4, unique=True))
            items = ", ".join(f"{call} AS c{number}" for number, call in enumerate(calls))
            if shape == "functions":
                closed = draw(st.sampled_from([window, ""]))
                return f"SELECT k, {items} FROM {a} AS x {closed} GROUP BY k"
            inner = f"(SELECT window_end, k, MAX(v) AS v FROM {a} AS x [RANGE 2] GROUP BY k)"
            return f"SELECT window_end, {items} FROM {inner} AS w {window}"
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
            times = draw(st.sampled_from(["", "AND y.ts > x.ts", "AND z.ts >= y.ts - 2 AND x.ts >= z.ts"]))
            return f"SELECT x.k, x.v, y.v AS w, z.v AS u {chosen} {where} {times}"
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
            once = draw(st.sampled_from(["", "OVER (UNLIMITED PRECEDING) KEY JOIN"]))
            return f"SELECT x.v, y.v AS w FROM {a} AS x {once}, {b} AS y WHERE SEQ(x, y) MODE {mode} {keyed}"
        case "key join":
            over = [f"OVER (RANGE {draw(st.integers(1, 6))} PRECEDING){once}" for once in (" KEY JOIN", "")]
            sides = draw(st.sampled_from([(over[0], ""), (over[0], over[1]), (over[1], over[0]), (over[0], over[0])]))
            chosen = f"{a} AS x {sides[0]}, {b} AS y {sides[1]} WHERE x.k = y.k"
            return f"SELECT x.k, x.v, y.v AS w FROM {chosen} {where}"
        case "denoise":
            mode = draw(st.sampled_from(["", ", LAZY", ", UNORDERED"]))
            text = f"DENOISE(TABLE {a}, DESCRIPTOR(k), {draw(st.integers(0, 6))}, {draw(st.integers(1, 3))}{mode})"
            if draw(st.booleans()):
                return f"SELECT k, v, ts FROM {text} AS x"
            return f"SELECT window_end, v, COUNT(*) AS n FROM {text} AS x {window} GROUP BY v"
        case "expensive":
            text = f"EXPENSIVE(TABLE {a}, v * 2 AS w, budget => {draw(st.integers(1, 5))})"
            if draw(st.booleans()):
                return f"SELECT k, w, ts FROM {text} AS x"
            return f"SELECT window_end, w, COUNT(*) AS n FROM {text} AS x {window} GROUP BY w"
        case "distinct":
            return f"SELECT DISTINCT k, v FROM {a} AS x"
        case "windows of windows":
            inner = f"(SELECT window_end, k, SUM(v) AS v FROM {a} AS x {window} GROUP BY k) AS w"
            outer = draw(st.sampled_from(["[RANGE 10]", "[RANGE 10 SLIDE 5]", "[RANGE 6 ON window_end]"]))
            group, key = draw(st.sampled_from([("GROUP BY k", "k, "), ("", "")]))
            return f"SELECT window_end, {key}COUNT(*) AS n, SUM(v) AS s FROM {inner} {outer} {group}"
        case "by window":
            inner = f"(SELECT window_start, window_end, window_time, k, SUM(v) AS v FROM {a} AS x {window} GROUP BY k)"
            name = draw(st.sampled_from(["window_start", "window_end", "window_time", "window_start, k"]))
            return f"SELECT {name}, COUNT(*) AS n, MAX(v) AS top FROM {inner} AS w GROUP BY {name}"
        case "joined windows":
            one = f"(SELECT window_start, window_end, k, SUM(v) AS v FROM {a} AS x {window} GROUP BY k) AS x"
            other = f"(SELECT window_start, window_end, k, COUNT(*) AS v FROM {b} AS y [RANGE 10] GROUP BY k) AS y"
            names = draw(st.sampled_from(["window_start", "window_end"]))
            on = draw(st.sampled_from([f"x.{names} = y.{names}", f"x.{names} BETWEEN y.{names} - 6 AND y.{names}"]))
            return f"SELECT x.k, x.v, y.v AS w, x.window_end FROM {one} JOIN {other} ON x.k = y.k AND {on}"
        case "written table":
            kind, table = draw(st.sampled_from(["JOIN", "LEFT JOIN"])), draw(st.sampled_from(["w", "spread"]))
            return f"SELECT x.k, x.v, {table}.v AS w, x.ts FROM {a} AS x {kind} {table} ON x.k = {table}.k"
        case "diverted":
            return f"SELECT k, v, ts FROM {draw(st.sampled_from(['d', 'd', 'd WHERE k <> 1']))}"
        case "running":
            call = draw(st.sampled_from(["SUM(v)", "COUNT(*)", "MIN(v)", "MAX(v)", "AVG(v)"]))
            by = draw(st.sampled_from(["", "PARTITION BY k "]))
            frames = ["ROWS 2 PRECEDING", "RANGE 4 PRECEDING", "RANGE 0 PRECEDING", "UNBOUNDED PRECEDING"]
            frames += ["ROWS 3 PRECEDING SLIDE 2", "RANGE 5 PRECEDING SLIDE 3", "ROWS UNBOUNDED PRECEDING SLIDE 2"]
            frames += ["RANGE 4 PRECEDING ACTIVE EXPIRATION", "RANGE 0 PRECEDING ACTIVE EXPIRATION"]
            frame = draw(st.sampled_from(frames))
            return f"SELECT k, ts, v, {call} OVER ({by}{frame}) AS z, MAX(v + k) OVER ({by}{frame}) AS y FROM {a} AS x"
        case "windows and tuples":
            windows = f"SELECT k, SUM(v) AS v, window_time AS ts FROM {a} AS x {window} GROUP BY k"
            union = f"({windows} UNION ALL SELECT k, v, ts FROM {b} AS y)"
            return f"SELECT window_end, SUM(v) AS s FROM {union} AS u [RANGE 10]"
        case "groups and tuples":
            groups = f"SELECT k, SUM(v) AS v FROM {a} AS x GROUP BY k"
            return f"SELECT k, v FROM {b} AS y UNION ALL {groups}"
        case "windows of groups":
            groups = f"(SELECT k, v, COUNT(*) AS n FROM {a} AS x GROUP BY k, v) AS g"
            group = draw(st.sampled_from(["k", "v"]))
            return f"SELECT window_end, {group}, SUM(n) AS n FROM {groups} {window} GROUP BY {group}"
        case "joined groups":
            groups = f"(SELECT k, SUM(v) AS v FROM {a} AS x GROUP BY k) AS x"
            return f"SELECT x.k, x.v, y.v AS w FROM {groups} [RANGE 4] JOIN {b} AS y [RANGE 6] ON x.k = y.k"
        case "padded and tuples":
            padded = f"{a} AS x [RANGE 4] LEFT JOIN {b} AS y [RANGE 2] ON x.k = y.k"
            return f"SELECT k, v FROM {c} AS z UNION ALL SELECT x.k, y.v FROM {padded}"
        case "slots and tuples":
            call = draw(st.sampled_from(["SUM(v) OVER (PARTITION BY k RANGE 5 PRECEDING SLIDE 3)", "NULL"]))
            slots = f"SELECT k, {call} AS v FROM {a} AS x"
            if call == "NULL":
                slots = f"SELECT k, v FROM DENOISE(TABLE {a}, DESCRIPTOR(k), 4, 2, LAZY) AS x"
            return f"SELECT k, v FROM {b} AS y UNION ALL {slots}"
        case "merged window":
            union = f"(SELECT k, v, ts FROM {a} AS x WHERE v <> 3 UNION ALL SELECT k, v, ts FROM {b} AS y WHERE v > 1)"
            return f"SELECT window_end, COUNT(*) AS n, SUM(v) AS s FROM {union} AS u {window}"
        case "by rising time":
            rising = draw(st.sampled_from(["ts + 5", "ts * 2 - 1", "FLOOR(ts / 4)", "CAST(ts AS DOUBLE)"]))
            return f"SELECT {rising} AS t, COUNT(*) AS n, MAX(ts) AS top FROM {a} AS x GROUP BY {rising}"
        case "having":
            total = f"SUM({1 << 62} + v)"  # of two tuples and more it does not fit, but such a group has no row
            return f"SELECT window_end, k, {total} AS s FROM {a} AS x {window} GROUP BY k HAVING COUNT(*) < 2"
        case _:
            return f"SELECT x.v, y.v AS w FROM {a} AS x [RANGE 3], {b} AS y [RANGE 3] WHERE x.v < y.v"


@st.composite
def cases(draw: st.DrawFn, shapes: tuple[str, ...] = SHAPES) -> Case:
    explicit = st.sampled_from([kind for kind in KINDS if kind not in ("latent", "internal")])
    skewed = st.sampled_from(["ordered", "skewed", "lagging"])
    alike = st.sampled_from([(kind,) * 3 for kind in ("ordered", "latent", "internal", "skewed")])
    shape = draw(st.sampled_from(shapes))
    kinds = draw(st.one_of(st.tuples(explicit, explicit, explicit), st.tuples(skewed, skewed, skewed), alike))
    if shape in ("joined windows", "windows and tuples") and "internal" in kinds:
        kinds = ("ordered",) * 3
    # Some need an order that does not depend on arrival, some compare times with numbers.
    if shape in (
        "sequence",
        "key join",
        "joined windows",
        "windows and tuples",
        "denoise",
        "slots and tuples",
        "written table",
    ):
        kinds = tuple("ordered" if kind == "latent" else kind for kind in kinds)
    query = draw(queries(kinds, shape))
    if "internal" in kinds:
        query = in_seconds(query)
    assume(query.count("[ROWS 0]") < 2)  # there would never be a result
    elements: list[tuple[str, str]] = []
    now = 0
    for _ in range(draw(st.integers(0, 30))):
        if draw(st.integers(0, 3)) == 0:
            elements.append((ADVANCE, str(draw(st.integers(1, 4)))))
        if draw(st.integers(0, 5)) == 0:
            elements.append((LOOK, ""))
        number = draw(st.integers(0, 2))
        now += draw(st.integers(0, 3))
        jitter = 0 if kinds[number] in IN_ORDER else draw(st.integers(-3, 0))
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
    if "FROM d" in case.query:  # values of 4 and more do not fit
        derived = f"SELECT k, v * {1 << 61} AS v, ts FROM s1"
        mill.execute(f"CREATE STREAM d WITH (on_overflow = 'bad') AS {derived}")
    for table, options in (("w", ""), ("spread", "WITH (partitioned = true)")):
        if f"JOIN {table} " in case.query:
            mill.execute(f"CREATE TABLE {table} (k BIGINT PRIMARY KEY, v BIGINT) {options}")
            mill.execute(f"INSERT INTO {table} SELECT k, v FROM s2 ON CONFLICT DO UPDATE SET v = excluded.v")
    mill.add_query("q", case.query)


def outcome(
    case: Case, options: Options, seed: int, *, restart: bool = False, cached: bool = True
) -> tuple[list[Counter], Counter, list[int], list[int]]:
    """The rows between looks as bags, all punctuations as a bag, the state at each look and before the streams end, and
    the numbers of late tuples. Batches are cut at random."""
    chance = random.Random(seed)
    mill = LocalMill(options, jobs=LocalJobs(shards=options.shards, cached=cached))
    begin(case, mill)
    rows: list[Counter] = [Counter()]
    emitted: Counter = Counter()
    state: list[int] = []

    def take(*, looks: bool = True) -> None:
        mill.batch()
        if looks:
            finish(mill)  # how far work with a budget has come depends on the batches
        rows[-1].update(mill.take_rows("q").rows())
        emitted.update(map(str, mill.take_punctuations("q")))

    for stream, line in [*case.elements, *((name, f"[*, *, < {END}]") for name in STREAMS)]:
        if stream == ADVANCE:
            mill.advance(int(line) * MICROS)
        elif stream == LOOK:
            take()
            state.append(mill.state_rows("q"))
            rows.append(Counter())
        else:
            mill.feed_line(stream, line)
        if seed and chance.random() < 0.4:
            take(looks=False)
            if restart:
                mill = mill.restarted()
    take()
    state.append(mill.state_rows("q"))
    for name in STREAMS:
        mill.feed_line(name, "[*, *, *]")
    take()
    return rows, emitted, state, [mill.counts(name)["late"] for name in STREAMS]


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
    "mixed": (Options(strategy="dfs; union: bfs; windowjoin: rr; q.project: batch:2", page_rows=2, shards=2), {}),
    "broken": (Options(strategy="batch:4; select: bfs", breaks="project; select; windowaggregate", page_rows=2), {}),
}
SAME_PUNCTUATION = {"cut", "one-row pages", "restarted", "read back", "without panes"}
SAME_STATE = {"cut", "one-row pages", "restarted", "read back", "two shards", "three shards", "shards restarted"}
GROUPED = {"one operator, cut": Options(), "on two shards": Options(shards=2), "pages": Options(page_rows=1)}


@given(cases(), st.integers(1, 1000), st.lists(st.sampled_from(sorted(WAYS)), min_size=2, max_size=2, unique=True))
@settings(max_examples=tries(80))
def test_no_cut_shard_or_strategy_changes_the_results(case: Case, seed: int, ways: list[str]) -> None:
    rows, punctuation, state, late = outcome(case, Options(), 0)
    for way in ways:
        options, more = WAYS[way]
        found = outcome(case, options.model_copy(), seed, **more)
        assert found[3] == late, way
        assert found[0] == rows, way
        assert way not in SAME_PUNCTUATION or found[1] == punctuation, way
        assert way not in SAME_STATE or found[2] == state, way


@given(cases(("three",)), st.integers(1, 1000), st.sampled_from(sorted(GROUPED)))
@settings(max_examples=tries(60))
def test_joins_of_three_in_one_operator_hold_the_same(case: Case, seed: int, way: str) -> None:
    always = {"multi_join": "always"}
    rows, _, state, late = outcome(case, Options(**always), 0)
    found = outcome(case, GROUPED[way].model_copy(update=always), seed)
    assert (found[0], found[2], found[3]) == (rows, state, late)


nodes.load()


def stems(case: Case) -> set[str]:
    """The nodes that a case runs on two shards."""
    mill = LocalMill(Options(shards=2))
    begin(case, mill)
    plans = [query.plan for query in mill.queries.values()]
    return {part.stem for plan in plans for made in mill.prepare("q", plan) for part in made.plan.walk()}


ELSEWHERE = {
    "pace": "test_pace: it depends on the order of arrival",
    "limit": "test_limit: which rows are the first depends on the order of arrival",
    "instrument": "test_feedback_statement, transcripts: when it sends feedback depends on the batches",
    "thrifty_join": "test_issuing_joins",
    "impatient_join": "test_issuing_joins",
}


@pytest.mark.parametrize("stem", sorted(stem for stem, node in NODES.items() if node.runs and stem not in ELSEWHERE))
def test_every_operator_is_here(stem: str) -> None:
    if NODES[stem].__module__.startswith("millstream."):
        tried = settings(max_examples=2000, phases=[Phase.generate], database=None)
        shapes = ("join",) if stem == "placeholders" else SHAPES  # few joins need them
        assert stem in stems(find(cases(shapes), lambda case: stem in stems(case), settings=tried))
