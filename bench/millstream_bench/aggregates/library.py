"""The sketches of the library, written in SQL and run as loops, one tuple at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from millstream_bench.aggregates.drive import Maker, WrongAnswer, best, bids, golden, maker, run, running
from millstream_bench.aggregates.sizes import Sizes
from millstream_bench.suite.report import Finding

ITEMS = 1_000
SIZE = 1_000
LAST = f"ROWS {SIZE - 1} PRECEDING"
ALL = "ROWS UNBOUNDED PRECEDING"
_FRAME = f"ROWS BETWEEN {SIZE - 1} PRECEDING AND CURRENT ROW"


@dataclass(frozen=True, slots=True)
class Sketch:
    """`exact`: the value that DuckDB finds, from which the result is off by this share of it at most, or by 2."""

    call: str
    window: str
    exact: str
    error: float
    rows: int = 1
    """The rows that a tuple returns."""


SKETCHES = (
    Sketch("approx_frequency(item)", LAST, "COUNT(*) OVER (PARTITION BY item ORDER BY ts RANGE 999 PRECEDING)", 0.5),
    Sketch("approx_distinct(item)", LAST, f"COUNT(DISTINCT item) OVER (ORDER BY ts {_FRAME})", 0.1),
    Sketch("approx_distinct(item)", ALL, "COUNT(DISTINCT item) OVER (ORDER BY ts)", 0.1),
    Sketch("approx_quantile(price, 0.5)", LAST, f"QUANTILE_DISC(price, 0.5) OVER (ORDER BY ts {_FRAME})", 0.02),
    Sketch("approx_quantile(price, 0.5)", ALL, "QUANTILE_DISC(price, 0.5) OVER (ORDER BY ts)", 0.02),
    Sketch("approx_ones(item % 2, 1000)", ALL, f"SUM(item % 2) OVER (ORDER BY ts {_FRAME})", 0.5),
    Sketch("priority_sample(price, 1)", LAST, "price", 0.0),
    Sketch("priority_sample(price, 10)", LAST, "price", 0.0, rows=10),
)


def library(sizes: Sizes) -> Finding:
    """Speed of each sketch, after its window has been filled."""
    heads = ("aggregate", "window", "tuples", "rows returned")
    found = Finding("library", "aggregates of the library, tuples per CPU-second", "", heads)
    rows = bids(SIZE + sizes.rows // 2, ITEMS)
    for sketch in SKETCHES:
        traces = [run(_maker(sketch), rows, skip=SIZE) for _ in range(sizes.rounds)]
        _check(sketch, traces[0].results, rows)
        rate = round(best(traces))
        window = f"the last {SIZE:,}" if sketch.window == LAST else "all"
        found.rows.append((sketch.call, window, rate, rate * sketch.rows))
    found.numbers["least"] = min(row[3] for row in found.rows)
    return found


def _maker(sketch: Sketch) -> Maker:
    if sketch.call.startswith("priority_sample"):
        inner = f"SELECT {sketch.call} OVER ({sketch.window}) FROM bids"
        return maker(f"SELECT value AS x FROM ({inner})")
    return running(sketch.call, sketch.window)


def _check(sketch: Sketch, results: pl.Series, rows: pl.DataFrame) -> None:
    found = results.to_numpy()
    if len(found) != rows.height * sketch.rows:
        raise WrongAnswer(f"{sketch.call}: {len(found)} rows")
    if sketch.exact == "price":
        if not np.isin(found, rows.get_column("price").to_numpy()).all():
            raise WrongAnswer(f"{sketch.call}: other values than those of the stream")
        return
    exact = golden(f"SELECT ts, {sketch.exact} AS x FROM bids ORDER BY ts", rows).to_numpy()
    slack = 0.0 if sketch.error < 0.1 else 2.0
    if sketch.call.startswith("approx_frequency"):
        wrong = found < exact
    else:
        wrong = abs(found - exact) > sketch.error * exact * 1.001 + slack
    if wrong.any():
        raise WrongAnswer(f"{sketch.call}: {found[wrong][0]} where DuckDB finds {exact[wrong][0]}")
