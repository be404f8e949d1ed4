"""How good the early answers of a query were, window by window, as a picture (SVG).

Above: the early value that was the last before the final one, and the final one, both as means over the groups of a
window. Below: the accuracy of the window, its running average and the worst so far. A driver keeps the last `KEPT`
windows of a query; after a restart they begin anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from html import escape
from typing import NamedTuple

from millstream.runtime.aggregate.assess import Judged

_EPOCH = datetime(1970, 1, 1)
KEPT = 1_000
WIDTH, HEIGHT, LEFT, TOP, GAP = 640, 170, 64, 48, 46
"""Of a panel: its width and height, the margins beside and above it, the gap between two."""
INK, FAINT, FINAL, EARLY, WORST = "#1d1d1f", "#c8c8cc", "#1f5fa8", "#d9730d", "#b3261e"


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
        ends = sorted(self.windows)
        held = [self.windows[end] for end in ends]
        average, worst, count, total = list[float](), list[float](), 0, 0.0
        for window in held:
            count, total = count + window.count, total + window.quality
            average.append(total / count)
            worst.append(min(window.worst, worst[-1] if worst else window.worst))
        values = [
            Line("final", FINAL, [_mean(window.final, window.count) for window in held]),
            Line("early", EARLY, [_mean(window.early, window.count) for window in held], dots=True),
        ]
        qualities = [
            Line("window", EARLY, [window.quality / window.count for window in held], dots=True),
            Line("running average", FINAL, average),
            Line("worst so far", WORST, worst),
        ]
        places = _places(ends)
        body = [_text(LEFT, 18, title, bold=True)]
        body += _panel(TOP, "value", values, places) + _panel(TOP + HEIGHT + GAP, "accuracy, %", qualities, places)
        bottom = TOP + 2 * HEIGHT + GAP + 16
        if ends:
            body.append(_text(LEFT, bottom, label(ends[0])))
            body.append(_text(LEFT + WIDTH, bottom, f"end of the window: {label(ends[-1])}", anchor="end"))
        else:
            body.append(_text(LEFT + 8, TOP + HEIGHT / 2, "no early answer has a final one yet"))
        size = f'width="{LEFT + WIDTH + 16}" height="{bottom + 12}"'
        style = f"font-family: sans-serif; font-size: 12px; fill: {INK}; background: white"
        return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {size} style="{style}">', *body, "</svg>"])


def end_label(unit: int) -> Callable[[int], str]:
    """How the ends of windows are written; `unit`: time units of a second."""
    return str if unit == 1 else lambda end: f"{_EPOCH + timedelta(microseconds=end)}"


class Line(NamedTuple):
    name: str
    colour: str
    values: Sequence[float | None]
    dots: bool = False


def _panel(top: float, name: str, lines: Sequence[Line], places: Sequence[float]) -> list[str]:
    known = [value for line in lines for value in line.values if value is not None]
    low, high = min(known, default=0.0), max(known, default=1.0)
    room = (high - low or abs(high) or 1.0) * 0.06
    low, high = low - room, high + room

    def at(value: float) -> float:
        return top + HEIGHT - HEIGHT * (value - low) / (high - low)

    body = [f'<rect x="{LEFT}" y="{top}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="{FAINT}"/>']
    for value in (low + room, high - room) if known else ():
        body.append(_text(LEFT - 6, at(value) + 4, f"{value:.4g}", anchor="end"))
    body.append(_text(LEFT, top - 6, name))
    right = float(LEFT + WIDTH)
    for line in reversed(lines):
        body.append(_text(right, top - 6, line.name, anchor="end", colour=line.colour))
        right -= 7 * len(line.name) + 14
        points = [(x, at(value)) for x, value in zip(places, line.values, strict=True) if value is not None]
        if line.dots or len(points) == 1:
            body += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{line.colour}"/>' for x, y in points]
        elif points:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            body.append(f'<polyline points="{path}" fill="none" stroke="{line.colour}" stroke-width="1.5"/>')
    return body


def _places(ends: Sequence[int]) -> list[float]:
    """Where windows are from left to right."""
    span = ends[-1] - ends[0] if ends else 0
    return [LEFT + 8 + (WIDTH - 16) * (end - ends[0]) / span if span else LEFT + WIDTH / 2 for end in ends]


def _text(x: float, y: float, text: str, *, anchor: str = "start", colour: str = INK, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}"{weight}>{escape(text)}</text>'


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def _mean(total: float | None, count: int) -> float | None:
    return None if total is None else total / count
