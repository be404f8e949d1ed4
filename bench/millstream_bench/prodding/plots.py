"""Plots of the experiments' findings; those on Spark, if they were run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from millstream_bench.prodding.reference import CURVES, FUNCTIONS
from millstream_bench.suite.plots import COLOURS, GREY, OTHERS, OURS, done, panels
from millstream_bench.suite.report import Finding

Findings = Mapping[str, Finding]


def draw_all(findings: Findings, out: Path) -> list[Path]:
    made = []
    for name, draw in DRAWN.items():
        if name in findings and findings[name].rows:
            path = out / f"prodding_{name}.png"
            draw(findings[name], path)
            made.append(path)
    return made


def _accuracy(found: Finding, path: Path) -> None:
    """Average and worst accuracy by aggressiveness for each distribution; crosses: the idealised curves."""
    names = list(found.curves)
    figure, axes = panels(len(names) + 1)
    slide = 30 if found.name == "tumbling" else 10
    for axis, name in zip(axes, names, strict=False):
        curve = found.curves[name]
        for place, function in enumerate(FUNCTIONS):
            colour = COLOURS[place]
            axis.plot(curve["percent"], curve[f"{function} average"], color=colour, marker=".", label=function)
            axis.plot(curve["percent"], curve[f"{function} worst"], color=colour, linestyle=":", marker=".")
            for part, size in ((0, 6), (1, 6)):
                known = [
                    (p, CURVES[name, slide, p][place][part]) for p in curve["percent"] if (name, slide, p) in CURVES
                ]
                axis.plot(*zip(*known, strict=True), "x", color=colour, markersize=size) if known else None
        axis.plot([], [], color=GREY, linestyle=":", label="worst window")
        axis.plot([], [], "x", color=GREY, label="idealised")
        _percent(axis, f"{name}: accuracy in %")
    gain = axes[-1]
    curve = found.curves[names[0]]
    gain.plot(curve["percent"], curve["gain"], color=OURS, marker=".", label="latency gained")
    _percent(gain, "latency gained, in % of the final latency")
    gain.set_ylim(bottom=0)
    done(figure, path)


def _percent(axis: Any, title: str) -> None:
    axis.set_title(title, fontsize=10)
    axis.set_xlabel("P_Aggr: lead before the end of the window, % of the slide", fontsize=8)
    axis.set_xticks((10, 20, 30, 40, 50))


def _on_spark(found: Finding, path: Path) -> None:
    figure, (accuracy, gain) = panels(2)
    curve = found.curves["uniform"]
    for place, function in enumerate(FUNCTIONS):
        accuracy.plot(curve["percent"], curve[function], color=COLOURS[place], marker=".", label=function)
        known = [(p, CURVES["uniform", 10, p][place][0]) for p in (10, 30, 50)]
        accuracy.plot(*zip(*known, strict=True), "x", color=COLOURS[place])
    accuracy.plot([], [], "x", color=GREY, label="idealised")
    _percent(accuracy, "accuracy in %")
    gain.plot(curve["percent"], curve["gain"], color=OURS, marker=".", label="latency gained, on Spark")
    _percent(gain, "latency gained, in % of the final latency")
    gain.set_ylim(bottom=0)
    done(figure, path)


def _traffic(found: Finding, path: Path) -> None:
    figure, (latency, accuracy) = panels(2)
    minutes = [end / 60 for end in found.curves["window_end"]]
    for name, colour in (("final", OTHERS), ("early", OURS)):
        latency.plot(
            minutes, [each / 60 for each in found.curves[name]], color=colour, marker=".", label=f"{name} rows"
        )
    latency.set_title("minutes from the first tuple of a window to its row", fontsize=10)
    latency.set_ylim(bottom=0)
    accuracy.plot(minutes, found.curves["accuracy"], color=OURS, marker=".", label="accuracy of early sums, %")
    accuracy.set_title("accuracy in %", fontsize=10)
    accuracy.set_ylim(min(80, *found.curves["accuracy"]) - 1, 101)
    for axis in (latency, accuracy):
        axis.set_xlabel("end of the window, minutes")
    done(figure, path, loc="lower right")


def _bursts(found: Finding, path: Path) -> None:
    """Tuples that arrive, and how long after its end each window is answered."""
    figure, (arrived, latency) = panels(2)
    curves = found.curves
    arrived.bar(curves["second"], curves["tuples"], 1.0, color=GREY, label="tuples in a second")
    arrived.set_title("arrivals", fontsize=10)
    latency.plot(curves["window"], curves["final"], color=OTHERS, label="final rows")
    latency.plot(curves["early window"], curves["early"], ".", color=OURS, label="early rows")
    latency.set_title("seconds after the end of a window", fontsize=10)
    for axis in (arrived, latency):
        axis.set_xlabel("seconds")
    done(figure, path, loc="upper left")


def _overhead(found: Finding, path: Path) -> None:
    """The ratio of each pair, the median and its interval."""
    figure, (axes,) = panels(1)
    figure.set_size_inches(7, 2.4 + 0.3 * len(found.rows))
    names = [row[0] for row in found.rows]
    for place, name in enumerate(names):
        numbers, first = found.numbers[name], not place
        level = [place] * len(numbers["pairs"])
        axes.plot(numbers["pairs"], level, ".", color=GREY, label="a pair" if first else None)
        axes.plot(numbers["interval"], [place] * 2, color=OURS, linewidth=3, label="95 % interval" if first else None)
        axes.plot([numbers["ratio"]], [place], "o", color=OURS, label="median" if first else None)
    axes.axvline(1.0, color="black", linewidth=1)
    axes.axvline(1.03, color=GREY, linewidth=1, linestyle="--")
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.set_xlabel("CPU seconds with prods : without; dashed: 3 % more")
    done(figure, path, loc="upper center", bbox_to_anchor=(0.5, 1.25), ncols=3)


def _latency(found: Finding, path: Path) -> None:
    """The ratio of latencies, pair by pair, and how long rows come behind the end of a window."""
    figure, (ratios, runs) = panels(2)
    names = list(found.curves)
    for place, query in enumerate(names):
        numbers, first = found.numbers[query]["ratio"], not place
        level = [place] * len(numbers["pairs"])
        ratios.plot(numbers["pairs"], level, ".", color=GREY, label="a pair" if first else None)
        ratios.plot(numbers["interval"], [place] * 2, color=OURS, linewidth=3, label="95 % interval" if first else None)
        ratios.plot([numbers["median"]], [place], "o", color=OURS, label="median" if first else None)
        curve = found.curves[query]
        for name, line in (("without", ":"), ("with", "-")):
            places = range(1, len(curve[name]) + 1)
            runs.plot(places, curve[name], line, marker=".", color=COLOURS[place], label=f"{query}, {name} prods")
    ratios.axvline(1.0, color="black", linewidth=1)
    for limit in (0.97, 1.03):
        ratios.axvline(limit, color=GREY, linewidth=1, linestyle="--")
    ratios.set_yticks(range(len(names)), names)
    ratios.set_ylim(-0.6, len(names) + 0.4)
    ratios.set_title("latency of final rows with prods : without; dashed: 3 %", fontsize=10)
    runs.set_ylim(bottom=0)
    runs.set_title("milliseconds from the end of a window to its final row", fontsize=10)
    runs.set_xlabel("pair")
    done(figure, path)


def _leads(found: Finding, path: Path) -> None:
    """The lead of each window, and the accuracy of its early answers, by the accuracy asked for."""
    figure, (lead, accuracy) = panels(2)
    for place, (target, curve) in enumerate(found.curves.items()):
        colour = COLOURS[place]
        lead.plot(curve["minutes"], curve["lead"], color=colour, label=f"accuracy {target}")
        accuracy.plot(curve["minutes"], curve["accuracy"], color=colour, linewidth=1, label=f"accuracy {target}")
        accuracy.axhline(float(target.split()[0]), color=colour, linestyle=":")
    lead.set_title("seconds from an early answer to the end of its window", fontsize=10)
    lead.set_ylim(bottom=0)
    accuracy.set_title("accuracy of early sums in %, means over the detectors", fontsize=10)
    for axis in (lead, accuracy):
        axis.set_xlabel("minutes")
    done(figure, path)


DRAWN = {
    "latency": _latency,
    "latency_on_spark": _latency,
    "overhead": _overhead,
    "overhead_on_spark": _overhead,
    "traffic": _traffic,
    "bursts": _bursts,
    "bursts_on_spark": _bursts,
    "uniform": _accuracy,
    "normal": _accuracy,
    "tumbling": _accuracy,
    "aggressiveness_on_spark": _on_spark,
    "leads": _leads,
}
