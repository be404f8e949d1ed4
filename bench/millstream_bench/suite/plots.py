"""What the plots of all suites share: panels beside each other, colours, legends."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OURS, OTHERS, GREY = "#2b6cb0", "#dd6b20", "#718096"
COLOURS = (OURS, OTHERS, "#2f855a", "#805ad5", GREY, "#c53030")


def panels(count: int) -> tuple[Any, list[Axes]]:
    """A figure with panels beside each other."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.5 * count, 3.8), layout="constrained")
    made = list(figure.subplots(1, count, squeeze=False)[0])
    for axes in made:
        axes.spines[["top", "right"]].set_visible(False)
    return figure, made


def plain(axis: Any) -> None:
    """Label a log scale with plain numbers."""
    axis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")


def done(figure: Any, path: Path, **legend: Any) -> None:
    """Add legends and write the picture."""
    for axes in figure.axes:
        axes.legend(frameon=False, fontsize=8, **legend)
    figure.savefig(path, dpi=130)
