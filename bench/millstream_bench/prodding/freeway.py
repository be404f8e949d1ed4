"""Early answers on the readings of a freeway: a lead that keeps an accuracy, and how many final values the intervals of
estimates hold. Each reading of all detectors is a batch, in the order of time, so figures are the same everywhere."""

from __future__ import annotations

from statistics import mean

import polars as pl

import millstream as ms
from millstream_bench.prodding import measures
from millstream_bench.prodding.sizes import Sizes
from millstream_bench.suite.report import Finding
from millstream_demo.freeway import READINGS

STREAM = "CREATE STREAM readings (ts TIMESTAMP, detector BIGINT, volume BIGINT, speed BIGINT) ORDER BY ts"
WINDOWS = {"5 minutes": "[RANGE 5 MINUTES]", "10 minutes every 2": "[RANGE 10 MINUTES SLIDE 2 MINUTES]"}
TARGETS = (90, 95, 98)
VALUES = ("SUM(volume)", "AVG(speed)", "MAX(speed)", "MIN(speed)")
EXTREMES = ("MAX", "MIN")
SHARES = (25, 50, 75)
SLIDE = 120
SETTLED = 20
"""Windows until the lead has been found."""
KEYS = ("window_end", "detector")


def leads(sizes: Sizes) -> Finding:
    """Vehicles of each detector: the lead that `WITH ACCURACY` finds, and the accuracy that it keeps."""
    heads = ("asked for %", "windows", "accuracy %", "mean lead s", "of the slide %")
    window = "10 minutes every 2"
    found = Finding("leads", f"EMIT EARLY WITH ACCURACY on a freeway: SUM(volume), {window}", "", heads)
    for target in TARGETS:
        rows = _answers("SUM(volume) AS v, finality, revision", window, f"WITH ACCURACY {target} %", sizes.hours)
        pairs = measures.pairs(rows, ["v"], KEYS)
        lead = (pl.col("window_end") - pl.col("at")).dt.total_seconds().first().alias("lead")
        each = pairs.group_by("window_end").agg(lead, pl.col("v_accuracy").mean()).sort("window_end")
        settled = each.slice(min(SETTLED, each.height // 2))
        kept, led = (mean(settled.get_column(name).to_list()) for name in ("v_accuracy", "lead"))
        found.rows.append((target, settled.height, kept, led, 100 * led / SLIDE))
        passed = (each["window_end"] - each["window_end"][0]).dt.total_minutes()
        curve = {"minutes": passed, "lead": each["lead"], "accuracy": each["v_accuracy"]}
        found.curves[f"{target} %"] = {name: values.to_list() for name, values in curve.items()}
    found.notes.append(f"52 detectors; without the first {SETTLED} windows, in which the lead is found")
    return found


def intervals(sizes: Sizes) -> Finding:
    """The share of final values that lie in the interval that claims to hold 90 % of them."""
    heads = ("aggregate, windows", "early rows", *(f"at {share} % of the slide" for share in SHARES))
    found = Finding("intervals", "final values in the intervals of estimates, %, on a freeway", "", heads)
    for window in WINDOWS:
        for value in VALUES:
            cells, same, count = [], [], 0
            for share in SHARES:
                rows = _answers(f"{value} AS v, low, high, finality, revision", window, f"AT {share} %", sizes.hours)
                known = pl.col("low").is_not_null() & pl.col("high").is_not_null()
                pairs = measures.pairs(rows, ["v"], KEYS).filter(known)
                held = pl.col("v_final").cast(pl.Float64).is_between(pl.col("low") - 1e-9, pl.col("high") + 1e-9)
                cells.append(100 * float(pairs.select(held.mean()).item() or 0.0))
                same.append(100 * float(pairs.select((pl.col("v") == pl.col("v_final")).mean()).item() or 0.0))
                count += pairs.height
            found.rows.append((f"{value}, {window}", count, *cells))
            if value.startswith(EXTREMES):
                found.rows.append(("- final already", count, *same))
    found.notes.append("rows whose interval has an open end are left out; the interval of a maximum or minimum holds "
                       "the early value, hence all those that are final already")  # fmt: skip
    return found


def _answers(items: str, window: str, early: str, hours: float) -> pl.DataFrame:
    """The rows of a query by detector, with the time `at` of the readings that led to them."""
    rows = pl.read_parquet(READINGS).filter(pl.col("volume").is_not_null(), pl.col("speed").is_not_null())
    rows = rows.filter(pl.col("ts") < pl.col("ts").min() + pl.duration(seconds=int(hours * 3600)))
    found: list[pl.DataFrame] = []
    with ms.connect(local=True) as mill:
        mill.sql(STREAM)
        text = f"SELECT window_end, detector, {items} FROM readings {WINDOWS[window]} GROUP BY detector"
        running = mill.sql(f"{text} EMIT EARLY {early}").start(name="q")
        for (at,), page in rows.sort("ts").group_by("ts", maintain_order=True):
            mill.insert("readings", page.select("ts", "detector", "volume", "speed"))
            made = running.take()
            if made.height:
                found.append(made.with_columns(pl.lit(at).alias("at")))
    return pl.concat(found)
