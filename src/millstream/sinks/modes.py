"""What a sink takes of a query with early answers.

| mode | the sink gets |
|---|---|
| `final` | final rows alone: every row stays as it is |
| `all` | early rows too, each with its revision |
| `upsert` | of each batch, the last row for a window and group: a row replaces the one before it with these keys |

A sink names the modes that it takes in an attribute `modes`, the one that it is given by default first. A sink of
another package that has none was written without regard to early rows: it gets final ones.
"""

from __future__ import annotations

from typing import Any

FINAL, ALL, UPSERT = MODES = ("final", "all", "upsert")
KNOWING = (ALL, FINAL, UPSERT)
"""The modes of a sink that shows or hands over rows to a program that knows its query."""


def modes_of(sink: Any, *, named: bool) -> tuple[str, ...]:
    """The modes that a sink takes, the default first. `named`: it was made by name, not given by the program."""
    found: tuple[str, ...] = getattr(sink, "modes", MODES if named else KNOWING)
    return found
