"""The frame of a running aggregate: the tuples of a partition that a result is computed of, and the results emitted.

| frame | tuples |
|---|---|
| `ROWS k PRECEDING` | the tuple and the k before it in its partition |
| `RANGE d PRECEDING` | the tuples of its partition at most d older, both ends inclusive, up to the tuple itself |
| `UNBOUNDED PRECEDING` | all tuples of its partition up to the tuple |
| BASE | the same, for an aggregate that is called without OVER and returns rows as it reads |

With a slide only the last tuple of each slot has a result: every `slide`-th tuple of a partition, or the last one of
each interval of `slide` units, counted from the epoch. With `active` each tuple that leaves the frame has a result too.

>>> print(Frame("ROWS", 2), Frame("RANGE", None, slide=5), sep=", ")
ROWS 2 PRECEDING, RANGE UNBOUNDED PRECEDING SLIDE 5
>>> Frame("ROWS", 2, slide=3).tumbles, Frame("ROWS", 2, slide=2).tumbles
(True, False)
"""

from __future__ import annotations

from collections.abc import Callable

from millstream.algebra.values import record
from millstream.algebra.windower import Hopping, Windower, tumbling


@record("frame")
class Frame:
    """`unit` is ROWS, RANGE or BASE. `size` is a number of tuples, or timestamp units; None: unbounded."""

    unit: str = "RANGE"
    size: int | None = None
    slide: int | None = None
    active: bool = False

    @property
    def rows(self) -> bool:
        """True if size and slide count tuples."""
        return self.unit == "ROWS"

    @property
    def base(self) -> bool:
        return self.unit == "BASE"

    @property
    def every(self) -> bool:
        """True if each tuple has just one result, which it triggers itself."""
        return self.slide is None and not self.active

    @property
    def slots(self) -> Windower | None:
        """The slots of time, of which only the last tuple has a result; None: results are not held."""
        return None if self.rows or self.slide is None else tumbling(self.slide)

    @property
    def tumbles(self) -> bool:
        """True if no tuple counts in two results."""
        if self.slide is None or self.size is None:
            return False
        return self.slide >= (self.size + 1 if self.rows else self.size)

    @property
    def pane(self) -> int:
        """With a slide of tuples: the number of tuples in a pane, of which each frame has a whole number. A frame that
        tumbles has one pane, its slot."""
        assert self.slide is not None and self.size is not None
        return self.slide if self.tumbles else Hopping(self.size + 1, self.slide).panes.length

    def __str__(self) -> str:
        return self.spelled(str)

    def spelled(self, length: Callable[[int], str]) -> str:
        """Return the frame as written; `length` writes a length of time."""
        written = str if self.rows else length
        size = "UNBOUNDED" if self.size is None else written(self.size)
        slide = "" if self.slide is None else f" SLIDE {written(self.slide)}"
        return (
            "BASE" if self.base else f"{self.unit} {size} PRECEDING{slide}{' ACTIVE EXPIRATION' if self.active else ''}"
        )
