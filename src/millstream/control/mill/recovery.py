"""Recovery: a mill rebuilt from the logs of its checkpoint.

The driver's log holds the statements, which run again; the jobs' control logs hold the placements of the queries. The
driver may have ended at any moment, even after it wrote to one log and before it wrote to the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from millstream.algebra.feedback import Feedback
from millstream.algebra.python.definition import Declaration
from millstream.algebra.python.reference import Reference
from millstream.config import Options
from millstream.control.mill.failures import LOG
from millstream.control.mill.placement import PlacedPart, Placement, group_key
from millstream.control.reports.divert import DivertedRows
from millstream.errors import MillstreamError
from millstream.logical.nodes.prodder import Prodder
from millstream.physical.shard.topology import scans
from millstream.physical.wire.records import (
    CloseGroup,
    ForgetStream,
    Hold,
    OpenGroup,
    Park,
    Rekey,
    Remember,
    StartQuery,
    StopQuery,
    WriteOnce,
)

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
    mill.journal.recovering = mill.catalog.replaying = True
    saved = [job.outputs_state(mill.name) for job in jobs.all()]  # before a job can ask the mill for it
    ran = {number: text for job in jobs.all() for number, text in _find_placements(mill, job).items()}
    with mill.python_code.replaying():
        for record in jobs.log.read(0, jobs.log.end()):
            if isinstance(record, Remember) and record.mill == mill.name:
                _replay(mill, record)
    for states in saved:
        for query, state in states.items():
            if query in mill.queries:
                mill.queries[query].output.restore(state)
    if mill.time.wall:  # the machine's clock may have gone back meanwhile
        mill.time.reach(max((job.time_reached for job in jobs.all()), default=0))
    mill.journal.recovering = mill.catalog.replaying = False
    for number, text in ran.items():  # the driver may have ended before it noted the last one
        mill.journal.ran(text, number)
    _reconcile(mill)
    mill.capacities.recovered |= mill.queries.keys()
    if not mill.time.wall and mill.placements.groups:
        mill.request_reports()  # to learn which operators wait for time


def replay_statements(mill: Mill, notes: Iterable[Remember]) -> None:
    """Bring a new mill in memory to the statements and options that these notes have."""
    mill.journal.recovering = mill.catalog.replaying = True
    with mill.python_code.replaying():
        for note in notes:
            if note.mill == mill.name and note.kind in ("statement", "option", "drop", "python", "file"):
                _replay(mill, note)
    mill.journal.recovering = mill.catalog.replaying = False


def _find_placements(mill: Mill, job: Job) -> dict[int, str]:
    """Find the groups of the mill in a job, and the placements of its queries there. Return the statements that no
    stream drives and that the job was told to run, by number."""
    opened: dict[int, OpenGroup] = {}
    ran: dict[int, str] = {}
    found: dict[str, Placement] = {}
    of_part: dict[str, list[Placement]] = {}
    closed: list[int] = []
    held = False
    for position, record in job.log.numbered():
        match record:
            case OpenGroup(group=number, mill=mill.name):
                opened[number] = record
            case Rekey(group=number, keys=keys) if number in opened:
                opened[number] = replace(opened[number], keys=keys)
            case CloseGroup(group=number) if number in opened:
                closed += opened.pop(number).labels
            case StartQuery(group=number, name=part) if number in opened:
                if record.query is None:  # the topmost part comes first
                    found[record.whole] = Placement(job, since=position)
                placement = found[record.whole]
                of_part[part] = [placement]
                placement.parts.append(PlacedPart(part, opened[number], _reads(record), record))
                for below in record.below:
                    placement.parts += [p for p in of_part[below][0].parts if p.name == below]
                    of_part[below].append(placement)
                mill.readings.find(job, record)
            case Park(group=number, query=query) if number in opened:
                found[query].parked = True
            case Hold(mill=mill.name, on=on):
                held = on
            case StopQuery(group=number, name=part) if number in opened:
                for placement in of_part[part]:
                    placement.stopped.add(part)
                mill.readings.find(job, record)
            case ForgetStream(mill=mill.name):
                mill.readings.find(job, record)
            case WriteOnce(group=number, text=text) if number in opened and text:
                ran[record.number] = text
    for query, placement in found.items():
        # A query that was stopped here may run in another job, started again under the same name.
        if query not in mill.placements.of or len(placement.stopped) < len(placement.parts):
            mill.placements.of[query] = placement
    for group in opened.values():
        mill.placements.groups[group_key(job, group.keys, group.stage, group.table)] = group
    if held and mill.readings.released:  # the driver ended while a stream was handed over
        job.append(Hold(mill.name, False))
    if job.applied() < job.log.end():  # shards that have yet to close report the sources of their streams then
        job.admit(closed, mill.deliveries)
    job.admit([label for group in opened.values() for label in group.labels], mill.deliveries)
    return ran


def _reads(record: StartQuery) -> frozenset[str]:
    """The streams of the catalog that a part of a query reads."""
    return frozenset(scan.id.source for scan in scans(record.plan) if not scan.id.exchanged)


def _replay(mill: Mill, note: Remember) -> None:
    match note.kind, note.value:
        case "statement", str(text):
            try:
                mill.execute(text)
            except MillstreamError as error:
                error.line = error.column = None  # the program has no such text
                raise
        case "once", str(text):
            mill.journal.ran(text)
        case "once", (str(text), int(number)):
            mill.journal.ran(text, number)
        case "python", Declaration() as declared:
            mill.python_code.replay(declared)
        case "python", (Reference() as reference, str(digest)):
            mill.python_code.replay_accepted(reference, digest)
        case "option", (str(option), value):
            mill.set_option(option, value)
        case "table", (str(table), pl.DataFrame() as rows):
            mill.tables[table] = rows
        case "table", (str(table), pl.DataFrame() as rows, str(text)):
            mill.tables[table] = rows
            mill.journal.wrote(text, table, rows)
        case "drop", ("query", str(query)):
            if query in mill.queries:  # a query whose start has failed is noted as dropped
                mill.stop_query(query)
        case "drop", ("relation", str(relation)):
            mill.catalog.forget(relation)
            mill.forget(relation)
        case "failed", (str(query), str(text), *noted):
            mill.failures.replay(query, text, *noted)
        case "started", (str(query), dict(output)):
            mill.queries[query].failure = None
            if output:
                mill.queries[query].output.restore(output)
        case "finished", (str(query), int(batch)):
            mill.queries[query].finished = batch
        case "feedback", (str(query), Feedback() as message):
            mill.queries[query].hear(message)
        case "prodder", (str(query), Prodder() as prodder):
            mill.queries[query].prodder = prodder
        case "drop", ("aggregate", str(aggregate)):
            mill.catalog.drop("aggregate", aggregate, if_exists=True)
            mill.journal.drop("aggregate", aggregate)
        case "stands", dict(stands):
            mill.readings.stands = dict(stands)
        case "diverted", dict(counts):
            DivertedRows.of(mill).before = dict(counts)
        case "file", (int() | None as done, int(noted)):
            mill.journal.file_progress = done, noted
        case "sources", (int(now), int(beat), dict(promised), dict(held)):
            mill.time.reach(now)
            mill.prodders.begin()
            mill.time.next_beat = beat
            mill.feeds.restore(promised, held)


def _reconcile(mill: Mill) -> None:
    """Complete what the driver left half-done. It writes to a job's log before its own: a query that only the job knows
    was being started; a query that the job has stopped and the driver still knows was being stopped."""
    for name in mill.placements.of.keys() - mill.queries.keys() - mill.written.reconcile():
        mill.placements.remove(name)
    for name, query in [*mill.queries.items()]:
        if query.failure is not None:
            if not mill.placements.of[name].stopped:
                mill.failures.park(name, query.failure)
            mill.placements.remove(name)
            mill.deliveries.close_sink(name, failed=True)
            LOG.warning("query '%s' has failed in batch %d: %s", name, query.failure.batch, query.failure.text)
        elif query.finished is not None:
            mill.endings.settle()
        elif mill.placements.of[name].stopped:
            mill.stop_query(name)
    mill.placements.close_unused()
