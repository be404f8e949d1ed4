"""All open auctions joined with their bids, without a window, on Spark: Millstream purges as auctions close, Spark's
own join as the longest life of an auction allows. The same files, CPU time of all processes, answers checked by DuckDB.

Speeds count auctions and bids; the closings that Millstream reads as well are not counted in its favour.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import asdict
from itertools import accumulate
from pathlib import Path

from millstream_bench.joins.drive import WrongAnswer
from millstream_bench.joins.open import mill as open_mill
from millstream_bench.joins.open import native as open_native
from millstream_bench.joins.open.auctions import AuctionFiles, write
from millstream_bench.joins.sizes import Sizes
from millstream_bench.spark.measurement import Measurement, steady
from millstream_bench.spark.settings import STORES
from millstream_bench.spark.subject import measure
from millstream_bench.suite.report import Finding

CORES = 2
HEAT_FILES = 8
"""Number of files on which the state stores are compared before one runs on all of them."""

Run = Callable[[AuctionFiles, int, int], Measurement]


def open_auctions(sizes: Sizes, tell: Callable[[str], None] = lambda _: None) -> Finding:
    """About sixty batches, of which the first ten are not measured."""
    with tempfile.TemporaryDirectory(prefix="millstream-auctions-", ignore_cleanup_errors=True) as name:
        tell("open auctions: writing files")
        data = write(Path(name), sizes.events, sizes.events_per_file)
        wanted = golden(data)
        per_batch = max(1, data.files // 60)
        warm_up = min(10, data.files // per_batch // 3)
        tell("open auctions: Millstream")
        measured = {"Millstream": millstream(data, per_batch, warm_up)}
        heats: dict[str, Measurement] = {}
        for store in STORES:
            tell(f"open auctions: Spark, {store}, a few files")
            heats[store] = spark(store)(data.first(HEAT_FILES), 1, 1)
        best = max(heats, key=lambda store: heats[store].rows_per_cpu_s)
        tell(f"open auctions: Spark, {best}")
        measured[f"Spark, {best}"] = spark(best)(data, per_batch, warm_up)
    for contestant, one in measured.items():
        if one.answers != wanted:
            raise WrongAnswer(f"open auctions: {contestant} answers {one.answers}, DuckDB {wanted}")
    return finding(data, measured, wanted, warm_up)


def millstream(data: AuctionFiles, per_batch: int, warm_up: int) -> Measurement:
    files = {stream: [str(path) for path in data.paths(stream)] for stream in open_mill.STREAMS}
    task = open_mill.Task(files, per_batch, CORES)
    return measure(open_mill.__name__, asdict(task), warm_up=warm_up)


def spark(store: str) -> Run:
    def run(data: AuctionFiles, per_batch: int, warm_up: int) -> Measurement:
        task = open_native.Task(str(data.folder), data.glob(), data.longest, per_batch, CORES, store)
        return measure(open_native.__name__, asdict(task), warm_up=warm_up, note=store)

    return run


def golden(data: AuctionFiles) -> dict[str, int]:
    """The answers of DuckDB, over all files at once."""
    import duckdb

    with duckdb.connect() as connection:
        for stream in ("auction", "bid"):
            names = ", ".join(f"'{path}'" for path in data.paths(stream))
            connection.execute(f"CREATE VIEW {stream} AS FROM read_parquet([{names}])")
        totals = "count(*), sum(b.price), sum(a.category)"
        row = connection.execute(f"SELECT {totals} FROM bid b JOIN auction a ON b.auction = a.id").fetchone()
    assert row is not None
    return {name: int(value) for name, value in zip(open_native.ANSWERS, row, strict=True)}


def finding(data: AuctionFiles, measured: dict[str, Measurement], wanted: dict[str, int], warm_up: int) -> Finding:
    made = Finding(
        "open_auctions",
        f"open auctions and their bids on Spark; the longest is open for {data.longest / 1e6:.0f} s",
        "",
        ("", "rows/s", "rows/CPU s", "CPU s", "JVM", "held", "most"),
    )
    for name, one in measured.items():
        full = steady(one.batches, 0)
        held = [batch.state_rows or 0 for batch in full]
        late = held[warm_up:] or held
        total = sum(one.cpu_s.values())
        events = one.rows * data.events / sum(batch.rows for batch in one.batches)
        mean_state, jvm = sum(late) / len(late), f"{one.cpu_s.get('jvm', 0.0) / total:.0%}"
        speeds = round(events / one.wall_s), round(events / total)
        made.rows.append((name, *speeds, total, jvm, round(mean_state), max(held)))
        read = sum(batch.rows for batch in full)
        positions = [so_far / read * data.events / 1e6 for so_far in accumulate(batch.rows for batch in full)]
        made.curves[name] = {"millions": positions, "state": held}
        made.numbers[name] = {"rows_per_cpu_s": events / total, "rows_per_s": events / one.wall_s, "state": mean_state}
    ours, theirs = made.numbers.values()
    made.numbers["ratio"] = ours["rows_per_cpu_s"] / theirs["rows_per_cpu_s"]
    made.numbers["state_ratio"] = ours["state"] / max(1, theirs["state"])
    made.numbers["answers"] = wanted
    made.notes.append(
        f"Millstream does {made.numbers['ratio']:.2f} × Spark's rows per CPU-second and holds "
        f"{made.numbers['state_ratio']:.1%} of its rows; answers equal DuckDB's: {wanted['rows']:,} rows"
    )
    return made
