"""Estimates: intervals that claim 90 % hold 85 to 95 % of the final values."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import millstream as ms
from millstream.algebra.qualities import Qualities
from millstream.control.job.jobs import LocalJobs
from millstream.control.mill import LocalMill
from millstream.control.observe.progress import progress_of
from millstream.errors import BindError

WINDOWS, GROUPS, LENGTH = 40, 20, 100
"""A window of one group is a case: there are 800."""


def arrivals(seed: int, rate: float, values: str) -> pl.DataFrame:
    """Random arrivals, `rate` a window and group on average, with values of a distribution."""
    chance = np.random.default_rng(seed)
    count = chance.poisson(rate * WINDOWS * GROUPS)
    ts, k = np.sort(chance.integers(0, WINDOWS * LENGTH, count)), chance.integers(0, GROUPS, count)
    drawn = {
        "positive": lambda: chance.gamma(2.0, 10.0, count),
        "normal": lambda: chance.normal(50.0, 20.0, count),
        "around 0": lambda: chance.normal(0.0, 20.0, count),
    }
    return pl.DataFrame({"ts": ts, "k": k, "v": drawn[values]()})


def opened(select: str, shards: int = 1, *, slide: int = LENGTH, mark: int = 80) -> LocalMill:
    mill = LocalMill(jobs=LocalJobs(shards=shards))
    mill.execute("CREATE STREAM s (ts BIGINT, k BIGINT, v DOUBLE) ORDER BY ts")
    columns = f"window_end, k, {select} AS f, estimate, low, high, complete, finality"
    mill.execute(
        f"CREATE QUERY q AS SELECT {columns} FROM s [RANGE {LENGTH} SLIDE {slide}] GROUP BY k EMIT EARLY AT {mark} %"
    )
    return mill


def answered(mill: LocalMill, *inserted: pl.DataFrame) -> pl.DataFrame:
    for rows in inserted:
        mill.insert("s", rows)
        mill.batch()
    mill.punctuate("s", f"[ts < {WINDOWS * LENGTH}]")
    mill.batch()
    return mill.take_rows("q")


def paired(found: pl.DataFrame) -> pl.DataFrame:
    """Early rows with the final value."""
    early, final = (found.filter(pl.col("finality") == each) for each in ("early", "final"))
    return early.join(final.select("window_end", "k", final="f"), on=["window_end", "k"])


@pytest.mark.parametrize(
    "select, values, rate",
    [
        ("COUNT(*)", "positive", 40),
        ("SUM(v)", "positive", 40),
        ("SUM(v)", "around 0", 40),
        ("AVG(v)", "normal", 40),
        ("MAX(v)", "normal", 40),
        ("MIN(v)", "positive", 40),
    ],
)
def test_intervals_hold_what_they_claim(select: str, values: str, rate: float) -> None:
    pairs = paired(answered(opened(select), arrivals(17, rate, values)))
    assert pairs.height >= 780 and set(pairs["complete"]) == {0.8}
    holds = pl.col("final").is_between(pl.col("low") - 1e-9, pl.col("high") + 1e-9)
    bounded = pairs.drop_nulls(["low", "high"])
    assert bounded.height >= 600 and 0.85 <= bounded.select(holds.mean()).item() <= 0.95


@pytest.mark.parametrize("select", ["MAX(v)", "MIN(v)"])
def test_extremes_that_are_final_already(select: str) -> None:
    """Shortly before the end of a sliding window hardly an extreme changes. The interval is the early value then, and
    holds no more than the values that are final, but for the groups in which some have changed."""
    pairs = paired(answered(opened(select, slide=20, mark=75), arrivals(3, 40, "normal"))).drop_nulls(["low", "high"])
    holds = pl.col("final").is_between(pl.col("low") - 1e-9, pl.col("high") + 1e-9)
    same, held = pairs.select(same=pl.col("final") == pl.col("f"), held=holds).mean().row(0)
    single = (pairs["low"] == pairs["high"]).mean()
    assert pairs.height > 3000 and 0.9 < same <= held < same + 0.02 and single is not None and single > 0.7


def test_estimates_do_not_depend_on_shards_and_cuts() -> None:
    rows = arrivals(5, 5, "positive")
    one = answered(opened("SUM(v)"), rows)
    three = answered(opened("SUM(v)", shards=3), rows[:1000], rows[1000:1400], rows[1400:])
    order = ["window_end", "k", "complete"]
    assert_frame_equal(one.sort(order), three.sort(order))


def test_accuracy_of_a_query() -> None:
    """Every early answer is compared with its final one; the last before it once more."""
    mill = LocalMill(jobs=LocalJobs(shards=3))
    mill.execute("CREATE STREAM s (ts BIGINT, k BIGINT, v BIGINT) ORDER BY ts")
    mill.execute("CREATE QUERY q AS SELECT window_end, k, SUM(v) AS total FROM s [RANGE 10] GROUP BY k EMIT EARLY")
    mill.insert("s", [(0, 1, 2), (1, 2, 0)])
    mill.prod("q", "{}")  # 2 and 0
    mill.insert("s", [(4, 1, 6)])
    mill.prod("q", "{}")  # 8 and 0
    mill.insert("s", [(8, 1, 2), (11, 1, 1)])  # 10 and 0
    mill.prod("q", "{}")  # no final row of this window will come
    mill = mill.restarted()
    mill.batch()
    found = progress_of(mill, "q").accuracy
    assert found.all == Qualities(4, 20.0 + 80.0 + 200.0, 20.0, 2)
    assert found.last == Qualities(2, 180.0, 80.0, 1)


def alike(early: str, final: str, gap: float) -> float:
    """The share of equal letters, and 10 for each second between."""
    return 100 * sum(a == b for a, b in zip(early, final, strict=False)) / len(final) + 10 * gap


def test_a_quality_function() -> None:
    """It judges text too."""
    connection = ms.connect(local=True)
    connection.function(alike)
    connection.sql("CREATE STREAM s (ts BIGINT, name VARCHAR) ORDER BY ts")
    select = "SELECT window_end, MAX(name) AS last FROM s [RANGE 10] EMIT EARLY 2 SECONDS BEFORE END QUALITY alike"
    query = connection.sql(f"CREATE QUERY q AS {select}")
    connection.insert("s", [(1, "abcd"), (9, "abxx"), (10, "a")])
    query.take()
    assert query.progress().accuracy.all == Qualities(1, 70.0, 70.0, 0)
    assert "early  accuracy 70.00 on average, 70.00 at worst, 1 pairs" in str(query.progress())
    with pytest.raises(BindError, match="is no such function"):
        connection.sql(select.replace("alike", "unlike"))


@pytest.mark.parametrize("shards", [1, 3])
def test_a_lead_that_keeps_the_accuracy(shards: int) -> None:
    """A count at an even rate has an accuracy of 100 % less the lead."""
    mill = LocalMill(jobs=LocalJobs(shards=shards))
    mill.execute("CREATE STREAM s (ts BIGINT, k BIGINT, v BIGINT) ORDER BY ts")
    mill.execute(
        "CREATE QUERY q AS SELECT window_end, k, COUNT(*) AS n, complete, finality FROM s [RANGE 100] GROUP BY k"
        " EMIT EARLY WITH ACCURACY 88 %"
    )
    for window in range(16):
        mill.insert("s", [(100 * window + at, at % 2, 1) for at in range(100)])
        mill.batch()
        if window == 10:
            mill = mill.restarted()
    shares = [share for _, _, _, share, finality in mill.take_rows("q").rows() if finality == "early"]
    assert shares[-1] == 0.9 and progress_of(mill, "q").lead == 10
    assert "WITH ACCURACY 88 %, now 10 BEFORE END" in mill.execute("EXPLAIN q")


@pytest.mark.parametrize("shards", [1, 3])
def test_windows_before_the_stream_are_no_history(shards: int) -> None:
    """Sliding windows that had begun before the first tuple lack tuples: what they grew by says nothing of others. A
    group that comes later is estimated the same on any number of shards."""
    mill = LocalMill(jobs=LocalJobs(shards=shards))
    mill.execute("CREATE STREAM s (ts BIGINT, k BIGINT) ORDER BY ts")
    mill.execute(
        "CREATE QUERY q AS SELECT window_end, k, COUNT(*) AS n, ROUND(low, 3) AS l, ROUND(high, 3) AS h, finality "
        "FROM s [RANGE 50 SLIDE 10] GROUP BY k EMIT EARLY AT 50 %"
    )
    mill.insert("s", [(ts, k) for ts in range(151) for k in (1, 3, 10) if k == 1 or ts >= 40])
    mill.batch()
    rows = [row for row in mill.take_rows("q").sort("window_end", "k").rows() if row[-1] == "early"]
    assert [row for row in rows if row[:2] == (150, 1)] == [(150, 1, 45, 50.0, 50.0, "early")]
    (late,) = {row[2:5] for row in rows if row[0] == 150 and row[1] != 1}
    assert late[0] == 45 and late[1] <= 50 < late[2]
