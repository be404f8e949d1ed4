"""Merging operators: ordered union, window join, sequences. Rows of all ports go in timestamp order only.

A row may go when no other port can still bring an older one, nor an equal one that has to go first. What a port can
still bring is limited from below by the last row of its head page (it is in order, and it is here), or by its register
if nothing is here. With pages of one row this is the relaxed `more` of time-stamp registers: some head has the lowest
timestamp of all registers. With larger pages whole prefixes go at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from millstream.algebra.element import Element
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import FOREVER, NEVER, TS
from millstream.runtime.engine.buffer import Buffer
from millstream.runtime.engine.nodes import OperatorNode, Taken, batch_of, take_element, took_punctuations
from millstream.runtime.engine.port import Port
from millstream.runtime.operator.contract import Input, Operator

VACANT = FOREVER + 1
"""Above every timestamp: what an empty port has at its head."""


class MergeNode(OperatorNode):
    def __init__(self, name: str, operator: Operator, inputs: Sequence[Buffer], ordered: Sequence[bool]) -> None:
        super().__init__(name, operator, inputs, ordered)
        count = len(self.ports)
        tie_order = operator.tie_order
        order = tie_order if tie_order is not None else tuple(range(count))
        self.precedence = tuple(self.ports[index] for index in order)
        """The ports, first to go among equal timestamps first."""
        place = {index: position for position, index in enumerate(order)}
        self.margins = tuple(
            tuple(int(tie_order is not None and place[i] < place[j]) for i in range(count)) for j in range(count)
        )
        """`margins[j][i]` is 1 if port i goes before port j: j's rows must then stay strictly below i's limit."""
        self.reordering = tuple(port for port in self.ports if port.reorder is not None)
        self.plain = tie_order is None and not self.reordering

    def more(self) -> bool:
        if self.plain:
            lowest, limit, _ = self._scan()
            return lowest <= limit
        if self._absorb():
            return True
        limits = self._limits()
        if limits is None:
            return True
        return any(self._first(port) <= self._threshold(port.index, limits) for port in self.ports if port.occupied)

    def take(self) -> Taken | None:
        if self.plain:
            lowest, limit, single = self._scan()
            if lowest > limit:
                return None
            if single:
                return self._take_one(limit)
        first = self._take_heads()
        if first is None or self.strategy.k == 1 or first.met is not None:
            return first
        return self._take_more(first)

    def _take_more(self, first: Taken) -> Taken:
        """Go on as long as the batch allows, and make one step of it all. An element that keeps its position ends the
        batch."""
        rows: dict[int, list[pl.DataFrame]] = {}
        told: dict[int, list[Punctuations]] = {}
        latest, pages = first.latest, 0
        taken: Taken | None = first
        while taken is not None:
            latest = max(latest, taken.latest)
            for place, port in enumerate(taken.inputs):
                if port.rows is not None:
                    rows.setdefault(place, []).append(port.rows)
                    pages += 1
                if port.punctuations is not None:
                    told.setdefault(place, []).append(port.punctuations)
            full = pages >= self.strategy.k * len(self.ports)
            taken = None if full or not self.more() or self._placed() is not None else self._take_heads()
        return batch_of(self.ports, rows, told, latest, pages)

    def _take_heads(self) -> Taken | None:
        self._absorb()
        limits = self._limits()
        if limits is None or self.reordering:
            placed = self._placed()
            told = self._take_punctuations() if placed is None else take_element(self.ports, placed.index)
            if told is not None:
                return told
        assert limits is not None
        return self._take_rows(limits)

    def idle(self) -> bool:
        if self.plain:
            lowest, limit, _ = self._scan()
            return limit < lowest < VACANT
        return any(port.occupied for port in self.ports) and not self.more()

    def blocking(self) -> Port:
        """The port with the lowest limit. A port that has an ordered page here blocks nobody: its rows could go."""
        vacant = [p for p in self.ports if p.reorder is not None or not p.unread] or list(self.ports)
        return min(vacant, key=lambda port: port.register)

    def _scan(self) -> tuple[int, int, bool]:
        """For ordered ports without a tie order: the lowest timestamp at a head, the lowest limit, and whether all
        heads are single rows. A row may go if it is not above the lowest limit: a port whose own limit is the lowest
        has nothing above it, and the others have to stay below it. A punctuation at a head counts as lowest of all."""
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
        """Take the first single row that may go."""
        for chosen in self.ports:
            entry = chosen.head()
            if entry is not None and entry.first <= limit:
                break
        else:
            raise AssertionError("no row may go")
        rows = chosen.take_rows(entry, 1)
        inputs = [Input(rows if port is chosen else None, None, port.bound()) for port in self.ports]
        return Taken(inputs, 1, 0, entry.first, False, True)

    def _absorb(self) -> bool:
        """Empty the unordered ports into their reorder buffers; whether a punctuation there may be handed over."""
        telling = False
        for port in self.reordering:
            port.absorb()
            assert port.reorder is not None
            telling = telling or port.reorder.can_tell()
        return telling

    def _limits(self) -> list[int] | None:
        """Per port, the lowest timestamp that may come after its head page; None if a punctuation is at a head."""
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
        """The highest timestamp that a row of the port may have to be handed over now."""
        lowest = FOREVER if self.ports[index].reorder is None else limits[index]
        margins = self.margins[index]
        for other, limit in enumerate(limits):
            if other != index and limit - margins[other] < lowest:
                lowest = limit - margins[other]
        return lowest

    @staticmethod
    def _first(port: Port) -> int:
        """The timestamp of the next row of an occupied port."""
        if port.reorder is not None:
            return port.reorder.lowest
        return port.buffer.entries[port.at].stamp(port.offset)

    def _placed(self) -> Port | None:
        """A port whose next element keeps its position and may be taken: no tuple of the port is before it. What other
        ports have is no reason to wait."""
        for port in self.ports:
            if port.reorder is not None:
                waiting = port.reorder.pending
                if waiting and waiting[0].element.keeps_position and port.reorder.can_tell():
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
                taken = port.reorder.tell() if port.reorder.can_tell() else None
            elif (entry := port.head()) is not None and not entry.rows:
                taken = port.take_punctuations(entry)
            assert taken is None or isinstance(taken, Punctuations)
            found.append(taken)
        if not any(taken is not None for taken in found):
            return None
        return took_punctuations([Input(None, p, port.bound()) for p, port in zip(found, self.ports, strict=True)])

    def _take_rows(self, limits: Sequence[int]) -> Taken | None:
        found: list[pl.DataFrame | None] = [None] * len(self.ports)
        count, latest = 0, NEVER
        occupied = [port for port in self.precedence if port.occupied]
        one_by_one = all(port.reorder is None and port.buffer.entries[port.at].rows == 1 for port in occupied)
        for port in occupied:
            rows = self._take_prefix(port, self._threshold(port.index, limits))
            if rows is not None:
                found[port.index] = rows
                count += rows.height
                latest = max(latest, int(rows.item(-1, TS)))
                if one_by_one:
                    break
        if not count:
            return None
        inputs = [Input(rows, None, port.bound()) for rows, port in zip(found, self.ports, strict=True)]
        return Taken(inputs, count, 0, latest, progress=False, fresh=True)

    @staticmethod
    def _take_prefix(port: Port, threshold: int) -> pl.DataFrame | None:
        if port.reorder is not None:
            return port.release(threshold)
        entry = port.buffer.entries[port.at]
        count = entry.count_up_to(threshold, port.offset)
        return port.take_rows(entry, count) if count else None
