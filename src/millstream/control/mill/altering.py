"""The statement `ALTER QUERY q EMIT EARLY …`: when a running query prods itself, from now on.

It runs once: a file that is resumed does not run it again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.errors import PlanError
from millstream.lang import ast
from millstream.logical.bind.emit import check_stream, schedule_of
from millstream.logical.early import topmost
from millstream.logical.nodes.prodder import Prodder
from millstream.logical.plan import Plan
from millstream.optimizer.context import bottom_up
from millstream.physical.wire.records import Reschedule

if TYPE_CHECKING:
    from millstream.control.mill.base import Mill


def alter_query(mill: Mill, statement: ast.AlterQuery) -> None:
    """Alter a query, and note it for recovery."""
    mill.batch()
    query, made = mill.query(statement.query), altered(mill, statement)
    query.prodder = made
    mill.placements.append(Reschedule(mill.name, query.name, made.schedule), mill.placement(query.name).job)
    mill.journal.note("prodder", (query.name, made))
    mill.journal.ran(statement.text)


def altered(mill: Mill, statement: ast.AlterQuery) -> Prodder:
    """Return the prodder that a query gets; raise PlanError if it has none."""
    query, clause = mill.query(statement.query), statement.emit
    prodder, top = query.prodder, topmost(query.plan)
    if prodder is None or top is None:
        hint = "DROP it, and CREATE it with EMIT EARLY AT 80 % (or EVERY 10 SECONDS)"
        raise PlanError("M3037", f"query '{query.name}' does not prod itself", hint=hint, **statement.place)
    if clause.quality:
        hint = "DROP it, and CREATE it with the other function"
        raise PlanError("M3037", "ALTER QUERY does not change QUALITY", hint=hint, **statement.place)
    if clause.prodder:
        check_stream(clause, query.plan, mill.catalog)
    return prodder.altered(schedule=schedule_of(clause, top), by=clause.prodder or prodder.by)


def shown(plan: Plan, prodder: Prodder | None) -> Plan:
    """The plan of a query as it was last altered, for EXPLAIN."""
    return bottom_up(plan, lambda part: prodder if isinstance(part, Prodder) and prodder is not None else part)
