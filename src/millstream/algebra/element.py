"""Elements: the data and control that flow through the buffers of a query graph, from sources to sinks.

| kind | is | keeps its position |
|---|---|---|
| `Page` | tuples, as columns with the hidden timestamp | among other pages |
| `Punctuations` | patterns that no later tuple matches, and progress of time | no: may follow all tuples of its step |
| `Prod` (`early.py`) | a demand for the results so far, with the early rows that answer it | yes |
| `Shed` (`shed.py`) | a notice of tuples that an operator has dropped to keep up | yes |

A step of an operator consumes tuples, then punctuations. An element that keeps its position is never consumed together
with tuples: the operator has consumed every tuple before it and none after it. `upstream.py` lists all messages, also
those that flow upstream.

>>> page = Page(pl.DataFrame({"k": [7, 8], TS: [10, 12]}))
>>> page.tuples, page.weight, page.first, page.last, bool(page)
(2, 2, 10, 12, True)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import polars as pl

from millstream.algebra.schema import NEVER, TS
from millstream.algebra.values import value


class Element(ABC):
    """One element. `keeps_position` is true unless elements of the kind may be consumed after later tuples.
    `overtakes`: where tuples wait for the time of another stream, it does not, and is consumed before them."""

    __slots__ = ()
    keeps_position: ClassVar[bool] = True
    overtakes: ClassVar[bool] = False

    @property
    def tuples(self) -> int:
        """The number of tuples."""
        return 0

    @property
    def punctuation_count(self) -> int:
        """Number of punctuations that statistics count for it."""
        return 1

    @property
    def weight(self) -> int:
        """Its weight in a buffer: the number of tuples, or 1 if it has none."""
        return self.tuples or 1

    @property
    def progress(self) -> int:
        """No later tuple has a timestamp below this."""
        return NEVER

    @abstractmethod
    def __bool__(self) -> bool:
        """True if it carries information; one that does not is dropped at the source."""

    @abstractmethod
    def select(self, names: Mapping[str, str]) -> Element:
        """The element restricted to these columns, under new names."""


@value("page", fields=("frame",))
class Page(Element):
    """Tuples in order of arrival. The frame has the hidden timestamp until the page leaves the graph."""

    __slots__ = ("frame", "tuples")
    keeps_position = False
    punctuation_count: int = 0
    tuples: int

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame
        self.tuples = frame.height

    @property
    def first(self) -> int:
        """The timestamp of the first tuple."""
        return int(self.frame.item(0, TS))

    @property
    def last(self) -> int:
        """The timestamp of the last tuple."""
        return int(self.frame.item(-1, TS))

    def __bool__(self) -> bool:
        return self.tuples > 0

    def select(self, names: Mapping[str, str]) -> Page:
        return Page(self.frame.select(*(pl.col(old).alias(new) for old, new in names.items()), TS))

    def __repr__(self) -> str:
        return f"Page({self.frame.rows()})"
