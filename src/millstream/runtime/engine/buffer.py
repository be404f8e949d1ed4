"""Buffers: one queue of elements per producer, however many operators read it.

Each reader has a cursor of its own (its port), so readers share the elements. An element leaves the queue when the last
reader has passed it. A reader added later starts at the tail.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from millstream.algebra.element import Element, Page
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import NEVER, TS
from millstream.algebra.upstream import Upstream

if TYPE_CHECKING:
    from millstream.runtime.engine.nodes import Fork, OperatorNode, Sink, Source
    from millstream.runtime.engine.port import Port


class Ledger:
    """Totals of all buffers of a graph: the last enqueue number, the weight held now and its peak.

    `ready` has every operator with work, and some without.
    """

    __slots__ = ("held", "peak", "ready", "sequence")

    def __init__(self) -> None:
        self.sequence = 0
        self.held = 0
        self.peak = 0
        self.ready: dict[OperatorNode, None] = {}

    def hold(self, weight: int) -> None:
        self.held += weight
        if self.held > self.peak:
            self.peak = self.held


class Entry:
    """An element in a buffer, with the values that scheduling reads often. An element without rows is a batch of
    punctuations, unless it keeps its position."""

    __slots__ = ("_stamps", "element", "first", "last", "rows", "sequence", "weight")

    def __init__(self, element: Element, sequence: int) -> None:
        self.element = element
        self.sequence = sequence
        self._stamps: np.ndarray | None = None
        if isinstance(element, Page):
            self.rows = self.weight = element.tuples
            self.first = element.first
            self.last = self.first if self.rows == 1 else element.last
        else:
            self.rows, self.weight = 0, element.weight
            self.first = self.last = NEVER

    @property
    def page(self) -> pl.DataFrame:
        assert isinstance(self.element, Page)
        return self.element.frame

    @property
    def punctuations(self) -> Punctuations:
        assert isinstance(self.element, Punctuations)
        return self.element

    def stamp(self, row: int) -> int:
        """Return the timestamp of one row."""
        return self.first if row == 0 else int(self.page.item(row, TS))

    def count_up_to(self, limit: int, start: int) -> int:
        """Return the number of rows from `start` on that are not later than the limit (the page is in timestamp
        order)."""
        if self.last <= limit:
            return self.rows - start
        if self.first > limit:
            return 0
        if self._stamps is None:
            self._stamps = self.page.get_column(TS).to_numpy()
        return max(0, int(self._stamps.searchsorted(limit, side="right")) - start)


class Buffer:
    """The output queue of one producer. Positions are absolute: `base` is the oldest element kept, `tail` the next."""

    __slots__ = ("base", "broken", "entries", "fork", "ledger", "ports", "producer", "remembered", "sinks", "tail")

    def __init__(self, producer: Source | OperatorNode, ledger: Ledger) -> None:
        self.producer = producer
        self.ledger = ledger
        self.entries: dict[int, Entry] = {}
        self.base = self.tail = 0
        self.ports: tuple[Port, ...] = ()
        self.sinks: tuple[Sink, ...] = ()
        self.fork: Fork | None = None
        self.broken = False
        self.remembered: dict[str, list[Upstream]] = {}
        """Messages of the kinds that are remembered, by the reader that sent them."""

    def __len__(self) -> int:
        return self.tail - self.base

    def append(self, element: Element) -> None:
        """Append an element at the tail and deliver it to the sinks at once."""
        ledger = self.ledger
        ledger.sequence += 1
        if self.ports:
            entry = Entry(element, ledger.sequence)
            self.entries[self.tail] = entry
            self.tail += 1
            ledger.hold(entry.weight)
            for port in self.ports:
                ledger.ready[port.node] = None
            if element.overtakes:
                for port in self.ports:
                    port.node.prods += 1
        for sink in self.sinks:
            sink.deliver(element)

    def readers(self) -> list[Port | Sink]:
        return [*self.ports, *self.sinks]

    def append_for(self, element: Element, readers: Collection[Port | Sink]) -> None:
        """Append an element for some readers. The others pass it, unless they have earlier elements to take: then they
        take it as well."""
        others = [port for port in self.ports if port not in readers]
        if any(port.unread for port in others):
            others = []
        sinks, self.sinks = self.sinks, tuple(sink for sink in self.sinks if sink in readers)
        self.append(element)
        self.sinks = sinks
        for port in others:
            port.advance()

    def collect(self) -> None:
        """Drop the elements that every reader has passed."""
        low = min((port.at for port in self.ports), default=self.tail)
        while self.base < low:
            self.ledger.held -= self.entries.pop(self.base).weight
            self.base += 1
