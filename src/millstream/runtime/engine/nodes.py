"""The nodes of a query graph: sources, operators by the way they take their input, forks, sinks.

| every operator node has | |
|---|---|
| `more` | is there input that it may process now? |
| `take` | consume the input of one step |
| `idle` | does it hold data that it cannot process until time is known to have passed? |
| `blocking` | the port that has to advance before it can continue |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from millstream.algebra.early import Prod
from millstream.algebra.element import Element, Page
from millstream.algebra.feedback import Feedback, Withdrawal
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.response import Respond
from millstream.algebra.schema import FOREVER, NEVER, Schema
from millstream.algebra.upstream import Answer, Upstream
from millstream.runtime.engine import responding
from millstream.runtime.engine.buffer import Buffer, Entry, Ledger
from millstream.runtime.engine.guard import Ends, Guard, Seen
from millstream.runtime.engine.port import Port
from millstream.runtime.engine.preference import Preference
from millstream.runtime.engine.statistics import Counters
from millstream.runtime.engine.table import Row
from millstream.runtime.engine.taking import UNLIMITED, Taken, take_batch, take_head
from millstream.runtime.engine.timestamps import Arc
from millstream.runtime.operator.capabilities import (
    AwaitsTime,
    Defers,
    GuardsItself,
    LooksAhead,
    Reports,
    WorksOffBudget,
    answered,
)
from millstream.runtime.operator.contract import Input, Operator
from millstream.strategies import DFS, Macro, Strategy
from millstream.switches import ON

Hear = Callable[[Upstream], int | None]
"""Receives a message that has reached a source; returns the timestamp that the source promises in reply, or None."""


class Source:
    """Where elements enter the graph. `promised` is the highest progress of any element so far."""

    executes: ClassVar[bool] = False
    prone: ClassVar[bool] = True

    def __init__(self, name: str, schema: Schema, hear: Hear | None, ledger: Ledger) -> None:
        self.name = name
        self.schema = schema
        self.ask = hear if hear is not None else lambda _: None
        self.promised = NEVER
        self.buffer = Buffer(self, ledger)
        self.arcs: tuple[Arc, ...] = ()
        self.counters = Counters()
        self.disclaimed: tuple[Sequence[Sequence[Upstream]], tuple[Pattern, ...]] = (), ()
        """What its readers have said, and the tuples that none of them wants."""

    def put(self, element: Element) -> None:
        self.counters.tuples_out += element.tuples
        self.counters.punctuations_out += element.punctuation_count
        self.promised = max(self.promised, element.progress)
        self.buffer.append(element)

    def __repr__(self) -> str:
        return f"<source {self.name}>"


class Sink:
    """An output wrapper: receives every element as soon as the producer emits it."""

    def __init__(self, name: str, buffer: Buffer, callback: Callable[[Element], None]) -> None:
        self.name = name
        self.buffer = buffer
        self.callback = callback
        self.counters = Counters()
        self.guard: Guard | None = None
        self.preference: Preference | None = None
        self.ends: dict[str, Ends] = {}
        self.seen = Seen()

    def deliver(self, element: Element) -> None:
        if isinstance(element, Punctuations):
            if len(element):
                self.seen.add(element)
        elif isinstance(element, Prod):
            if self.guard is not None and element.rows is not None:
                element = element.with_rows(self.guard.filter(element.rows))
        elif self.guard is not None and isinstance(element, Page):
            rows = self.guard.filter(element.frame)
            self.counters.disclaimed += element.tuples - (0 if rows is None else rows.height)
            if rows is None:
                return
            element = element if rows is element.frame else Page(rows)
        if self.preference is not None and isinstance(element, Page):
            element = Page(self.preference(element.frame))
        self.counters.steps += 1
        self.counters.tuples_in += element.tuples
        self.counters.punctuations_in += element.punctuation_count
        self.callback(element)

    def __repr__(self) -> str:
        return f"<sink {self.name}>"


class Fork:
    """Passes control to the readers of a shared buffer in turn. It consumes nothing: each reader has its own cursor."""

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.name = "fork"
        self.turn = 0
        self.rows: tuple[Row, ...] = ()
        self.exits = False

    def idle(self) -> bool:
        return False

    def next_branch(self, epoch: int) -> Port | None:
        """Return the next branch in turn that has input and was not tried since the last consumption."""
        ports = self.buffer.ports
        for i in range(len(ports)):
            index = (self.turn + i) % len(ports)
            port = ports[index]
            if port.at != self.buffer.tail and port.tried != epoch:
                port.tried = epoch
                self.turn = (index + 1) % len(ports)
                return port
        return None


class OperatorNode(ABC):
    """An operator in a graph: its ports, its output buffer and its row of the transition table."""

    executes: ClassVar[bool] = True

    def __init__(self, name: str, operator: Operator, inputs: Sequence[Buffer], ordered: Sequence[bool]) -> None:
        self.name = name
        self.operator = operator
        self.prone = operator.idle_waiting_prone
        """True if enabling timestamps stop here instead of skipping the operator."""
        self.awaits = operator if isinstance(operator, AwaitsTime) else None
        self.defers = operator if isinstance(operator, Defers) else None
        self.reports = operator if isinstance(operator, Reports) else None
        self.budgeted = operator if isinstance(operator, WorksOffBudget) else None
        self.guards_itself = isinstance(operator, GuardsItself)
        self.looks_ahead = operator.merges and isinstance(operator, LooksAhead)
        self.buffer = Buffer(self, inputs[0].ledger)
        self.ports = tuple(
            Port(self, index, buffer, ordered=flag, merging=operator.merges)
            for index, (buffer, flag) in enumerate(zip(inputs, ordered, strict=True))
        )
        self.port = self.ports[0]
        self.strategy: Strategy = DFS
        self.rule: Macro = DFS.rules.macro
        self.row = Row(name, "–", "–", "DFS-NOS")
        self.arcs: tuple[Arc, ...] = ()
        self.sent = NEVER
        """The highest progress emitted in band."""
        self.latest_out = NEVER
        self.reader_unordered = False
        """True if some reader does not learn the time from tuples."""
        self.in_band = False
        """True once time has arrived at this operator in band."""
        self.counters = Counters()
        self.last_bounds: tuple[int, ...] = ()
        """The bounds of the ports in the operator's last step."""
        self.last_reached: tuple[int, ...] = ()
        """The times that the ports had reached then, as far as the operator has learnt them."""
        self.pages = 0
        """Number of pages that the last step took."""
        self.page_rows = UNLIMITED
        """Most rows of an element that count as one page; a longer element is taken page by page."""
        self.respond: Respond | None = None
        """Its response to feedback; None: its readers drop what is not wanted."""
        self.switch = ON
        self.guarded = False
        """True if it has sent feedback to an input."""
        self.prods = 0
        """Number of prods, and of other elements that overtake tuples, that wait at its ports."""
        self.copies: Sequence[Mapping[str, tuple[str, ...]]] = [{} for _ in self.ports]
        """For each port, the columns of the output that copy a column of its input."""
        self.expected: dict[str, int] = {}
        """The number of copies of a prod that reach it, where there are several, by the number of the prod; negative if
        the prod does not concern it."""
        self.met: dict[str, list[tuple[int, Prod]]] = {}
        """The copies that have reached it so far, each with its port."""

    @abstractmethod
    def more(self) -> bool:
        """Return whether there is input that the operator may process now."""

    @abstractmethod
    def take(self) -> Taken | None:
        """Consume the input of one step; return None if there is none."""

    def answer(self, message: Upstream) -> Answer:
        """Answer a message against the data."""
        if isinstance(message, Feedback | Withdrawal):
            return responding.answer(self, message)
        return answered(self.operator, message)

    def _take_from(self, index: int, entry: Entry) -> Taken:
        """Take the head of one port, or a batch that starts with it."""
        if self.strategy.k > 1 and entry.rows > 1:
            return take_batch(self.ports, index, self.strategy.k, self.page_rows)
        return take_head(self.ports, index, entry, self.page_rows)

    def idle(self) -> bool:
        return False

    def waiting(self) -> bool:
        """Return whether the operator holds back results that only the passing of time releases."""
        return self.awaits is not None and self.awaits.waiting()

    def lagging(self) -> Sequence[Port]:
        """Return the ports whose time the operator waits for, if it waits."""
        waits = len(self.ports) > 1 or (self.operator.merges and self.operator.timed)
        return self.ports if waits and self.waiting() else ()

    def needs(self) -> int:
        """Return the time that those ports have to reach."""
        return FOREVER if self.awaits is None else self.awaits.needs()

    def blocking(self) -> Port:
        """Return the port to backtrack from when there is no more input: the one whose time lags most."""
        return min(self.ports, key=Port.bound)

    def bound(self) -> int:
        """Return a lower bound on the timestamps of all later output."""
        bound = self.operator.output_bound([port.bound() for port in self.ports])
        # Window arithmetic may overshoot the end of time.
        return max(NEVER, min(FOREVER, bound))

    def arrival(self) -> int:
        """Return the enqueue number of the oldest element at a port."""
        heads = [entry.sequence for port in self.ports if (entry := port.head()) is not None]
        return min(heads, default=self.buffer.ledger.sequence)

    @property
    def at_source(self) -> bool:
        """True if a source has input for this operator."""
        return any(port.unread and not port.buffer.producer.executes for port in self.ports)

    def __repr__(self) -> str:
        return f"<operator {self.name}>"


