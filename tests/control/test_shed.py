"""Tuples that are shed: a final row that lacks some says so, through other operators, shards, stages and restarts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.control.mill.draining import finish
from tests.tries import tries

DECLARED = (
    "CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts PUNCTUATED ON (ts +)",
    "CREATE STREAM t (k BIGINT, ts BIGINT) ORDER BY ts PUNCTUATED ON (ts +)",
)
WORK = "EXPENSIVE(TABLE s, v * 10 AS w, budget => {budget}{shed})"
EXACT = {
    "groups": f"SELECT window_end, k, SUM(w) AS total, COUNT(*) AS n, finality FROM {WORK} [RANGE 10] GROUP BY k",
    "sliding": f"SELECT window_end, k, COUNT(*) AS n, finality FROM {WORK} [RANGE 20 SLIDE 10] GROUP BY k",
    "odd": f"SELECT window_end, SUM(w) AS n, finality FROM {WORK} [RANGE 25 SLIDE 10]",
    "renamed": "SELECT window_end, j, COUNT(*) AS n, finality "
    f"FROM (SELECT k AS j, w FROM {WORK}) [RANGE 10] GROUP BY j",
    "union": "SELECT window_end, k, COUNT(*) AS n, finality "
    f"FROM (SELECT k, w, ts FROM {WORK} UNION ALL SELECT k, k AS w, ts FROM t) [RANGE 10] GROUP BY k",
}
"""Queries of which a row is labelled if and only if its value lacks tuples."""
INNER = f"(SELECT window_end AS e, k, SUM(w) AS total FROM {WORK} [RANGE 10] GROUP BY k)"
CAREFUL = {
    "nested": f"SELECT window_end, MAX(total) AS n, finality FROM {INNER} [RANGE 20]",
    "nested groups": f"SELECT window_end, k, SUM(total) AS n, finality FROM {INNER} [RANGE 30 SLIDE 10] GROUP BY k",
    "ends": f"SELECT e, SUM(total) AS n, finality FROM {INNER} GROUP BY e",
    "ends and groups": f"SELECT e, k, SUM(total) AS n, finality FROM {INNER} GROUP BY e, k",
    "computed": f"SELECT window_end, w, COUNT(*) AS n, finality FROM {WORK} [RANGE 10] GROUP BY w",
    "selected": f"SELECT window_end, COUNT(*) AS n, finality FROM {WORK} [RANGE 10] WHERE w > 10",
    "distinct": f"SELECT window_end, COUNT(*) AS n, finality FROM (SELECT DISTINCT k, w, ts FROM {WORK}) [RANGE 10]",
    "join": f"SELECT window_end, COUNT(*) AS n, finality FROM {WORK} [RANGE 7] a, t [RANGE 5] b "
    "WHERE a.k = b.k WINDOW [RANGE 10]",
    "outer": f"SELECT window_end, COUNT(*) AS n, finality FROM t [RANGE 5] b LEFT JOIN {WORK} [RANGE 7] a "
    "ON a.k = b.k WINDOW [RANGE 10]",
    "over": f"SELECT window_end, SUM(m) AS n, finality "
    f"FROM (SELECT ts, SUM(w) OVER (PARTITION BY k ROWS 2 PRECEDING) AS m FROM {WORK}) [RANGE 10]",
}
"""Queries of which a row without the label has the value that it would have if nothing were shed."""


def mill_with(query: str, *, shards: int = 1) -> LocalMill:
    mill = LocalMill(Options(shards=shards, contracts="off"))
    for statement in DECLARED:
        mill.execute(statement)
    mill.add_query("q", query)
    return mill


def seconds() -> st.SearchStrategy[list[Any]]:
    """Bursts of tuples (k, v, time in the slide), each with a prod before or behind it."""
    rows = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(0, 9))
    prods = st.sampled_from(["", "", "{{ts = {end}}}", "{{ts <= {end}}}", "{{}}", "{{k = 1}}"])
    return st.lists(st.tuples(st.lists(rows, max_size=9), prods, st.booleans()), min_size=1, max_size=6)


def run(query: str, fed: list[Any], budget: int, shards: int, *, shed: bool) -> tuple[list[Any], int]:
    """The rows of a query, and the number of tuples that were shed."""
    text, rows = query.format(budget=budget, shed=", shed => TRUE" if shed else ""), list[Any]()
    mill = mill_with(text, shards=shards)
    for number, (burst, prod, before) in enumerate(fed):
        end = 10 * number + 10
        for ahead in (True, False):
            if prod and before is ahead:
                mill.prod("s", prod.format(end=end))
            if ahead:
                mill.insert("s", [(k, v, end - 10 + at) for k, v, at in sorted(burst, key=lambda row: row[2])])
                mill.insert("t", [(k, end - 10 + at) for k, _, at in sorted(burst, key=lambda row: row[2])[::2]])
        for stream in "st" if number % 2 else "":
            mill.punctuate(stream, f"[ts < {end}]")
        mill.batch()
        rows += mill.take_rows("q").rows()
        mill = mill.restarted() if number in (1, 2) else mill
    for stream in "st":
        mill.punctuate(stream, "[ts < 1000]")
    mill.batch()
    finish(mill)
    rows += mill.take_rows("q").rows()
    assert mill.state_rows("q") == 0 or "JOIN" in query or "OVER" in query or " b " in query
    count = sum(each.shed for shard in mill.statistics("q") for each in shard.values())
    return rows, count


def finals(rows: list[Any], keys: int) -> dict[Any, tuple[Any, str]]:
    """The values and labels of final rows, by window and group."""
    made = {row[:keys]: (row[keys:-1], row[-1]) for row in rows if row[-1] != "early"}
    assert len(made) == sum(row[-1] != "early" for row in rows)
    return made


@pytest.mark.parametrize("name", EXACT)
@settings(max_examples=tries(12), deadline=None)
@given(fed=seconds(), budget=st.integers(1, 6), shards=st.sampled_from([1, 3]))
def test_rows_that_lack_tuples_and_no_others_say_so(name: str, fed: list[Any], budget: int, shards: int) -> None:
    keys = EXACT[name].split(" AS ")[0].count(",")
    rows, count = run(EXACT[name], fed, budget, shards, shed=True)
    whole, none = run(EXACT[name], fed, budget, shards, shed=False)
    found, true = finals(rows, keys), finals(whole, keys)
    assert none == 0 and found.keys() <= true.keys()
    assert {label for _, label in true.values()} <= {"final"}
    for key, (values, label) in found.items():
        assert (label == "final") == (values == true[key][0]), key
    if name == "groups":
        assert count == sum(v[0][1] for v in true.values()) - sum(v[0][1] for v in found.values())


@pytest.mark.parametrize("name", CAREFUL)
@settings(max_examples=tries(12), deadline=None)
@given(fed=seconds(), budget=st.integers(1, 6), shards=st.sampled_from([1, 3]))
def test_rows_that_do_not_say_so_lack_nothing(name: str, fed: list[Any], budget: int, shards: int) -> None:
    keys = CAREFUL[name].split(" AS n")[0].count(",") or 1
    rows, _ = run(CAREFUL[name], fed, budget, shards, shed=True)
    whole, _ = run(CAREFUL[name], fed, budget, shards, shed=False)
    true = finals(whole, keys)
    for key, (values, label) in finals(rows, keys).items():
        assert label in ("final", "final-shed")
        assert label == "final-shed" or values == true[key][0], key


def test_both_keys_of_a_join_are_known() -> None:
    """On several shards an exchange names equal keys alike."""
    fed = [([(1, 1, 0)] * 5, "", False), ([], "", False), ([], "{{ts <= {end}}}", False)]
    rows, _ = run(CAREFUL["join"], fed, 1, 3, shed=True)
    assert [row[-1] for row in rows] == ["early", "final-shed"]


def burst(query: str, **options: Any) -> Any:
    """A query that is asked in a burst, after its windows are final."""
    mill = ms.connect(local=True, **options)
    mill.sql(DECLARED[0])
    made = mill.sql(query).start()
    mill.insert("s", [(1, 1, at) for at in range(8)])
    made.rows = made.take().rows()
    mill.prod("s", "{ts = 10}")
    mill.punctuate("s", "[ts < 10]")
    mill.insert("s", [(1, 1, at) for at in range(12, 14)])
    mill.punctuate("s", "[ts < 20]")
    made.rows += made.take().rows()
    return made


def test_progress_and_metrics_count_what_is_shed() -> None:
    query = burst(EXACT["groups"].format(budget=3, shed=", shed => TRUE"))
    assert query.rows == [(10, 1, 60, 6, "early"), (10, 1, 60, 6, "final-shed"), (20, 1, 20, 2, "final")]
    progress = query.progress()
    assert progress.shed == 2 and ", 2 shed, " in str(progress)


def test_rows_that_lack_tuples_are_not_compared() -> None:
    query = burst(EXACT["groups"].format(budget=3, shed=", shed => TRUE"))
    assert query.progress().accuracy.all.count == 0
    query = burst(EXACT["groups"].format(budget=3, shed=""))
    assert query.progress().accuracy.all.count == 1
