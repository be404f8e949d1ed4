"""Windows, and the names of the columns that they add."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.algebra.values import record

WINDOW_START = "window_start"
WINDOW_END = "window_end"
WINDOW_TIME = "window_time"
"""The timestamp of a window's row, one tick before the end of the window. It is no column of the aggregate: the name
stands for the hidden timestamp."""
PANE_END = "pane_end"


@record("window")
class Window:
    """A window on one join input: `range` in timestamp units, or the last `rows` tuples, or neither: unbounded.

    `rows = 0` keeps nothing: tuples of that side only probe (asymmetric join).
    """

    range: int | None = None
    rows: int | None = None

    @property
    def unbounded(self) -> bool:
        return self.range is None and self.rows is None

    def __str__(self) -> str:
        if self.rows is not None:
            return f"[ROWS {self.rows}]"
        return "[UNBOUNDED]" if self.range is None else f"[RANGE {self.range}]"


UNBOUNDED = Window()


def widest(ranges: Sequence[int | None]) -> Window:
    """The window with the longest of these ranges; unbounded if one of them is None."""
    known = [range_ for range_ in ranges if range_ is not None]
    return Window(range=max(known)) if len(known) == len(ranges) else UNBOUNDED
