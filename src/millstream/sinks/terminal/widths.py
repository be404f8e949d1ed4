"""Column widths of a table that does not fit into the terminal."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len

from millstream.algebra.schema import Attribute
from millstream.algebra.types import Type
from millstream.sinks.terminal.cells import Cell, harmless

SHORTEST = 8
"""Texts and names are not cut below this width."""


@dataclass(slots=True)
class Width:
    """The wanted and the needed width of a column. A cut text is still readable, a cut number is not, so only texts and
    names are cut. Both widths only grow, so that a table does not jump from one batch to the next."""

    wanted: int
    needed: int
    is_text: bool

    @classmethod
    def of(cls, attribute: Attribute) -> Width:
        wanted = max(cell_len(harmless(attribute.name)), len(attribute.type.value))
        is_text = attribute.type in (Type.VARCHAR, Type.BOOLEAN) or attribute.type.is_array
        return cls(wanted, min(wanted, SHORTEST), is_text)

    def see(self, cell: Cell) -> None:
        size = cell_len("NULL" if cell is None else cell)
        self.wanted = max(self.wanted, size)
        self.needed = max(self.needed, min(size, SHORTEST) if self.is_text else size)


def fit(columns: list[Width], available: int, gap: int) -> list[int]:
    """Return widths for as many of the first columns as fit; cut columns share the remaining room.

    >>> number, text = Width(4, 4, False), Width(60, 8, True)
    >>> fit([number, text, number], 40, gap=2), fit([number, text, number], 16, gap=2)
    ([4, 28, 4], [4, 10])
    """
    count, used = 0, -gap
    for column in columns:
        used += gap + column.needed
        if used > available and count:
            break
        count += 1
    shown = columns[:count]
    room = available - gap * (count - 1)

    def cut(longest: int) -> list[int]:
        return [min(max(column.needed, min(column.wanted, longest)), available) for column in shown]

    longest = available
    while longest > 0 and sum(cut(longest)) > room:
        longest -= 1
    return cut(longest)
