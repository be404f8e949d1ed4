"""Ports: where an operator reads a buffer, with the time-stamp register of that input.

The register is a bound: no later element has a lower timestamp. While the port has a page at its head, the timestamp of
the head row counts instead; the last row taken leaves its timestamp in the register. Punctuation and enabling
timestamps raise the register, nothing lowers it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from millstream.algebra.element import Element
from millstream.algebra.feedback import Feedback
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import NEVER
from millstream.runtime.engine.buffer import Buffer, Entry
from millstream.runtime.engine.guard import Ends, Guard
from millstream.runtime.engine.reorder import Reorder

if TYPE_CHECKING:
    from millstream.runtime.engine.nodes import OperatorNode
    from millstream.runtime.engine.timestamps import Arc


class Port:
    """A cursor (element, row within it) on a buffer, and a register.

    `ordered`  rows arrive in timestamp order, so each row also promises that no older one will arrive.
    `active`   the register was written over an arc and its value has not been handed over yet.
    `tried`    the progress epoch in which a fork last passed control to this branch.
    `reorder`  holds the rows of an unordered input of a merging operator until time releases them.
    `ahead`    the highest time known behind the elements that wait here, up to `scanned`.
    `passed`   elements that were taken ahead of those before them.
    `guard`    drops the rows that the operator has disclaimed.
    `ends`     when its patterns end.
    `issued`   the feedback among it that the operator has sent by itself, whatever its readers have disclaimed.
    `standing` feedback that holds as long as the operator reads: it ignores matching rows by its condition.
    """

    __slots__ = (
        "active", "ahead", "arc", "at", "buffer", "ends", "guard", "index", "issued", "node", "offset", "ordered",
        "passed", "register", "reorder", "scanned", "standing", "tried",
    )  # fmt: skip

    def __init__(self, node: OperatorNode, index: int, buffer: Buffer, *, ordered: bool, merging: bool) -> None:
        self.node = node
        self.index = index
        self.buffer = buffer
        self.ordered = ordered
        self.at = buffer.tail
        self.offset = 0
        self.register = self.ahead = NEVER
        self.scanned = self.at
        self.active = False
        self.tried = -1
        self.arc: Arc | None = None
        self.reorder = Reorder() if merging and not ordered else None
        self.guard: Guard | None = None
        self.issued: tuple[Feedback, ...] = ()
        self.ends: dict[str, Ends] = {}
        self.standing: tuple[Feedback, ...] = ()
        self.passed: set[int] = set()

    @property
    def unread(self) -> bool:
        """True if the buffer has an element that this port has not taken."""
        return self.at != self.buffer.tail

    @property
    def occupied(self) -> bool:
        """True if input waits here, in the buffer or in the reorder buffer."""
        return self.at != self.buffer.tail or (self.reorder is not None and self.reorder.rows > 0)

    @property
    def open(self) -> bool:
        """True if backtracking ends here: a source or a break is before the port."""
        return self.buffer.broken or not self.buffer.producer.executes

    def head(self) -> Entry | None:
        return self.buffer.entries[self.at] if self.at != self.buffer.tail else None

    def size(self) -> int:
        """Return the number of tuples that wait for this reader."""
        entries = self.buffer.entries
        waiting = sum(entries[at].rows for at in range(self.at, self.buffer.tail)) - self.offset
        return waiting + (self.reorder.rows if self.reorder is not None else 0)

    def raise_to(self, value: int) -> None:
        if value > self.register:
            self.register = value

    def bound(self) -> int:
        """Return a lower bound on the timestamps of all rows taken from this port later."""
        if self.reorder is not None:
            return min(self.register, self.reorder.lowest, self.reorder.time_limit())
        if self.ordered and self.at != self.buffer.tail:
            entry = self.buffer.entries[self.at]
            if entry.rows:
                return max(self.register, entry.stamp(self.offset))
        return self.register

    def reached(self) -> int:
        """Return the time that the input has reached, behind everything that waits here."""
        if self.reorder is not None:
            return min(self.register, self.reorder.time_limit())
        for at in range(max(self.at, self.scanned), self.buffer.tail):
            entry = self.buffer.entries[at]
            if at in self.passed:
                continue
            if entry.element.keeps_position:
                break
            self.ahead = max(self.ahead, entry.last if entry.rows else entry.element.progress)
            self.scanned = at + 1
        return max(self.bound(), self.ahead)

    def waiting(self) -> list[pl.DataFrame]:
        """Return the rows that wait here, in pages."""
        entries = [self.buffer.entries[at] for at in range(self.at, self.buffer.tail)]
        if self.reorder is not None:
            held = self.reorder.frame()
            return [*([] if held is None else [held]), *(entry.page for entry in entries if entry.rows)]
        return [entry.page.slice(0 if at else self.offset) for at, entry in enumerate(entries) if entry.rows]

    def advance(self) -> None:
        """Pass the head element."""
        buffer, at = self.buffer, self.at
        self.at, self.offset = at + 1, 0
        if at == buffer.base:
            if len(buffer.ports) == 1:
                buffer.ledger.held -= buffer.entries.pop(at).weight
                buffer.base = at + 1
            else:
                buffer.collect()
        if self.at in self.passed:
            self.passed.discard(self.at)
            self.advance()

    def detach(self) -> None:
        """Leave the buffer and drop everything that waits here. The port then reads an empty buffer, since its operator
        may be in the middle of a step."""
        left = self.buffer
        left.ports = tuple(port for port in left.ports if port is not self)
        left.remembered.pop(str(self), None)
        left.collect()
        if self.reorder is not None:
            left.ledger.held -= self.reorder.rows
            self.reorder.clear()
        self.buffer = Buffer(left.producer, left.ledger)
        self.at = self.offset = self.scanned = 0

    def prods(self) -> int:
        """Return the number of prods, and of other elements that overtake tuples, that wait here."""
        entries = (self.buffer.entries[at] for at in range(self.at, self.buffer.tail) if at not in self.passed)
        return sum(entry.element.overtakes for entry in entries)

    def prod_at(self) -> int | None:
        """Return the position of the first of them that waits here."""
        entries = self.buffer.entries
        for at in range(self.at, self.buffer.tail):
            if at not in self.passed and entries[at].element.overtakes:
                return at
        return None

    def pass_prod(self) -> Element:
        """Take the first of them that waits here, ahead of the elements before it."""
        at = self.prod_at()
        assert at is not None
        element = self.buffer.entries[at].element
        self.node.prods -= 1
        if at == self.at:
            self.advance()
        else:
            self.passed.add(at)
        return element

    def pass_element(self) -> Element:
        """Take the next element, which keeps its position."""
        if self.reorder is not None:
            return self.reorder.pop_element()
        element = self.buffer.entries[self.at].element
        self.advance()
        return element

    def take_punctuations(self, entry: Entry) -> Punctuations:
        punctuations = entry.punctuations
        self.raise_to(punctuations.progress)
        self.advance()
        return punctuations

    def take_rows(self, entry: Entry, count: int) -> pl.DataFrame:
        """Take the next rows of the head page."""
        page, start = entry.page, self.offset
        whole = count == entry.rows - start
        if self.ordered:
            self.raise_to(entry.last if whole else entry.stamp(start + count - 1))
        if whole:
            self.advance()
        else:
            self.offset = start + count
        return page if count == entry.rows else page.slice(start, count)

    def take_prefix(self, limit: int) -> pl.DataFrame | None:
        """Take the rows of the head page that are not later than the limit."""
        entry = self.buffer.entries[self.at]
        count = entry.count_up_to(limit, self.offset)
        return self.take_rows(entry, count) if count else None

    def absorb(self) -> None:
        """Move all input into the reorder buffer; time promises take effect at once."""
        assert self.reorder is not None
        while (entry := self.head()) is not None and not entry.element.overtakes:
            if entry.rows:
                self.reorder.add(entry.page)
                self.buffer.ledger.hold(entry.rows)
            else:
                self.reorder.wait(self.register, entry.element)
                self.raise_to(entry.element.progress)
            self.advance()

    def release(self, limit: int) -> pl.DataFrame | None:
        """Take the reordered rows that are not later than the limit."""
        assert self.reorder is not None
        rows = self.reorder.release(limit)
        if rows is not None:
            self.buffer.ledger.held -= rows.height
        return rows

    def __str__(self) -> str:
        return f"{self.node.name}.{self.index + 1}"
