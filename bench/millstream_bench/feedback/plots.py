"""Plots of the experiments' findings, a picture for each experiment that was run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from millstream_bench.suite.plots import COLOURS, GREY, OTHERS, OURS, done, panels
from millstream_bench.suite.report import Finding

Findings = Mapping[str, Finding]


def draw_all(findings: Findings, out: Path) -> list[Path]:
    made = []
    for name, found in findings.items():
        if name != "sending_on_spark":  # a single figure
            path = out / f"feedback_{name}.png"
            _DRAWINGS[name.removesuffix("_on_spark")](found, path)
            made.append(path)
    return made


def _overhead(found: Finding, path: Path) -> None:
    """The ratio of each pair, the median and its interval."""
    figure, (axes,) = panels(1)
    figure.set_size_inches(7, 2.4 + 0.3 * len(found.rows))
    names = [*found.numbers]
    for place, name in enumerate(names):
        numbers = found.numbers[name]
        axes.plot(
            numbers["pairs"], [place] * len(numbers["pairs"]), ".", color=GREY, label="a pair" if not place else None
        )
        axes.plot(
            numbers["interval"], [place] * 2, color=OURS, linewidth=3, label="95 % interval" if not place else None
        )
        axes.plot([numbers["ratio"]], [place], "o", color=OURS, label="median" if not place else None)
    axes.axvline(1.0, color="black", linewidth=1)
    axes.axvline(1.03, color=GREY, linewidth=1, linestyle="--")
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.set_xlabel("CPU seconds with feedback in the code : without it; dashed: 3 % more")
    done(figure, path, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)


def _sending(found: Finding, path: Path) -> None:
    figure, (axes,) = panels(1)
    for colour, (name, curve) in zip(COLOURS, found.curves.items(), strict=False):
        axes.plot(curve["length"], curve["us"], color=colour, marker=".", label=f"a message after {name}")
    axes.set_xlabel("selections in the chain")
    axes.set_ylabel("CPU µs a message")
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    done(figure, path)


def _utility(found: Finding, path: Path) -> None:
    """Work of EXPENSIVE and output by plan."""
    figure, (work, output) = panels(2)
    plans = [row[0] for row in found.rows]
    numbers = [found.numbers[plan] for plan in plans]
    places = range(len(plans))
    in_time = [n["estimated"] for n in numbers]
    late = [n["worked"] - n["estimated"] for n in numbers]
    work.bar(places, in_time, color=OURS, label="in the output")
    work.bar(places, late, bottom=in_time, color=OTHERS, label="dropped by PACE")
    work.set_title("estimates made", fontsize=10)
    kept = [n["useful"] * n["output"] for n in numbers]
    output.bar(places, kept, color=OURS, label="useful")
    output.bar(places, [n["output"] - k for n, k in zip(numbers, kept, strict=True)], bottom=kept, color=OTHERS,
               label="more than five minutes late")  # fmt: skip
    output.set_title("rows of the output", fontsize=10)
    for axes in (work, output):
        axes.set_xticks(places, plans)
        axes.set_ylim(0, 1.2 * axes.dataLim.y1)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    done(figure, path)


def _levels(found: Finding, path: Path) -> None:
    """Tuples that operators emit, by level."""
    figure, (axes,) = panels(1)
    figure.set_size_inches(8, 3.6)
    names = [row[0] for row in found.rows]
    for offset, (what, colour) in enumerate(zip(("read", "join"), COLOURS, strict=False)):
        places = [place + 0.38 * (offset - 0.5) for place in range(len(names))]
        counts = [found.numbers[name][what] for name in names]
        bars = axes.bar(places, counts, 0.36, color=colour, label={"read": "source", "join": "join"}[what])
        axes.bar_label(bars, [f"{count:,}" for count in counts], fontsize=6, padding=2)
    axes.set_xticks(range(len(names)), names, fontsize=8)
    axes.set_ylabel("tuples emitted")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.margins(y=0.15)
    done(figure, path, loc="upper right")


def _resources(found: Finding, path: Path) -> None:
    """CPU seconds of an empty run, of all, of one per cent; and of Spark's own operators."""
    figure, (axes,) = panels(1)
    figure.set_size_inches(8, 3.6)
    queries = list(found.numbers)
    ways = {"empty": ("no rows", GREY), "off": ("no feedback", OTHERS), "on": ("99 % disclaimed", OURS)}
    for offset, (way, (label, colour)) in enumerate(ways.items()):
        places = [place + 0.2 * (offset - 1.5) for place in range(len(queries))]
        spent = [found.numbers[query]["cpu_s"][way] for query in queries]
        bars = axes.bar(places, spent, 0.19, color=colour, label=label)
        axes.bar_label(bars, [f"{each:.2g}" if each < 1 else f"{each:.1f}" for each in spent], fontsize=7, padding=2)
    beside = {
        place: found.numbers[q]["spark"]["cpu_s"] for place, q in enumerate(queries) if "spark" in found.numbers[q]
    }
    if beside:
        spent = list(beside.values())
        bars = axes.bar([place + 0.3 for place in beside], spent, 0.19, color=COLOURS[3],
                        label="Spark's own operators")  # fmt: skip
        axes.bar_label(bars, [f"{each:.2g}" if each < 1 else f"{each:.1f}" for each in spent], fontsize=7, padding=2)
    axes.set_xticks(range(len(queries)), queries, fontsize=8)
    axes.set_ylabel("CPU seconds")
    axes.margins(y=0.15)
    done(figure, path)


_DRAWINGS = {
    "overhead": _overhead,
    "sending": _sending,
    "utility": _utility,
    "levels": _levels,
    "resources": _resources,
}
