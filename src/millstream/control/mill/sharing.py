"""EXPLAIN: what a query shares with the queries that run, and what its start means."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.control.mill.placement import group_key
from millstream.control.spark.dataframe_source import adopted_streams
from millstream.logical.nodes.scan import Scan
from millstream.logical.plan import Plan
from millstream.physical.plan import stages
from millstream.physical.plan.compile import in_common
from millstream.physical.wire.records import OpenGroup

if TYPE_CHECKING:
    from millstream.control.job.base import Job
    from millstream.control.mill.base import Mill
    from millstream.control.mill.running_query import RunningQuery
    from millstream.lang import ast


@dataclass(frozen=True, slots=True)
class _Running:
    """A part of a query in a group of shards, and the point from which it reads there."""

    job: Job
    group: OpenGroup
    plan: Plan
    point: int

    def shared(self, others: list[_Running]) -> list[Plan]:
        """The topmost operators that it shares with these."""
        near = [other for other in others if (other.job, other.group) == (self.job, self.group)]
        found = [part for other in near for part in in_common((self.plan, self.point), (other.plan, other.point))]
        return list(dict.fromkeys(found))


def equal_query(mill: Mill, plan: Plan) -> RunningQuery | None:
    """The query with this plan that has run longest. One that has received feedback lacks what it disclaimed."""
    running = (query for query in mill.queries.values() if not query.failure and query.finished is None)
    return next((query for query in running if query.plan == plan and not query.told), None)


def explain_start(mill: Mill, plan: Plan, start: ast.Start) -> str:
    """Lines on a query that would be added now; empty if it would share nothing."""
    if start.how == "beginning":
        with start.placing():
            mill.connectors.check_rereadable(_streams(plan))
        return _from_the_beginning(plan)
    if start.how == "shared":
        equal = equal_query(mill, plan)
        if equal is not None:
            return f"\n\nshared with {equal.name}: all operators, with what they hold"
        return f"\n\nno equal query runs: it starts as with start = 'now'{_lines(mill, _new(mill, plan))}"
    return _lines(mill, _new(mill, plan))


def explain_running(mill: Mill, name: str) -> str:
    """Lines on a running query; empty if it shares nothing."""
    mill.report_all()
    query = mill.query(name)
    first = _from_the_beginning(query.plan) if query.start == "beginning" else ""
    return first + _lines(mill, _parts(mill, name), name)


def _streams(plan: Plan) -> list[str]:
    return sorted({part.id.source for part in plan.walk() if isinstance(part, Scan)})


def _from_the_beginning(plan: Plan) -> str:
    return f"\n\nreads {', '.join(_streams(plan))} from the beginning, apart from other queries"


def _lines(mill: Mill, parts: list[_Running], name: str = "") -> str:
    lines = list(_shared(mill, parts, name))
    return "\n\n" + "\n".join(lines) if lines else ""


def _shared(mill: Mill, parts: list[_Running], name: str) -> Iterator[str]:
    for other, running in mill.queries.items():
        if other == name or running.failure is not None or running.finished is not None:
            continue
        found = [part.shared(_parts(mill, other)) for part in parts]
        if all(shared == [part.plan] for shared, part in zip(found, parts, strict=True)) and parts:
            yield f"shared with {other}: all operators"
        elif any(found):
            yield f"shared with {other}: {'; '.join(_described(part) for shared in found for part in shared)}"


def _described(plan: Plan) -> str:
    return f"Scan {plan.id.whole}" if isinstance(plan, Scan) else plan.describe()


def _new(mill: Mill, plan: Plan) -> list[_Running]:
    """The parts of a plan in the groups that would run it, as far as these are open."""
    if not mill.queries:
        return []
    prepared, frames = mill.prepare("query", plan), adopted_streams(mill.connectors.read_by(plan))
    job = mill.jobs.found(frames, stages.depth([part.part for part in prepared]))
    found: list[_Running] = []
    if job is None:
        return found
    for part in prepared:
        group = mill.placements.groups.get(group_key(job, part.keys, part.part.stage, part.table))
        if group is not None:
            found.append(_Running(job, group, part.plan, _point(job, group, "")))
    return found


def _parts(mill: Mill, name: str) -> list[_Running]:
    """The parts of a running query."""
    placement = mill.placement(name)
    return [
        _Running(placement.job, part.group, part.started.plan, _point(placement.job, part.group, part.name))
        for part in placement.parts
    ]


def _point(job: Job, group: OpenGroup, part: str) -> int:
    """The point from which a part reads; -1 if no shard has reported it."""
    status = job.status(group.labels[0])
    return -1 if status is None else status.points.get(part, -1)