class SingleNode(OperatorNode):
    """One input; the passing of time alone does not make it act: selection, projection, aggregate without slide."""

    def more(self) -> bool:
        return self.port.at != self.port.buffer.tail

    def take(self) -> Taken | None:
        entry = self.port.head()
        return None if entry is None else self._take_from(0, entry)

    def blocking(self) -> Port:
        return self.port


class TimedNode(SingleNode):
    """One input; the passing of time alone makes it act: aggregates over time windows, exchanges."""

    seen_bound = NEVER
    """The bound of the operator's last step."""

    def more(self) -> bool:
        return self.port.at != self.port.buffer.tail or self.port.register > self.seen_bound

    def take(self) -> Taken | None:
        taken = super().take()
        if taken is None and self.port.register > self.seen_bound:
            taken = Taken((Input(bound=self.port.register),))
        if taken is not None:
            self.seen_bound = taken.inputs[0].bound
        return taken

    def idle(self) -> bool:
        return self.port.at == self.port.buffer.tail and self.waiting()

    def lagging(self) -> Sequence[Port]:
        return self.ports if self.idle() else ()


class ArrivalNode(OperatorNode):
    """Several inputs whose elements are taken in the order of arrival: no tuple waits for another input."""

    def more(self) -> bool:
        return any(port.at != port.buffer.tail for port in self.ports)

    def take(self) -> Taken | None:
        oldest: Entry | None = None
        chosen = 0
        for index, port in enumerate(self.ports):
            entry = port.head()
            if entry is not None and (oldest is None or entry.sequence < oldest.sequence):
                oldest, chosen = entry, index
        return None if oldest is None else self._take_from(chosen, oldest)


Producer = Source | OperatorNode
