"""Work with a budget, end to end: batches go on while tuples wait, feedback prunes them, a restart keeps them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.control.mill.draining import finish
from tests.tries import tries

DECLARED = "CREATE STREAM s (k BIGINT, v DOUBLE, ts BIGINT) ORDER BY ts PUNCTUATED ON (ts +)"
QUERY = "SELECT k, v, ts FROM EXPENSIVE(TABLE s, k * 10.0 AS v, budget => 2{})"
ROWS = [(k, None, k) for k in range(1, 8)]


def mill_with(query: str, **options: int) -> LocalMill:
    mill = LocalMill(Options(**options))
    mill.execute(DECLARED)
    mill.add_query("q", query)
    return mill


def taken(mill: LocalMill) -> list[int]:
    return [row[0] for row in mill.take_rows("q").rows()]


def worked(mill: LocalMill) -> tuple[int, int]:
    """The results of the operator, and the tuples that feedback made it drop."""
    statistics = [s for shard in mill.statistics("q") for name, s in shard.items() if name.startswith("Expensive")]
    return sum(s.tuples_out for s in statistics), sum(s.disclaimed for s in statistics)


def test_one_budget_a_batch() -> None:
    mill = mill_with(QUERY.format(""))
    mill.insert("s", ROWS)
    mill.batch()
    assert taken(mill) == [1, 2] and mill.state_rows("q") == 5
    mill.insert("s", [(8, None, 8)])
    mill.batch()
    assert taken(mill) == [3, 4] and mill.state_rows("q") == 4
    assert mill.time.go_on()
    assert taken(mill) == [5, 6]
    finish(mill)
    assert taken(mill) == [7, 8] and not mill.time.go_on() and mill.state_rows("q") == 0


@pytest.mark.parametrize("guard", [True, False])
def test_feedback_prunes_what_waits_and_guards_what_comes(guard: bool) -> None:
    mill = mill_with(QUERY.format("" if guard else ", guard => FALSE"))
    mill.insert("s", ROWS)
    mill.batch()
    mill.feedback("q", "~[k < 7]")
    assert mill.state_rows("q") == 0  # 7 was worked on in the batch that pruned the others
    mill.insert("s", [(3, None, 8), (9, None, 9)])
    mill.drain()
    assert taken(mill) == [1, 2, 7, 9]
    assert worked(mill) == (4 if guard else 5, 4)  # without a guard 3 is worked on, and dropped above


def test_feedback_on_the_result_saves_no_work() -> None:
    mill = mill_with(QUERY.format(""))
    mill.insert("s", ROWS)
    mill.feedback("q", "~[v > 30]")
    mill.drain()
    assert taken(mill) == [1, 2, 3] and worked(mill) == (7, 0)


def test_an_equal_query_beside_it_keeps_its_rows() -> None:
    mill = mill_with(QUERY.format(""))
    mill.add_query("other", QUERY.format(""))
    mill.insert("s", ROWS)
    mill.batch()
    mill.feedback("q", "~[k < 7]")
    mill.drain()
    assert taken(mill) == [1, 2, 7]
    assert [row[0] for row in mill.take_rows("other").rows()] == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("shards", [1, 3])
def test_a_restart_keeps_what_waits(shards: int) -> None:
    mill = mill_with(QUERY.format(""), shards=shards)
    mill.insert("s", ROWS)
    mill.batch()
    found = taken(mill)
    mill = mill.restarted()
    mill.batch()
    mill.report_all()
    finish(mill)
    assert sorted(found + taken(mill)) == [1, 2, 3, 4, 5, 6, 7]


def test_windows_wait_for_the_tuples_that_wait() -> None:
    mill = mill_with("SELECT window_end, COUNT(*) AS n FROM EXPENSIVE(TABLE s, k * 2 AS w, budget => 1) [RANGE 4]")
    mill.insert("s", ROWS)
    mill.punctuate("s", "[ts < 100]")
    mill.batch()
    assert not mill.take_rows("q").height
    mill.drain()
    assert sorted(mill.take_rows("q").rows()) == [(4, 3), (8, 4)]


def test_a_connection_goes_on_by_itself_and_a_run_finishes(tmp_path: Path) -> None:
    called: list[int] = []
    path = tmp_path / "rows.csv"
    path.write_text("k,ts\n" + "".join(f"{k},{k}\n" for k in range(50)))
    with ms.connect(local=True) as mill:

        @mill.function(arguments=["BIGINT"], returns="DOUBLE")
        def slow(k: pl.Series) -> pl.Series:
            called.append(len(k))
            return k * 0.5

        source = f"WITH (connector = 'csv', path = '{path}', once = 'true')"
        mill.sql(f"CREATE STREAM f (k BIGINT, ts BIGINT) ORDER BY ts {source}")
        query = mill.sql("SELECT k, w FROM EXPENSIVE(TABLE f, slow(k) AS w, budget => 8)").start(name="q")
        assert mill.await_end(30)
        assert sorted(query.take().rows()) == [(k, k / 2) for k in range(50)]
    assert sum(called) == 50 and max(called) <= 8


def test_pace_prunes_what_waits_in_the_same_batch() -> None:
    """T24: the first result is too late, so the next one is not computed."""
    mill = LocalMill(Options())
    for name in ("clean", "dirty"):
        mill.execute(f"CREATE STREAM {name} (ts BIGINT, v DOUBLE) ORDER BY ts")
    costly = "SELECT ts, v FROM EXPENSIVE(TABLE dirty, ts * 10.0 AS v, budget => 10)"
    mill.add_query("q", f"SELECT ts, v FROM clean UNION ALL {costly} WITH PACE ON MAX(ts) 5")
    mill.insert("clean", [(9, 0.0)])
    mill.insert("dirty", [(1, None), (3, None), (5, None), (7, None)])
    mill.drain()
    assert mill.take_rows("q").rows() == [(9, 0.0), (5, 50.0), (7, 70.0)]
    assert worked(mill) == (3, 1)


@pytest.mark.parametrize("order", ["", " ORDER BY ts"])
def test_the_whole_budget_is_used_where_time_stands_still(order: str) -> None:
    with ms.connect(local=True, contracts="off") as mill:
        mill.sql(f"CREATE STREAM s (ts BIGINT, v BIGINT){order}")
        query = mill.sql("CREATE QUERY q AS SELECT ts, v, z FROM EXPENSIVE(TABLE s, v + 1 AS z, budget => 10)")
        mill.insert("s", [(0, i) for i in range(25)])
        waiting = [query.progress().state_rows]
        for _ in range(2):
            query.take()
            waiting.append(query.progress().state_rows)
        assert waiting == [15, 5, 0]


SUMS = (
    "SELECT window_end, k, SUM(w) AS total, COUNT(*) AS n, finality "
    "FROM EXPENSIVE(TABLE s, v * 10 AS w, budget => 2) [RANGE 10] GROUP BY k"
)


def test_a_prod_overtakes_what_waits() -> None:
    """It is answered over the tuples that have been worked on, in the batch in which it arrives."""
    mill = mill_with(SUMS)
    mill.insert("s", [(1, 1.0, 1), (1, 2.0, 2), (2, 4.0, 3), (1, 8.0, 4)])
    mill.batch()
    mill.insert("s", [(1, 16.0, 5)])
    mill.prod("s")
    mill.batch()
    assert mill.take_rows("q").rows() == [(10, 1, 30.0, 2, "early")]
    mill.prod("s", "{k = 2}")
    mill.batch()
    assert mill.take_rows("q").rows() == [(10, 2, 40.0, 1, "early")]
    mill.punctuate("s", "[ts < 10]")
    mill.batch()
    finish(mill)
    assert sorted(mill.take_rows("q").rows()) == [(10, 1, 270.0, 4, "final"), (10, 2, 40.0, 1, "final")]


def test_groups_that_are_desired_are_answered_first() -> None:
    mill = mill_with(SUMS)
    mill.insert("s", [(1, 1.0, ts) for ts in range(4)])
    mill.batch()
    mill.insert("s", [(2, 1.0, 5), (2, 1.0, 6)])
    mill.feedback("q", "?[k = 2]")
    mill.prod("q", "{k = 2}")
    mill.batch()
    assert (10, 2, 20.0, 2, "early") in mill.take_rows("q").rows()


def test_early_rows_are_worked_on_at_once() -> None:
    """An aggregate of costly results of an aggregate: its early rows go through, and change nothing."""
    inner = "SELECT window_end AS e, k, SUM(v) AS t FROM s [RANGE 5] GROUP BY k"
    text = (
        "SELECT window_end, SUM(w) AS total, finality "
        f"FROM EXPENSIVE(TABLE ({inner}), t * 10 AS w, budget => 1) [RANGE 10 ON e]"
    )
    mill = mill_with(text)
    mill.insert("s", [(1, 1.0, 1), (2, 2.0, 2)])
    mill.prod("s")
    mill.batch()
    mill.sync()
    assert mill.take_rows("q").rows() == [(10, 30.0, "early")]
    assert mill.state_rows("q") == 2


ASIDE = (
    "SELECT window_end, k, SUM(w) AS total, COUNT(*) AS n, finality "
    "FROM EXPENSIVE(TABLE s, v * 10 AS w, budget => {budget}{aside}) [RANGE {range} SLIDE {slide}] GROUP BY k"
)


def test_windows_after_a_burst_are_final_before_it() -> None:
    mill = mill_with(ASIDE.format(budget=4, aside=", aside => 3", range=10, slide=10))
    found = []
    for start in range(0, 50, 10):
        mill.prod("s", f"{{ts = {start}}}")
        mill.insert("s", [(1, 1.0, start + i) for i in range(10 if start == 10 else 2)])
        mill.punctuate("s", f"[ts < {start + 10}]")
        mill.batch()
        found.append([(row[0], row[3], row[4]) for row in mill.take_rows("q").rows()])
    assert found[:3] == [[(10, 2, "final")], [], [(20, 4, "early"), (30, 2, "final")]]
    held = [s.aside for shard in mill.statistics("q") for name, s in shard.items() if name.startswith("Expensive")]
    finish(mill)
    found.append([(row[0], row[3], row[4]) for row in mill.take_rows("q").rows()])
    finals = [row[0] for rows in found for row in rows if row[2] == "final"]
    assert sorted(finals) == [10, 20, 30, 40, 50] and finals.index(20) > finals.index(40)
    assert sum(held) == mill.state_rows("q") == 0


def elements() -> st.SearchStrategy[list[Any]]:
    """Bursts of tuples (k, v, ts), the end of each of some seconds, and prods."""
    rows = st.tuples(st.integers(1, 2), st.sampled_from([1.0, 2.0]), st.integers(0, 9))
    second = st.tuples(st.lists(rows, max_size=12), st.sampled_from(["", "", "{{ts = {end}}}", "{{}}", "{{k = 1}}"]))
    return st.lists(second, min_size=1, max_size=6)


@settings(max_examples=tries(40))
@given(
    elements(), st.integers(1, 6), st.sampled_from([0, 1, 3]), st.sampled_from([1, 3]), st.sampled_from([10, 20, 25])
)
def test_final_rows_are_the_same_with_tuples_aside(
    seconds: list[Any], budget: int, share: int, shards: int, range_: int
) -> None:
    found = []
    for aside in ("", f", aside => {share}"):
        text = ASIDE.format(budget=budget, aside=aside, range=range_, slide=10)
        mill, rows = mill_with(text, shards=shards), []
        for number, (burst, prod) in enumerate(seconds):
            end = 10 * number + 10
            mill.insert("s", [(k, v, end - 10 + at) for k, v, at in burst])
            if prod:
                mill.prod("s", prod.format(end=end))
            if number % 2:
                mill.punctuate("s", f"[ts < {end}]")
            mill.batch()
            rows += mill.take_rows("q").rows()
            if number == 2:
                mill = mill.restarted()
        mill.punctuate("s", "[ts < 1000]")
        mill.batch()
        finish(mill)
        rows += mill.take_rows("q").rows()
        assert mill.state_rows("q") == 0
        found.append(sorted(row[:4] for row in rows if row[4] == "final"))
    assert found[0] == found[1]
