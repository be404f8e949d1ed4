"""The in-process engine against the same computation in Polars over the whole input at once, both on one thread.

Pages have 8,192 rows. Millstream runs with its default of up to sixteen pages a step, and with one page a step. The
same streams with a punctuation every twenty tuples, and with one a batch, show the cost of punctuation. Every workload
is checked: Millstream's rows, as a bag, equal Polars'. Times are CPU seconds of this process, the best of several
consecutive rounds. No test depends on them.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.ingest.source import PunctuatedRows
from millstream_bench.core.events import AuctionEvents, generate
from millstream_bench.core.plot import growth_plot, ratio_plot

PAGE_ROWS = 8192
BATCH_ROWS = 16 * PAGE_ROWS
BATCHED = "batch:16"
"""Up to sixteen pages in one step: the default."""
PAGEWISE = "dfs"
"""One page in one step."""
EVERY = 20
"""Tuples between two punctuations in the punctuated runs."""

BIDS = "CREATE STREAM bids (auction BIGINT, bidder BIGINT, price DOUBLE, ts TIMESTAMP) ORDER BY ts"
AUCTIONS = "CREATE STREAM auctions (id BIGINT, seller BIGINT, category BIGINT, ts TIMESTAMP) ORDER BY ts"


@dataclass(frozen=True, slots=True)
class Workload:
    name: str
    query: str
    polars: Callable[[AuctionEvents], pl.DataFrame]
    reads_auctions: bool = False


def _selection(events: AuctionEvents) -> pl.DataFrame:
    wanted = events.bids.lazy().filter(pl.col("price") > 50_000.0)
    return wanted.select("auction", (pl.col("price") * 0.908).alias("euro"), "ts").collect()


def _tumbling(events: AuctionEvents) -> pl.DataFrame:
    grouped = events.bids.lazy().group_by(pl.col("ts").dt.truncate("10s").alias("window_start"), "auction")
    return grouped.agg(pl.len().cast(pl.Int64).alias("bids"), pl.col("price").max().alias("top")).collect()


def _interval_join(events: AuctionEvents) -> pl.DataFrame:
    pairs = events.bids.lazy().join(events.auctions.lazy(), left_on="auction", right_on="id")
    after = pl.col("ts") - pl.col("ts_right")
    near = pairs.filter(after.is_between(pl.duration(seconds=0), pl.duration(seconds=10)))
    return near.select("auction", "price", "seller", "ts").collect()


WORKLOADS = (
    Workload(
        "selection + projection", "SELECT auction, price * 0.908 AS euro, ts FROM bids WHERE price > 50000", _selection
    ),
    Workload(
        "tumbling count, max",
        "SELECT window_start, auction, COUNT(*) AS bids, MAX(price) AS top "
        "FROM bids [RANGE 10 SECONDS] GROUP BY auction",
        _tumbling,
    ),
    Workload(
        "interval join",
        "SELECT b.auction, b.price, a.seller, b.ts FROM bids b JOIN auctions a ON b.auction = a.id "
        "WHERE b.ts BETWEEN a.ts AND a.ts + INTERVAL '10' SECOND",
        _interval_join,
        reads_auctions=True,
    ),
)


def run(out: Path, *, events: int = 2_000_000, rounds: int = 9) -> dict[str, Any]:
    """Measure everything, print a table, write `core.json` and two plots."""
    if pl.thread_pool_size() != 1:
        return _on_one_thread(out, events, rounds)
    out.mkdir(parents=True, exist_ok=True)
    data = generate(events)
    result: dict[str, Any] = {"events": events, "bids": data.bids.height, "page_rows": PAGE_ROWS}
    result["workloads"] = [_compare(workload, data, rounds) for workload in WORKLOADS]
    result["growth"] = _growth(events)
    (out / "core.json").write_text(json.dumps(result, indent=2))
    ratio_plot(result["workloads"], out / "core_ratio.png")
    growth_plot(result["growth"], out / "core_state.png")
    _print(result, out)
    return result


def _on_one_thread(out: Path, events: int, rounds: int) -> dict[str, Any]:
    """Polars fixes its thread count when it is imported, so measure in a process of its own."""
    call = f"run(Path({str(out)!r}), events={events}, rounds={rounds})"
    code = f"from pathlib import Path; from millstream_bench.core.run import run; {call}"
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"POLARS_MAX_THREADS": "1"})
    loaded: dict[str, Any] = json.loads((out / "core.json").read_text())
    return loaded


def _compare(workload: Workload, data: AuctionEvents, rounds: int) -> dict[str, Any]:
    contestants: dict[str, Callable[[], tuple[pl.DataFrame, float]]] = {
        "polars": lambda: _timed(lambda: workload.polars(data)),
        "millstream": lambda: _stream(workload, data, BATCHED, every=None),
        "sparse": lambda: _stream(workload, data, BATCHED, every=BATCH_ROWS),
        "punctuated": lambda: _stream(workload, data, BATCHED, every=EVERY),
        "pagewise": lambda: _stream(workload, data, PAGEWISE, every=None),
    }
    best = dict.fromkeys(contestants, float("inf"))
    answers: dict[str, pl.DataFrame] = {}
    for name, contestant in contestants.items():
        for _ in range(rounds):  # consecutive rounds, so that none pays for memory that another returned
            answers[name], seconds = contestant()
            best[name] = min(best[name], seconds)
    for name in contestants:
        _check(workload.name, answers["polars"], answers[name])
    rows = data.bids.height + (data.auctions.height if workload.reads_auctions else 0)
    return {
        "name": workload.name,
        "rows": rows,
        "rows_out": answers["polars"].height,
        **{f"{name}_cpu_s": seconds for name, seconds in best.items()},
        "ratio": best["millstream"] / best["polars"],
        "pagewise_ratio": best["pagewise"] / best["polars"],
        "punctuation_overhead": best["punctuated"] / best["sparse"] - 1,
        "millstream_rows_per_cpu_s": rows / best["millstream"],
    }


def _timed(work: Callable[[], pl.DataFrame]) -> tuple[pl.DataFrame, float]:
    gc.collect()
    start = time.process_time()
    made = work()
    return made, time.process_time() - start


def _check(name: str, wanted: pl.DataFrame, found: pl.DataFrame) -> None:
    columns = wanted.columns
    left, right = (frame.select(columns).sort(columns) for frame in (wanted, found.select(columns)))
    if not left.equals(right):
        raise AssertionError(f"{name}: {found.height} rows, Polars has {wanted.height}; the answers differ")


def _stream(workload: Workload, data: AuctionEvents, strategy: str, every: int | None) -> tuple[pl.DataFrame, float]:
    """Run the query over the streams in batches and time it from the first batch to the last row. Without punctuation
    the streams promise order; with it, only punctuation moves time."""
    mill = LocalMill(Options(page_rows=PAGE_ROWS, strategy=strategy))
    mill.execute(BIDS + ("" if every is None else " PUNCTUATED ON (ts +)"))
    streams = ["bids"]
    if workload.reads_auctions:
        mill.execute(AUCTIONS + ("" if every is None else " PUNCTUATED ON (ts +)"))
        streams = ["auctions", "bids"]
    mill.add_query("q", workload.query)
    cut = [{"bids": bids, "auctions": auctions} for bids, auctions in data.batches(BATCH_ROWS)]
    batches = [{stream: _punctuated(batch[stream], every) for stream in streams} for batch in cut]

    def work() -> pl.DataFrame:
        for batch in batches:
            for stream in streams:
                mill.insert(stream, batch[stream])
            mill.batch()
        for stream in streams:
            mill.punctuate(stream, "[ts < 9999999999]")
        mill.batch()
        return mill.take_rows("q")

    return _timed(work)


def _punctuated(rows: pl.DataFrame, every: int | None) -> pl.DataFrame | PunctuatedRows:
    """The rows with a punctuation `[ts < t]` after every `every` rows, t being the time of the row before it."""
    if every is None:
        return rows
    positions = np.arange(min(every, rows.height), rows.height + 1, every, dtype=np.int64)
    bounds = rows["ts"].gather(positions - 1)
    return PunctuatedRows(rows, Punctuations.from_column("ts", "<", bounds), positions)


def _growth(events: int) -> list[dict[str, Any]]:
    """An unbounded join purged as auctions close, on a stream and on one ten times as long: state and speed."""
    series = []
    for count in (events // 10, events):
        data = generate(count)
        mill = LocalMill(Options(page_rows=PAGE_ROWS, strategy=BATCHED))
        mill.execute(
            "CREATE STREAM auctions (id BIGINT, seller BIGINT, category BIGINT, ts TIMESTAMP) PRIMARY KEY (id)"
        )
        mill.execute(
            "CREATE STREAM bids (auction BIGINT, bidder BIGINT, price DOUBLE, ts TIMESTAMP) PUNCTUATED ON (auction #)"
        )
        mill.add_query("q", "SELECT b.auction, b.price, a.seller FROM bids b JOIN auctions a ON b.auction = a.id")
        state: list[int] = []
        seconds: list[float] = []
        rows_out = seen = 0
        for bids, auctions in data.batches(BATCH_ROWS):
            start = time.process_time()
            mill.insert("auctions", auctions)
            mill.insert("bids", data.closing(bids, seen))
            mill.batch()
            seconds.append(time.process_time() - start)
            seen += bids.height
            state.append(mill.state_rows("q"))
            rows_out += mill.take_rows("q").height
        wanted = data.bids.join(data.auctions, left_on="auction", right_on="id").height
        if rows_out != wanted:
            raise AssertionError(f"punctuated join: {rows_out} rows, expected {wanted}")
        speed = count / sum(seconds)
        series.append(
            {"events": count, "rows_per_cpu_s": speed, "batch_cpu_s": seconds, "state": state, "batch_rows": BATCH_ROWS}
        )
    return series


def _print(result: dict[str, Any], out: Path) -> None:
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table

    from millstream_bench.suite.whole_table import print_whole

    title = f"{result['events']:,} auction events, pages of {PAGE_ROWS:,} rows, one thread, CPU seconds"
    table = Table(title=title, box=SIMPLE, title_justify="left", padding=(0, 1), pad_edge=False)
    table.add_column("workload", no_wrap=True)
    for title in ("Polars", BATCHED, "by page", "punct.", "rows/s"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in result["workloads"]:
        table.add_row(
            row["name"],
            f"{row['polars_cpu_s']:.3f}",
            f"{row['millstream_cpu_s']:.3f} {row['ratio']:.1f}×",
            f"{row['pagewise_cpu_s']:.3f} {row['pagewise_ratio']:.1f}×",
            f"{row['punctuation_overhead']:+.0%}",
            f"{row['millstream_rows_per_cpu_s'] / 1e6:.1f} M",
        )
    console = Console()
    print_whole(table, console)
    short, long = result["growth"]
    batches = long["batch_cpu_s"][:-1]  # the last one is short
    halves = [median(part) * 1000 for part in (batches[: len(batches) // 2], batches[len(batches) // 2 :])]
    console.print(
        f"punctuated join: {short['rows_per_cpu_s'] / 1e6:.1f} M events per CPU-s on {short['events']:,} events, "
        f"{long['rows_per_cpu_s'] / 1e6:.1f} M on {long['events']:,}; a batch takes {halves[0]:.0f} ms in the first "
        f"half, {halves[1]:.0f} ms in the second; state at most {max(short['state'])} and {max(long['state'])} tuples"
    )
    console.print(f"written to {out}")
