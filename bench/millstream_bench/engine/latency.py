"""Latency: strategies and ways of promising time (figure 14a), and bursts against the analytic values (figure 14b)."""

from __future__ import annotations

import numpy as np

from millstream.strategies import Strategy
from millstream_bench.engine.experiment import Experiment
from millstream_bench.engine.simulation import Measured, Simulation, fig1
from millstream_bench.engine.workload import poisson, poisson_bursts, regular, spaced_bursts, tuples

FAST, SLOW = 1000.0, 0.5
"""Tuples per second of the two streams, as published."""


def modes_and_strategies(
    *, seconds: float, silent_seconds: float, cost: int, seed: int, beats: tuple[float, ...]
) -> Experiment:
    """Figure 14a: mean latency of the two-stream union under depth and breadth first, per way of promising time.

    Without promises a tuple waits for the sparse stream, so that run spans more seconds.
    """
    result = Experiment(
        "fig_14a",
        "Mean output latency by strategy and way of promising time",
        "fig. 14(a); 3.12(a)",
        {"fast": FAST, "slow": SLOW, "pass": 0.95, "cost_us": cost, "ets_cost_us": cost, "seed": seed},
        ("strategy", "mode", "seconds", "latency_ms", "expected_ms", "outputs", "ets"),
    )
    effective = 0.95 * SLOW
    for strategy in ("dfs", "bfs"):
        for label, rate in labels(beats):
            span = silent_seconds if label == "none" else seconds
            measured = run_policy(label, strategy, span, cost, seed, FAST, SLOW)
            row = (strategy, label, span, measured.mean_latency, expected_ms(label, rate, effective))
            result.rows.append((*row, len(measured.latencies), measured.ets))
    result.notes.append("expected: idle-waiting alone, in the limit of a long run")
    result.notes.append("`none` has one sample per sparse tuple (about 285 in 600 s), so its mean scatters")
    return result


def labels(beats: tuple[float, ...]) -> list[tuple[str, float | None]]:
    """The timestamp policies, with the heartbeats per second of those that have them."""
    periodic: list[tuple[str, float | None]] = [(f"heartbeat {beat:g}/s", beat) for beat in beats]
    return [("none", None), *periodic, ("on demand", None), ("latent", None)]


def expected_ms(label: str, beat_rate: float | None, tuple_rate: float) -> float | None:
    """The mean idle-wait of a tuple of the fast stream, where there is a simple formula for it."""
    if beat_rate is not None:
        return mean_wait_ms(beat_rate, tuple_rate)
    return 1000 / tuple_rate if label == "none" else None


def mean_wait_ms(beat_rate: float, tuple_rate: float) -> float:
    """Mean wait of a tuple for the next heartbeat or tuple of the other stream, whichever is first.

    Heartbeats have a fixed period h, tuples as a Poisson stream of rate r: the wait to the next heartbeat is uniform
    in [0, h], so the mean of the minimum is the integral of (1 - t/h) exp(-rt) over [0, h].

    >>> round(mean_wait_ms(1, 0.475), 1), round(mean_wait_ms(10, 0.475), 1)
    (429.4, 49.2)
    """
    h, r = 1 / beat_rate, tuple_rate
    return 1000 * float(1 / r - (1 - np.exp(-r * h)) / (h * r * r))


def run_policy(
    label: str, strategy: str, seconds: float, cost: int, seed: int, fast: float, slow: float, *, burst: int = 1
) -> Measured:
    """One run: none, `heartbeat N/s` on the sparse stream, on demand, or latent timestamps."""
    rng = np.random.default_rng(seed)
    second = tuples(rng, poisson(rng, slow, seconds))
    first = tuples(rng, poisson_bursts(rng, fast, seconds, burst))
    mode = {"on demand": "eqg", "none": "none", "latent": "none"}.get(label, "heartbeat")
    simulation = Simulation(mode, strategy, cost=cost, ets_cost=cost)
    sources = fig1(simulation, first, second, latent=label == "latent")
    if mode == "heartbeat":
        rate = float(label.split()[1].removesuffix("/s"))
        simulation.beat(sources[1], regular(rate, seconds))
    return simulation.run()


def burst_sizes(*, sizes: tuple[int, ...], bursts: int, seconds: float, cost: int, seed: int, k: int) -> Experiment:
    """Figure 14b: mean latency against burst size.

    Latent: single bursts through selection and union, against the closed forms. On demand: Poisson bursts at a fixed
    mean rate, where bursts may also queue up behind each other.
    """
    result = Experiment(
        "fig_14b",
        "Mean output latency by burst size",
        "fig. 14(b); 3.12(b)",
        {
            "rate": FAST,
            "slow": SLOW,
            "bursts": bursts,
            "seconds": seconds,
            "cost_us": cost,
            "ets_cost_us": cost,
            "seed": seed,
            "k": k,
        },
        ("timestamps", "strategy", "n", "latency_ms", "analytic_ms"),
    )
    for n in sizes:
        for strategy in ("dfs", "bfs", f"batch:{k}"):
            if strategy.startswith("batch") and n % k:
                continue
            analytic = analytic_latency(strategy, n) * cost / 1000
            result.rows.append(("latent", strategy, n, single_bursts(strategy, n, bursts, cost), analytic))
            if not strategy.startswith("batch"):
                measured = run_policy("on demand", strategy, seconds, cost, seed, FAST, SLOW, burst=n)
                result.rows.append(("on demand", strategy, n, measured.mean_latency, None))
    result.notes.append("analytic: dfs (n+1)c, bfs (1.5n+0.5)c, batches of k (n+(k+1)/2)c")
    return result


def analytic_latency(strategy: str, n: int) -> float:
    """In units of the cost of one tuple in one operator.

    >>> [analytic_latency(s, 10) for s in ("dfs", "bfs", "batch:5")]
    [11.0, 15.5, 13.0]
    """
    if strategy == "dfs":
        return float(n + 1)
    if strategy == "bfs":
        return 1.5 * n + 0.5
    return n + (Strategy.parse(strategy).k + 1) / 2


def single_bursts(strategy: str, n: int, bursts: int, cost: int) -> float | None:
    """Bursts of n latent tuples, one at a time; every tuple passes the selection."""
    simulation = Simulation("none", strategy, cost=cost)
    rng = np.random.default_rng(0)
    arrivals = tuples(rng, spaced_bursts(bursts, n, gap=4 * n * cost)).with_columns(v=0.0)
    fig1(simulation, arrivals, arrivals.clear(), latent=True)
    return simulation.run().mean_latency
