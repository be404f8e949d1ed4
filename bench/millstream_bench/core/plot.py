"""Plots of the core measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def ratio_plot(workloads: list[dict[str, Any]], path: Path) -> None:
    """CPU time as a multiple of Polars': batches of pages, page by page, and punctuated; with a line at three."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4), layout="constrained")
    axes = figure.subplots()
    series = {
        "batches of 16 pages (the default)": ("millstream_cpu_s", "#2b6cb0"),
        "the same, with a punctuation after every 20 tuples": ("punctuated_cpu_s", "#90cdf4"),
        "one page a step": ("pagewise_cpu_s", "#a0aec0"),
    }
    places = range(len(workloads))
    for number, (label, (field, colour)) in enumerate(series.items()):
        ratios = [row[field] / row["polars_cpu_s"] for row in workloads]
        axes.barh([place + 0.26 * (1 - number) for place in places], ratios, 0.24, label=label, color=colour)
    axes.axvline(1, color="#718096", linewidth=1)
    axes.axvline(3, color="#c53030", linewidth=1, linestyle="--")
    axes.set_yticks(list(places), [row["name"] for row in workloads])
    axes.set_xlabel("CPU time; Polars over the whole input at once = 1; dashed: 3")
    axes.legend(loc="lower left", bbox_to_anchor=(-0.25, 1), ncols=3, frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=140)


def growth_plot(growth: list[dict[str, Any]], path: Path) -> None:
    """Tuples held by the punctuated join over the stream."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 3.2), layout="constrained")
    axes = figure.subplots()
    longest = growth[-1]
    bids = [(i + 1) * longest["batch_rows"] / 1e6 for i in range(len(longest["state"]))]
    read = [count * 1e6 for count in bids]
    axes.plot(bids, read, color="#a0aec0", linestyle="--", label="bids read: what a join that never purges holds")
    axes.plot(bids, longest["state"], color="#2b6cb0", marker=".", label="tuples held, auctions closed by punctuation")
    axes.set_yscale("log")
    axes.set_ylim(10, 30 * read[-1])
    axes.set_xlabel("bids read so far, millions")
    axes.set_ylabel("tuples (log scale)")
    axes.legend(loc="upper left", frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=140)
