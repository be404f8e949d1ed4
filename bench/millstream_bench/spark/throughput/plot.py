"""Plots of a contest: throughput as bars, rows held over the stream."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from millstream_bench.spark.measurement import Batch
from millstream_bench.spark.throughput.contest import MILLSTREAM, Result

_MILLSTREAM, _OTHERS, _PEERS, _CEILING = "#2b6cb0", ("#dd6b20", "#2f855a", "#805ad5"), "#a0aec0", "#e2e8f0"
_LABELS = {
    "millstream": ("Millstream", _MILLSTREAM),
    "spark": ("Spark's own operators", _OTHERS[0]),
    "flink": ("Flink SQL, from CSV", _PEERS),
    "pathway": ("Pathway", _PEERS),
    "bytewax": ("Bytewax", _PEERS),
}


def throughput_plot(results: Sequence[dict[str, Any]], path: Path) -> None:
    """Rows per CPU-second of every engine in the JSON of a contest, as bars; DuckDB's is cut off."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6 * len(results), 3.4), layout="constrained")
    for axes, result in zip(figure.subplots(1, len(results), squeeze=False)[0], results, strict=True):
        speeds = {name: result.get(f"{name}_rows_per_cpu_s") for name in ("millstream", "spark")}
        speeds |= {name: peer["rows_per_cpu_s"] for name, peer in result.get("peers", {}).items()}
        bars = [(*_LABELS.get(name, (name, _PEERS)), speed) for name, speed in speeds.items() if speed]
        end = 1.3 * max(speed for *_, speed in bars)
        for place, (_, colour, speed) in enumerate(bars):
            axes.barh(place, speed, 0.7, color=colour)
            axes.text(speed + end / 80, place, f"{speed:,.0f}", va="center", fontsize=8)
        ceiling = result["duckdb_rows_per_cpu_s"]
        axes.barh(len(bars), end, 0.7, color=_CEILING, hatch="//", edgecolor="white")
        axes.text(end / 80, len(bars), f"{ceiling:,.0f}, longer than this picture is wide", va="center", fontsize=8)
        labels = [*(label for label, *_ in bars), "DuckDB, no stream:\nwhole input at once"]
        axes.set_yticks(range(len(labels)), labels)
        axes.tick_params(axis="y", labelsize=8, length=0)
        axes.set_xlim(0, end)
        axes.invert_yaxis()
        axes.xaxis.set_major_formatter(lambda value, _: f"{value / 1e6:g}")
        axes.tick_params(axis="x", labelsize=8)
        axes.set_xlabel("million rows per CPU-second (driver, JVM and Python workers together)", fontsize=9)
        axes.set_title(f"{result['name']}: {result['title']}", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=140)


def state_plot(results: Sequence[Result], path: Path) -> None:
    """Rows held by the stateful operators after each batch."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6 * len(results), 3.6), layout="constrained")
    for axes, result in zip(figure.subplots(1, len(results), squeeze=False)[0], results, strict=True):
        for name, colour in _colours(result).items():
            batches = _with_rows(result.typical(name).batches)
            held = [float("nan") if batch.state_rows is None else batch.state_rows for batch in batches]
            label = _LABELS.get(name, (name, ""))[0]
            axes.plot(_positions(batches), held, color=colour, marker=".", label=label)
        axes.set_yscale("log")
        axes.set_ylim(max(1, axes.dataLim.y0) / 3, 8 * axes.dataLim.y1)
        axes.yaxis.set_major_formatter("{x:,.0f}")
        axes.set_xlim(left=0)
        axes.set_xlabel("rows read so far, millions")
        axes.set_ylabel("rows held (log scale)")
        axes.set_title(f"{result.workload.name}: {result.workload.title}", fontsize=10)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8, loc="upper right", ncols=2)
    figure.savefig(path, dpi=140)


def _colours(result: Result) -> dict[str, str]:
    others = iter(_OTHERS * len(result.rounds))
    return {name: _MILLSTREAM if name == MILLSTREAM else next(others) for name in result.rounds}


def _with_rows(batches: list[Batch]) -> list[Batch]:
    """The batches without those that only close the stream."""
    most = max(batch.rows for batch in batches)
    return [batch for batch in batches if batch.rows > most // 100]


def _positions(batches: list[Batch]) -> list[float]:
    return [rows / 1e6 for rows in accumulate(batch.rows for batch in batches)]
