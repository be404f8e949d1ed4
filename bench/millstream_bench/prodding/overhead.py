"""The CPU time that prods cost: the same stream with prods and without, as fast as possible, in interleaved pairs.

Each window is prodded once, at 70 % of its last slide. Both are delivered in the same pages: up to the place of each
prod, and behind it. The final rows of both are the same, which is checked. `latency.py` has what prods cost final rows
at a fixed rate of arrivals.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import polars as pl

from millstream_bench.feedback.overhead import interval
from millstream_bench.feedback.subject import Run, Subject, folder_of
from millstream_bench.prodding.sizes import Sizes
from millstream_bench.prodding.tools import written
from millstream_bench.prodding.tools.prods import prods, punctuations
from millstream_bench.prodding.tools.streamer import PROD, Delivery, Streamer
from millstream_bench.suite.report import Finding
from millstream_bench.suite.run import Tell

RANGE, SLIDE, PERCENT = 30, 10, 30
WORKER = Path(__file__).parent / "worker.py"
SETUP = "CREATE STREAM s (ts BIGINT, k BIGINT, value BIGINT) PUNCTUATED ON (ts +)"
QUERIES = {
    "sums of groups": f"SELECT window_end, k, SUM(value) AS total, finality FROM s [RANGE {RANGE} SLIDE {SLIDE} ON ts] "
    "GROUP BY k",
    "mean, max": f"SELECT window_end, AVG(value) AS mean, MAX(value) AS most, finality "
    f"FROM s [RANGE {RANGE} SLIDE {SLIDE} ON ts]",
}
GROUPS = 100


def overhead(sizes: Sizes, tell: Tell = lambda _: None, *, spark: bool = False) -> Finding:
    name, place = ("overhead_on_spark", "on Spark") if spark else ("overhead", "in process")
    heads = ("query", "without, CPU s", "with, CPU s", "ratio", "from", "to", "wall ratio", "ms a prod")
    found = Finding(name, f"CPU time with prods and without, {place}", "Table 4.1", heads)
    length, count = sizes.slides * SLIDE, sizes.spark_pairs if spark else sizes.pairs
    queries = dict([*QUERIES.items()][:1]) if spark else QUERIES
    with folder_of("prodding") as made, Subject(spark=spark, cores=sizes.cores, worker=WORKER) as subject:
        rows = drawn(sizes.slides, sizes.per_slide)
        plans = {
            prodded: str(written.write(plan, Path(made) / f"{prodded}.parquet"))
            for prodded, plan in delivered(rows, length).items()
        }
        for query, text in queries.items():
            finals = windows(rows, length, ["k"] if "GROUP BY" in text else [])
            task = {"setup": [SETUP], "query": text, "scale": 0, "finals": finals}
            told = lambda number, query=query: tell(f"overhead, {query}, pair {number} of {count}")  # noqa: E731
            pairs = interleaved(subject, task, plans, count, told)
            cpu = [b.cpu_s / a.cpu_s for a, b in pairs]
            wall = median(b.wall_s / a.wall_s for a, b in pairs)
            low, high = interval(cpu)
            without, prodded = (median(pair[side].cpu_s for pair in pairs) for side in (0, 1))
            each = median(1000 * (b.cpu_s - a.cpu_s) / sizes.slides for a, b in pairs)
            found.rows.append((query, without, prodded, median(cpu), low, high, wall, each))
            found.numbers[query] = {"ratio": median(cpu), "interval": [low, high], "pairs": cpu, "ms_per_prod": each}
    found.notes.append(f"medians of {count} interleaved pairs; 95 % interval of the median ratio; "
                       f"{sizes.per_slide:,} tuples and a prod for each slide")  # fmt: skip
    return found


def drawn(slides: int, per_slide: int) -> pl.DataFrame:
    """The tuples of a stream, in order of time."""
    draw = np.random.default_rng(0)
    count = slides * per_slide
    columns = {
        "ts": np.sort(draw.integers(0, slides * SLIDE, count)),
        "k": draw.integers(0, GROUPS, count),
        "value": draw.integers(0, 1000, count),
    }
    return pl.DataFrame(columns)


def windows(rows: pl.DataFrame, length: int, group: list[str]) -> int:
    """The number of windows and groups that are closed by the end of the stream."""
    first = pl.col("ts") // SLIDE + 1
    ends = pl.concat([rows.select(*group, end=(first + place) * SLIDE) for place in range(RANGE // SLIDE)])
    return ends.filter(pl.col("end") <= length).n_unique()


def delivered(rows: pl.DataFrame, length: int) -> dict[bool, list[Delivery]]:
    """The deliveries without prods and with them, in the same pages."""
    controls = [*prods(length, SLIDE, [PERCENT]), *punctuations(length, SLIDE)]
    prodded = Streamer().deliveries(rows, controls)
    return {False: [each for each in prodded if each.control is None or each.control.kind != PROD], True: prodded}


def interleaved(
    subject: Subject, task: dict[str, Any], plans: dict[bool, str], count: int, tell: Callable[[int], None]
) -> list[tuple[Run, Run]]:
    """Pairs of runs without prods and with them; what a task has to `keep` is kept behind a name for each run."""
    pairs = []
    for number in range(count + 1):  # the first one warms up
        tell(number)
        spent = {}
        for prodded in (False, True) if number % 2 else (True, False):
            kept = {"keep": f"{task['keep']}{number}_{prodded}.parquet"} if "keep" in task else {}
            spent[prodded] = subject.run(task | {"plan": plans[prodded]} | kept)
        if spent[False].rows["digest"] != spent[True].rows["digest"]:
            raise AssertionError("final rows differ with prods")
        if spent[True].rows["all"] <= spent[True].rows["final"]:
            raise AssertionError("no early rows")
        if number:
            pairs.append((spent[False], spent[True]))
    return pairs
