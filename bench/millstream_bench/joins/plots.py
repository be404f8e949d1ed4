"""Plots of what the experiments have found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream_bench.joins.report import Finding

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_OURS, _OTHERS = "#2b6cb0", "#dd6b20"
_COLOURS = (_OURS, _OTHERS, "#2f855a", "#805ad5", "#718096", "#c53030")

Findings = Mapping[str, Finding]


def draw_all(findings: Findings, out: Path) -> list[Path]:
    """One picture for each group of experiments that was run."""
    made = []
    for name, (needed, draw) in PICTURES.items():
        if all(one in findings for one in needed):
            path = out / f"joins_{name}.png"
            draw(findings, path)
            made.append(path)
    return made


def _panels(count: int) -> tuple[Any, list[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.5 * count, 3.8), layout="constrained")
    panels = list(figure.subplots(1, count, squeeze=False)[0])
    for axes in panels:
        axes.spines[["top", "right"]].set_visible(False)
    return figure, panels


def _done(figure: Any, path: Path, **legend: Any) -> None:
    for axes in figure.axes:
        axes.legend(frameon=False, fontsize=8, **legend)
    figure.savefig(path, dpi=130)


def _growth(findings: Findings, path: Path) -> None:
    figure, (state, speed) = _panels(2)
    for (name, curve), colour in zip(findings["growth"].curves.items(), _COLOURS, strict=False):
        state.plot([count / 1e6 for count in curve["tuples"]], curve["state"], color=colour, label=name)
    for (name, curve), colour in zip(findings["output_rate"].curves.items(), _COLOURS, strict=False):
        speed.plot(curve["cpu_s"], [rows / 1e6 for rows in curve["results"]], color=colour, label=name)
    state.set_yscale("log")
    state.set_xlabel("tuples so far, millions")
    state.set_ylabel("tuples in state (log scale)")
    speed.set_xlabel("CPU seconds")
    speed.set_ylabel("results so far, millions")
    _done(figure, path)


def _purging(findings: Findings, path: Path) -> None:
    figure, (lazy, rates, out) = _panels(3)
    for (name, curve), colour in zip(findings["thresholds"].curves.items(), _COLOURS, strict=False):
        lazy.plot(curve["cpu_s"], [rows / 1e3 for rows in curve["results"]], color=colour, label=name)
    lazy.set_xlabel("CPU seconds")
    lazy.set_ylabel("results so far, thousands")
    for (name, curve), colour in zip(findings["asymmetric"].curves.items(), _COLOURS, strict=False):
        share = range(1, len(curve["state"]) + 1)
        rates.plot([place / len(share) for place in share], curve["state"], color=colour, label=name)
    rates.set_xlabel("part of the stream")
    rates.set_ylabel("tuples in state; A is closed every 10")
    for (name, curve), colour in zip(findings["propagation"].curves.items(), _COLOURS, strict=False):
        out.plot(curve["steps"], curve["punctuations"], color=colour, label=name)
    out.set_xlabel("steps so far")
    out.set_ylabel("punctuation put out so far")
    _done(figure, path)


def _windows(findings: Findings, path: Path) -> None:
    figure, (state, speed, early) = _panels(3)
    names = findings["windows"].curves
    for number, (name, curve) in enumerate(names.items()):
        style: dict[str, Any] = {
            "color": _COLOURS[number // 2],
            "linestyle": "-" if name.startswith("PWJoin") else "--",
            "label": name,
        }
        share = range(1, len(curve["state"]) + 1)
        state.plot([place / len(share) for place in share], curve["state"], **style)
        speed.plot(curve["cpu_s"], [rows / 1e6 for rows in curve["results"]], **style)
    state.set_xlabel("part of the stream")
    state.set_ylabel("tuples in state")
    speed.set_xlabel("CPU seconds")
    speed.set_ylabel("results so far, millions")
    for (name, curve), colour in zip(findings["early_punctuation"].curves.items(), _COLOURS, strict=False):
        early.plot(curve["seconds"][:60], curve["punctuations"][:60], color=colour, label=name)
    early.set_xlabel("seconds of the stream")
    early.set_ylabel("punctuation put out so far")
    _done(figure, path)


def _several(findings: Findings, path: Path) -> None:
    """CPU time and memory of the one operator, the fastest tree being 1."""
    figure, (bars,) = _panels(1)
    figure.set_size_inches(9, 4.2)
    cases = list(findings["several"].numbers.items())
    for offset, (key, label, colour) in enumerate(
        (("time_ratio", "CPU time", _OURS), ("memory_ratio", "memory", _OTHERS))
    ):
        places = [place + 0.35 * (0.5 - offset) for place in range(len(cases))]
        bars.barh(places, [numbers[key] for _, numbers in cases], 0.33, color=colour, label=label)
    bars.axvline(1, color="#718096", linewidth=1)
    bars.set_yticks(range(len(cases)), [name for name, _ in cases], fontsize=8)
    bars.invert_yaxis()
    bars.set_xlabel("one operator; the fastest tree of window joins = 1")
    _done(figure, path, loc="lower left", bbox_to_anchor=(0, 1), ncols=2)


def _open_auctions(findings: Findings, path: Path) -> None:
    figure, (state,) = _panels(1)
    figure.set_size_inches(7.5, 3.8)
    for (name, curve), colour in zip(findings["open_auctions"].curves.items(), _COLOURS, strict=False):
        state.plot(curve["millions"], curve["state"], color=colour, marker=".", label=name)
    state.set_yscale("log")
    state.set_xlabel("auctions and bids so far, millions")
    state.set_ylabel("rows held (log scale)")
    _done(figure, path)


PICTURES: dict[str, tuple[tuple[str, ...], Callable[[Findings, Path], None]]] = {
    "state": (("growth", "output_rate"), _growth),
    "purging": (("thresholds", "asymmetric", "propagation"), _purging),
    "windows": (("windows", "early_punctuation"), _windows),
    "several": (("several",), _several),
    "open_auctions": (("open_auctions",), _open_auctions),
}
