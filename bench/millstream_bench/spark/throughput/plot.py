"""Plots of a contest: speed and state as the stream goes on."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream_bench.spark.measurement import Batch
from millstream_bench.spark.throughput.contest import MILLSTREAM, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MILLSTREAM, _OTHERS, _CEILING, _SHADE = "#2b6cb0", ("#dd6b20", "#2f855a", "#805ad5"), "#718096", "#edf2f7"


def throughput_plot(results: Sequence[Result], path: Path) -> None:
    """Rows per CPU-second of each batch, with DuckDB's over the whole input as a line."""

    def draw(axes: Axes, result: Result) -> None:
        for name, colour in _colours(result).items():
            batches = _with_rows(result.typical(name).batches)
            speeds = [batch.rows / max(batch.cpu_s, 0.01) for batch in batches]
            axes.plot(_positions(batches), speeds, color=colour, marker=".", label=_label(result, name))
        ceiling = result.golden.rows / result.golden.cpu_s
        axes.axhline(ceiling, color=_CEILING, linestyle="--", linewidth=1, label="DuckDB, whole input")
        _shade_warm_up(axes, result)
        axes.set_yscale("log")
        axes.set_ylim(top=30 * ceiling)  # room for the legend

    _picture(results, draw, "rows per CPU-second (log scale)", path)


def state_plot(results: Sequence[Result], path: Path) -> None:
    """Rows held by the stateful operators after each batch."""

    def draw(axes: Axes, result: Result) -> None:
        for name, colour in _colours(result).items():
            batches = _with_rows(result.typical(name).batches)
            held = [float("nan") if batch.state_rows is None else batch.state_rows for batch in batches]
            axes.plot(_positions(batches), held, color=colour, marker=".", label=_label(result, name))
        axes.set_ylim(0, 1.3 * axes.get_ylim()[1])
        axes.yaxis.set_major_formatter("{x:,.0f}")

    _picture(results, draw, "rows held", path)


def _picture(results: Sequence[Result], draw: Any, unit: str, path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6 * len(results), 4), layout="constrained")
    for axes, result in zip(figure.subplots(1, len(results), squeeze=False)[0], results, strict=True):
        draw(axes, result)
        axes.set_title(f"{result.workload.name}: {result.workload.title}", fontsize=10)
        axes.set_xlabel("rows so far, millions")
        axes.set_ylabel(unit)
        axes.set_xlim(left=0)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8, loc="upper right")
    figure.savefig(path, dpi=140)


def _colours(result: Result) -> dict[str, str]:
    others = iter(_OTHERS * len(result.rounds))
    return {name: _MILLSTREAM if name == MILLSTREAM else next(others) for name in result.rounds}


def _label(result: Result, name: str) -> str:
    note = result.typical(name).note
    return f"{name}, {note}" if note and note not in name else name


def _with_rows(batches: list[Batch]) -> list[Batch]:
    """Without the batches that close the stream."""
    most = max(batch.rows for batch in batches)
    return [batch for batch in batches if batch.rows > most // 100]


def _positions(batches: list[Batch]) -> list[float]:
    return [rows / 1e6 for rows in accumulate(batch.rows for batch in batches)]


def _shade_warm_up(axes: Axes, result: Result) -> None:
    name = next(iter(result.rounds), None)
    if name is not None and result.options.warm_up:
        upto = _positions(result.typical(name).batches[: result.options.warm_up])[-1]
        axes.axvspan(0, upto, color=_SHADE, zorder=0, label="warm-up")
