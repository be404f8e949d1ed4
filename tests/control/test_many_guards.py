"""Much feedback: guards are merged, indexed, end value by value, and drop what a plain list of patterns drops."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.feedback import parse_feedback
from millstream.algebra.punctuation.pattern import parse_pattern
from millstream.config import Options
from millstream.control.job.local import LocalJob
from millstream.control.mill import LocalMill
from millstream.errors import PatternError
from millstream.runtime.engine.nodes import Sink
from tests.control.test_feedback import guards
from tests.tries import tries

GROUPED = "SELECT window_end, k, COUNT(*) AS n FROM s [{}] GROUP BY k"
LEFT_JOIN = f"SELECT a.window_end AS e, a.k AS k, b.n AS n FROM ({{0}}){{1}} a LEFT JOIN ({{0}}){{1}} b {'{2}'}"
JOINED = [
    LEFT_JOIN.format(GROUPED.format("RANGE 10"), window, "ON a.window_end = b.window_end AND a.k = b.k")
    for window in ("", " [RANGE 10]")
]
VALUE = st.integers(0, 6)
RESTRICTION = st.one_of(
    st.builds("{} {} {}".format, st.sampled_from("kvd"), st.sampled_from(["=", "<", "<=", ">", ">="]), VALUE),
    st.builds("{} {}{}, 7{}".format, st.sampled_from("kvd"), st.sampled_from("[("), VALUE, st.sampled_from("])")),
    st.builds("{} in {{{}, {}, {}}}".format, st.sampled_from("kvd"), VALUE, VALUE, VALUE),
    st.builds("x in {{'{}', '{}'}}".format, VALUE, VALUE),
)
ROW = st.tuples(VALUE, st.none() | VALUE, st.sampled_from([None, 0.0, -0.0, 1.0, 2.5, 6.0, float("nan")]), VALUE)


def mill_with(query: str, *clauses: str) -> LocalMill:
    mill = LocalMill(Options(contracts="off"))
    declared = " ".join(f"PUNCTUATED ON ({clause})" for clause in clauses)
    mill.execute(f"CREATE STREAM s (k BIGINT, v BIGINT, d DOUBLE, x VARCHAR, ts BIGINT) ORDER BY ts {declared}")
    mill.add_query("q", query)
    return mill


def insert(mill: LocalMill, *times: int) -> None:
    mill.insert("s", [(k, 1, 1.0, "", time) for time in times for k in (1, 2)])
    mill.batch()


def sink(mill: LocalMill) -> Sink:
    (job,) = mill.placements.jobs()
    assert isinstance(job, LocalJob)
    (shard,) = job._shards.values()
    return shard.host.graph.sinks["sink:q"]


@given(
    st.lists(
        st.one_of(
            st.lists(RESTRICTION, min_size=1, max_size=3, unique_by=lambda text: text[0]),
            st.lists(ROW, min_size=1, max_size=6),
            st.sampled_from(["[0, *, *, *, *]", "[3, *, *, *, *]", "[*, 2, *, *, *]", "[4, 4, *, *, *]", "restart"]),
        ),
        max_size=25,
    )
)
@settings(max_examples=tries(60))
def test_guards_drop_what_a_list_of_patterns_drops(steps: list[Any]) -> None:
    mill = mill_with("SELECT k, v, d, x FROM s", "k #", "v #", "k #, v #")
    names, schema = ("k", "v", "d", "x"), mill.catalog.stream("s").schema
    told: list[Any] = []
    closed: list[Any] = []
    for step in steps:
        if step == "restart":
            mill = mill.restarted()
        elif isinstance(step, str):
            mill.punctuate("s", step)
            closed.append(parse_pattern(step, schema))
        elif isinstance(step[0], str):
            text = f"~[{', '.join(step)}]"
            mill.feedback("q", text)
            told.append(parse_feedback(text, mill.schema("q")).pattern)
        else:
            rows = [(k, v, d, str(x)) for k, v, d, x in step]
            rows = [row for row in rows if not any(c.matches(dict(zip(names, row, strict=True))) for c in closed)]
            mill.insert("s", [(*row, 1) for row in rows])
            mill.batch()
            wanted = [row for row in rows if not any(t.matches(dict(zip(names, row, strict=True))) for t in told)]
            assert list(map(repr, mill.take_rows("q").rows())) == list(map(repr, wanted))
    mill.batch()
    left = [pattern for pattern in told if not any(c.covers(pattern) for c in closed)]
    assert left or not guards(mill)


@pytest.mark.parametrize("window", ["RANGE 5", "RANGE 10 SLIDE 5"])
def test_a_list_of_window_ends_purges_as_a_range_does(window: str) -> None:
    left = []
    for said in ("in {15, 20, 22, 25}", "in [15, 25]"):
        mill = mill_with(GROUPED.format(window))
        insert(mill, 11, 12)
        mill.feedback("q", f"~[window_end {said}]")
        mill.batch()
        left.append((mill.state_rows("q"), {g for g in guards(mill) if "window_end" not in g}))
    assert left[0] == left[1] and left[0][1]


@pytest.mark.parametrize(
    "query", [*JOINED, "SELECT window_end - 1 AS e, k, COUNT(*) AS n FROM s [RANGE 10] GROUP BY k"]
)
def test_guards_on_closed_windows_end(query: str) -> None:
    mill = mill_with(query)
    insert(mill, 1)
    for end in (9, 10, 19, 20):
        mill.feedback("q", f"~[e = {end}, k = 1]")
    mill.feedback("q", "~[e in {29, 30}]")
    mill.feedback("q", "~[e < 31]")
    mill.batch()
    assert guards(mill)
    insert(mill, 50, 80, 99)
    assert not guards(mill)


def test_much_feedback_is_few_patterns_and_ends_value_by_value() -> None:
    mill = mill_with("SELECT k, v FROM s WHERE v > 0", "k #")
    for value in range(60):
        mill.feedback("q", f"~[k = {value}]")
        mill.feedback("q", f"~[v in [{value}, {value + 1}]]")
    (test,) = mill.statistics("q")[0]["sink:q"].tests
    assert (test.count, test.values) == (2, 61)
    mill.punctuate("s", *(f"[{value}, *, *, *, *]" for value in range(0, 60, 2)))
    mill.batch()
    mill = mill.restarted()
    (test,) = mill.statistics("q")[0]["sink:q"].tests
    assert test.values == 31


@pytest.mark.parametrize(
    "both", [("~[d < 4]", "~[d >= 4]"), ("~[d <= 4]", "~[d > 2]"), ("~[d >= 4, k = 1]", "~[d < 4, k = 1]")]
)
def test_ranges_that_leave_no_number_leave_null_and_nan(both: tuple[str, str]) -> None:
    mill = mill_with("SELECT k, d FROM s")
    for text in both:
        mill.feedback("q", text)
    mill.insert("s", [(1, 1, d, "", 1) for d in (3.0, 4.0, None, float("nan"))])
    mill.batch()
    assert [str(d) for _, d in mill.take_rows("q").rows()] == ["None", "nan"]


def test_a_sink_keeps_few_punctuations_as_they_came() -> None:
    mill = mill_with("SELECT k, v FROM s", "k #")
    for value in range(200):
        mill.punctuate("s", f"[{value}, *, *, *, *]")
        mill.batch()
    assert sink(mill).seen.count >= 200 and len(sink(mill).seen._recent) < 50


def test_feedback_beyond_the_limit_is_refused_and_none_is_forgotten() -> None:
    mill = mill_with("SELECT k, v FROM s", "k #")
    mill.execute("SET guard_limit = 3")
    for value in range(8):  # merged
        mill.feedback("q", f"~[k = {value}]")
    for value in range(2):
        mill.feedback("q", f"~[k = {value + 20}, v = {value}]")
    mill = mill.restarted()
    with pytest.raises(PatternError, match="M4020: query 'q' holds 3 patterns of feedback, as many as guard_limit"):
        mill.feedback("q", "~[v = 3]")
    mill.feedback("q", "?[v = 3]")
    mill.insert("s", [(7, 3, 1.0, "", 1), (9, 3, 1.0, "", 1), (20, 0, 1.0, "", 1)])
    mill.batch()
    assert mill.take_rows("q").rows() == [(9, 3)]
    mill.punctuate("s", "[20, *, *, *, *]")
    mill.batch()
    mill.feedback("q", "~[v = 3]")


@pytest.mark.parametrize(
    ("query", "clauses", "line"),
    [
        ("k, v, ts FROM s", ("k #", "ts +"), "(k #), (ts +) end with punctuation or time; guards on v alone stay"),
        ("v FROM s", (), "v stay"),
        (JOINED[0][7:], (), "(e +) end with punctuation or time; guards on k, n alone stay"),
        (f"window_end - 1 AS e FROM ({GROUPED.format('RANGE 10')})", (), "(e +) end with punctuation or time"),
    ],
)
def test_the_contract_tells_which_feedback_stays(query: str, clauses: tuple[str, ...], line: str) -> None:
    told = mill_with("SELECT k FROM s", *clauses).execute(f"EXPLAIN CONTRACT SELECT {query}")
    assert f"feedback: guards on {line}\n" in told
