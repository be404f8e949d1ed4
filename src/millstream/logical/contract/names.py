"""The base streams and base columns behind a plan."""

from __future__ import annotations

from millstream.logical.nodes.scan import Scan
from millstream.logical.plan import Plan


def base_columns(plan: Plan, column: str) -> tuple[tuple[str, str], ...]:
    """Return the base columns that a column of the plan copies, as (stream, column); none if it is computed."""
    if isinstance(plan, Scan):
        return ((plan.stream, column),)
    found = [base_columns(plan.inputs[place], name) for place, name in plan.copied(column)]
    return tuple(base for bases in found for base in bases) if all(found) else ()


def base_streams(plan: Plan) -> tuple[str, ...]:
    """Return the base streams whose tuples a plan emits."""
    if isinstance(plan, Scan):
        return (plan.stream,)
    if (known := getattr(plan, "streams", None)) is not None:
        return tuple(known)
    return tuple(dict.fromkeys(stream for part in plan.contributing for stream in base_streams(part)))
