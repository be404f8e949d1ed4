"""A mill as the logs of its checkpoint have it.

The driver's log has the statements, which are carried out again; the jobs' control logs have what became of them. A
driver may have ended at any moment, also between the writing of the one and of the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from millstream.config import Options
from millstream.control.mill.placement import PlacedPart, Placement, group_key
from millstream.physical.plan.exchange import exchanged
from millstream.physical.shard.topology import base_stream, scans
from millstream.physical.wire.records import CloseGroup, OpenGroup, Remember, StartQuery, StopQuery

if TYPE_CHECKING:
    from millstream.control.job.base import Job
    from millstream.control.job.jobs import Jobs
    from millstream.control.mill.base import Mill


def recovered(jobs: Jobs, name: str = "main", options: Options | None = None, *, wall: bool = False) -> Mill:
    """The mill of that name as the logs have it."""
    from millstream.control.mill.base import Mill

    mill = Mill(jobs, name, options, wall=wall)
    recover(mill)
    return mill


def recover(mill: Mill) -> None:
    """Bring a new mill to where the logs are."""
    jobs = mill.jobs
    mill.journal.recovering = True
    kept = [job.outputs_state(mill.name) for job in jobs.all()]  # before the mill can be asked to keep it
    stopped = set[str]().union(*[_find_groups(mill, job) for job in jobs.all()])
    for record in jobs.log.read(0, jobs.log.end()):
        if isinstance(record, Remember) and record.mill == mill.name:
            _replay(mill, record)
    for states in kept:
        for query, state in states.items():
            if query in mill.queries:
                mill.queries[query].output.restore(state)
    mill.journal.recovering = False
    _make_good(mill, stopped)
    if not mill.time.wall and mill.placements.groups:
        mill.call_roll()  # to hear what operators wait for


def _find_groups(mill: Mill, job: Job) -> set[str]:
    """The groups of the mill in a job, and which query runs where; returns the queries that run no more."""
    opened: dict[int, OpenGroup] = {}
    stopped: set[str] = set()
    for record in job.log.read(0, job.log.end()):
        match record:
            case OpenGroup(group=number, mill=mill.name):
                opened[number] = record
            case CloseGroup(group=number) if number in opened:
                del opened[number]
            case StartQuery(group=number, name=part) if number in opened:
                query = record.whole
                if record.query is None:  # the topmost part comes first
                    mill.placements.of[query] = Placement(job)
                mill.placements.of[query].parts.append(PlacedPart(part, opened[number], _reads(record)))
                stopped.discard(query)
            case StopQuery(group=number, name=part) if number in opened:
                query = next(
                    name
                    for name, placement in mill.placements.of.items()
                    if part in [place.name for place in placement.parts]
                )
                mill.placements.of[query].stopped.add(part)
                stopped.add(query)
    for group in opened.values():
        mill.placements.groups[group_key(job, group.keys, group.stage)] = group
    job.admit([label for group in opened.values() for label in group.labels], mill.deliveries)
    return stopped


def _reads(record: StartQuery) -> frozenset[str]:
    """The streams of the catalog that a part of a query reads."""
    made_of = {partial: stream for stream, partial, _ in record.partials}
    read = [scan.stream for scan in scans(record.plan) if not exchanged(scan.stream)]
    return frozenset(base_stream(made_of.get(stream, stream)) for stream in read)


def _replay(mill: Mill, note: Remember) -> None:
    match note.kind, note.value:
        case "statement", str(text):
            mill.execute(text)
        case "option", (str(option), value):
            mill.set_option(option, value)
        case "table", (str(table), pl.DataFrame() as rows):
            mill.tables[table] = rows
        case "drop", ("query", str(query)):
            mill.stop_query(query)
        case "drop", ("relation", str(relation)):
            mill.catalog.forget(relation)
            mill.forget(relation)
        case "file", (int() | None as done, int(noted)):
            mill.journal.carried_out = done, noted
        case "sources", (int(now), int(beat), dict(told), dict(held)):
            mill.restore_sources(now, beat, told, held)


def _make_good(mill: Mill, stopped: set[str]) -> None:
    """A job's log hears of queries before the driver's own does. If the driver ended in between, a query that it does
    not know had not been started, and one that the job runs no more had been stopped."""
    for name in mill.placements.of.keys() - mill.queries.keys():
        mill.placements.leave(name)
    for name in mill.queries.keys() & stopped:
        mill.stop_query(name)
    mill.placements.close_unused()
