"""Streams whose tuples are delayed on their way: latency gained and accuracy of early answers, in virtual time."""

from __future__ import annotations

from statistics import mean

import polars as pl

from millstream_bench.prodding import measures
from millstream_bench.prodding.reference import DELAYED, LENGTHS
from millstream_bench.prodding.sizes import Sizes
from millstream_bench.prodding.tools.data import detector, numbers, uniform
from millstream_bench.prodding.tools.driving import drive, first_arrivals
from millstream_bench.prodding.tools.prods import prods, punctuations
from millstream_bench.prodding.tools.streamer import Streamer
from millstream_bench.suite.report import Finding

HEADS = ("stream", "windows", "final latency s", "early latency s", "gain s", "accuracy %", "published: gain s",
         "accuracy %")  # fmt: skip


def traffic(sizes: Sizes) -> Finding:
    """A real detector that reports every 20 seconds, delayed by up to 20 seconds; prods 90 s into each slide."""
    found = Finding("traffic", "delayed traffic: SUM(volume), 10 minutes every 2, P_Aggr 25 %", "Fig. 4.2", HEADS)
    rows = detector(hours=sizes.hours)
    pairs = _pairs(rows, "volume BIGINT", "SUM(volume)", range_=600, slide=120, percent=25, delay=20.0, seed=0)
    found.rows.append(("detector 1345", *_summary(pairs), DELAYED["gain s"], DELAYED["accuracy %"]))
    found.curves = {name: pairs.get_column(name).to_list() for name in ("window_end", "early", "final", "accuracy")}
    found.notes.append("the published figures are of another detector")
    return found


def lengths(sizes: Sizes) -> Finding:
    """Longer streams have relatively fewer windows at their ends."""
    found = Finding(
        "lengths", "delayed numbers: MAX, 30 s every 10, P_Aggr 30 %, delays up to 0.5 s", "Table 4.2", HEADS
    )
    for length in sizes.lengths:
        runs = []
        for seed in range(sizes.delayed_seeds):
            rows = numbers(length, {"speed": uniform()}, density=94, seed=seed)
            pairs = _pairs(rows, "speed DOUBLE", "MAX(speed)", range_=30, slide=10, percent=30, delay=0.5, seed=seed)
            runs.append(_summary(pairs))
        accuracy, gain = LENGTHS.get(length, (None, None))
        found.rows.append(
            (f"uniform, {length} s", *(mean(column) for column in zip(*runs, strict=True)), gain, accuracy)
        )
    return found


def _pairs(
    rows: pl.DataFrame, column: str, value: str, *, range_: int, slide: int, percent: float, delay: float, seed: int
) -> pl.DataFrame:
    """Early and final answers of each window, those at the ends of the stream included: latency and accuracy."""
    length = int(rows.get_column("ts").max() or 0) // slide * slide  # type: ignore[arg-type]
    streamer = Streamer(delay=delay, with_next=True, seed=seed)
    deliveries = streamer.deliveries(rows, [*prods(length, slide, [percent]), *punctuations(length, slide)])
    declared = f"CREATE STREAM s (ts BIGINT, {column}) PUNCTUATED ON (ts +)"
    query = f"SELECT window_end, {value} AS v, finality, revision FROM s [RANGE {range_} SLIDE {slide} ON ts]"
    joined = measures.pairs(drive(declared, query, deliveries), ["v"])
    times = rows.get_column("ts").to_numpy()
    joined = joined.join(first_arrivals(times, streamer.due(rows), range_, slide), on="window_end").sort("window_end")
    if joined.height < length // slide - 1:
        raise AssertionError(f"{joined.height} of {length // slide} windows have been answered early")
    latency = {"early": pl.col("at") - pl.col("first"), "final": pl.col("at_final") - pl.col("first")}
    return joined.select("window_end", accuracy="v_accuracy", **latency)


def _summary(pairs: pl.DataFrame) -> tuple[int, float, float, float, float]:
    early, final, accuracy = (float(pairs[name].mean()) for name in ("early", "final", "accuracy"))  # type: ignore[arg-type]
    return pairs.height, final, early, final - early, accuracy
