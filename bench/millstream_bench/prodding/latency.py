"""What prods cost those who wait for final rows: their latency with prods and without, at a fixed rate of arrivals.

Tuples arrive by the clock, a page for each second of the stream, and a punctuation at the end of each slide. Each
window is prodded once, as in the published experiment, at 70 % of its last slide. Latency is the time from the arrival
of a window's first tuple to that of its final row at the sink; how long the row comes behind the end of the window is
the part of it that the system causes. The clock runs faster than the stream, so windows are shorter than the published
ones and a delay counts for more. Runs with prods and without alternate; a run's latency is the median of its windows.
CPU time is that of the same runs.
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
from millstream_bench.prodding.tools.driving import first_arrivals
from millstream_bench.prodding.tools.streamer import chopped
from millstream_bench.suite.report import Finding
from millstream_bench.suite.run import Tell

COLUMNS = (
    "query", "tuples a slide", "without, s", "with, s", "ratio", "from", "to",
    "behind the end without, ms", "with, ms", "more, ms", "from", "to", "CPU ratio", "from", "to",
)  # fmt: skip
PUBLISHED = 200
"""Tuples of a slide in the published experiment, one in 50 ms on average."""


def latency(sizes: Sizes, tell: Tell = lambda _: None, *, spark: bool = False) -> Finding:
    name, place = ("latency_on_spark", "on Spark") if spark else ("latency", "in process")
    found = Finding(name, f"latency of final rows with prods and without, {place}", "Table 4.1", COLUMNS)
    scale, pairs = (sizes.paced_scale, sizes.spark_pairs) if spark else (2 * sizes.paced_scale, sizes.pairs)
    highest = f"SELECT window_end, MAX(value) AS most, finality FROM s [RANGE {RANGE} SLIDE {SLIDE} ON ts]"
    sums = next(iter(QUERIES))
    with folder_of("prodding") as made, Subject(spark=spark, cores=sizes.cores, worker=WORKER) as subject:
        for query, text, count in (("maximum", highest, PUBLISHED), (sums, QUERIES[sums], sizes.per_slide)):
            _measure(found, subject, Path(made), query, text, count, scale, pairs, sizes.paced_slides, tell)
    found.notes.append(f"medians of {pairs} interleaved pairs, each with its 95 % interval; windows of "
                       f"{RANGE / scale:g} s end and are prodded every {SLIDE / scale:g} s")  # fmt: skip
    return found


def _measure(
    found: Finding, subject: Subject, folder: Path, query: str, text: str, count: int, scale: float, pairs: int,
    slides: int, tell: Tell,
) -> None:  # fmt: skip
    rows, length = drawn(slides, count), slides * SLIDE
    plans = {
        prodded: str(written.write(chopped(plan), folder / f"{count}_{prodded}.parquet"))
        for prodded, plan in delivered(rows, length).items()
    }
    group = ["k"] if "GROUP BY" in text else []
    task = {"setup": [SETUP], "query": text, "scale": scale, "finals": windows(rows, length, group)}
    told = lambda number: tell(f"latency, {query}, pair {number} of {pairs}")  # noqa: E731
    runs = interleaved(subject, task | {"keep": f"{folder}/rows"}, plans, pairs, told)
    times = rows.get_column("ts").to_numpy()
    first = first_arrivals(times, times.astype(float), RANGE, SLIDE)
    waited = [
        tuple(_latency(folder / f"rows{number}_{prodded}.parquet", first, scale) for prodded in (False, True))
        for number in range(1, pairs + 1)
    ]
    ratio = [b[0] / a[0] for a, b in waited]
    more = [b[1] - a[1] for a, b in waited]
    cpu = [b.cpu_s / a.cpu_s for a, b in runs]
    middle = [[median(pair[side][part] for pair in waited) for side in (0, 1)] for part in (0, 1)]
    said = [(median(each), *interval(each)) for each in (ratio, more, cpu)]
    found.rows.append((query, count, *middle[0], *said[0], *middle[1], *said[1], *said[2]))
    found.numbers[query] = {
        key: {"median": median(each), "interval": [*interval(each)], "pairs": each}
        for key, each in (("ratio", ratio), ("more_ms", more), ("cpu", cpu))
    }
    found.curves[query] = {"without": [a[1] for a, _ in waited], "with": [b[1] for _, b in waited]}


def _latency(kept: Path, first: pl.DataFrame, scale: float) -> tuple[float, float]:
    """Seconds from the first tuple of a window to its final row, and milliseconds from its end: medians of the windows
    that were open for their range."""
    rows = pl.read_parquet(kept).filter((pl.col("finality") == "final") & (pl.col("window_end") >= RANGE))
    ended = rows.group_by("window_end").agg(pl.col("at").max()).join(first, on="window_end")
    whole = ended.select(
        waited=(pl.col("at") - pl.col("first")).median() / scale,
        behind=(pl.col("at") - pl.col("window_end")).median() / scale * 1000,
    )
    return whole.row(0)
