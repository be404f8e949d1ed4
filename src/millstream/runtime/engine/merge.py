"""Merging operators: ordered union, window join, sequences. They take the rows of all ports in timestamp order only.

A row may be taken when no other port can still deliver an older one, nor an equal one that precedes it. The limit of a
port is a lower bound on its later rows: the last timestamp of its head page (which is in order), or its register if the
port is empty. With pages of one row this is the relaxed `more` of time-stamp registers: some head has the lowest
timestamp of all registers. With larger pages whole prefixes are taken at once. A prod does not wait: rows that do are
handed to the operator as early rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from millstream.algebra.element import Element
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import FOREVER, NEVER, TS
from millstream.runtime.engine.buffer import Buffer
from millstream.runtime.engine.nodes import OperatorNode
from millstream.runtime.engine.port import Port
from millstream.runtime.engine.taking import Taken, batch_of, take_element, take_only_punctuations
from millstream.runtime.operator.contract import Input, Operator
from millstream.runtime.operator.frames import stack

VACANT = FOREVER + 1
"""Above every timestamp: the head of an empty port."""


class MergeNode(OperatorNode):
    def __init__(self, name: str, operator: Operator, inputs: Sequence[Buffer], ordered: Sequence[bool]) -> None:
        super().__init__(name, operator, inputs, ordered)
        self.arrange()

    def arrange(self) -> None:
        """Derive the order of the ports."""
        count, tie_order = len(self.ports), self.operator.tie_order
        order = tie_order if tie_order is not None else tuple(range(count))
        self.precedence = tuple(self.ports[index] for index in order)
        """The ports, in the order in which equal timestamps are taken."""
        place = {index: position for position, index in enumerate(order)}
        self.margins = tuple(
            tuple(int(tie_order is not None and place[i] < place[j]) for i in range(count)) for j in range(count)
        )
        """`margins[j][i]` is 1 if port i precedes port j: j's rows must then stay strictly below i's limit."""
        self.reordering = tuple(port for port in self.ports if port.reorder is not None)
        self.plain = tie_order is None and not self.reordering

    def more(self) -> bool:
        if self.prods:
            return True
        if self.plain:
            lowest, limit, _ = self._scan()
            return lowest <= limit
        if self._absorb():
            return True
        limits = self._limits()
        return limits is None or any(
            self._first(port) <= self._threshold(port.index, limits) for port in self.ports if port.occupied
        )

    def take(self) -> Taken | None:
        if self.prods:
            return self._take_prod()
        if self.plain:
            lowest, limit, single = self._scan()
            if lowest > limit:
                return None
            if single:
                return self._take_one(limit)
        first = self._take_heads()
        if first is None or self.strategy.k == 1 or first.placed is not None:
            return first
        return self._take_more(first)

    def _take_prod(self) -> Taken:
        """Take a prod, ahead of the rows that wait for time: they are before it, and count in its answer."""
        port = next(port for port in self.ports if port.prod_at() is not None)
        inputs = [Input(bound=each.bound()) for each in self.ports]
        element = port.pass_prod()
        held = tuple(stack(pages) if (pages := each.waiting()) else None for each in self.ports)
        return Taken(inputs, placed=(port.index, element), held=held)

    def _take_more(self, first: Taken) -> Taken:
        """Take more until the batch is full, and return everything as one step. An element that keeps its position ends
        the batch."""
        rows: dict[int, list[pl.DataFrame]] = {}
        punctuations: dict[int, list[Punctuations]] = {}
        latest, pages = first.latest, 0
        taken: Taken | None = first
        while taken is not None:
            latest = max(latest, taken.latest)
            for index, port in enumerate(taken.inputs):
                if port.rows is not None:
                    rows.setdefault(index, []).append(port.rows)
                    pages += 1
                if port.punctuations is not None:
                    punctuations.setdefault(index, []).append(port.punctuations)
            full = pages >= self.strategy.k * len(self.ports)
            taken = None if full or not self.more() or self._placed() is not None else self._take_heads()
        return batch_of(self.ports, rows, punctuations, latest, pages)

    def _take_heads(self) -> Taken | None:
        self._absorb()
        limits = self._limits()
        if limits is None or self.reordering:
            placed = self._placed()
            taken = self._take_punctuations() if placed is None else take_element(self.ports, placed.index)
            if taken is not None:
                return taken
        assert limits is not None
        return self._take_rows(limits)

    def idle(self) -> bool:
        if self.plain:
            lowest, limit, _ = self._scan()
            return limit < lowest < VACANT
        return any(port.occupied for port in self.ports) and not self.more()

    def lagging(self) -> Sequence[Port]:
        head, ports = self._held_back()
        return ports if head < VACANT else super().lagging()

    def needs(self) -> int:
        head, _ = self._held_back()
        return head if head < VACANT else super().needs()

    def _held_back(self) -> tuple[int, list[Port]]:
        """Return the time that releases the first row that waits, with the ports that have to reach it; VACANT if no
        row waits."""
        limits = self._limits() if self.idle() else None
        if limits is None:
            return VACANT, []
        first, index = min((self._first(port), port.index) for port in self.ports if port.occupied)
        own = self.ports[index].reorder is not None
        others = [port for port in self.ports if own or port.index != index]
        margins = self.margins[index]
        blocking = [port for port in others if limits[port.index] - margins[port.index] < first]
        return first + max((margins[port.index] for port in blocking), default=0), blocking

    def blocking(self) -> Port:
        """Return the port with the lowest limit. A port with an ordered page blocks no other: its rows could be
        taken."""
        vacant = [p for p in self.ports if p.reorder is not None or not p.unread] or list(self.ports)
        return min(vacant, key=lambda port: port.register)

    def _scan(self) -> tuple[int, int, bool]:
        """For ordered ports without a tie order, return the lowest timestamp at a head, the lowest limit, and whether
        all heads are single rows. A row may be taken if it is not above the lowest limit: a port whose own limit is the
        lowest has no row above it, and the rows of the others must stay below it. A punctuation at a head counts as
        lowest of all."""
        lowest, limit, single = VACANT, FOREVER, True
        for port in self.ports:
            own = port.register
            if port.at != port.buffer.tail:
                entry = port.buffer.entries[port.at]
                if entry.rows != 1:
                    if not entry.rows:
                        return NEVER, NEVER, False
                    single = False
                first = entry.stamp(port.offset)
                if first < lowest:
                    lowest = first
                if entry.last > own:
                    own = entry.last
            if own < limit:
                limit = own
        return lowest, limit, single

    def _take_one(self, limit: int) -> Taken:
        """Take the first of the single rows that may be taken."""
        for chosen in self.ports:
            entry = chosen.head()
            if entry is not None and entry.first <= limit:
                break
        assert entry is not None
        rows = chosen.take_rows(entry, 1)
        inputs = [Input(rows if port is chosen else None, None, port.bound()) for port in self.ports]
        return Taken(inputs, 1, 0, entry.first)

    def _absorb(self) -> bool:
        """Empty the unordered ports into their reorder buffers; return whether an element there may be taken."""
        ready = False
        for port in self.reordering:
            port.absorb()
            assert port.reorder is not None
            ready = ready or port.reorder.element_ready()
        return ready

    def _limits(self) -> list[int] | None:
        """Return the limits of all ports, or None if a punctuation is at a head."""
        limits: list[int] = []
        for port in self.ports:
            limit = port.register
            if port.reorder is None and port.at != port.buffer.tail:
                entry = port.buffer.entries[port.at]
                if not entry.rows:
                    return None
                if entry.last > limit:
                    limit = entry.last
            limits.append(limit)
        return limits

    def _threshold(self, index: int, limits: Sequence[int]) -> int:
        """Return the highest timestamp with which a row of the port may be taken now."""
        lowest = FOREVER if self.ports[index].reorder is None else limits[index]
        margins = self.margins[index]
        for other, limit in enumerate(limits):
            if other != index and limit - margins[other] < lowest:
                lowest = limit - margins[other]
        return lowest

    @staticmethod
    def _first(port: Port) -> int:
        """Return the timestamp of the next row of an occupied port."""
        if port.reorder is not None:
            return port.reorder.lowest
        return port.buffer.entries[port.at].stamp(port.offset)

    def _placed(self) -> Port | None:
        """Return a port whose next element keeps its position and may be taken: no tuple of the port precedes it. It
        does not wait for other ports."""
        for port in self.ports:
            if port.reorder is not None:
                waiting = port.reorder.pending
                if waiting and waiting[0].element.keeps_position and port.reorder.element_ready():
                    return port
            elif (entry := port.head()) is not None and entry.element.keeps_position:
                return port
        return None

    def _take_punctuations(self) -> Taken | None:
        """Take the punctuations at the heads of all ports, without rows."""
        found: list[Punctuations | None] = []
        for port in self.ports:
            taken: Element | None = None
            if port.reorder is not None:
                taken = port.reorder.pop_element() if port.reorder.element_ready() else None
            elif (entry := port.head()) is not None and not entry.rows:
                taken = port.take_punctuations(entry)
            assert taken is None or isinstance(taken, Punctuations)
            found.append(taken)
        if not any(taken is not None for taken in found):
            return None
        return take_only_punctuations([Input(None, p, port.bound()) for p, port in zip(found, self.ports, strict=True)])

    def _take_rows(self, limits: Sequence[int]) -> Taken | None:
        found: list[pl.DataFrame | None] = [None] * len(self.ports)
        count, latest = 0, NEVER
        occupied = [port for port in self.precedence if port.occupied]
        one_by_one = all(port.reorder is None and port.buffer.entries[port.at].rows == 1 for port in occupied)
        for port in occupied:
            threshold = self._threshold(port.index, limits)
            rows = port.take_prefix(threshold) if port.reorder is None else port.release(threshold)
            if rows is not None:
                found[port.index] = rows
                count += rows.height
                latest = max(latest, int(rows.item(-1, TS)))
                if one_by_one:
                    break
        if not count:
            return None
        inputs = [Input(rows, None, port.bound()) for rows, port in zip(found, self.ports, strict=True)]
        return Taken(inputs, count, 0, latest)
