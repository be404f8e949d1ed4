"""Bursts: a costly operator falls behind, and prods overtake the tuples that wait for it.

A log of access points, one prod a second at the end of each second, MAX over 5 seconds every second. The operator takes
a fixed number of tuples per second, by a budget for each batch of a tenth of a second of virtual time. Windows without
a burst are final before their prod: they have no early answer.
"""

from __future__ import annotations

from statistics import mean

import polars as pl

from millstream.control.mill import LocalMill
from millstream_bench.prodding import measures
from millstream_bench.prodding.reference import BURSTS, RATES
from millstream_bench.prodding.sizes import Sizes
from millstream_bench.prodding.tools.data import bursts
from millstream_bench.suite.report import Finding

RANGE, TICKS = 5, 10
"""Seconds of a window, and batches in a second."""
LONGEST = 3
"""A run ends when the last window is final, or after this multiple of the duration of the log."""
RATE = 300
DECLARED = "CREATE STREAM s (ts BIGINT, counter DOUBLE) PUNCTUATED ON (ts +)"
QUERY = (
    "SELECT window_end, MAX(worked) AS v, COUNT(*) AS n, finality, revision "
    "FROM EXPENSIVE(TABLE s, counter + 0 AS worked, budget => {budget}) [RANGE 5 SLIDE 1 ON ts]"
)
IN_TIME = "CREATE STREAM s (ts BIGINT, counter DOUBLE) ORDER BY ts PUNCTUATED ON (ts +)"
ASIDE = (
    "SELECT window_end, MAX(worked) AS v, COUNT(*) AS n, finality, revision "
    "FROM EXPENSIVE(TABLE s, counter + 0 AS worked, budget => {budget}{aside}) [RANGE {range} SLIDE 1]"
)
WAYS = {"in order": "", "aside, 1 after 3": ", aside => 3", "aside, in lulls": ", aside => 0", "shed": ", shed => TRUE"}
HEADS = ("log", "tuples/s", "windows", "early", "last early", "gain s", "accuracy %", "expected: gain s", "accuracy %")


def rates(sizes: Sizes) -> Finding:
    """One log, by what the costly operator takes."""
    found = Finding("bursts", "bursts: MAX(counter), 5 s every second", "Fig. 4.4, 4.5", HEADS)
    for rate, (gain, accuracy) in RATES.items() if sizes.burst_seeds > 1 else [(RATE, RATES[RATE])]:
        runs = [simulate(bursts(seed=seed), rate) for seed in range(sizes.burst_seeds)]
        found.rows.append(("generated", rate, *_means([_summary(run) for run in runs]), gain, accuracy))
        if rate == RATE:
            found.curves = curves(runs[0], bursts(seed=0))
    found.notes.append("expected: of an idealised queue on a log of the same kind; accuracy depends on its values")
    return found


def repeated(sizes: Sizes) -> Finding:
    found = Finding("burst_lengths", f"bursts: longer logs, {RATE} tuples/s", "Table 4.3", HEADS)
    for repeats in sizes.repeats:
        rows = bursts(repeats=repeats, seed=1)
        accuracy, gain = BURSTS[repeats]
        found.rows.append((f"{rows.height:,} rows", RATE, *_summary(simulate(rows, RATE)), gain, accuracy))
    found.notes.append("expected: as published, for the log of a campus")
    return found


