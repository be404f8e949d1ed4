"""The nodes of a query graph: sources, operators by the way they take their input, forks, sinks.

Every operator node answers four questions. `more`: is there input it may process? `take`: consume the input of one
step. `idle`: does it hold data it cannot process until time is known to have passed? `blocking`: which port has to
move for it to go on?
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, NamedTuple

import polars as pl

from millstream.algebra.element import Element
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import FOREVER, NEVER, Schema
from millstream.algebra.upstream import Upstream
from millstream.runtime.engine.buffer import Buffer, Entry, Ledger
from millstream.runtime.engine.port import Port
from millstream.runtime.engine.statistics import Counters
from millstream.runtime.engine.table import Row
from millstream.runtime.engine.timestamps import Arc
from millstream.runtime.operator.contract import Input, Operator
from millstream.runtime.operator.frames import stack
from millstream.strategies import DFS, Macro, Strategy

Hear = Callable[[Upstream], int | None]
"""Takes a message that reaches a source; returns the timestamp that the source promises in return, if it does."""


class Source:
    """Where elements enter. `promised` is the highest bound that an element in its buffer has carried."""

    executes: ClassVar[bool] = False
    prone: ClassVar[bool] = True

    def __init__(self, name: str, schema: Schema, hear: Hear | None, ledger: Ledger) -> None:
        self.name = name
        self.schema = schema
        self.hear = hear
        self.promised = NEVER
        self.buffer = Buffer(self, ledger)
        self.arcs: tuple[Arc, ...] = ()
        self.counters = Counters()

    def ask(self, message: Upstream) -> int | None:
        """Hand a message to whatever feeds the source."""
        return self.hear(message) if self.hear is not None else None

    def put(self, element: Element) -> None:
        self.counters.tuples_out += element.tuples
        self.counters.punctuations_out += element.punctuation_count
        self.promised = max(self.promised, element.progress)
        self.buffer.append(element)

    def __repr__(self) -> str:
        return f"<source {self.name}>"


class Sink:
    """An output wrapper: takes every element the moment it is put out."""

    def __init__(self, name: str, buffer: Buffer, callback: Callable[[Element], None]) -> None:
        self.name = name
        self.buffer = buffer
        self.callback = callback
        self.counters = Counters()

    def deliver(self, element: Element) -> None:
        self.counters.steps += 1
        self.counters.tuples_in += element.tuples
        self.counters.punctuations_in += element.punctuation_count
        self.callback(element)

    def __repr__(self) -> str:
        return f"<sink {self.name}>"


class Fork:
    """Passes control to the readers of a shared buffer in turn. It consumes nothing: each reader has its cursor."""

    executes: ClassVar[bool] = True

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.name = "fork"
        self.turn = 0
        self.rows: tuple[Row, ...] = ()
        self.exits = False

    def idle(self) -> bool:
        return False

    def next_branch(self, epoch: int) -> Port | None:
        """The next branch in turn that has something to read and was not tried since anything moved."""
        ports = self.buffer.ports
        for i in range(len(ports)):
            index = (self.turn + i) % len(ports)
            port = ports[index]
            if port.at != self.buffer.tail and port.tried != epoch:
                port.tried = epoch
                self.turn = (index + 1) % len(ports)
                return port
        return None


UNLIMITED = 1 << 62


class Taken(NamedTuple):
    """The input of one step. `rows` and `punctuation_count` count its elements; `latest` is the highest timestamp of
    the rows; `progress` says that time came in band; `fresh` tells a step that took tuples from one that did not;
    `pages` is what a batching strategy counts. `met`: an element that keeps its position, and the port where it came;
    then the inputs bring only the time."""

    inputs: Sequence[Input]
    rows: int
    punctuation_count: int
    latest: int
    progress: bool
    fresh: bool
    pages: int = 1
    met: tuple[int, Element] | None = None


def take_element(ports: Sequence[Port], index: int) -> Taken:
    """Take the next element of one port, which keeps its position."""
    inputs = [Input(bound=port.bound()) for port in ports]  # as it is before the tuples behind the element are seen
    element = ports[index].pass_element()
    return Taken(inputs, 0, element.punctuation_count, NEVER, progress=False, fresh=False, met=(index, element))


def took_punctuations(inputs: Sequence[Input]) -> Taken:
    """The step that takes the punctuations in these inputs, and no rows."""
    found = [i.punctuations for i in inputs if i.punctuations is not None]
    progress = any(p.progress > NEVER for p in found)
    return Taken(inputs, 0, max(1, sum(map(len, found))), NEVER, progress, fresh=False)


class OperatorNode(ABC):
    """An operator in a graph: its ports, its output buffer and its row of the transition table."""

    executes: ClassVar[bool] = True

    def __init__(self, name: str, operator: Operator, inputs: Sequence[Buffer], ordered: Sequence[bool]) -> None:
        self.name = name
        self.operator = operator
        self.prone = operator.idle_waiting_prone
        """Whether time has to stop here instead of skipping the operator."""
        self.buffer = Buffer(self, inputs[0].ledger)
        self.ports = tuple(
            Port(self, index, buffer, ordered=flag, merging=operator.merges)
            for index, (buffer, flag) in enumerate(zip(inputs, ordered, strict=True))
        )
        self.strategy: Strategy = DFS
        self.rule: Macro = DFS.rules.macro
        self.row = Row(name, "–", "–", "DFS-NOS")
        self.arcs: tuple[Arc, ...] = ()
        self.count = 0
        """Elements taken in the current visit (for k-tuple batches)."""
        self.sent = NEVER
        """The highest bound that the output buffer was told in band."""
        self.latest_out = NEVER
        self.reader_unordered = False
        """Whether some reader does not learn the time from tuples."""
        self.in_band = False
        """Whether time has ever come to this operator in band."""
        self.counters = Counters()
        self.known: tuple[int, ...] = ()
        """The bounds of its ports that the operator has last heard."""
        self.pages = 0
        """How many pages the last step took."""
        self.page_rows = UNLIMITED
        """The most rows of an element that count as one page; a longer element is taken page by page."""

    @abstractmethod
    def more(self) -> bool:
        """Whether there is input this operator may process now."""

    @abstractmethod
    def take(self) -> Taken | None:
        """Consume the input of one step; None if there is no more."""

    def _take_from(self, index: int, entry: Entry) -> Taken:
        """Take the head of one port, or a batch that begins with it."""
        if self.strategy.k > 1 and entry.rows > 1:
            return take_batch(self.ports, index, self.strategy.k, self.page_rows)
        return take_head(self.ports, index, entry, self.page_rows)

    def idle(self) -> bool:
        return False

    def blocking(self) -> Port:
        """The port to backtrack from when there is no more: the one whose time lags most."""
        return min(self.ports, key=Port.bound)

    def bound(self) -> int:
        """No later output has a lower timestamp."""
        bound = self.operator.output_bound([port.bound() for port in self.ports])
        # An operator that reckons in windows may overshoot the end of time.
        return max(NEVER, min(FOREVER, bound))

    def arrival(self) -> int:
        """The enqueue number of the oldest element at a port."""
        heads = [entry.sequence for port in self.ports if (entry := port.head()) is not None]
        return min(heads, default=self.buffer.ledger.sequence)

    @property
    def at_source(self) -> bool:
        """Whether a source has something for this operator."""
        return any(port.unread and not port.buffer.producer.executes for port in self.ports)

    def __repr__(self) -> str:
        return f"<operator {self.name}>"


class SingleNode(OperatorNode):
    """One input, no interest in the mere passing of time: selection, projection, aggregate without slide."""

    def __init__(self, name: str, operator: Operator, inputs: Sequence[Buffer], ordered: Sequence[bool]) -> None:
        super().__init__(name, operator, inputs, ordered)
        self.port = self.ports[0]

    def more(self) -> bool:
        return self.port.at != self.port.buffer.tail

    def take(self) -> Taken | None:
        entry = self.port.head()
        if entry is None:
            return None
        return self._take_from(0, entry)

    def blocking(self) -> Port:
        return self.port


class TimedNode(SingleNode):
    """One input, and the passing of time alone makes it act: aggregates over time windows."""

    def __init__(self, name: str, operator: Operator, inputs: Sequence[Buffer], ordered: Sequence[bool]) -> None:
        super().__init__(name, operator, inputs, ordered)
        self.told = NEVER
        """The bound the operator has last heard."""

    def more(self) -> bool:
        return self.port.at != self.port.buffer.tail or self.port.register > self.told

    def take(self) -> Taken | None:
        taken = super().take()
        if taken is None and self.port.register > self.told:
            taken = Taken((Input(bound=self.port.register),), 0, 0, NEVER, progress=False, fresh=False)
        if taken is not None:
            self.told = taken.inputs[0].bound
        return taken

    def idle(self) -> bool:
        return self.port.at == self.port.buffer.tail and self.operator.waiting()


class ArrivalNode(OperatorNode):
    """Several inputs, elements taken in the order in which they were enqueued: nothing waits for order."""

    def more(self) -> bool:
        return any(port.at != port.buffer.tail for port in self.ports)

    def take(self) -> Taken | None:
        oldest: Entry | None = None
        chosen = 0
        for index, port in enumerate(self.ports):
            entry = port.head()
            if entry is not None and (oldest is None or entry.sequence < oldest.sequence):
                oldest, chosen = entry, index
        if oldest is None:
            return None
        return self._take_from(chosen, oldest)


def take_head(ports: Sequence[Port], index: int, entry: Entry, page_rows: int) -> Taken:
    """Take the next page of one port, or its punctuations; the other ports only say how far their time is. A page of
    several rows is taken together with the punctuations right behind it: they were cut from one piece of the stream."""
    port = ports[index]
    if entry.element.keeps_position:
        return take_element(ports, index)
    if not entry.rows:
        punctuations = port.take_punctuations(entry)
        return took_punctuations(_offer(ports, index, None, punctuations))
    rows, latest = _take_page(port, entry, page_rows)
    behind = port.head() if rows.height > 1 else None
    if behind is None or behind.rows or behind.sequence != entry.sequence + 1 or behind.element.keeps_position:
        return Taken(_offer(ports, index, rows, None), rows.height, 0, latest, False, True)
    punctuations = port.take_punctuations(behind)
    inputs = _offer(ports, index, rows, punctuations)
    punctuation_count = max(1, len(punctuations))
    return Taken(inputs, rows.height, punctuation_count, latest, punctuations.progress > NEVER, True)


def _take_page(port: Port, entry: Entry, most: int) -> tuple[pl.DataFrame, int]:
    """The next rows of the head element, at most so many, and the timestamp of the last of them."""
    left = entry.rows - port.offset
    if left <= most:
        return port.take_rows(entry, left), entry.last
    latest = entry.stamp(port.offset + most - 1)
    return port.take_rows(entry, most), latest


def take_batch(ports: Sequence[Port], index: int, limit: int, page_rows: int) -> Taken:
    """Take up to `limit` pages of one port in one step, with the punctuations among them, as far as nothing older waits
    at another port, nor an element among them that keeps its position. All rows go before all punctuations."""
    port = ports[index]
    others = [head.sequence for other in ports if other is not port and (head := other.head()) is not None]
    before = min(others, default=port.buffer.ledger.sequence + 1)
    rows: list[pl.DataFrame] = []
    told: list[Punctuations] = []
    latest, pages = NEVER, 0
    # Two ports may read one buffer: then the same element waits at both, and the one chosen goes first.
    while (entry := port.head()) is not None and (entry.sequence < before or not (rows or told)):
        if entry.element.keeps_position:
            break
        if not entry.rows:
            told.append(port.take_punctuations(entry))
        elif pages < limit:
            taken, last = _take_page(port, entry, (limit - pages) * page_rows)
            rows.append(taken)
            latest, pages = max(latest, last), pages + -(-taken.height // page_rows)
        else:
            break
    return batch_of(ports, {index: rows}, {index: told}, latest, pages)


def batch_of(
    ports: Sequence[Port],
    rows: Mapping[int, list[pl.DataFrame]],
    told: Mapping[int, list[Punctuations]],
    latest: int,
    pages: int,
) -> Taken:
    """One step of many elements, given per port."""
    inputs: list[Input] = []
    for place, port in enumerate(ports):
        parts, batches = rows.get(place), told.get(place)
        page = stack(parts) if parts else None
        punctuations = (batches[0] if len(batches) == 1 else Punctuations.concat(batches)) if batches else None
        inputs.append(Input(page, punctuations, port.bound()))
    heard = [batch for batches in told.values() for batch in batches]
    return Taken(
        inputs,
        rows=sum(i.rows.height for i in inputs if i.rows is not None),
        punctuation_count=sum(max(1, len(batch)) for batch in heard),
        latest=latest,
        progress=any(batch.progress > NEVER for batch in heard),
        fresh=any(rows.values()),
        pages=max(1, pages),
    )


def _offer(
    ports: Sequence[Port], index: int, rows: pl.DataFrame | None, punctuations: Punctuations | None
) -> tuple[Input, ...]:
    """What one port has to offer in this step, and the time of all."""
    if len(ports) == 1:
        return (Input(rows, punctuations, ports[0].bound()),)
    return tuple(
        Input(rows, punctuations, port.bound()) if i == index else Input(None, None, port.bound())
        for i, port in enumerate(ports)
    )


Producer = Source | OperatorNode
