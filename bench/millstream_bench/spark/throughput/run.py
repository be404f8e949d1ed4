"""`millstream bench w1 w2`: Millstream and Spark's own operators on the same files, DuckDB as the ceiling."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream_bench.spark.measurement import Contestant, Measurement, RunOptions
from millstream_bench.spark.throughput import contender
from millstream_bench.spark.throughput.contest import Result, compete
from millstream_bench.spark.throughput.data import EVENTS, EventFiles, prepare
from millstream_bench.spark.throughput.golden import golden
from millstream_bench.spark.throughput.native import FasterStore
from millstream_bench.spark.throughput.plot import state_plot, throughput_plot
from millstream_bench.spark.throughput.workloads import named

if TYPE_CHECKING:
    from rich.console import Console


def run(
    names: Sequence[str],
    *,
    json_file: Path | None = None,
    out: Path = Path("bench/results"),
    data: Path | None = None,
    events: int = EVENTS,
    warm_up: int = 12,
    rounds: int = 1,
    contestants: Sequence[Contestant] | None = None,
) -> list[dict[str, Any]]:
    """Measure the workloads, print tables, write JSON and two plots, return the JSON."""
    from rich.console import Console

    console = Console(highlight=False)
    workloads = [named(name) for name in names]
    options = RunOptions(warm_up=warm_up)
    if contestants is None:
        contestants = [*contender.contestants(), FasterStore()]
    files = _files(data, events, console)
    options.check(files)
    results = []
    with console.status("", refresh_per_second=2) as status:
        for workload in workloads:
            status.update(f"{workload.name}: DuckDB")
            right = golden(workload, files, threads=options.cores)
            result = compete(workload, files, contestants, right, options, rounds=rounds, tell=status.update)
            results.append(result)
            _print(result, console)
    made = [result.to_json() | _heats(contestants, result) for result in results]
    out.mkdir(parents=True, exist_ok=True)
    target = json_file or out / "spark.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(made, indent=1))
    throughput_plot(made, out / "spark_throughput.png")
    state_plot(results, out / "spark_state.png")
    console.print(f"written to {target} and {out}")
    return made


def _files(root: Path | None, events: int, console: Console) -> EventFiles:
    from rich.progress import Progress

    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task(f"writing {events:,} events", visible=False)
        return prepare(
            root, events, progress=lambda done, total: progress.update(bar, completed=done, total=total, visible=True)
        )


def _heats(contestants: Sequence[Contestant], result: Result) -> dict[str, Any]:
    """The speeds of the state stores when one was chosen."""
    found: dict[str, Any] = {}
    for contestant in contestants:
        if isinstance(contestant, FasterStore):
            heat = contestant.heats[result.workload.name]
            found["spark_store"] = result.typical(contestant.name).note
            found["spark_stores"] = {name: measurement.rows_per_cpu_s for name, measurement in heat.items()}
    return found


def _print(result: Result, console: Console) -> None:
    from rich.box import SIMPLE
    from rich.table import Table

    from millstream_bench.suite.whole_table import print_whole

    title = f"{result.workload.name}: {result.workload.title}; {result.events:,} events, steady state"
    table = Table(title=title, box=SIMPLE, title_justify="left", padding=(0, 1), pad_edge=False)
    table.add_column("", no_wrap=True)
    for heading in ("rows/s", "rows/CPU-s", "CPU-s", "JVM", "Python", "state"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name in result.rounds:
        typical = result.typical(name)
        label = f"{name}, {typical.note}" if typical.note and typical.note not in name else name
        speeds = [_range(result, name, quantity) for quantity in ("rows_per_s", "rows_per_cpu_s")]
        jvm, total = typical.cpu_s.get("jvm", 0.0), sum(typical.cpu_s.values())
        parts = [f"{total:.1f}", f"{jvm / total:.0%}", f"{1 - jvm / total:.0%}"]
        table.add_row(label, *speeds, *parts, _most_state(typical))
    right = result.golden
    table.add_row("DuckDB, whole input", _short(right.rows / right.wall_s), _short(right.rows / right.cpu_s))
    print_whole(table, console)
    if result.ratio is not None:
        console.print(f"{result.workload.name}: Millstream does {result.ratio:.2f} × Spark's rows per CPU-second")
    console.print(
        f"{result.workload.name}: answers equal DuckDB's, the last window included: {_listed(right.answers)}\n"
    )


def _range(result: Result, name: str, quantity: str) -> str:
    """The median of the rounds, with their range if there are several."""
    values = sorted(getattr(measurement, quantity) for measurement in result.rounds[name])
    middle = _short(result.median(name, quantity))
    return middle if len(values) == 1 else f"{middle} ({_short(values[0])} to {_short(values[-1])})"


def _most_state(measurement: Measurement) -> str:
    held = [batch.state_rows for batch in measurement.batches if batch.state_rows is not None]
    return f"{max(held):,}" if held else "–"


def _listed(answers: dict[str, int]) -> str:
    return ", ".join(f"{name} {value:,}" for name, value in answers.items())


def _short(value: float) -> str:
    """
    >>> _short(1_440_000), _short(107_300)
    ('1.44 M', '107 k')
    """
    return f"{value / 1e6:.3g} M" if value >= 1e6 else f"{value / 1e3:.0f} k"
