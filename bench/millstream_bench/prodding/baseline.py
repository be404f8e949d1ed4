"""Prodding the topmost aggregate alone, to compare with: what panes hold is missing from its answers."""

from __future__ import annotations

import polars as pl

from millstream.control.mill import LocalMill
from millstream_bench.prodding import measures
from millstream_bench.prodding.sizes import Sizes
from millstream_bench.prodding.tools.data import numbers, uniform
from millstream_bench.prodding.tools.prods import prods, punctuations
from millstream_bench.prodding.tools.streamer import PROD, Streamer
from millstream_bench.prodding.tools.top_only import prod_topmost
from millstream_bench.suite.report import Finding

RANGE, SLIDE, PERCENT = 30, 10, 30
QUERY = (
    "SELECT window_end, SUM(value) AS sum, MAX(value) AS max, finality, revision "
    f"FROM s [RANGE {RANGE} SLIDE {SLIDE} ON ts]"
)
NAMES = {"max_value": "max", "sum_value": "sum"}


def topmost(sizes: Sizes) -> Finding:
    found = Finding("topmost", "one operator prodded against the whole plan, P_Aggr 30 %", "",
                    ("prodded", "windows", "sum: accuracy %", "max: accuracy %"))  # fmt: skip
    length = min(sizes.length, 600)
    rows = numbers(length, {"value": uniform()}, seed=2)
    deliveries = Streamer().deliveries(rows, [*prods(length, SLIDE, [PERCENT]), *punctuations(length, SLIDE)])
    mill = LocalMill()
    mill.execute("CREATE STREAM s (ts BIGINT, value DOUBLE) PUNCTUATED ON (ts +)")
    mill.add_query("q", QUERY)
    alone: list[pl.DataFrame] = []
    for delivery in deliveries:
        control = delivery.control
        if delivery.rows is not None:
            mill.insert("s", delivery.rows)
        elif control is not None and control.kind == PROD:
            mill.batch()
            alone.append(prod_topmost(mill, f"{{window_end = {control.end}}}"))
            mill.prod("s", control.text("ts"))
        elif control is not None:
            mill.punctuate("s", control.text("ts"))
    mill.batch()
    whole = mill.take_rows("q")
    mill.close()
    finals = whole.filter(pl.col("finality") == "final").drop("revision")
    early = pl.concat([each for each in alone if each.height]).rename(NAMES).select(finals.columns)
    for name, results in (("the topmost aggregate", pl.concat([early, finals])), ("the plan", whole)):
        pairs = measures.pairs(measures.inner(results, RANGE, length), ["sum", "max"])
        accuracy = [float(pairs[f"{value}_accuracy"].mean() or 0) for value in ("sum", "max")]  # type: ignore[arg-type]
        found.rows.append((name, pairs.height, *accuracy))
        found.numbers[name] = dict(zip(("sum", "max"), accuracy, strict=True))
    return found
