"""Latency: strategies and ways of promising time (figure 14a), and bursts against the analytic values (figure 14b)."""

from __future__ import annotations

import numpy as np

from millstream.bench.experiment import Experiment
from millstream.bench.simulation import Measured, Simulation, fig1
from millstream.bench.workload import poisson, poisson_bursts, regular, spaced_bursts, tuples

FAST, SLOW = 1000.0, 0.5
"""Tuples per second of the two streams, as published."""


def modes_and_strategies(*, seconds: float, cost: int, seed: int, beats: tuple[float, ...]) -> Experiment:
    """Figure 14a: mean latency of the two-stream union under depth and breadth first, per way of promising time."""
    result = Experiment(
        "fig_14a",
        "Mean output latency by strategy and way of promising time",
        "fig. 14(a); 3.12(a)",
        {"fast": FAST, "slow": SLOW, "pass": 0.95, "seconds": seconds, "cost_us": cost, "ets_cost_us": cost, "seed": seed},
        ("strategy", "mode", "latency_ms", "expected_ms", "outputs", "ets"),
    )
    effective = 0.95 * SLOW
    expected = {"none": 1000 / effective, "on demand": None, "latent": None}
    for strategy in ("dfs", "bfs"):
        for label, measured in _policies(strategy, seconds, cost, seed, beats, FAST, SLOW):
            rate = float(label.split()[1].removesuffix("/s")) if label.startswith("heartbeat") else None
            theory = expected.get(label) if rate is None else mean_wait_ms(rate, effective)
            row = (strategy, label, measured.mean_latency, theory, len(measured.latencies), measured.ets)
            result.rows.append(row)
    result.notes.append("expected: idle-waiting only, in the limit of a long run; processing is not in it")
    return result


def mean_wait_ms(beat_rate: float, tuple_rate: float) -> float:
    """How long a tuple waits for the next heartbeat or tuple of the other stream, whichever comes first.

    Heartbeats come at a fixed period h, tuples as a Poisson stream of rate r: the wait to the next heartbeat is uniform
    in [0, h], so the mean of the minimum is the integral of (1 - t/h) exp(-rt) over [0, h].

    >>> round(mean_wait_ms(1, 0.475), 1), round(mean_wait_ms(10, 0.475), 1)
    (428.6, 49.2)
    """
    h, r = 1 / beat_rate, tuple_rate
    return 1000 * float(1 / r - (1 - np.exp(-r * h)) / (h * r * r))


def _policies(
    strategy: str, seconds: float, cost: int, seed: int, beats: tuple[float, ...], fast: float, slow: float
) -> list[tuple[str, Measured]]:
    """Run the two-stream union on the same arrivals under every way of promising time."""
    labels = ["none", *(f"heartbeat {beat:g}/s" for beat in beats), "on demand", "latent"]
    return [(label, run_policy(label, strategy, seconds, cost, seed, fast, slow)) for label in labels]


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
    return n + (int(strategy.partition(":")[2]) + 1) / 2


def single_bursts(strategy: str, n: int, bursts: int, cost: int) -> float:
    """Bursts of n latent tuples, each over before the next: every tuple passes the selection."""
    simulation = Simulation("none", strategy, cost=cost)
    rng = np.random.default_rng(0)
    arrivals = tuples(rng, spaced_bursts(bursts, n, gap=4 * n * cost)).with_columns(v=0.0)
    fig1(simulation, arrivals, arrivals.clear(), latent=True)
    return simulation.run().mean_latency
