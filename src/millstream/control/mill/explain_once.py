"""EXPLAIN of a SELECT over tables: its columns, the tables that it reads, and the indexes that are made for it.

Select once over tables, compiled  (name VARCHAR, v BIGINT)
├─ table t (k BIGINT, v BIGINT)
└─ table names (k BIGINT, name VARCHAR), index on (k)
"""

from __future__ import annotations

from millstream.algebra.program.program import LocalTable, Program
from millstream.algebra.schema import Schema
from millstream.runtime.program.compile import compiled
from millstream.runtime.program.ordered import Indexed, Order, Range


def explain_once(program: Program) -> str:
    lines = [f"Select once over tables, compiled  {Schema(program.results)}"]
    indexes = compiled(program).INDEXES.values()
    for position, (table, of) in enumerate(zip(program.tables, indexes, strict=True), 1):
        branch = "└─" if position == len(program.tables) else "├─"
        made = "".join(f", {_described(each, table)}" for each in of)
        lines.append(f"{branch} table {table.name} {Schema(table.columns)}{made}")
    return "\n".join(lines)


def _described(index: Indexed, table: LocalTable) -> str:
    names = [column.name for column in table.columns]
    if isinstance(index, Order):
        return f"sorted by {names[index.column]}{' DESC' if index.descending else ''}"
    if isinstance(index, Range):
        keys = ", ".join(names[position] for position in index.key)
        return f"index on ({keys}), sorted by {names[index.column]}"
    return f"index on ({', '.join(names[position] for position in index)})"
