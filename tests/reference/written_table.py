"""Tables that streams write, one tuple at a time: writers and readers merged by time, writes first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from millstream.algebra.program.program import Program
from tests.reference.program import Interpreter

Row = dict[str, Any]
Rows = list[tuple[Row, int]]
History = list[tuple[int, list[Row]]]
"""The rows of a table after all writes of a time, by time."""


def written(names: Sequence[str], initial: list[Row], writers: Sequence[tuple[Program, Rows]]) -> tuple[History, int]:
    """The history of a table, and the number of rows that were refused. Writers of equal time go in their order."""
    held = [tuple(row[name] for name in names) for row in initial]
    steps = [
        (ts, place, at, program, row)
        for place, (program, rows) in enumerate(writers)
        for at, (row, ts) in enumerate(rows)
    ]
    history: History = []
    refused = 0
    for ts, _, _, program, row in sorted(steps, key=lambda step: step[:3]):
        interpreter = Interpreter(program)
        interpreter.started = True
        interpreter.tables[program.tables[0].name] = held
        refused += len(interpreter.take(tuple(row[argument.name] for argument in program.arguments)))
        held = interpreter.tables[program.tables[0].name]
        history.append((ts, [dict(zip(names, values, strict=True)) for values in held]))
    return history, refused


def as_of(history: History, initial: list[Row], ts: int) -> list[Row]:
    """The rows that a tuple of a time sees."""
    return next((rows for time, rows in reversed(history) if time <= ts), initial)
