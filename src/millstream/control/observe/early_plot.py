"""How good the early answers of a query were, window by window, as a picture (SVG).

Above: the early value that was the last before the final one, and the final one, both as means over the groups of a
window. Below: the accuracy of the window, its running average and the worst so far. A driver keeps the last `KEPT`
windows of a query; after a restart they begin anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import accumulate
from operator import truediv

from millstream.logical.contract.picture import svg_of
from millstream.runtime.aggregate.assess import Judged

_EPOCH = datetime(1970, 1, 1)
KEPT = 1_000
FINAL, EARLY, WORST = "#1f5fa8", "#d9730d", "#b3261e"


@dataclass(frozen=True, slots=True)
class Window:
    """The answers for a window: their number, sums of shares and of qualities, the worst quality, and the sums of early
    and final values, None if they are no numbers."""

    count: int
    share: float
    quality: float
    worst: float
    early: float | None
    final: float | None

    def __add__(self, other: Window) -> Window:
        early, final = _sum(self.early, other.early), _sum(self.final, other.final)
        added = self.count + other.count, self.share + other.share, self.quality + other.quality
        return Window(*added, min(self.worst, other.worst), early, final)


def by_window(judged: Iterable[Judged]) -> dict[int, Window]:
    """What all shards have compared in a batch, by the ends of windows."""
    found: dict[int, Window] = {}
    for end, count, share, quality, worst, early, final in judged:
        made = Window(count, share, quality, worst, early, final)
        found[end] = found[end] + made if end in found else made
    return dict(sorted(found.items()))


@dataclass(slots=True)
class Track:
    """The last windows of a query whose early answers were compared, by their ends."""

    windows: dict[int, Window] = field(default_factory=dict)

    def add(self, found: Mapping[int, Window]) -> None:
        for end, window in found.items():
            self.windows[end] = self.windows[end] + window if end in self.windows else window
        for end in sorted(self.windows)[:-KEPT]:
            del self.windows[end]

    def svg(self, title: str, label: Callable[[int], str] = str) -> str:
        """The picture; `label`: a window's end as text."""
        from matplotlib.figure import Figure

        ends = sorted(self.windows)
        held = [self.windows[end] for end in ends]
        counts, qualities = [window.count for window in held], [window.quality for window in held]
        figure = Figure(figsize=(7.5, 5), layout="constrained")
        figure.suptitle(title, weight="bold")
        above, below = figure.subplots(2, sharex=True)
        above.plot(ends, [_mean(window.final, window.count) for window in held], color=FINAL, label="final")
        above.plot(ends, [_mean(window.early, window.count) for window in held], ".", color=EARLY, label="early")
        average = [total / count for total, count in zip(accumulate(qualities), accumulate(counts), strict=True)]
        below.plot(ends, list(map(truediv, qualities, counts)), ".", color=EARLY, label="window")
        below.plot(ends, average, color=FINAL, label="running average")
        below.plot(ends, list(accumulate((window.worst for window in held), min)), color=WORST, label="worst so far")
        below.set_xlabel("end of the window")
        below.set_xticks(ends[:: max(len(ends) - 1, 1)], [label(end) for end in ends[:: max(len(ends) - 1, 1)]])
        for axes, name in ((above, "value"), (below, "accuracy, %")):
            axes.set_title(name, loc="left", fontsize=9)
            axes.legend(frameon=False, fontsize=8, ncols=3, loc="lower right", bbox_to_anchor=(1, 1))
            for line in axes.lines:
                line.set_gid(line.get_label())
        if not ends:
            above.text(0.5, 0.5, "no early answer has a final one yet", transform=above.transAxes, ha="center")
        return svg_of(figure)


def end_label(unit: int) -> Callable[[int], str]:
    """How the ends of windows are written; `unit`: time units of a second."""
    return str if unit == 1 else lambda end: f"{_EPOCH + timedelta(microseconds=end)}"


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def _mean(total: float | None, count: int) -> float | None:
    return None if total is None else total / count
