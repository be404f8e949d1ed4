"""The speed map: places from south to north, both directions, the speed of each now and in the last hour as colours."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from millstream_demo.freeway import Station, stations

HISTORY = 30
"""Frames of two minutes that a row shows."""
GREEN, RED = 50.0, 20.0
"""Miles per hour above which a place is green, and below which it is red."""
_LETTERS = {"green": "▪", "yellow": "▒", "red": "█"}
"""What a screen without colours shows in place of them."""


class SpeedMap:
    """The frames received so far. `coloured`: the screen has colours."""

    def __init__(self, *, coloured: bool) -> None:
        self._coloured = coloured
        self._stations = {station.number: station for station in stations()}
        self._frames: dict[datetime, dict[int, tuple[float, str]]] = {}
        self._hidden: dict[int, datetime] = {}
        """The stations out of sight, and the last frame before they were."""
        self.now: datetime | None = None

    def take(self, rows: Iterable[tuple[Any, ...]]) -> int:
        """Take rows of a frame's end, a station, its speed and its colour; return the number of new frames."""
        before = len(self._frames)
        for end, station, speed, colour in rows:
            self._frames.setdefault(end, {})[station] = speed, colour
            self.now = end if self.now is None else max(self.now, end)
        return len(self._frames) - before

    def hide(self, numbers: Collection[int]) -> None:
        """Take stations out of sight, from the next frame on."""
        assert self.now is not None
        self._hidden |= dict.fromkeys(numbers, self.now)

    @property
    def visible(self) -> list[Station]:
        return [station for number, station in self._stations.items() if number not in self._hidden]

    def __rich__(self) -> Table:
        table = Table(box=None, pad_edge=False, padding=(0, 1), expand=False)
        table.add_column("mile", justify="right")
        table.add_column("place")
        for name in ("northbound, mph", "southbound, mph"):
            table.add_column(Text(name), min_width=HISTORY + 3)
        for place, mile, directions in self._places():
            dim = all(station is None or station.number in self._hidden for station in directions)
            cells = [self._cell(station) for station in directions]
            table.add_row(f"{mile:.1f}", place, *cells, style="dim" if dim else "")
        return table

    def _places(self) -> list[tuple[str, float, tuple[Station | None, Station | None]]]:
        """The places from north to south, with the stations of both directions."""
        found: dict[str, dict[str, Station]] = {}
        for station in self._stations.values():
            found.setdefault(station.place, {})[station.direction] = station
        miles = {place: max(station.milepost for station in own.values()) for place, own in found.items()}
        order = sorted(found, key=lambda place: -miles[place])
        return [(place, miles[place], (found[place].get("N"), found[place].get("S"))) for place in order]

    def _cell(self, station: Station | None) -> Text:
        cell = Text()
        if station is None or self.now is None:
            return cell
        last: deque[tuple[float, str] | None] = deque(maxlen=HISTORY)
        for end in sorted(self._frames):
            last.append(self._frames[end].get(station.number))
        now = last[-1]
        cell.append("  · " if now is None else f"{now[0]:3.0f} ", style="dim" if now is None else now[1])
        for frame in last:
            if frame is None:
                cell.append("·", style="dim")
            elif self._coloured:
                cell.append("█", style=frame[1])
            else:
                cell.append(_LETTERS[frame[1]])
        return cell


def legend(*, coloured: bool) -> Text:
    """What the colours mean."""
    text = Text("two minutes a cell:  ")
    meanings = {"green": f"above {GREEN:.0f} mph", "yellow": "between", "red": f"below {RED:.0f} mph"}
    for colour, meaning in meanings.items():
        text.append("█ " if coloured else f"{_LETTERS[colour]} ", style=colour if coloured else "")
        text.append(f"{meaning}   ")
    text.append("· no speed")
    return text
