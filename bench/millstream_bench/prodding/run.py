"""`millstream bench prodding`: accuracy, latency and overhead of early answers, in virtual time and on Spark."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from millstream_bench.prodding import aggressiveness, bursts, delayed, freeway, on_spark
from millstream_bench.prodding.baseline import topmost
from millstream_bench.prodding.latency import latency
from millstream_bench.prodding.overhead import overhead
from millstream_bench.prodding.plots import draw_all
from millstream_bench.prodding.sizes import FULL, QUICK, Sizes
from millstream_bench.suite.report import Finding
from millstream_bench.suite.run import Suite, Tell

EXPERIMENTS: dict[str, Callable[[Sizes], Finding]] = {
    "latency": latency,
    "overhead": overhead,
    "traffic": delayed.traffic,
    "lengths": delayed.lengths,
    "bursts": bursts.rates,
    "burst_lengths": bursts.repeated,
    "bursts_aside": bursts.set_aside,
    "uniform": aggressiveness.uniform_values,
    "normal": aggressiveness.normal_values,
    "tumbling": aggressiveness.worst_case,
    "topmost": topmost,
    "leads": freeway.leads,
    "intervals": freeway.intervals,
}
ON_SPARK: dict[str, Callable[[Sizes, Tell], Finding]] = {
    "latency_on_spark": partial(latency, spark=True),
    "overhead_on_spark": partial(overhead, spark=True),
    "aggressiveness_on_spark": on_spark.gained,
    "bursts_on_spark": on_spark.with_bursts,
}
SUITE = Suite("prodding", __name__, EXPERIMENTS, ON_SPARK, draw_all, FULL, QUICK)
run = SUITE.run
