"""Delayed traffic: the vehicles of the last ten minutes at a real detector, every two minutes, before all are known.

The detector reports every 20 seconds, and a report takes up to 20 seconds to arrive. A window is final when the
punctuation behind its last report is there. Each window is asked for 30 seconds before its end.

    python examples/early/traffic.py [--spark]
"""

from __future__ import annotations

import random
import sys
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl

import millstream as ms

READINGS = Path(__file__).parent.parent / "freeway" / "readings.parquet"
DETECTOR = 1345
BEGIN, END = datetime(2011, 9, 15, 16), datetime(2011, 9, 15, 17)
SLIDE, LEAD, DELAY = timedelta(minutes=2), timedelta(seconds=30), 20.0
"""The slide of windows, the time from a prod to their end, and the longest delay in seconds."""
STREAM = "CREATE STREAM readings (ts TIMESTAMP, volume BIGINT) PUNCTUATED ON (ts +)"
QUERY = """
SELECT window_end, SUM(volume) AS vehicles, finality, revision
FROM readings [RANGE 10 MINUTES SLIDE 2 MINUTES ON ts]
"""


def deliveries(seed: int = 0) -> list[tuple[datetime, str, object]]:
    """What arrives, in the order of arrival: rows, prods, punctuations."""
    chance = random.Random(seed)
    rows = pl.read_parquet(READINGS).filter(pl.col("detector") == DETECTOR, pl.col("ts").is_between(BEGIN, END))
    arrived: list[tuple[datetime, str, object]] = []
    last = BEGIN
    for ts, volume in rows.select("ts", "volume").rows():
        last = max(last, ts + timedelta(seconds=chance.uniform(0, DELAY)))
        arrived.append((last, "row", (ts, volume)))
        if (ts - BEGIN) % SLIDE == timedelta(0) and ts > BEGIN:
            arrived.append((last, "punctuation", f"[ts < {ts}]"))
    end = BEGIN + SLIDE
    while end <= END:
        arrived.append((end - LEAD, "prod", f"{{ts = {end}}}"))
        end += SLIDE
    return sorted(arrived, key=lambda each: each[0])


def run(mill: ms.Connection) -> pl.DataFrame:
    """Early and final answers beside each other, with the times at which they were there."""
    mill.sql(STREAM)
    query = mill.sql(QUERY).start(name="vehicles")
    found = []
    for at, kind, what in deliveries():
        if kind == "row":
            mill.insert("readings", [what])
            continue
        if kind == "prod":
            mill.prod("readings", str(what))
        else:
            mill.punctuate("readings", str(what))
        found.append(query.take().with_columns(pl.lit(at).alias("at")))
    rows = pl.concat(found)
    early = rows.filter(pl.col("finality") == "early").drop("finality", "revision")
    final = rows.filter(pl.col("finality") == "final").drop("finality", "revision")
    return early.join(final, on="window_end", suffix="_final").sort("window_end")


def main(arguments: list[str]) -> None:
    with ms.connect(local="--spark" not in arguments) as mill:
        answers = run(mill)
    print("window end  early at  vehicles  final at     final  accuracy")
    for end, early, at, final, final_at in answers.rows():
        accuracy = 100 * (final - abs(final - early)) / final
        print(f"{end:%H:%M:%S}    {at:%H:%M:%S}  {early:8}  {final_at:%H:%M:%S}  {final:8}  {accuracy:6.1f} %")


if __name__ == "__main__":
    main(sys.argv[1:])
