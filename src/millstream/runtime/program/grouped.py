"""Programs over the tuples of a group: lists of arguments, in the order of time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

from millstream.algebra.program.expression import Applied
from millstream.errors import SeveralRows
from millstream.runtime.program.compile import compiled

Row = tuple[Any, ...]


def one_row(name: str, rows: Sequence[Row], before: Row | None = None) -> Row | None:
    """The row that a call of an aggregate returned, else the one before. Raise SeveralRows if it returned several."""
    if len(rows) > 1:
        raise SeveralRows(
            f"aggregate '{name}' returned {len(rows)} rows for a group of a window, which takes one value;"
            f" {name}(…) OVER (…) emits all of them"
        )
    return rows[0] if rows else before


def final_row(name: str, ended: Sequence[Row], before: Row | None) -> Row | None:
    """The value of a group: the row of TERMINATE, if it returns any, else that of the last tuple that has one."""
    return one_row(name, [before, *ended] if ended and before is not None else ended, before)


def applied(node: Applied) -> Callable[[pl.Series], pl.Series]:
    """A function of a column of structs, each with the lists of arguments of a group."""
    factory, ignores, name = compiled(node.program), node.program.ignore_nulls, node.program.name

    def last_row(group: dict[str, list[Any] | None]) -> Any:
        instance, found = None, None
        for row in zip(*(values or () for values in group.values()), strict=True):
            if ignores and None in row:
                continue
            if instance is None:
                instance = factory()
                returned = instance.initialize(*row)
            else:
                returned = instance.iterate(*row)
            found = one_row(name, returned, found)
        found = found if instance is None else final_row(name, [*instance.terminate()], found)
        return None if found is None else found[node.result]

    return lambda groups: pl.Series(map(last_row, groups.to_list()), dtype=node.type.polars)
