"""`millstream bench joins`: joins that purge, against joins that do not."""

from __future__ import annotations

from millstream_bench.joins.growth import by_rate, growth, output_rate
from millstream_bench.joins.intervals import intervals
from millstream_bench.joins.on_disk import on_disk
from millstream_bench.joins.open.run import open_auctions
from millstream_bench.joins.plots import draw_all
from millstream_bench.joins.purging import asymmetric, propagation, thresholds, unpunctuated
from millstream_bench.joins.several import several
from millstream_bench.joins.sizes import FULL, QUICK
from millstream_bench.joins.windowed import early, useless, windows
from millstream_bench.suite.run import Suite

EXPERIMENTS = {
    "growth": growth,
    "state_by_rate": by_rate,
    "output_rate": output_rate,
    "thresholds": thresholds,
    "asymmetric": asymmetric,
    "propagation": propagation,
    "unpunctuated": unpunctuated,
    "windows": windows,
    "useless": useless,
    "early_punctuation": early,
    "intervals": intervals,
    "several": several,
    "on_disk": on_disk,
}
SUITE = Suite("joins", __name__, EXPERIMENTS, {"open_auctions": open_auctions}, draw_all, FULL, QUICK)
run = SUITE.run
