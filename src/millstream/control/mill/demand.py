"""Prods: a query is asked for its results so far.

The demand goes to the topmost part of the query, which has the aggregate that answers; between it and the top there are
selections and projections only. It takes effect with the next batch, before the rows of that batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.algebra.early import FINALITY, Demand, parse_demand
from millstream.errors import PatternError
from millstream.logical.nodes.project import Project
from millstream.logical.nodes.select import Select
from millstream.logical.nodes.window_aggregate import WindowAggregate
from millstream.logical.plan import Plan
from millstream.physical.wire.records import Send

if TYPE_CHECKING:
    from millstream.control.mill.base import Mill


def send_demand(mill: Mill, name: str, prod: str | Demand) -> None:
    """Send a prod to a query; raise PatternError if the query gives no early answers."""
    message = parse_demand(prod, mill.schema(name)) if isinstance(prod, str) else prod
    _check(name, mill.query(name).plan)
    placement = mill.placement(name)
    top = placement.parts[0]
    _check(name, top.started.plan)
    mill.placements.append(Send(mill.name, message, top.name), placement.job)
    mill.take_effect()


def _check(name: str, plan: Plan) -> None:
    """Refuse a query that has no aggregate at the top, or does not tell early rows from final ones."""
    while isinstance(plan, Project | Select):
        plan = plan.input
    if isinstance(plan, WindowAggregate):
        if any(isinstance(part, WindowAggregate) for part in plan.input.walk()):
            message = f"query '{name}' aggregates the results of another aggregate, and does not answer early"
            raise PatternError("M4016", message, hint="prod a query of the inner aggregate alone")
        if plan.finality:
            return
        hint = f"add {FINALITY} to its select list: early rows have 'early' there, the others 'final'"
        raise PatternError("M4014", f"query '{name}' does not tell early rows from final ones", hint=hint)
    detail = f"Its topmost operator, but for selections and projections, is {type(plan).__name__}."
    raise PatternError("M4015", f"query '{name}' has no aggregate at the top that could answer early", detail=detail)
