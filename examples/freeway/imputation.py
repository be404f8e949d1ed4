"""Imputation in time: missing speeds are estimated at some cost, and only as long as they are of use.

Loop detectors report every 20 seconds; one reading in six has no speed. The speed is then estimated: by the last one
that the detector reported, if it is recent, otherwise by the mean of the archive for that detector and time of day. The
estimate is costly, so a batch makes at most BUDGET of them, and readings that need one fall behind. PACE drops what is
more than five minutes behind the newest reading, and tells EXPENSIVE, which skips such readings without an estimate.

    python examples/freeway/imputation.py [--spark]
"""

from __future__ import annotations

import sys
import tempfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

import millstream as ms

FOLDER = Path(__file__).parent
READINGS = FOLDER / "readings.parquet"
END = datetime(2011, 9, 15, 2)
"""The first two hours of the day: at night many readings have no speed."""
BUDGET, ROWS = 100, 400
"""Estimates per batch, and readings per batch: about two minutes."""
TOLERANCE = timedelta(minutes=5)
RECENT = timedelta(minutes=2)

STREAMS = f"""
CREATE STREAM readings (ts TIMESTAMP, detector BIGINT, station BIGINT, volume BIGINT, speed DOUBLE)
  ORDER BY ts
  WITH (connector = 'parquet', path = '{{night}}', once = 'true', max_rows_per_trigger = {ROWS});

CREATE STREAM known AS
  SELECT ts, detector, speed,
         last_good(speed) OVER (PARTITION BY detector ROWS UNBOUNDED PRECEDING) AS last_speed,
         last_good(CASE WHEN speed IS NOT NULL THEN EXTRACT(EPOCH FROM ts) END)
           OVER (PARTITION BY detector ROWS UNBOUNDED PRECEDING) AS last_ts
  FROM readings
  WHERE station < 5000
"""
MEMBERS = """
SELECT ts, detector, speed, FALSE AS estimated FROM known WHERE speed IS NOT NULL
UNION ALL
SELECT ts, detector, speed, TRUE AS estimated
FROM EXPENSIVE(TABLE (SELECT ts, detector, last_speed, last_ts FROM known WHERE speed IS NULL),
               estimate(detector, ts, last_speed, last_ts) AS speed, budget => {budget})
"""
VARIANTS = {
    "union on arrival": f"{MEMBERS} WITH PACE ON MAX(ts) 1000 DAYS",
    "PACE": f"{MEMBERS} WITH PACE ON MAX(ts) 5 MINUTES FEEDBACK OFF",
    "PACE, feedback": f"{MEMBERS} WITH PACE ON MAX(ts) 5 MINUTES",
}


def archive() -> pl.DataFrame:
    """The mean speed of each detector in every quarter of an hour. A real archive has other days."""
    known = pl.read_parquet(READINGS).filter(pl.col("speed") > 0)
    quarter = pl.col("ts").dt.truncate("15m").dt.time().alias("quarter")
    return known.group_by("detector", quarter).agg(pl.col("speed").mean().alias("mean"))


class LastGood:
    """The last value that is not NULL, for each reading of a detector: it is not called for NULL, and its last result
    is repeated."""

    def iterate(self, x: float) -> float:
        return x


class Estimates:
    """Estimates speeds, and counts how many."""

    def __init__(self) -> None:
        self._archive = archive()
        self.count = 0

    def __call__(self, detector: pl.Series, ts: pl.Series, last_speed: pl.Series, last_ts: pl.Series) -> pl.Series:
        self.count += len(detector)
        asked = pl.DataFrame({"detector": detector, "ts": ts, "last": last_speed, "at": last_ts})
        quarter = pl.col("ts").dt.truncate("15m").dt.time().alias("quarter")
        joined = asked.with_columns(quarter).join(
            self._archive, on=["detector", "quarter"], how="left", maintain_order="left"
        )
        age = pl.col("ts").dt.epoch("s") - pl.col("at")
        recent = pl.when(age <= RECENT.total_seconds()).then("last")
        return joined.select(pl.coalesce(recent, "mean", "last")).to_series()


def useful(rows: list[tuple[Any, ...]]) -> int:
    """Number of rows within the tolerance of the newest row so far."""
    newest, found = datetime.min, 0
    for ts, *_ in rows:
        newest = max(newest, ts)
        found += ts >= newest - TOLERANCE
    return found


def run(variant: str, *, spark: bool = False, budget: int = BUDGET) -> dict[str, int]:
    """Run a variant; return the numbers of rows, of useful rows, of estimated rows and of estimates made."""
    estimates = Estimates()
    rows: list[tuple[Any, ...]] = []
    with tempfile.TemporaryDirectory() as folder, ms.connect(local=not spark) as mill:
        night = Path(folder) / "night.parquet"
        pl.read_parquet(READINGS).filter(pl.col("ts") < END).write_parquet(night)
        mill.aggregate(LastGood, name="last_good", ignore_nulls=True)
        types = ["BIGINT", "TIMESTAMP", "DOUBLE", "DOUBLE"]
        mill.function(estimates.__call__, name="estimate", arguments=types, returns="DOUBLE", vectorized="polars")
        mill.sql(STREAMS.format(night=night))
        query = mill.sql(VARIANTS[variant].format(budget=budget)).start(name="speeds")
        mill.await_end(poll=lambda: rows.extend(query.take().rows()))
        rows += query.take().rows()
        worked = [each.reading for each in query.progress().operators if each.name.startswith("Expensive")]
    made = sum(reading.tuples_out for reading in worked)
    return {
        "rows": len(rows),
        "useful": useful(rows),
        "estimated": sum(row[3] for row in rows),
        "estimates made": made,
    }


def main() -> None:
    print(f"{'':18} {'rows':>7} {'useful':>7} {'estimated':>10} {'estimates made':>15}")
    for variant in VARIANTS:
        found = run(variant, spark="--spark" in sys.argv)
        share = found["useful"] / found["rows"]
        made = found["estimates made"]
        print(f"{variant:18} {found['rows']:7,} {share:7.0%} {found['estimated']:10,} {made:15,}")


if __name__ == "__main__":
    main()
