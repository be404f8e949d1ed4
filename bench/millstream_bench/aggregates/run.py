"""`millstream bench aggregates`: running aggregates, built in and user-defined, here and on Spark."""

from __future__ import annotations

from millstream_bench.aggregates.bodies import bodies
from millstream_bench.aggregates.delta import delta, frequent
from millstream_bench.aggregates.denoising import by_noise, by_rate
from millstream_bench.aggregates.library import library
from millstream_bench.aggregates.plots import draw_all
from millstream_bench.aggregates.sizes import FULL, QUICK
from millstream_bench.aggregates.slides import slides
from millstream_bench.aggregates.spark.contest import on_spark
from millstream_bench.suite.run import Suite

EXPERIMENTS = {
    "delta": delta,
    "frequent": frequent,
    "slides": slides,
    "bodies": bodies,
    "library": library,
    "denoise_noise": by_noise,
    "denoise_rate": by_rate,
}
SUITE = Suite("aggregates", __name__, EXPERIMENTS, {"on_spark": on_spark}, draw_all, FULL, QUICK)
run = SUITE.run
