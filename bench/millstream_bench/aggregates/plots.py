"""Plots of the experiments' findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from millstream_bench.suite.plots import COLOURS, GREY, OTHERS, OURS, done, panels, plain
from millstream_bench.suite.report import Finding

Findings = Mapping[str, Finding]


def draw_all(findings: Findings, out: Path) -> list[Path]:
    """Draw a picture for each group of experiments in `findings`."""
    made = []
    for name, (needed, draw) in PICTURES.items():
        if all(one in findings for one in needed):
            path = out / f"aggregates_{name}.png"
            draw(findings, path)
            made.append(path)
    return made


def _delta(findings: Findings, path: Path) -> None:
    """Cost of a tuple by the size of the window: log scales, so that a line of slope one is linear."""
    figure, both = panels(2)
    colours = dict(zip(findings["delta"].curves, COLOURS, strict=False)) | {"SQL": COLOURS[2]}
    titles = "mean of the last n tuples", "approximate frequency among the last n tuples"
    for axes, name, title in zip(both, ("delta", "frequent"), titles, strict=True):
        for way, curve in findings[name].curves.items():
            costs = [1e6 / rate for rate in curve["rate"]]
            axes.plot(curve["n"], costs, color=colours[way], marker=".", label="SQL, a loop" if way == "SQL" else way)
        axes.set_xscale("log")
        axes.set_yscale("log")
        plain(axes.xaxis)
        plain(axes.yaxis)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("n, tuples in the window (log scale)")
        axes.set_ylabel("CPU µs per tuple (log scale)")
    done(figure, path)


def _slides(findings: Findings, path: Path) -> None:
    """Tuples held and speed by slide."""
    figure, (held, speed, loop) = panels(3)
    curves = findings["slides"].curves
    for axes, prefix in ((held, "held, "), (speed, ""), (loop, "loop, ")):
        for name, colour, label in (("panes", OURS, "panes"), ("every", OTHERS, "every tuple of the frame")):
            curve = curves[prefix + name]
            scale = 1.0 if axes is held else 1e6
            axes.plot(curve["slide"], [y / scale for y in curve["y"]], color=colour, marker=".", label=label)
        axes.set_xscale("log")
        plain(axes.xaxis)
        axes.set_xlabel("slide, tuples (log scale)")
    held.set_yscale("log")
    plain(held.yaxis)
    held.set_ylabel("values held (log scale)")
    held.set_title("state", fontsize=10)
    for axes, title in ((speed, "built-in SUM"), (loop, "SQL body, a loop over tuples")):
        axes.set_ylabel("million tuples per CPU-second")
        axes.set_ylim(bottom=0)
        axes.set_title(title, fontsize=10)
    done(figure, path)


def _bodies(findings: Findings, path: Path) -> None:
    """Speed of each way to write an aggregate."""
    figure, (axes,) = panels(1)
    figure.set_size_inches(9, 4.6)
    found = findings["bodies"]
    ways = found.columns[2:-1]
    labels = [f"{row[0]} of {row[1]}" for row in found.rows]
    for offset, (way, colour) in enumerate(zip(ways, COLOURS, strict=False)):
        places = [place + 0.2 * (offset - 1.5) for place in range(len(labels))]
        bars = axes.barh(places, [row[2 + offset] for row in found.rows], 0.19, color=colour, label=way)
        axes.bar_label(bars, [_short(row[2 + offset]) for row in found.rows], fontsize=6, padding=2)
    axes.axvline(100_000, color=GREY, linewidth=1, linestyle="--")
    axes.set_yticks(range(len(labels)), labels, fontsize=8)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlim(left=50_000)
    plain(axes.xaxis)
    axes.set_xlabel("tuples per CPU-second (log scale); dashed: 100,000")
    done(figure, path, loc="lower left", bbox_to_anchor=(0, 1), ncols=4)


def _short(rate: float) -> str:
    """
    >>> _short(4_380_000), _short(387_500)
    ('4.4 M', '388 k')
    """
    return f"{rate / 1e6:.1f} M" if rate >= 1e6 else f"{rate / 1e3:.0f} k"


def _denoise(findings: Findings, path: Path) -> None:
    """Delay of true readings by noise and by rate."""
    figure, both = panels(2)
    for axes, name, unit in zip(both, ("denoise_noise", "denoise_rate"), ("noise", "tags a second"), strict=True):
        for way, curve in findings[name].curves.items():
            places = range(len(curve["x"]))
            scans = way.startswith("scan")
            line: dict[str, Any] = {"linestyle": "--", "linewidth": 1.2} if scans else {"linewidth": 2.5}
            axes.plot(places, curve["delay_s"], color=_WAYS[way][1], marker=".", label=_WAYS[way][0], **line)
            axes.set_xticks(places, [x if isinstance(x, str) else f"{x:,}" for x in curve["x"]])
        axes.set_xlabel(unit)
        axes.set_ylabel("mean delay of a true reading, s")
        axes.set_ylim(bottom=0)
    both[0].set_title("1 tag a second, ten readings each", fontsize=10)
    both[1].set_title("5 % noise", fontsize=10)
    done(figure, path)


_WAYS = {
    "EAGER": ("EAGER", COLOURS[0]),
    "LAZY": ("LAZY", COLOURS[1]),
    "UNORDERED": ("UNORDERED", COLOURS[2]),
    "scan": ("scan of the window", "black"),
    "scan, ordered": ("scan, in order", COLOURS[5]),
}


def _on_spark(findings: Findings, path: Path) -> None:
    """Rows per CPU-second on Spark."""
    figure, (axes,) = panels(1)
    figure.set_size_inches(8, 3.2)
    rows = findings["on_spark"].rows
    colours = [OTHERS if row[1] == "by hand" else OURS for row in rows]
    bars = axes.barh(range(len(rows)), [row[3] / 1e3 for row in rows], 0.7, color=colours)
    axes.bar_label(bars, [f"{row[3] / 1e3:,.0f} k, × {row[6]:.1f}" for row in rows], fontsize=8, padding=3)
    said = {"by hand": "transformWithStateInPandas"}
    axes.set_yticks(range(len(rows)), [f"{row[0]}: {said.get(row[1], row[1])}" for row in rows], fontsize=8)
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.set_xlabel("thousand rows per CPU-second of all processes")
    figure.savefig(path, dpi=130)


PICTURES: dict[str, tuple[tuple[str, ...], Callable[[Findings, Path], None]]] = {
    "delta": (("delta", "frequent"), _delta),
    "slides": (("slides",), _slides),
    "bodies": (("bodies",), _bodies),
    "denoise": (("denoise_noise", "denoise_rate"), _denoise),
    "on_spark": (("on_spark",), _on_spark),
}
