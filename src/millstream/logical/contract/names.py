"""What is behind a plan: base streams, base columns, and clocks.

The clocks are the plans that the timestamps of the tuples come from. Streams with BIGINT time count in units of their
own, all others in microseconds. Timestamps of both kinds cannot be compared: an operator in timestamp order would wait
for ever for the one whose numbers are lower. A join on arrival and a union with a latent member compare no timestamps,
so their results may have both kinds.

Times of tuples (TIMESTAMP) and times of arrival can be compared, but move together only while the source delivers what
happens now.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from millstream.algebra.schema import TimeKind
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


def clocks(plan: Plan) -> Iterator[Plan]:
    """Yield the plans that give the tuples of a plan their timestamps."""
    if not plan.timed_by:
        yield plan
    for below in plan.timed_by:
        yield from clocks(below)


def time_units(*plans: Plan) -> frozenset[int]:
    """Return the units per second in which the timestamps of plans count."""
    return frozenset(clock.schema.unit for plan in plans for clock in clocks(plan))


def compares_units(plan: Plan) -> bool:
    """Return whether an operator of a plan would compare timestamps in different units."""
    return any(getattr(node, "merges", False) and len(time_units(*node.inputs)) > 1 for node in plan.walk())


def keeping_up(plans: Iterable[Plan]) -> str:
    """Return the condition on which times of tuples and times of arrival bound what waits for both."""
    found = [clock for plan in plans for clock in clocks(plan)]
    own = [clock for clock in found if clock.schema.kind is TimeKind.EXTERNAL]
    names = dict.fromkeys(name for clock in own for name in base_streams(clock))
    return f", while {' and '.join(names)} keeps up with the clock" if names and len(own) < len(found) else ""
