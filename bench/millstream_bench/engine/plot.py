"""Plots of the engine's experiments, one picture per published figure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream_bench.engine.experiment import Experiment
from millstream_bench.engine.transport import PUBLISHED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STRATEGIES = {"dfs": "depth first (dfs)", "bfs": "breadth first (bfs)"}
BLUE, ORANGE, GREEN, GREY = "#2b6cb0", "#dd6b20", "#2f855a", "#718096"


def plot_all(results: dict[str, Experiment], folder: Path) -> list[Path]:
    """Draw every experiment in `results` and return the files."""
    drawn = []
    for name, draw, panels in (
        ("fig_14a", _fig_14a, 1),
        ("fig_14b", _fig_14b, 2),
        ("fig_15", _fig_15, 2),
        ("fig_16", _fig_16, 1),
        ("fig_3_13", _fig_3_13, 2),
        ("fig_3_17", _fig_3_17, 1),
    ):
        if name in results:
            drawn.append(_picture(results[name], draw, panels, folder / f"{name}.png"))
    return drawn


def _picture(experiment: Experiment, draw: Any, panels: int, path: Path) -> Path:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2 if panels == 1 else 11, 4), layout="constrained")
    axes = [figure.subplots()] if panels == 1 else list(figure.subplots(1, panels))
    draw(experiment, *axes)
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"{experiment.title} ({experiment.figure})", fontsize=11)
    figure.savefig(path, dpi=130)
    return path


def _short(value: float | None, digits: int = 3) -> str:
    """A number with `digits` significant digits, thousands grouped."""
    if value is None:
        return "no output"
    return f"{value:,.0f}" if value >= 100 else f"{value:.{digits}g}"


def _fig_14a(experiment: Experiment, axes: Axes) -> None:
    modes = experiment.column("mode", strategy="dfs")
    places = range(len(modes))
    for shift, strategy, colour in ((-0.2, "dfs", BLUE), (0.2, "bfs", ORANGE)):
        values = experiment.column("latency_ms", strategy=strategy)
        heights = [value or 0 for value in values]
        bars = axes.bar([p + shift for p in places], heights, 0.38, label=_STRATEGIES[strategy], color=colour)
        axes.bar_label(bars, [_short(value, 2) for value in values], fontsize=8, padding=2)
    expected = [(p, v) for p, v in zip(places, experiment.column("expected_ms", strategy="dfs"), strict=True) if v]
    axes.hlines(
        [v for _, v in expected],
        [p - 0.42 for p, _ in expected],
        [p + 0.42 for p, _ in expected],
        color="black",
        linewidth=1,
        label="waiting for the slow stream, by analysis",
    )
    axes.set_yscale("log")
    axes.set_ylabel("mean latency, ms (log scale)")
    axes.set_xticks(list(places), [mode.replace(" ", "\n", 1) for mode in modes])
    axes.margins(y=0.15)
    axes.legend(frameon=False)


def _fig_14b(experiment: Experiment, latent: Axes, demand: Axes) -> None:
    k = experiment.parameters["k"]
    styles = (
        ("dfs", _STRATEGIES["dfs"], BLUE, "o"),
        ("bfs", _STRATEGIES["bfs"], ORANGE, "s"),
        (f"batch:{k}", f"batches of {k}", GREEN, "^"),
    )
    for strategy, label, colour, marker in styles:
        sizes = experiment.column("n", timestamps="latent", strategy=strategy)
        analytic = experiment.column("analytic_ms", timestamps="latent", strategy=strategy)
        measured = experiment.column("latency_ms", timestamps="latent", strategy=strategy)
        latent.plot(sizes, analytic, color=colour, linewidth=1, label=f"{label}, by analysis")
        latent.plot(sizes, measured, color=colour, linestyle="none", marker=marker, label=f"{label}, measured")
        if not strategy.startswith("batch"):
            values = experiment.column("latency_ms", timestamps="on demand", strategy=strategy)
            demand.plot(sizes, values, color=colour, marker=marker, label=label)
    latent.set_title("latent time (no timestamps), single bursts", fontsize=10)
    demand.set_title("timestamps on demand, Poisson bursts, 1000 tuples/s", fontsize=10)
    for axes in (latent, demand):
        axes.set_xlabel("tuples per burst")
        axes.set_ylabel("mean latency, ms")
        axes.set_ylim(bottom=0)
        axes.legend(frameon=False, fontsize=8)


def _fig_15(experiment: Experiment, all_modes: Axes, zoom: Axes) -> None:
    names = {
        "none": ("no promises: wait for the slow stream", GREY),
        "punctuation": ("promises as punctuation, through every operator", ORANGE),
        "eqg": ("promises written into the registers of waiting operators", BLUE),
    }
    counts = experiment.column("plain", mode="eqg")
    for mode, (label, colour) in names.items():
        values = experiment.column("latency_ms", mode=mode)
        all_modes.plot(counts, values, marker="o", color=colour, label=label)
        if mode != "none":
            zoom.plot(counts, values, marker="o", color=colour, label=label)
    over = experiment.column("over_eqg_%", mode="punctuation")
    for count, value, percent in zip(counts, experiment.column("latency_ms", mode="punctuation"), over, strict=True):
        zoom.annotate(f"+{percent:.0f} %", (count, value), (0, 7), textcoords="offset points", ha="center", fontsize=8)
    published = [value * (1 + PUBLISHED / 100) for value in experiment.column("latency_ms", mode="eqg")]
    zoom.plot(counts, published, color=GREY, linestyle=":", label=f"published, of another graph: +{PUBLISHED} %")
    all_modes.set_yscale("log")
    all_modes.set_title("(a) all three", fontsize=10)
    all_modes.set_ylabel("mean latency, ms (log scale)")
    zoom.set_title("(b) the two ways of carrying promises", fontsize=10)
    zoom.set_ylabel("mean latency, ms")
    zoom.set_ylim(bottom=0)
    zoom.margins(y=0.15)
    for axes in (all_modes, zoom):
        axes.set_xlabel("operators on the way that never wait")
        axes.legend(frameon=False, fontsize=8)


def _fig_16(experiment: Experiment, axes: Axes) -> None:
    slides = experiment.column("slide", mode="none")
    axes.plot(slides, experiment.column("burstiness", mode="none"), marker="o", color=ORANGE, label="no promises")
    model = experiment.column("model", mode="none")
    axes.plot(slides, model, color=ORANGE, linewidth=1, linestyle="--", label="by analysis: time of one slide / 0.02 s")
    axes.plot(slides, experiment.column("burstiness", mode="eqg"), marker="s", color=BLUE, label="promises on demand")
    axes.set_xlabel("slide, tuples")
    axes.set_ylabel("burstiness of output, (max − min) / mean")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False)


def _policy_axis(experiment: Experiment, axes: Axes, column: str) -> None:
    """A curve over the heartbeat rate; a level line for each other policy."""
    rows = [(rate, v) for rate, v in zip(experiment.column("beats/s"), experiment.column(column), strict=True) if rate]
    axes.plot(*zip(*rows, strict=True), marker="o", color=ORANGE, label="heartbeats")
    for policy, label, style in (
        ("none", "no promises", {"color": GREY, "linestyle": "--"}),
        ("on demand", "promises on demand", {"color": BLUE, "linewidth": 3}),
        ("latent", "latent time", {"color": "#9ae6b4", "linestyle": ":", "linewidth": 2, "zorder": 3}),
    ):
        (value,) = experiment.column(column, policy=policy)
        if value is None:
            axes.plot([], [], label=f"{label}: no output", **style)
        elif value > 0:
            axes.axhline(value, label=f"{label}: {_short(value)}", **style)
        else:
            axes.plot([], [], label=f"{label}: 0, below this scale", **style)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("heartbeats per second")
    axes.legend(frameon=False, fontsize=8)


def _fig_3_13(experiment: Experiment, latency: Axes, idle: Axes) -> None:
    _policy_axis(experiment, latency, "latency_ms")
    latency.set_ylabel("mean latency, ms (log scale)")
    latency.set_title("latency (3.13)", fontsize=10)
    _policy_axis(experiment, idle, "idle_%")
    idle.set_ylabel("time the union idle-waits, % (log scale)")
    idle.set_title("idle-waiting (3.14)", fontsize=10)


def _fig_3_17(experiment: Experiment, axes: Axes) -> None:
    _policy_axis(experiment, axes, "peak")
    axes.set_ylabel("peak of buffered tuples (log scale)")
