"""What prods cost those who wait for final rows: their latency with prods and without, at a fixed rate of arrivals.

Tuples arrive by the clock, a page for each second of the stream, and a punctuation at the end of each slide. Latency
is the time from the end of a window, by the clock, to the arrival of its final row at the sink. Runs with prods and
without alternate; a run's latency is the median of its windows. CPU time is that of the same runs.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median

import polars as pl

from millstream_bench.feedback.overhead import interval
from millstream_bench.feedback.subject import Subject, folder_of
from millstream_bench.prodding.overhead import (
    QUERIES,
    RANGE,
    SETUP,
    SLIDE,
    WORKER,
    delivered,
    drawn,
    interleaved,
    windows,
)
from millstream_bench.prodding.sizes import Sizes
from millstream_bench.prodding.tools import written
from millstream_bench.prodding.tools.streamer import chopped
from millstream_bench.suite.report import Finding
from millstream_bench.suite.run import Tell

COLUMNS = (
    "query", "without, ms", "with, ms", "more, ms", "from", "to", "ratio", "from", "to", "CPU ratio", "from", "to",
)  # fmt: skip


def latency(sizes: Sizes, tell: Tell = lambda _: None, *, spark: bool = False) -> Finding:
    name, place = ("latency_on_spark", "on Spark") if spark else ("latency", "in process")
    found = Finding(name, f"latency of final rows with prods and without, {place}", "Table 4.1", COLUMNS)
    scale = sizes.paced_scale if spark else 2 * sizes.paced_scale
    query, text = next(iter(QUERIES.items()))
    length = sizes.paced_slides * SLIDE
    with folder_of("prodding") as made, Subject(spark=spark, cores=sizes.cores, worker=WORKER) as subject:
        rows = drawn(sizes.paced_slides, sizes.per_slide)
        plans = {
            prodded: str(written.write(chopped(plan), Path(made) / f"{prodded}.parquet"))
            for prodded, plan in delivered(rows, length).items()
        }
        task = {"setup": [SETUP], "query": text, "scale": scale, "finals": windows(rows, length, ["k"])}
        told = lambda number: tell(f"latency, pair {number} of {sizes.pairs}")  # noqa: E731
        pairs = interleaved(subject, task | {"keep": f"{made}/rows"}, plans, sizes.pairs, told)
        waited = [
            tuple(_latency(Path(made) / f"rows{number}_{prodded}.parquet", scale) for prodded in (False, True))
            for number in range(1, sizes.pairs + 1)
        ]
    more, ratio = [b - a for a, b in waited], [b / a for a, b in waited]
    cpu = [b.cpu_s / a.cpu_s for a, b in pairs]
    medians = [median(pair[side] for pair in waited) for side in (0, 1)]
    found.rows.append((query, *medians, *(x for each in (more, ratio, cpu) for x in (median(each), *interval(each)))))
    found.numbers[query] = {
        key: {"median": median(each), "interval": [*interval(each)], "pairs": each}
        for key, each in (("more_ms", more), ("ratio", ratio), ("cpu", cpu))
    }
    found.curves[query] = {"without": [a for a, _ in waited], "with": [b for _, b in waited]}
    rate = sizes.per_slide * scale / SLIDE
    found.notes.append(f"medians of {sizes.pairs} interleaved pairs, each with its 95 % interval; {rate:,.0f} tuples a "
                       f"second, windows end and are prodded every {SLIDE / scale:g} s")  # fmt: skip
    return found


def _latency(kept: Path, scale: float) -> float:
    """Milliseconds from the end of a window to its final row: the median of windows that were open for their range."""
    rows = pl.read_parquet(kept).filter((pl.col("finality") == "final") & (pl.col("window_end") >= RANGE))
    ended = rows.group_by("window_end").agg(pl.col("at").max() - pl.col("window_end").first())
    return float(ended.get_column("at").median() or 0.0) / scale * 1000  # type: ignore[arg-type]
