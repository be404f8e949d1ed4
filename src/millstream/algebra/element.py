"""Elements: what flows along the arrows of a query graph, in buffers, from sources to sinks.

| kind | is | keeps its position |
|---|---|---|
| `Page` | tuples, as columns with the hidden timestamp | among other pages |
| `Punctuations` | what no later tuple matches, and how far time has come | no: may go after all tuples of its step |

A step of an operator takes tuples and then punctuations. An element that keeps its position is never taken together
with tuples: the operator has taken every tuple before it and none after it. All messages, also those that go the other
way, are listed in `upstream.py`.

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
    """One element. `keeps_position` is true unless a kind says that its elements may go after later tuples."""

    __slots__ = ()
    keeps_position: ClassVar[bool] = True

    @property
    def tuples(self) -> int:
        """The number of tuples."""
        return 0

    @property
    def punctuation_count(self) -> int:
        """What it adds to the punctuations counted in statistics."""
        return 1

    @property
    def weight(self) -> int:
        """What it weighs in a buffer: its tuples; anything else weighs as much as one."""
        return self.tuples or 1

    @property
    def progress(self) -> int:
        """No later tuple has a timestamp below this."""
        return NEVER

    @abstractmethod
    def __bool__(self) -> bool:
        """Whether it says anything; an element that does not is dropped at the source."""

    @abstractmethod
    def select(self, names: Mapping[str, str]) -> Element:
        """What it says of these columns, under new names."""


@value("page", fields=("frame",), take=lambda page: (page.frame,))
class Page(Element):
    """Tuples in the order in which they came. The frame has the hidden timestamp until the page leaves the graph."""

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
