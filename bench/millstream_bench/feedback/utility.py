"""How much of the output is of use: clean readings beside dirty ones, whose estimates take too long.

Half of the readings have no speed, which EXPENSIVE estimates, a fifth of what would be needed per batch. A result is
useful if it is at most five minutes behind the newest one before it.

| plan | top |
|---|---|
| (a) | a union in the order of arrival (PACE with a tolerance that drops nothing) |
| (b) | PACE of five minutes that tells nothing |
| (c) | PACE of five minutes with feedback: EXPENSIVE prunes what PACE would drop |

One shard runs all of it: PACE needs the order of all arrivals, and its feedback acts in the same batch there.

The work that feedback can avoid is bounded: estimates in the output have to be made. EXPENSIVE spends its budget as
long as some estimate can still be in time, so (c) makes `budget` of them per batch, and at the end of the stream those
of the last five minutes.

Checked: (b) and (c) emit a part of what (a) emits, and all clean readings; all of it is useful.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import polars as pl

from millstream_bench.feedback import data
from millstream_bench.feedback.data import SENSOR, stream
from millstream_bench.feedback.sizes import Sizes
from millstream_bench.feedback.subject import Run, Subject, folder_of
from millstream_bench.suite.report import Finding
from millstream_bench.suite.run import Tell

TOLERANCE = timedelta(minutes=5)
MEMBERS = """
SELECT ts, sensor_id, speed, FALSE AS estimated FROM sensor WHERE speed >= 0
UNION ALL
SELECT ts, sensor_id, speed, TRUE AS estimated
FROM EXPENSIVE(TABLE (SELECT ts, sensor_id FROM sensor WHERE speed < 0),
               costly(sensor_id) AS speed, budget => {budget})
"""
PLANS = {
    "(a) union": f"{MEMBERS} WITH PACE ON MAX(ts) 1000 DAYS FEEDBACK OFF",
    "(b) PACE": f"{MEMBERS} WITH PACE ON MAX(ts) 5 MINUTES FEEDBACK OFF",
    "(c) PACE, feedback": f"{MEMBERS} WITH PACE ON MAX(ts) 5 MINUTES",
}


def utility(sizes: Sizes, tell: Tell = lambda _: None, *, spark: bool = False) -> Finding:
    name, place = ("utility_on_spark", "on Spark") if spark else ("utility", "in process")
    columns = ("plan", "EXPENSIVE", "pruned", "dropped by PACE", "output", "estimated", "useful", "wall s", "CPU s")
    found = Finding(name, f"output that is of use, {place}", "Fig. 7.8", columns)
    with folder_of("utility") as made:
        folder = Path(made)
        readings = data.sensors(sizes.pace_hours, dirty=True)
        data.write(readings, folder / "sensor", sizes.minutes)
        rows: dict[str, pl.DataFrame] = {}
        with Subject(spark=spark, cores=sizes.cores, shards=1) as subject:
            for number, (plan, text) in enumerate(PLANS.items()):
                tell(f"utility, {plan}")
                keep = folder / f"{number}.parquet"
                task = {
                    "setup": [stream("sensor", SENSOR, folder / "sensor")],
                    "queries": {"q": text.format(budget=sizes.budget)},
                    "keep": {"q": str(keep)},
                    "loops": sizes.loops,
                }
                run = subject.run(task)
                rows[plan] = pl.read_parquet(keep)
                _add(found, plan, run, rows[plan])
        _check(readings, rows)
    worked = found.numbers["(a) union"]["worked"]
    found.numbers["avoided"] = 1 - found.numbers["(c) PACE, feedback"]["worked"] / worked
    in_time = found.numbers["(c) PACE, feedback"]["estimated"]
    found.numbers["avoidable"] = 1 - in_time / worked
    gained = in_time - found.numbers["(b) PACE"]["estimated"]
    found.notes.append(f"{readings.height:,} readings, half of them dirty")
    found.notes.append(f"{sizes.minutes} minutes of readings and at most {sizes.budget} estimates a batch")
    avoided, avoidable = found.numbers["avoided"], found.numbers["avoidable"]
    found.notes.append(f"work avoided by feedback: {avoided:.1%}, of {avoidable:.1%} that is not for estimates in time")
    found.notes.append(f"{gained:,} more estimates in time")
    return found


def _add(found: Finding, plan: str, run: Run, rows: pl.DataFrame) -> None:
    worked = run.out("Expensive")
    pruned = run.operators["q"].get("Expensive", [0, 0, 0])[2]
    estimated = int(rows.get_column("estimated").sum())
    clean = rows.height - estimated
    share = useful(rows.get_column("ts")) / rows.height
    dropped = worked - estimated
    found.rows.append((plan, worked, pruned, dropped, rows.height, estimated, share, run.wall_s, run.cpu_s))
    found.numbers[plan] = {
        "worked": worked, "pruned": pruned, "dropped": dropped, "output": rows.height, "estimated": estimated,
        "clean": clean, "useful": share, "wall_s": run.wall_s, "cpu_s": run.cpu_s,
    }  # fmt: skip


def useful(times: pl.Series) -> int:
    """Number of rows within the tolerance of the newest row so far.

    >>> from datetime import datetime
    >>> useful(pl.Series([datetime(2010, 1, 1, 0, minute) for minute in (10, 4, 5, 11)]))
    3
    """
    return int((times >= times.cum_max() - TOLERANCE).sum())


def _check(readings: pl.DataFrame, rows: dict[str, pl.DataFrame]) -> None:
    """Raise AssertionError if an answer is wrong."""
    key = ["ts", "sensor_id", "speed"]
    clean = readings.filter(pl.col("speed") >= 0)
    union = rows["(a) union"]
    assert union.height == readings.height, f"the union has {union.height} rows"
    for plan, own in rows.items():
        assert own.join(union, on=key, how="anti").is_empty(), f"{plan}: a row that the union does not have"
        assert own.select(key).is_duplicated().sum() == 0, f"{plan}: a row twice"
        assert clean.join(own, on=key, how="anti").is_empty(), f"{plan}: a clean reading is missing"
        assert plan == "(a) union" or useful(own.get_column("ts")) == own.height, f"{plan}: a row is too late"
