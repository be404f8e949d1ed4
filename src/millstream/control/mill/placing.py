"""Starting the parts of a new query in a job: shared with an equal one, from the beginning, or from now on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from millstream.control.mill.contracts import warn_unbounded
from millstream.control.mill.placement import PlacedPart, Placement
from millstream.control.mill.sharing import equal_query
from millstream.control.mill.statements import scanned
from millstream.logical.plan import Plan
from millstream.logical.references import references
from millstream.physical.plan import stages
from millstream.physical.plan.preparation import prepare
from millstream.physical.plan.rereading import reread
from millstream.physical.shard.topology import scans

if TYPE_CHECKING:
    from millstream.control.mill.base import Mill
    from millstream.control.mill.parking import Resumption
    from millstream.lang import ast
    from millstream.physical.wire.records import OpenGroup


def place(
    mill: Mill,
    name: str,
    plan: Plan,
    start: ast.Start,
    *,
    punctuated: bool,
    places: Mapping[str, Any] | None = None,
    resumption: Resumption | None = None,
    placed: Callable[[bool], None] = lambda _: None,
) -> None:
    """Start the parts of a plan in a job. `places`: where its streams are read from, apart from other queries;
    `resumption`: what its operators hold at the start. `placed` is called with whether they hold it, before results of
    the query can be delivered."""
    if start.how == "shared" and (equal := equal_query(mill, plan)) is not None:
        with mill.deliveries.lock:
            mill.placements.share(name, equal.name, punctuated=punctuated)
            placed(False)
        return
    if start.how == "beginning":
        with start.placing():
            mill.connectors.check_rereadable(scan.id.base for scan in scans(plan))
    streams, base = mill.connectors.read_by(plan), mill.placements.free_base(name)
    frames, prepared = mill.connectors.open_all(streams), prepare(base, plan, streams, mill.jobs.shards)
    job = mill.jobs.job(frozenset(frames), stages.depth([part.part for part in prepared]))
    if start.how == "beginning" or places is not None:
        again, streams = reread(plan, streams, mill.readings.free_number(job, streams))
        prepared = prepare(base, again, streams, mill.jobs.shards)
    job.require(references(plan), (declared.reference for declared in mill.catalog.library))
    groups: dict[str, OpenGroup] = {}
    reached, closed = mill.feeds.reached(), mill.feeds.closed(scanned(plan))
    begins = {stream: (place, _state(resumption, stream)) for stream, place in (places or {}).items()}
    with mill.readings.opened(job, sorted(streams.keys() - frames.keys()), begins) as readings, mill.deliveries.lock:
        mill.placements.of[name] = placement = Placement(job)
        for part in prepared:
            groups[part.part.name] = mill.placements.open_group(job, part, mill.settings(), mill.deliveries)
        fits = resumption is not None and resumption.fits(prepared, [*groups.values()])
        parking = job.log.end() if fits else None
        for number, part in enumerate(prepared):
            group = groups[part.part.name]
            record = part.start(
                name,
                groups,
                streams,
                mill.tables,
                punctuated=punctuated,
                readings=readings,
                reached=reached,
                closed=closed,
            )
            if resumption is not None and parking is not None:
                for unpark in resumption.records(number, group, record.name, parking):
                    mill.placements.append(unpark, job)
            mill.placements.begin(placement, replace(record, parking=parking))
            placement.parts.append(PlacedPart(record.name, group, part.reads, record))
        placed(fits)
    if streams:
        mill.time.tell(job)
    if frames:
        job.adopt(frames)
    mill.time.repeat({stream for part in placement.parts for stream in part.reads}, job)
    warn_unbounded(mill, name, plan)


def _state(resumption: Resumption | None, stream: str) -> Mapping[str, Any] | None:
    """The state of a stream's source for a part that had not started."""
    return None if resumption is None else resumption.head.sources.get(stream)
