"""Early answers on Spark by the system's clock: latency gained and accuracy lost by aggressiveness, and bursts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from millstream_bench.feedback.subject import Subject, folder_of
from millstream_bench.prodding import aggressiveness, measures
from millstream_bench.prodding.bursts import curves
from millstream_bench.prodding.overhead import WORKER
from millstream_bench.prodding.reference import FUNCTIONS
from millstream_bench.prodding.sizes import Sizes
from millstream_bench.prodding.tools import written
from millstream_bench.prodding.tools.data import bursts, numbers
from millstream_bench.prodding.tools.driving import first_arrivals
from millstream_bench.prodding.tools.prods import prods, punctuations
from millstream_bench.prodding.tools.streamer import PUNCTUATION, Control, Delivery, Streamer, chopped
from millstream_bench.suite.report import Finding
from millstream_bench.suite.run import Tell

SLIDE = 10
BURSTS = (
    "SELECT window_end, MAX(worked) AS v, COUNT(*) AS n, finality, revision "
    "FROM EXPENSIVE(TABLE s, costly(counter) AS worked, budget => 100) [RANGE 5 SLIDE 1 ON ts]"
)
RATE = 300
"""Tuples per second of the costly function alone; batches have other work too."""


def gained(sizes: Sizes, tell: Tell) -> Finding:
    """One stream, replayed faster than real time, with a prod for each aggressiveness and window."""
    found = Finding("aggressiveness_on_spark", f"uniform values on Spark, {sizes.scale:g} times as fast", "Fig. 4.6",
                    ("P_Aggr", "early rows", "final latency s", "early latency s", "gain %", *FUNCTIONS))  # fmt: skip
    length, scale = sizes.spark_length, sizes.scale
    rows = numbers(length, {"u": aggressiveness.VALUES["u"]}, seed=3)
    streamer = Streamer()
    plan = streamer.deliveries(rows, [*prods(length, SLIDE, aggressiveness.PERCENT), *punctuations(length, SLIDE)])
    query = aggressiveness.query(("u",), SLIDE)
    setup = "CREATE STREAM s (ts BIGINT, u DOUBLE) PUNCTUATED ON (ts +)"
    tell(f"aggressiveness on Spark, {length / scale:.0f} s")
    results = _replayed(setup, query, list(chopped(plan)), scale, length // SLIDE, sizes)
    values = [f"u_{function}" for function in FUNCTIONS]
    first = first_arrivals(rows["ts"].to_numpy(), streamer.due(rows), 30, SLIDE)
    joined = measures.pairs(measures.inner(results, 30, length), values).join(first, on="window_end")
    asked = sorted(aggressiveness.PERCENT, reverse=True)  # the earliest prod is the first revision
    curve: dict[str, list[float]] = {"percent": [], "gain": [], **{function: [] for function in FUNCTIONS}}
    for revision, percent in [*enumerate(asked, 1)][::-1]:
        part = joined.filter(pl.col("revision") == revision)
        if not part.height:
            continue
        early, final = (_mean(part[at] - part["first"]) / scale for at in ("at", "at_final"))
        accuracy = [_mean(part[f"{value}_accuracy"]) for value in values]
        gain = measures.gain_percent(early, final)
        found.rows.append((f"{percent} %", part.height, final, early, gain, *accuracy))
        for name, value in zip(curve, (percent, gain, *accuracy), strict=True):
            curve[name].append(value)
    found.curves["uniform"] = curve
    found.notes.append("latency from the arrival of a window's first tuple to the sink, by the clock")
    return found


def with_bursts(sizes: Sizes, tell: Tell) -> Finding:
    """The log with bursts in real time, through a function that waits for each tuple."""
    found = Finding("bursts_on_spark", "bursts on Spark in real time", "Fig. 4.4, 4.5",
                    ("log", "windows", "early", "gain s", "accuracy %"))  # fmt: skip
    rows = bursts(seed=0).filter(pl.col("ts") < sizes.burst_seconds)
    plan: list[Delivery] = []
    for (second,), part in rows.group_by("ts", maintain_order=True):
        at = int(second)
        plan += [Delivery(at, control=Control(at, at))] if at else []
        plan += [Delivery(at, part), Delivery(at, control=Control(at, at + 1, PUNCTUATION))]
    setup = "CREATE STREAM s (ts BIGINT, counter DOUBLE) PUNCTUATED ON (ts +)"
    windows = int(rows["ts"].max()) + 1  # type: ignore[arg-type]
    tell(f"bursts on Spark, {windows} s and more")
    results = _replayed(setup, BURSTS, plan, 1.0, windows, sizes, rate=RATE)
    first = results.filter((pl.col("finality") == "final") | (pl.col("revision") == 1))
    joined = measures.pairs(first, ["v"]).sort("window_end")
    final = results.filter(pl.col("finality") == "final").sort("window_end")
    gain, accuracy = _mean(joined["at_final"] - joined["at"]), _mean(joined["v_accuracy"])
    found.rows.append((f"{rows.height:,} rows", final.height, joined.height, gain, accuracy))
    found.curves = curves(results, rows)
    return found


def _replayed(
    setup: str, query: str, plan: list[Delivery], scale: float, finals: int, sizes: Sizes, **more: Any
) -> pl.DataFrame:
    """The results of a query on Spark, with the time of their arrival in seconds of the stream."""
    with folder_of("prodding") as made, Subject(spark=True, cores=sizes.cores, worker=WORKER) as subject:
        folder = Path(made)
        warm = [Delivery(0.0, plan_rows(plan)), Delivery(0.0, control=Control(0, 10**6, PUNCTUATION))]
        task = {"setup": [setup], "query": query, "scale": 0, "finals": 1, **more}
        subject.run(task | {"plan": str(written.write(warm, folder / "warm.parquet"))})
        kept = folder / "rows.parquet"
        written.write(plan, folder / "plan.parquet")
        subject.run(task | {"plan": str(folder / "plan.parquet"), "scale": scale, "finals": finals, "keep": str(kept)})
        return pl.read_parquet(kept)


def plan_rows(plan: list[Delivery]) -> pl.DataFrame:
    """The first rows of a plan."""
    return next(delivery.rows for delivery in plan if delivery.rows is not None)


def _mean(values: pl.Series) -> float:
    return float(values.mean() or 0.0)  # type: ignore[arg-type]
