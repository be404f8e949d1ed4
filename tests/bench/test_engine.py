"""Experiments in virtual time: what a policy without output reports, and what frequencies are compared with."""

from millstream_bench.aggregates.delta import MANY_ITEMS
from millstream_bench.aggregates.programs import _PRIMES
from millstream_bench.engine.latency import run_policy
from millstream_bench.engine.plot import _short


def test_without_output_there_is_no_latency() -> None:
    silent = run_policy("none", "dfs", 1.0, 20, 1, fast=50.0, slow=0.0001)
    assert silent.latencies == [] and silent.mean_latency is None and _short(silent.mean_latency) == "no output"
    asked = run_policy("on demand", "dfs", 1.0, 20, 1, fast=50.0, slow=0.0001)
    assert asked.mean_latency is not None and asked.mean_latency > 0


def test_items_share_counters() -> None:
    assert 2 * max(_PRIMES) < MANY_ITEMS
