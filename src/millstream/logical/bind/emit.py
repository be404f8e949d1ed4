"""Binds `EMIT EARLY`: the topmost aggregate gives early answers, and a prodder may ask for them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from millstream.algebra.expression import Column, Expression, PythonCall
from millstream.algebra.qualities import PAIR
from millstream.algebra.schedule import Schedule, lead_of
from millstream.algebra.steering import Steering
from millstream.algebra.types import Type
from millstream.algebra.window import WINDOW_END, WINDOW_START
from millstream.algebra.windower import Windower
from millstream.errors import BindError, PlanError
from millstream.lang import ast
from millstream.logical.assessing import assessed, compared
from millstream.logical.bind.python_functions import python_arguments
from millstream.logical.catalog import Catalog
from millstream.logical.early import answering, topmost
from millstream.logical.nodes.prodder import Prodder
from millstream.logical.nodes.scan import Scan
from millstream.logical.nodes.window_aggregate import WindowAggregate
from millstream.logical.plan import Plan
from millstream.logical.windows import units


def emitting(clause: ast.Emit, plan: Plan, catalog: Catalog) -> Plan:
    """Return the plan of a query that gives early answers."""
    top = topmost(plan)
    if top is None:
        kind = type(answering(plan)).__name__
        detail = f"Only an aggregate has results so far; the last operator of this query is {kind}."
        hint = "aggregate its rows: SELECT window_end, COUNT(*) … [RANGE 10] EMIT EARLY"
        raise PlanError("M3035", "EMIT EARLY needs an aggregate at the top", detail=detail, hint=hint, **clause.place)
    if clause.prodder:
        check_stream(clause, plan, catalog)
    made = schedule_of(clause, top)
    if clause.quality:
        plan = assessed(plan, _quality(clause, plan, top, catalog))
    return _emitting(plan, made, clause.prodder)


def _quality(clause: ast.Emit, plan: Plan, top: WindowAggregate, catalog: Catalog) -> Expression:
    """The call of the function that tells how good an early value was."""
    hint = (
        "a function in Python of the early value, the final one and perhaps the seconds between, that returns a number"
    )
    declared, value = catalog.library.find(clause.quality), compared(plan, top, numbers=False)
    if declared is None or declared.methods or not declared.signature.type.is_numeric:
        raise BindError("M2109", f"QUALITY: '{clause.quality}' is no such function", hint=hint, **clause.place)
    if value is None or top.windows is None or top.attribute is not None:
        message = "QUALITY needs an aggregate with a window over the time of the stream"
        raise PlanError("M3039", message, hint=hint, **clause.place)
    types = (top.schema.type_of(value), top.schema.type_of(value), Type.DOUBLE)
    given = [Column(type_, name) for type_, name in zip(types, PAIR, strict=True)]
    with clause.placing():
        arguments = python_arguments(declared, given if len(declared.parameters) > 2 else given[:2])
    return PythonCall(declared.signature.type, declared.reference, arguments)


def schedule_of(clause: ast.Emit, top: WindowAggregate) -> Schedule | None:
    """When a query with this topmost aggregate prods itself; None: never."""
    if all(given is None for given in (clause.percent, clause.every, clause.before, clause.accuracy)):
        return None
    unit = top.input.schema.unit
    if clause.every is not None:
        return Schedule(period=units(clause.every, unit, "the period of EMIT EARLY"), system=clause.system)
    windows = top.windows
    if windows is None or top.attribute is not None:
        message = "EMIT EARLY before the end of a window, without a window over the time of the stream"
        raise PlanError("M3036", message, hint="EMIT EARLY EVERY 10 SECONDS, or EMIT EARLY alone", **clause.place)
    if clause.accuracy is not None:
        return _steered(clause, clause.accuracy, top, windows)
    if clause.before is not None:
        lead = int(clause.before.total * unit)
    else:
        assert clause.percent is not None
        lead = lead_of(clause.percent, windows)
    _check_lead(clause, lead, top, windows)
    return Schedule(windows, lead, system=clause.system, **_beyond(top))


def _check_lead(clause: ast.Emit, lead: int, top: WindowAggregate, windows: Windower) -> None:
    """Refuse a time at which a window has no tuple yet, or is closed."""
    hint = "EMIT EARLY AT 80 %: when 80 % of the last slide of a window have passed"
    if lead >= windows.length:
        message = "EMIT EARLY before a window begins, when it has no tuples"
        raise PlanError("M3036", message, hint=hint, **clause.place)
    if lead < 0 and not clause.system and top.input.schema.ordered:
        message = "EMIT EARLY after the end of a window: the stream is in order, and its windows close at their end"
        hint = f"{hint}; later than 100 % needs a stream with WATERMARK FOR or PUNCTUATED ON"
        raise PlanError("M3036", message, hint=hint, **clause.place)


def _steered(clause: ast.Emit, accuracy: Fraction, top: WindowAggregate, windows: Windower) -> Schedule:
    """A schedule that begins with a lead and changes it."""
    if not 0 < accuracy < 100:
        hint = "EMIT EARLY WITH ACCURACY 95 %"
        raise PlanError("M3039", f"an accuracy of {float(accuracy):g} % cannot be kept", hint=hint, **clause.place)
    if not clause.quality and not any(call.type.is_numeric for call in top.aggregates):
        hint = "EMIT EARLY AT 80 %, or an aggregate that is a number"
        raise PlanError("M3039", "accuracy is that of a number, and no aggregate is one", hint=hint, **clause.place)
    lead = Steering.begun(float(accuracy), windows).lead
    return Schedule(windows, lead, system=clause.system, accuracy=float(accuracy), **_beyond(top))


def _beyond(top: WindowAggregate) -> dict[str, Any]:
    """Where tuples of an aggregate may be beyond those of the stream that passes the marks."""
    below = [*top.input.walk()]
    windows = [part.windows for part in below if isinstance(part, WindowAggregate) and part.windows is not None]
    return {"delay": sum(each.length for each in windows), "several": sum(isinstance(part, Scan) for part in below) > 1}


def check_stream(clause: ast.Emit, plan: Plan, catalog: Catalog) -> None:
    """Refuse a stream whose tuples cannot be prods of a query."""
    message, hint = "", "a stream without a connector, with columns of the query: each of its tuples is a prod"
    if catalog.is_table(clause.prodder):
        message = f"'{clause.prodder}' is a table, not a stream"
    elif clause.prodder not in catalog or catalog.stream(clause.prodder).options.get("connector"):
        message = f"'{clause.prodder}' is no stream that is fed from this program"
    elif any(isinstance(part, Scan) and part.stream == clause.prodder for part in plan.walk()):
        message = f"the query reads '{clause.prodder}' itself"
        hint = "another stream, EMIT EARLY EVERY 10 SECONDS, or a prod among the tuples of the stream"
    else:
        for given in catalog.stream(clause.prodder).schema:
            if given.name in (WINDOW_START, WINDOW_END) and given.name not in plan.schema:
                message = f"'{given.name}' is a column of '{clause.prodder}', and not in the select list of the query"
                hint = f"add {given.name} to the select list"
            wanted = plan.schema.type_of(given.name) if given.name in plan.schema else given.type
            if given.type is not wanted and not (given.type.is_numeric and wanted.is_numeric):
                message = f"'{given.name}' is {given.type.value} in '{clause.prodder}' and {wanted.value} in the query"
    if message:
        raise BindError("M2108", f"PRODDED BY: {message}", hint=hint, **clause.place)


def _emitting(plan: Plan, schedule: Schedule | None, by: str) -> Plan:
    """Mark the topmost aggregate, and put a prodder over the first stream that it reads."""
    if not isinstance(plan, WindowAggregate):
        return plan.with_inputs((_emitting(plan.inputs[0], schedule, by),))
    below = _prodded(plan.input, schedule, by) if schedule is not None or by else plan.input
    return plan.altered(input=below, early="top")


def _prodded(plan: Plan, schedule: Schedule | None, by: str) -> Plan:
    if isinstance(plan, Scan):
        return Prodder(plan, schedule, by)
    first, *others = plan.inputs
    return plan.with_inputs((_prodded(first, schedule, by), *others))
