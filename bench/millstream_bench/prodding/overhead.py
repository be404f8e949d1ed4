"""What prods cost those who wait for final rows: the same stream with prods and without, in interleaved pairs.

Each window is prodded once, at 70 % of its last slide. The final rows of both are the same, which is checked.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median

import numpy as np
import polars as pl

from millstream_bench.feedback.overhead import interval
from millstream_bench.feedback.subject import Run, Subject, folder_of
from millstream_bench.prodding.sizes import Sizes
from millstream_bench.prodding.tools import written
from millstream_bench.prodding.tools.prods import prods, punctuations
from millstream_bench.prodding.tools.streamer import Streamer
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
    heads = ("query", "without, CPU s", "with, CPU s", "ratio", "from", "to", "wall ratio")
    found = Finding(name, f"final rows with prods and without, {place}", "Table 4.1", heads)
    length = sizes.slides * SLIDE
    with folder_of("prodding") as made, Subject(spark=spark, cores=sizes.cores, worker=WORKER) as subject:
        rows = _rows(length, sizes)
        plans = _plans(Path(made), rows, length)
        for query, text in QUERIES.items():
            finals = _windows(rows, length, ["k"] if "GROUP BY" in text else [])
            pairs = _pairs(subject, query, text, plans, finals, sizes, tell)
            cpu = [b.cpu_s / a.cpu_s for a, b in pairs]
            wall = median(b.wall_s / a.wall_s for a, b in pairs)
            low, high = interval(cpu)
            without, prodded = (median(pair[side].cpu_s for pair in pairs) for side in (0, 1))
            found.rows.append((query, without, prodded, median(cpu), low, high, wall))
            found.numbers[query] = {"ratio": median(cpu), "interval": [low, high], "pairs": cpu}
    found.notes.append(f"medians of {sizes.pairs} interleaved pairs; 95 % interval of the median ratio; "
                       f"{sizes.per_slide:,} tuples and a prod for each slide")  # fmt: skip
    return found


def _rows(length: int, sizes: Sizes) -> pl.DataFrame:
    draw = np.random.default_rng(0)
    count = sizes.slides * sizes.per_slide
    columns = {
        "ts": np.sort(draw.integers(0, length, count)),
        "k": draw.integers(0, GROUPS, count),
        "value": draw.integers(0, 1000, count),
    }
    return pl.DataFrame(columns)


def _windows(rows: pl.DataFrame, length: int, group: list[str]) -> int:
    """The number of windows and groups that are closed by the end of the stream."""
    first = pl.col("ts") // SLIDE + 1
    ends = pl.concat([rows.select(*group, end=(first + place) * SLIDE) for place in range(RANGE // SLIDE)])
    return ends.filter(pl.col("end") <= length).n_unique()


def _plans(folder: Path, rows: pl.DataFrame, length: int) -> dict[bool, str]:
    """The deliveries without prods and with them."""
    ends, asked = punctuations(length, SLIDE), prods(length, SLIDE, [PERCENT])
    made = {}
    for prodded, controls in ((False, ends), (True, [*asked, *ends])):
        path = written.write(Streamer().deliveries(rows, controls), folder / f"{prodded}.parquet")
        made[prodded] = str(path)
    return made


def _pairs(
    subject: Subject, query: str, text: str, plans: dict[bool, str], finals: int, sizes: Sizes, tell: Tell
) -> list[tuple[Run, Run]]:
    pairs = []
    for number in range(sizes.pairs + 1):  # the first one warms up
        tell(f"overhead, {query}, pair {number} of {sizes.pairs}")
        spent = {}
        for prodded in (False, True) if number % 2 else (True, False):
            task = {"setup": [SETUP], "query": text, "plan": plans[prodded], "scale": 0, "finals": finals}
            spent[prodded] = subject.run(task)
        if spent[False].rows["digest"] != spent[True].rows["digest"]:
            raise AssertionError(f"{query}: final rows differ with prods")
        if spent[True].rows["all"] <= spent[True].rows["final"]:
            raise AssertionError(f"{query}: no early rows")
        if number:
            pairs.append((spent[False], spent[True]))
    return pairs
