"""Transport of timestamps: in band through every operator, or over the enhanced query graph (figure 15)."""

from __future__ import annotations

import numpy as np

from millstream.runtime.engine import OperatorNode, Source
from millstream_bench.engine.experiment import Experiment
from millstream_bench.engine.operators import Keep, Merge, Pass, Slide
from millstream_bench.engine.simulation import Measured, Simulation
from millstream_bench.engine.workload import poisson, tuples

RATES = (100.0, 20.0, 2.0)
SLIDE = 5
PUBLISHED = 14
"""Per cent by which punctuation had the higher mean latency in the published experiment."""


def transports(*, seconds: float, cost: int, seed: int, extra: tuple[int, ...]) -> Experiment:
    """Mean latency on nested unions with an aggregate between them, by the number of plain operators per edge."""
    result = Experiment(
        "fig_15",
        "Mean latency on nested unions by transport of timestamps",
        "fig. 15(a), 15(b); 3.15",
        {
            "rates": RATES,
            "slide": SLIDE,
            "pass": 0.95,
            "seconds": seconds,
            "cost_us": cost,
            "ets_cost_us": cost,
            "seed": seed,
        },
        ("extra", "plain", "mode", "latency_ms", "over_eqg_%", "ets", "steps"),
    )
    for plain in extra:
        runs = {mode: nested(mode, plain, seconds, cost, seed) for mode in ("none", "punctuation", "eqg")}
        least = runs["eqg"][1].mean_latency
        for mode, (count, measured) in runs.items():
            mean = measured.mean_latency
            over = 100 * (mean / least - 1) if mode == "punctuation" and mean and least else None
            row = (plain, count, mode, mean, over, measured.ets, measured.steps)
            result.rows.append(row)
    result.notes.append(
        "graph: S1, S2 → U1 → slide → U2 ← S3, a selection after each source, `extra` projections per edge"
    )
    result.notes.append("plain: operators that never wait, which the enhanced graph lets timestamps skip")
    result.notes.append(f"published, for a graph that is not described: punctuation +{PUBLISHED} %")
    return result


def nested(mode: str, extra: int, seconds: float, cost: int, seed: int) -> tuple[int, Measured]:
    """Run the nested unions; the number of operators that never wait is returned as well."""
    rng = np.random.default_rng(seed)
    simulation = Simulation(mode, "dfs", cost=cost, ets_cost=cost)
    graph = simulation.graph

    def lengthen(node: Source | OperatorNode) -> Source | OperatorNode:
        for _ in range(extra):
            node = graph.add(Pass(), [node])
        return node

    arrivals = [tuples(rng, poisson(rng, rate, seconds)) for rate in RATES]
    sources = [simulation.source(f"S{i + 1}", frame) for i, frame in enumerate(arrivals)]
    s1, s2, s3 = (lengthen(graph.add(Keep(0.95), [source])) for source in sources)
    inner = graph.add(Merge(), [s1, s2], name="U1")
    outer = graph.add(Merge(), [lengthen(graph.add(Slide(SLIDE), [inner])), s3], name="U2")
    simulation.sink(outer)
    return sum(not node.prone for node in graph.operators.values()), simulation.run()
