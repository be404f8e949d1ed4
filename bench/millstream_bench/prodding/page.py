"""The findings as Markdown, for the page on benchmarks: a table for each experiment, and what it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from millstream_bench.aggregates.page import Findings, table


def sections(findings: Findings) -> dict[str, str]:
    """Markdown by experiment, of those that have been run."""
    return {name: write(findings[name]) for name, write in WRITERS.items() if name in findings}


def _picture(name: str, text: str) -> str:
    return f"![{text}](benchmarks/prodding_{name}.png)\n\n"


def _cell(value: Any) -> str:
    """
    >>> _cell(None), _cell(14_694), _cell(95.512), _cell("10 %")
    ('', '14,694', '95.5', '10 %')
    """
    if value is None:
        return ""
    return (
        f"{value:,}" if isinstance(value, int) else f"{value:.1f}" if isinstance(value, float) else str(value).strip()
    )


def _table(finding: dict[str, Any]) -> str:
    return table(finding["columns"], [[_cell(value) for value in row] for row in finding["rows"]]) + _notes(finding)


def _notes(finding: dict[str, Any]) -> str:
    return "".join(f"\n\n{note[0].upper()}{note[1:]}." for note in finding["notes"])


def _shown(name: str, text: str) -> Callable[[dict[str, Any]], str]:
    return lambda finding: _picture(name, text) + _table(finding)


def _overhead(finding: dict[str, Any]) -> str:
    heads = ["query", "without, CPU s", "with, CPU s", "median ratio", "95 % interval", "wall ratio", "ms a prod"]
    rows = []
    for query, without, prodded, ratio, low, high, wall, each in finding["rows"]:
        spent = [f"{without:.2f}", f"{prodded:.2f}", f"{ratio:.3f}", f"{low:.3f} to {high:.3f}", f"{wall:.2f}"]
        rows.append([query, *spent, f"{each:.1f}"])
    return _picture(finding["name"], "Overhead by pair") + table(heads, rows) + _notes(finding)


def _latency(finding: dict[str, Any]) -> str:
    heads = ["query", "tuples a slide", "without, s", "with, s", "ratio", "95 % interval"]
    heads += ["behind the end: without, ms", "with, ms", "more, ms", "95 % interval", "CPU ratio", "95 % interval"]
    rows = []
    for query, count, *figures in finding["rows"]:
        ratio, more, cpu = figures[2:5], figures[7:10], figures[10:]
        cells = [query, f"{count:,}", *(f"{each:.3f}" for each in figures[:2]), *_with_interval(ratio, 3)]
        cells += [f"{each:.1f}" for each in figures[5:7]]
        rows.append([*cells, *_with_interval(more, 1), *_with_interval(cpu, 3)])
    return _picture(finding["name"], "Latency of final rows by pair") + table(heads, rows) + _notes(finding)


def _with_interval(figures: list[float], digits: int) -> list[str]:
    middle, low, high = figures
    return [f"{middle:.{digits}f}", f"{low:.{digits}f} to {high:.{digits}f}"]


WRITERS: dict[str, Callable[[dict[str, Any]], str]] = {
    "latency": _latency,
    "latency_on_spark": _latency,
    "overhead": _overhead,
    "overhead_on_spark": _overhead,
    "aggressiveness_on_spark": _shown("aggressiveness_on_spark", "Accuracy and latency on Spark"),
    "bursts_on_spark": _shown("bursts_on_spark", "Bursts on Spark"),
    "uniform": _shown("uniform", "Accuracy by aggressiveness, uniform values"),
    "normal": _shown("normal", "Accuracy by aggressiveness, normal values"),
    "tumbling": _shown("tumbling", "Accuracy by aggressiveness, tumbling windows"),
    "traffic": _shown("traffic", "Delayed traffic"),
    "lengths": _table,
    "bursts": _shown("bursts", "Bursts"),
    "burst_lengths": _table,
    "bursts_aside": _table,
    "topmost": _table,
    "leads": _shown("leads", "Leads that keep an accuracy"),
    "intervals": _table,
}
