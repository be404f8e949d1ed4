"""`millstream bench engine`: the published experiments on scheduling and timestamps, in virtual time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from millstream_bench.engine import burstiness, latency, transport, waiting
from millstream_bench.engine.experiment import Experiment

SEED = 4


def experiments(*, quick: bool) -> list[Callable[[], Experiment]]:
    """The experiments; a quick run has the same shape and shorter streams."""
    scale = 0.02 if quick else 1.0
    return [
        lambda: latency.modes_and_strategies(
            seconds=10 * scale,
            silent_seconds=10 if quick else 600,
            cost=20,
            seed=SEED,
            beats=(10.0,) if quick else (1.0, 10.0, 100.0),
        ),
        lambda: latency.burst_sizes(
            sizes=(1, 10, 50) if quick else (1, 2, 5, 10, 20, 50, 100),
            bursts=4 if quick else 20,
            seconds=8 * scale,
            cost=20,
            seed=SEED,
            k=5,
        ),
        lambda: waiting.policies(
            seconds=400 * scale,
            silent_seconds=60 if quick else 1800,
            cost=10,
            seed=SEED,
            beats=(1.0, 100.0) if quick else (0.1, 1.0, 10.0, 100.0),
            most_beats=round(30_000 * scale),
        ),
        lambda: waiting.memory(
            seconds=120 * scale,
            cost=400,
            seed=SEED,
            burst=20,
            beats=(1.0, 1000.0) if quick else (0.1, 1.0, 10.0, 100.0, 1000.0),
        ),
        lambda: transport.transports(
            seconds=2 if quick else 20, cost=50, seed=SEED, extra=(0, 4) if quick else (0, 1, 2, 4, 6)
        ),
        lambda: burstiness.slides(
            seconds=0.5 if quick else 8.0,
            cost=20,
            seed=SEED,
            sizes=(1, 100) if quick else (1, 10, 50, 100, 200, 500, 1000),
        ),
    ]


def run(out: Path, *, quick: bool = False) -> dict[str, Any]:
    """Run all experiments; write tables (JSON and text) and plots into the folder and return the tables."""
    from millstream_bench.engine.plot import plot_all

    results: dict[str, Experiment] = {}
    for make in experiments(quick=quick):
        start = time.perf_counter()
        made = make()
        made.parameters["quick"] = quick
        made.parameters["wall_seconds"] = round(time.perf_counter() - start, 1)
        made.write(out)
        show(made)
        results[made.name] = made
    tables = {name: asdict(made) for name, made in results.items()}
    (out / "engine.json").write_text(json.dumps(tables, indent=1), encoding="utf-8")
    plot_all(results, out)
    return tables


def show(experiment: Experiment) -> None:
    """Print a table, in colour where the terminal has it."""
    try:
        from rich.console import Console
        from rich.table import Table

        from millstream_bench.suite.whole_table import print_whole
    except ImportError:
        print(experiment.text())
        return
    from millstream_bench.engine.experiment import format_cell

    table = Table(title=f"{experiment.title} ({experiment.figure})", title_justify="left")
    for column in experiment.columns:
        table.add_column(column, justify="right")
    for row in experiment.rows:
        table.add_row(*map(format_cell, row))
    console = Console(highlight=False)
    print_whole(table, console)
    for note in experiment.notes:
        console.print(f"  {note}", style="dim")
