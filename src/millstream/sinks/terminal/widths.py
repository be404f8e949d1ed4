"""How wide the columns of a table are when not everything fits beside each other."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len

from millstream.algebra.schema import Attribute
from millstream.algebra.types import Type
from millstream.sinks.terminal.cells import Cell, harmless

SHORTEST = 8
"""Texts and names are not cut below this."""


@dataclass(slots=True)
class Width:
    """What a column would like and what it needs. A cut text can still be read, a cut number cannot, so only texts and
    names give way. Both only grow, so that a table does not jump from one batch to the next."""

    wanted: int
    needed: int
    is_text: bool

    @classmethod
    def of(cls, attribute: Attribute) -> Width:
        wanted = max(cell_len(harmless(attribute.name)), len(attribute.type.value))
        return cls(wanted, min(wanted, SHORTEST), attribute.type in (Type.VARCHAR, Type.BOOLEAN))

    def see(self, cell: Cell) -> None:
        size = cell_len("NULL" if cell is None else cell)
        self.wanted = max(self.wanted, size)
        self.needed = max(self.needed, min(size, SHORTEST) if self.is_text else size)


def fit(columns: list[Width], available: int, gap: int) -> list[int]:
    """Widths for as many columns, from the first, as there is room for; what is left over is shared among the cut.

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
