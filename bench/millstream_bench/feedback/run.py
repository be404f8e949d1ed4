"""`millstream bench feedback`: the five suites of experiments with feedback, in process and on Spark."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from millstream_bench.feedback.levels import levels
from millstream_bench.feedback.overhead import overhead
from millstream_bench.feedback.plots import draw_all
from millstream_bench.feedback.resources import resources
from millstream_bench.feedback.sending import sending, sending_on_spark
from millstream_bench.feedback.sizes import FULL, QUICK, Sizes
from millstream_bench.feedback.utility import utility
from millstream_bench.suite.report import Finding
from millstream_bench.suite.run import Suite, Tell

EXPERIMENTS = {
    "overhead": overhead,
    "sending": sending,
    "utility": utility,
    "levels": levels,
    "resources": resources,
}
ON_SPARK: dict[str, Callable[[Sizes, Tell], Finding]] = {
    "overhead_on_spark": partial(overhead, spark=True),
    "sending_on_spark": sending_on_spark,
    "utility_on_spark": partial(utility, spark=True),
    "levels_on_spark": partial(levels, spark=True),
    "resources_on_spark": partial(resources, spark=True),
}
SUITE = Suite("feedback", __name__, EXPERIMENTS, ON_SPARK, draw_all, FULL, QUICK)
run = SUITE.run
