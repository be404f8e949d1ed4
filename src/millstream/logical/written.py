"""The tables that a plan writes, or reads while streams write them."""

from __future__ import annotations

from millstream.logical.nodes.table_write import TableWrite
from millstream.logical.nodes.written_table import WrittenTable
from millstream.logical.plan import Plan


def touched(plan: Plan) -> list[WrittenTable]:
    """The tables that a plan writes or reads, each once."""
    written = [plan.target] if isinstance(plan, TableWrite) else []
    return [*dict.fromkeys(written + [part for part in plan.walk() if isinstance(part, WrittenTable)])]
