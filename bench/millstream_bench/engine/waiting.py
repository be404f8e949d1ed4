"""Idle-waiting and memory by timestamp policy: latency (figure 3.13), idle share (3.14), peak memory (3.17)."""

from __future__ import annotations

from millstream_bench.engine.experiment import Experiment
from millstream_bench.engine.latency import expected_ms, labels, run_policy

FAST, SLOW = 50.0, 0.05


def policies(
    *, seconds: float, silent_seconds: float, cost: int, seed: int, beats: tuple[float, ...], most_beats: int
) -> Experiment:
    """Figures 3.13 and 3.14: latency and idle-waiting share of the union under each timestamp policy."""
    result = Experiment(
        "fig_3_13",
        "Latency and idle-waiting by timestamp policy",
        "fig. 3.13 and 3.14",
        {"fast": FAST, "slow": SLOW, "pass": 0.95, "cost_us": cost, "ets_cost_us": cost, "seed": seed},
        ("policy", "beats/s", "seconds", "latency_ms", "expected_ms", "idle_%", "ets"),
    )
    effective = 0.95 * SLOW
    for label, rate in labels(beats):
        # A run with very many heartbeats is cut short: its figures settle quickly.
        span = min(seconds, most_beats / rate) if rate else silent_seconds if label == "none" else seconds
        measured = run_policy(label, "dfs", span, cost, seed, FAST, SLOW)
        expected = expected_ms(label, rate, effective)
        idle = 100 * measured.idle_share
        result.rows.append((label, rate, span, measured.mean_latency, expected, idle, measured.ets))
    result.notes.append("heartbeats go into the sparse stream; expected is idle-waiting only")
    return result


def memory(*, seconds: float, cost: int, seed: int, burst: int, beats: tuple[float, ...]) -> Experiment:
    """Figure 3.17: peak number of tuples and punctuations in buffers, with bursts and a slow server."""
    result = Experiment(
        "fig_3_17",
        "Peak number of buffered tuples by timestamp policy",
        "fig. 3.17",
        {
            "fast": FAST,
            "slow": SLOW,
            "burst": burst,
            "seconds": seconds,
            "cost_us": cost,
            "ets_cost_us": cost,
            "seed": seed,
        },
        ("policy", "beats/s", "peak"),
    )
    for label, rate in labels(beats):
        measured = run_policy(label, "dfs", seconds, cost, seed, FAST, SLOW, burst=burst)
        result.rows.append((label, rate, measured.peak))
    result.notes.append("punctuations count as tuples; the server is slow enough for frequent heartbeats to queue up")
    return result
