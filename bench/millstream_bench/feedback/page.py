"""The findings as Markdown, for the page on benchmarks: a table for each experiment, and what it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from millstream_bench.aggregates.page import Findings, table


def sections(findings: Findings) -> dict[str, str]:
    """Markdown by experiment, of those that have been run."""
    return {name: write(findings[name]) for name, write in WRITERS.items() if name in findings}


def _picture(name: str, text: str) -> str:
    return f"![{text}](benchmarks/feedback_{name}.png)\n\n"


def _hours(finding: dict[str, Any], size: str) -> str:
    hours = finding["sizes"][size]
    return f"\n\nReadings of {hours} hours; all runs together took {finding['wall_s'] / 60:,.1f} minutes."


def _overhead(finding: dict[str, Any], size: str = "steady_hours") -> str:
    heads = ["query", "against", "without, CPU s", "with, CPU s", "median ratio", "95 % interval"]
    rows = [[row[0], row[1], f"{row[2]:.2f}", f"{row[3]:.2f}", f"{row[4]:.3f}", f"{row[5]:.3f} to {row[6]:.3f}"]
            for row in finding["rows"]]  # fmt: skip
    return table(heads, rows) + _hours(finding, size)


def _overhead_on_spark(finding: dict[str, Any]) -> str:
    return _picture("overhead_on_spark", "Overhead by pair") + _overhead(finding, "hours")


def _sending(finding: dict[str, Any]) -> str:
    heads = ["a message after", "selections", "off, CPU s", "on, CPU s", "µs a message", "and selection"]
    rows = [[row[0], str(row[1]), f"{row[2]:.2f}", f"{row[3]:.2f}", f"{row[4]:.0f}", f"{row[5]:.0f}"]
            for row in finding["rows"]]  # fmt: skip
    return _picture("sending", "Cost of a message") + table(heads, rows)


def _sending_on_spark(finding: dict[str, Any]) -> str:
    heads = ["feedback", "wall s", "CPU s", "messages", "CPU ms a message"]
    rows = [[row[0], f"{row[1]:.1f}", f"{row[2]:.1f}", f"{row[3]:,}", "" if row[4] is None else f"{row[4]:.0f}"]
            for row in finding["rows"]]  # fmt: skip
    return table(heads, rows) + _hours(finding, "hours")


def _utility(finding: dict[str, Any]) -> str:
    heads = ["plan", "estimates made", "pruned", "dropped by PACE", "rows out", "useful", "CPU s"]
    rows = [[row[0], *(f"{count:,}" for count in row[1:5]), f"{row[6]:.1%}", f"{row[8]:.1f}"]
            for row in finding["rows"]]  # fmt: skip
    needed, in_time = finding["rows"][0][1], finding["rows"][2][5]
    sizes, numbers = finding["sizes"], finding["numbers"]
    return (
        f"{table(heads, rows)}\n\n{finding['rows'][0][4]:,} readings, {sizes['minutes']} minutes of them and at most "
        f"{sizes['budget']} estimates a batch. Feedback avoids {numbers['avoided']:.1%} of the estimates; "
        f"at most {1 - in_time / needed:.1%} could be avoided: the others are in time." + _hours(finding, "pace_hours")
    )


def _utility_on_spark(finding: dict[str, Any]) -> str:
    return _picture("utility_on_spark", "Estimates and output by plan") + _utility(finding)


def _levels(finding: dict[str, Any]) -> str:
    heads = ["feedback is acted on", "source", "join", "mean", "CPU s"]
    rows = [[row[0], *(f"{count:,}" for count in row[1:4]), f"{row[6]:.1f}"] for row in finding["rows"]]
    return table(heads, rows) + _hours(finding, "hours")


def _levels_on_spark(finding: dict[str, Any]) -> str:
    return _picture("levels_on_spark", "Tuples by level") + _levels(finding)


def _resources(finding: dict[str, Any]) -> str:
    heads = ["query", "rows: off", "on", "CPU s: empty", "off", "on", "saved", "wall s: empty", "off", "on", "saved"]
    rows = []
    for row in finding["rows"]:
        cpu, wall = row[5:8], row[9:12]
        rows.append([row[0], f"{row[1]:,}", f"{row[2]:,}", *(f"{each:.1f}" for each in cpu), _share(row[8]),
                     *(f"{each:.1f}" for each in wall), _share(row[12])])  # fmt: skip
    return table(heads, rows) + _hours(finding, "broad_hours")


def _share(saved: float | None) -> str:
    return "–" if saved is None else f"{saved:.0%}"


def _resources_on_spark(finding: dict[str, Any]) -> str:
    beside = ", ".join(
        f"{query} {numbers['spark']['cpu_s']:.1f} CPU s in {numbers['spark']['wall_s']:.1f} s"
        for query, numbers in finding["numbers"].items()
        if "spark" in numbers
    )
    said = f"\n\nSpark's own operators, which cannot be told: {beside}." if beside else ""
    return _picture("resources_on_spark", "CPU time by query") + _resources(finding) + said


WRITERS: dict[str, Callable[[dict[str, Any]], str]] = {
    "overhead": _overhead,
    "overhead_on_spark": _overhead_on_spark,
    "sending": _sending,
    "sending_on_spark": _sending_on_spark,
    "utility": _utility,
    "utility_on_spark": _utility_on_spark,
    "levels": _levels,
    "levels_on_spark": _levels_on_spark,
    "resources": _resources,
    "resources_on_spark": _resources_on_spark,
}
