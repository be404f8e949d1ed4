"""The findings as Markdown, for the page on benchmarks: a table for each experiment, and what it says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Findings = dict[str, dict[str, Any]]
"""As in the JSON file."""


def sections(findings: Findings) -> dict[str, str]:
    """Markdown by experiment, of those that have been run."""
    return {name: write(findings[name]) for name, write in WRITERS.items() if name in findings}


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """
    >>> print(table(["n", "rate"], [["10", "1.2 M"]]))
    | n | rate |
    |---|---|
    | 10 | 1.2 M |
    """
    head, *lines = (f"| {' | '.join(row)} |" for row in (heads, *rows))
    return "\n".join([head, f"|{'---|' * len(heads)}", *lines])


def rate(value: float) -> str:
    """
    >>> rate(5_538_012), rate(12_300_000), rate(311_651), rate(1_791)
    ('5.5 M', '12 M', '312 k', '1.8 k')
    """
    scaled, unit = (value / 1e6, "M") if value >= 1e6 else (value / 1e3, "k")
    return f"{scaled:.1f} {unit}" if scaled < 10 else f"{scaled:.0f} {unit}"


def _windows(finding: dict[str, Any]) -> str:
    heads = ["n", *finding["columns"][1:]]
    grown = {name.removeprefix("growth, "): value for name, value in finding["numbers"].items() if "growth" in name}
    last = 1 + len(grown)
    rows = [[f"{row[0]:,}", *map(rate, row[1:last]), *(f"{x:.2f}" for x in row[last:])] for row in finding["rows"]]
    growth = ", ".join(f"{name} × {value:.2g}" for name, value in grown.items())
    return f"{table(heads, rows)}\n\nCost of a tuple in the largest window, in the smallest = 1: {growth}."


def _slides(finding: dict[str, Any]) -> str:
    heads = ["slide", "values held: panes", "every tuple", "SUM: panes", "every tuple", "ratio", "loop: panes",
             "every tuple", "ratio"]  # fmt: skip
    rows = []
    for slide, panes, every, gain, few, many, loop, slow, more in finding["rows"]:
        speeds = rate(panes), rate(every), f"{gain:.2f}", rate(loop), rate(slow), f"{more:.2f}"
        rows.append([f"{slide:,}", f"{few:,}", f"{many:,}", *speeds])
    return table(heads, rows)


def _bodies(finding: dict[str, Any]) -> str:
    heads = [*finding["columns"][:-1], "SQL on columns : built-in, CPU time"]
    rows = [[row[0], row[1], *map(rate, row[2:-1]), f"× {row[-1]:.2f}"] for row in finding["rows"]]
    worst, least = finding["numbers"]["worst_ratio"], finding["numbers"]["least_loop"]
    said = f"At most × {worst:.2f} on columns; one tuple at a time, at least {rate(least)} tuples per CPU-second."
    return f"{table(heads, rows)}\n\n{said}"


def _library(finding: dict[str, Any]) -> str:
    rows = [[f"`{row[0]}`", row[1], rate(row[2]), rate(row[3])] for row in finding["rows"]]
    return table(finding["columns"], rows)


def _delays(finding: dict[str, Any]) -> str:
    rows = [
        [f"{row[0]}", f"{row[1]:,}", f"{row[2]:,}", *(f"{each:.2f} s" for each in row[3:])] for row in finding["rows"]
    ]
    return table(finding["columns"], rows)


def _on_spark(finding: dict[str, Any]) -> str:
    rows = [[row[0], row[1], rate(row[2]), rate(row[3]), f"{row[6]:.1f}"] for row in finding["rows"]]
    shown = table(["aggregate", "written", "rows/s", "rows per CPU-second", "by hand = 1"], rows)
    return f"![Rows per CPU-second on Spark](benchmarks/aggregates_on_spark.png)\n\n{shown}"


def _peers(finding: dict[str, Any]) -> str:
    heads = ["", "rows per CPU-second, each row more", "Flink = 1", "rows per CPU-second, whole run", "Flink = 1"]
    rows = [
        [who, rate(steady), f"{times:.1f}", rate(whole), f"{times_whole:.1f}"]
        for who, whole, _, steady, times_whole, times in finding["rows"]
    ]
    return table(heads, rows)


WRITERS: dict[str, Callable[[dict[str, Any]], str]] = {
    "delta": _windows,
    "frequent": _windows,
    "slides": _slides,
    "bodies": _bodies,
    "library": _library,
    "denoise_noise": _delays,
    "denoise_rate": _delays,
    "on_spark": _on_spark,
    "peers": _peers,
}
