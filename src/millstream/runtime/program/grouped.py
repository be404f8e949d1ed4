"""Programs over the tuples of a group: lists of arguments, in the order of time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl

from millstream.algebra.program.expression import Applied
from millstream.runtime.program.compile import compiled


def applied(node: Applied) -> Callable[[pl.Series], pl.Series]:
    """A function of a column of structs, each with the lists of arguments of a group."""
    factory, ignores = compiled(node.program), node.program.ignore_nulls

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
            found = returned[-1] if returned else found
        ended = () if instance is None else instance.terminate()
        found = ended[-1] if ended else found
        return None if found is None else found[node.result]

    return lambda groups: pl.Series(map(last_row, groups.to_list()), dtype=node.type.polars)
