"""Plots of the core measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def ratio_plot(workloads: list[dict[str, Any]], path: Path) -> None:
    """CPU time as a multiple of Polars', plain and punctuated, with the limit of three."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 3.2), layout="constrained")
    axes = figure.subplots()
    names = [row["name"] for row in workloads]
    plain = [row["ratio"] for row in workloads]
    punctuated = [row["punctuated_cpu_s"] / row["polars_cpu_s"] for row in workloads]
    places = range(len(names))
    axes.barh([p + 0.2 for p in places], plain, 0.38, label="Millstream", color="#2b6cb0")
    axes.barh([p - 0.2 for p in places], punctuated, 0.38, label="with a punctuation every 20 tuples", color="#90cdf4")
    axes.axvline(1, color="#718096", linewidth=1)
    axes.axvline(3, color="#c53030", linewidth=1, linestyle="--")
    axes.set_yticks(list(places), names)
    axes.set_xlabel("CPU time, Polars over the whole input = 1 (dashed: limit of 3)")
    axes.legend(loc="lower right", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=140)


def growth_plot(growth: list[dict[str, Any]], path: Path) -> None:
    """Tuples held by the punctuated join as the stream goes on."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 3.2), layout="constrained")
    axes = figure.subplots()
    longest = growth[-1]
    bids = [(i + 1) * longest["batch_rows"] / 1e6 for i in range(len(longest["state"]))]
    axes.plot(bids, longest["state"], color="#2b6cb0", marker=".", label="tuples held, auctions closed by punctuation")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("bids so far, millions")
    axes.set_ylabel("tuples in the join's state")
    axes.legend(loc="lower right", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=140)
