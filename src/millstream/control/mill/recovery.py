"""Recovery: a mill rebuilt from the logs of its checkpoint.

The driver's log holds the statements, which run again; the jobs' control logs hold the placements of the queries. The
driver may have ended at any moment, even after it wrote to one log and before it wrote to the other.
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
    """Return the mill of that name as the logs describe it."""
    from millstream.control.mill.base import Mill

    mill = Mill(jobs, name, options, wall=wall)
    recover(mill)
    return mill


def recover(mill: Mill) -> None:
    """Bring a new mill to the state that the logs describe."""
    jobs = mill.jobs
    mill.journal.recovering = True
    saved = [job.outputs_state(mill.name) for job in jobs.all()]  # before a job can ask the mill for it
    stopped = set[str]().union(*[_find_groups(mill, job) for job in jobs.all()])
    for record in jobs.log.read(0, jobs.log.end()):
        if isinstance(record, Remember) and record.mill == mill.name:
            _replay(mill, record)
    for states in saved:
        for query, state in states.items():
            if query in mill.queries:
                mill.queries[query].output.restore(state)
    mill.journal.recovering = False
    _reconcile(mill, stopped)
    if not mill.time.wall and mill.placements.groups:
        mill.call_roll()  # to learn which operators wait for time


def _find_groups(mill: Mill, job: Job) -> set[str]:
    """Find the groups of the mill in a job and the placements of its queries; return the queries that have stopped."""
    opened: dict[int, OpenGroup] = {}
    wholes: dict[str, str] = {}
    stopped: set[str] = set()
    for record in job.log.read(0, job.log.end()):
        match record:
            case OpenGroup(group=number, mill=mill.name):
                opened[number] = record
            case CloseGroup(group=number) if number in opened:
                del opened[number]
            case StartQuery(group=number, name=part) if number in opened:
                wholes[part] = query = record.whole
                if record.query is None:  # the topmost part comes first
                    mill.placements.of[query] = Placement(job)
                mill.placements.of[query].parts.append(PlacedPart(part, opened[number], _reads(record)))
                stopped.discard(query)
            case StopQuery(group=number, name=part) if number in opened:
                mill.placements.of[wholes[part]].stopped.add(part)
                stopped.add(wholes[part])
    for group in opened.values():
        mill.placements.groups[group_key(job, group.keys, group.stage)] = group
    job.admit([label for group in opened.values() for label in group.labels], mill.deliveries)
    return stopped


def _reads(record: StartQuery) -> frozenset[str]:
    """The streams of the catalog that a part of a query reads."""
    sources = {partial: stream for stream, partial, _ in record.partials}
    read = [scan.stream for scan in scans(record.plan) if not exchanged(scan.stream)]
    return frozenset(base_stream(sources.get(stream, stream)) for stream in read)


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
            mill.journal.file_progress = done, noted
        case "sources", (int(now), int(beat), dict(promised), dict(held)):
            mill.time.reach(now)
            mill.time.next_beat = beat
            mill.feeds.restore(promised, held)


def _reconcile(mill: Mill, stopped: set[str]) -> None:
    """Complete what the driver left half-done. It writes to a job's log before its own: a query that only the job knows
    was being started; a query that the job has stopped and the driver still knows was being stopped."""
    for name in mill.placements.of.keys() - mill.queries.keys():
        mill.placements.remove(name)
    for name in mill.queries.keys() & stopped:
        mill.stop_query(name)
    mill.placements.close_unused()
