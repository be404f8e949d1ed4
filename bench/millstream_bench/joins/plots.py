"""Plots of the experiments' findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from millstream_bench.suite.plots import COLOURS, GREY, OTHERS, OURS, done, panels
from millstream_bench.suite.report import Finding

Findings = Mapping[str, Finding]


def draw_all(findings: Findings, out: Path) -> list[Path]:
    """Draw a picture for each group of experiments in `findings`."""
    made = []
    for name, (needed, draw) in PICTURES.items():
        if all(one in findings for one in needed):
            path = out / f"joins_{name}.png"
            draw(findings, path)
            made.append(path)
    return made


def _growth(findings: Findings, path: Path) -> None:
    figure, (state, speed) = panels(2)
    for (name, curve), colour in zip(findings["growth"].curves.items(), COLOURS, strict=False):
        label = "without punctuation" if name == "without" else name
        state.plot([count / 1e6 for count in curve["tuples"]], curve["state"], color=colour, label=label)
    for (name, curve), colour in zip(findings["output_rate"].curves.items(), COLOURS, strict=False):
        label = "without punctuation" if name == "without" else name
        speed.plot(curve["cpu_s"], [rows / 1e6 for rows in curve["results"]], color=colour, label=label)
    state.set_yscale("log")
    state.set_xlabel("tuples so far, millions")
    state.set_ylabel("tuples in state (log scale)")
    speed.set_xlabel("CPU seconds")
    speed.set_ylabel("results so far, millions")
    done(figure, path)


def _purging(findings: Findings, path: Path) -> None:
    """Tuples held by purge threshold, and by the rates at which the streams close values."""
    figure, (lazy, rates) = panels(2)
    found = findings["thresholds"].numbers
    places = range(len(found))
    held = [numbers["state"] for numbers in found.values()]
    lazy.bar(places, held, 0.7, color=OURS, label="tuples held, mean")
    for place, count in zip(places, held, strict=True):
        lazy.text(place, count, f"{count:,.0f}", ha="center", va="bottom", fontsize=8)
    lazy.set_xticks(places, [name.removeprefix("PJoin-") for name in found])
    lazy.set_xlabel("purge threshold: punctuations that a purge waits for")
    lazy.set_ylabel("tuples in state")
    for number, (name, curve) in enumerate(findings["asymmetric"].curves.items()):
        share = range(1, len(curve["state"]) + 1)
        style: dict[str, Any] = {"linestyle": "--", "linewidth": 2} if name.startswith("PJoin-100") else {}
        parts = [place / len(share) for place in share]
        rates.plot(parts, curve["state"], color=COLOURS[number], label=_case(name), **style)
    rates.set_yscale("log")
    rates.set_xlabel("part of the stream")
    rates.set_ylabel("tuples in state (log scale)")
    rates.set_title("stream A closes a value every 10 tuples", fontsize=10)
    done(figure, path)


def _case(name: str) -> str:
    """
    >>> _case("PJoin-100, B every 20"), _case("unaware, B every 20")
    ('B every 20 tuples, threshold 100', 'no purging')
    """
    join, _, slower = name.partition(", ")
    return "no purging" if join == "unaware" else f"{slower} tuples, threshold {join.removeprefix('PJoin-')}"


def _windows(findings: Findings, path: Path) -> None:
    """Tuples held and CPU time with punctuation and without, by window; punctuation emitted over time."""
    figure, (state, speed, early) = panels(3)
    rows = findings["windows"].rows
    seconds, sizes = sorted({row[0] for row in rows}), sorted({row[1] for row in rows})
    small = {row[0]: row for row in rows if row[1] == sizes[0]}
    for shift, column, colour, label in (
        (-0.2, 2, OURS, "window and punctuation"),
        (0.2, 3, OTHERS, "window alone"),
    ):
        counts = [small[length][column] for length in seconds]
        bars = state.bar([place + shift for place in range(len(seconds))], counts, 0.38, color=colour, label=label)
        state.bar_label(bars, [f"{count:,}" for count in counts], fontsize=8)
    state.set_ylabel("tuples in state, mean")
    for shift, size, colour in zip((-0.2, 0.2), sizes, (OTHERS, OURS), strict=False):
        ratios = {row[0]: row[7] for row in rows if row[1] == size}
        places = [place + shift for place in range(len(seconds))]
        times = [ratios[length] for length in seconds]
        bars = speed.bar(places, times, 0.38, color=colour, label=f"steps of {size:,} tuples")
        speed.bar_label(bars, fmt="%.2f", fontsize=8)
    speed.axhline(1, color=GREY, linewidth=1)
    speed.set_ylabel("CPU time with punctuation, without = 1")
    for axes in (state, speed):
        axes.set_xticks(range(len(seconds)), [f"{length} s" for length in seconds])
        axes.set_xlabel("window")
        axes.margins(y=0.2)
    for (name, curve), colour in zip(findings["early_punctuation"].curves.items(), COLOURS, strict=False):
        label = "no window" if "no window" in name else f"window of {name.rpartition(', ')[2]}"
        early.plot(curve["seconds"][:60], curve["punctuations"][:60], color=colour, label=label)
    early.set_xlabel("seconds of the stream")
    early.set_ylabel("punctuations emitted so far")
    early.set_title("the second stream closes values 5 s after the first", fontsize=10)
    done(figure, path)


def _intervals(findings: Findings, path: Path) -> None:
    figure, (cost,) = panels(1)
    figure.set_size_inches(7.5, 4.2)
    for (name, curve), colour in zip(findings["intervals"].curves.items(), COLOURS, strict=False):
        keys, _, window = name.partition(", ")
        label = f"{keys}, windows of {window} tuples"
        cost.plot(curve["rows"], curve["us"], color=colour, marker=".", label=label)
    cost.set_xscale("log")
    cost.set_yscale("log")
    rows = next(iter(findings["intervals"].curves.values()))["rows"]
    cost.set_xticks(rows, [f"{count:,}" for count in rows], rotation=30, fontsize=8)
    cost.set_yticks([0.1, 0.2, 0.5, 1, 2, 5], ["0.1", "0.2", "0.5", "1", "2", "5"])
    cost.minorticks_off()
    cost.set_xlabel("tuples in a step (log scale)")
    cost.set_ylabel("CPU µs per tuple (log scale)")
    done(figure, path)


def _several(findings: Findings, path: Path) -> None:
    """CPU time and memory of the one operator, the fastest tree being 1."""
    figure, (bars,) = panels(1)
    figure.set_size_inches(9, 4.2)
    cases = list(findings["several"].numbers.items())
    for offset, (key, label, colour) in enumerate(
        (("time_ratio", "CPU time", OURS), ("memory_ratio", "memory", OTHERS))
    ):
        places = [place + 0.35 * (0.5 - offset) for place in range(len(cases))]
        bars.barh(places, [numbers[key] for _, numbers in cases], 0.33, color=colour, label=label)
    bars.axvline(1, color=GREY, linewidth=1)
    bars.set_yticks(range(len(cases)), [name for name, _ in cases], fontsize=8)
    bars.invert_yaxis()
    bars.set_xlabel(
        "one operator; the fastest tree of window joins = 1\n"
        "partners: tuples that a tuple joins in each other stream, on average"
    )
    done(figure, path, loc="lower left", bbox_to_anchor=(0, 1), ncols=2)


def _open_auctions(findings: Findings, path: Path) -> None:
    figure, (state,) = panels(1)
    figure.set_size_inches(7.5, 3.8)
    for (name, curve), colour in zip(findings["open_auctions"].curves.items(), COLOURS, strict=False):
        state.plot(curve["millions"], curve["state"], color=colour, marker=".", label=name)
    state.set_yscale("log")
    state.set_xlabel("auctions and bids read so far, millions")
    state.set_ylabel("rows held (log scale)")
    done(figure, path)


PICTURES: dict[str, tuple[tuple[str, ...], Callable[[Findings, Path], None]]] = {
    "state": (("growth", "output_rate"), _growth),
    "purging": (("thresholds", "asymmetric"), _purging),
    "windows": (("windows", "early_punctuation"), _windows),
    "intervals": (("intervals",), _intervals),
    "several": (("several",), _several),
    "open_auctions": (("open_auctions",), _open_auctions),
}
