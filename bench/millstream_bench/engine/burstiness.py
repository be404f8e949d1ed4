"""Burstiness of the output of a union behind an aggregate with slide (figure 16)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from millstream.algebra.types import MICROS
from millstream_bench.engine.experiment import Experiment
from millstream_bench.engine.operators import Merge, Slide
from millstream_bench.engine.simulation import Measured, Simulation
from millstream_bench.engine.workload import poisson, tuples

RATE = 1000.0
BIN = 20_000
"""Microseconds per bin of output counts."""


def burstiness(counts: Sequence[int] | np.ndarray) -> float:
    """Swing of the output rate: (max - min) / mean of the counts.

    >>> burstiness([0, 0, 30, 10]), burstiness([10, 10, 10, 10])
    (3.0, 0.0)
    """
    made = np.asarray(counts)
    return float((made.max() - made.min()) / made.mean())


def slides(*, seconds: float, cost: int, seed: int, sizes: tuple[int, ...]) -> Experiment:
    """Burstiness by slide size, without timestamps on demand and with them."""
    result = Experiment(
        "fig_16",
        "Output burstiness by slide size",
        "fig. 16; 3.16",
        {"rate": RATE, "bin_s": BIN / MICROS, "seconds": seconds, "cost_us": cost, "ets_cost_us": cost, "seed": seed},
        ("slide", "mode", "burstiness", "model", "outputs"),
    )
    for slide in sizes:
        for mode in ("none", "eqg"):
            measured = sliding(mode, slide, seconds, cost, seed)
            model = slide / RATE / (BIN / MICROS) if mode == "none" else None
            result.rows.append((slide, mode, output_burstiness(measured), model, len(measured.times)))
    result.notes.append("model: the time one slide takes, in bins (noise not included)")
    return result


def output_burstiness(measured: Measured) -> float:
    """Burstiness over the whole bins between the first and the last output."""
    times = np.asarray(measured.times)
    bins = np.arange(times[0], times[-1], BIN)
    return burstiness(np.histogram(times, bins)[0])


def sliding(mode: str, slide: int, seconds: float, cost: int, seed: int) -> Measured:
    """A stream through an aggregate with slide, merged with another."""
    rng = np.random.default_rng(seed)
    simulation = Simulation(mode, "dfs", cost=cost, ets_cost=cost)
    first, second = (simulation.source(name, tuples(rng, poisson(rng, RATE, seconds))) for name in ("X", "Y"))
    graph = simulation.graph
    simulation.sink(graph.add(Merge(), [graph.add(Slide(slide), [first]), second], name="union"))
    return simulation.run()