def set_aside(sizes: Sizes) -> Finding:
    """One log, by what happens to the tuples that a prod has overtaken: final rows, seconds after their windows end."""
    heads = ("window", "tuples of a burst", "windows", "early", "shed", "mean s", "median s", "worst s", "within 1 s %")
    found = Finding("bursts_aside", f"bursts set aside, {RATE} tuples/s", "Fig. 6.3", heads)
    rows = bursts(seed=0)
    for range_ in (1, RANGE) if sizes.burst_seeds > 1 else (1,):
        for name, option in WAYS.items():
            query = ASIDE.format(budget=RATE // TICKS, aside=option, range=range_)
            results = simulate(rows, RATE, IN_TIME, query)
            final = results.filter(pl.col("finality") != "early").unique("window_end")
            shed = final.filter(pl.col("finality") != "final").height
            late = final.get_column("at") - final.get_column("window_end")
            early = results.filter(pl.col("finality") == "early").get_column("window_end").n_unique()
            shares = float(late.mean()), float(late.median()), float(late.max()), 100 * float((late < 1).mean())  # type: ignore[arg-type]
            found.rows.append((f"{range_} s", name, final.height, early, shed, *(round(each, 2) for each in shares)))
    found.notes.append(
        "final rows are the same in all ways but the last; a sliding window waits for the burst that it shares"
    )
    found.notes.append("shed: windows whose final rows lack tuples")
    return found


def simulate(rows: pl.DataFrame, rate: int, declared: str = DECLARED, query: str = QUERY) -> pl.DataFrame:
    """All results, with the virtual time `at` of the batch that emitted them."""
    seconds = {int(part["ts"][0]): part for part in rows.partition_by("ts", maintain_order=True)}
    last, found, closed = max(seconds), [], 0
    mill = LocalMill()
    mill.execute(declared)
    mill.add_query("q", query.format(budget=rate // TICKS))
    for tick in range(LONGEST * TICKS * (last + 1)):
        second, part = divmod(tick, TICKS)
        if not part:
            _feed(mill, second, seconds.get(second), last)
            mill.batch()
        else:
            mill.time.go_on()
            mill.sync()
        results = mill.take_rows("q")
        if results.height:
            found.append(results.with_columns(pl.lit(tick / TICKS).alias("at")))
            ends = results.filter(pl.col("finality") != "early").get_column("window_end")
            closed = max(closed, ends.max() or 0)  # type: ignore[assignment]
        if closed > last and not mill.placements.pending():
            break
    mill.close()
    return pl.concat(found)


def _feed(mill: LocalMill, second: int, rows: pl.DataFrame | None, last: int) -> None:
    """A prod for the second that has ended, then the tuples of the next one, and its end."""
    if second:
        mill.prod("s", f"{{ts = {second}}}")
    if rows is not None:
        mill.insert("s", rows)
    if second <= last:
        mill.punctuate("s", f"[ts < {second + 1}]")


def _joined(results: pl.DataFrame) -> pl.DataFrame:
    """The first early answer of each window that has one, with its final one."""
    first = results.filter((pl.col("finality") == "final") | (pl.col("revision") == 1))
    return measures.pairs(first, ["v"])


def _summary(results: pl.DataFrame) -> tuple[int, int, int, float, float]:
    joined = _joined(results)
    finals = results.filter(pl.col("finality") == "final").height
    gain = float((joined["at_final"] - joined["at"]).mean() or 0.0)  # type: ignore[arg-type]
    last = int(joined["window_end"].max() or 0) - 1  # type: ignore[arg-type]
    return finals, joined.height, last, gain, float(joined["v_accuracy"].mean() or 0.0)  # type: ignore[arg-type]


def _means(runs: list[tuple[int, int, int, float, float]]) -> list[float]:
    finals, early, last, gain, accuracy = (mean(column) for column in zip(*runs, strict=True))
    return [round(finals), round(early), round(last), gain, accuracy]


def curves(results: pl.DataFrame, rows: pl.DataFrame) -> dict[str, list[float]]:
    arrived = rows.group_by("ts").len().sort("ts")
    final = results.filter(pl.col("finality") == "final").sort("window_end")
    joined = _joined(results).sort("window_end")
    return {
        "second": arrived["ts"].to_list(),
        "tuples": arrived["len"].to_list(),
        "window": final["window_end"].to_list(),
        "final": (final["at"] - final["window_end"]).to_list(),
        "early window": joined["window_end"].to_list(),
        "early": (joined["at"] - joined["window_end"]).to_list(),
        "accuracy": joined["v_accuracy"].to_list(),
    }
