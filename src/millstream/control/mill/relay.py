"""Feedback that has reached a source of a shard's graph, passed on to where the tuples come from.

After every batch the shards report what all readers of a stream, or of the output of an earlier stage, have disclaimed
there: feedback to queries, and feedback that operators issue themselves. The driver passes on what is right for all:

| | |
|---|---|
| the shards of a group | each sees other tuples: what all of them disclaim, or those that may see matching tuples |
| several groups and streams made of one | what all of them disclaim |
| to a stream | a `Skip` record: its source leaves the rows out |
| to the output of an earlier stage | a `Send` record: the part of the query that emits it receives the feedback |

The records take effect with a later batch, for all shards alike. A record is written only if no query has started since
the reports: a new query wants all rows. A source whose tests do not pay is told nothing for a while (`source_gates`).
Any reader may desire or demand tuples, so that feedback is passed on at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING

import polars as pl

from millstream.algebra.feedback import Feedback, Intent
from millstream.algebra.punctuation.common import common, merged, pruned
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import Form, one_of
from millstream.algebra.schema import Schema
from millstream.algebra.stream_id import StreamId
from millstream.control.mill.placement import PlacedPart
from millstream.control.mill.source_gates import SourceGates
from millstream.logical.plan import Key
from millstream.physical.plan.partial import Partial
from millstream.physical.plan.told import omitted_by_sources
from millstream.physical.shard.batch import Status
from millstream.physical.shard.topology import Topology, scans
from millstream.physical.wire.hashing import shard_of
from millstream.physical.wire.records import OpenGroup, Record, Send, Skip
from millstream.switches import Switches

if TYPE_CHECKING:
    from millstream.control.job.base import Job
    from millstream.control.mill.base import Mill

MOST_KEYS = 1024
"""The most keys of a pattern that are assigned to shards one by one."""
Patterns = tuple[Pattern, ...]


@dataclass(slots=True)
class _Said:
    """What is passed on in a job."""

    reports: Mapping[int, Mapping[str, Patterns]] = field(default_factory=dict)
    """The last reports of the shards that were considered."""
    parts: tuple[str, ...] = ()
    started: int = -1
    """The position in the log behind the last start of a query: it ends the skipping of rows that the query reads."""
    unwanted: dict[str, Patterns] = field(default_factory=dict)
    """The rows of streams that no reader wants."""
    asleep: set[str] = field(default_factory=set)
    """Streams whose sources do not test rows for a while."""
    skipped: dict[str, Patterns] = field(default_factory=dict)
    """The rows that sources leave out."""
    told: dict[str, Patterns] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Reader:
    """A scan of a stream by the shards of a group; `key`: the columns that the stream is hashed on there."""

    stream: str
    schema: Schema
    group: OpenGroup
    key: Key | None
    partial: Partial | None


class Relay:
    def __init__(self, mill: Mill) -> None:
        self._mill = mill
        self._said: dict[Job, _Said] = {}
        self._gates: dict[Job, SourceGates] = {}

    def asleep(self) -> set[str]:
        """The streams whose sources do not test rows for a while, since few are unwanted."""
        return {StreamId.of(stream).base for said in [*self._said.values()] for stream in said.asleep}

    def unwanted(self) -> dict[str, tuple[str, ...]]:
        """The patterns of the rows that the sources of streams leave out in some job, as text."""
        found: dict[str, tuple[str, ...]] = {}
        for job in self._mill.placements.jobs():
            said = self._of(job)
            for stream, patterns in (said.unwanted or said.skipped).items():
                name = StreamId.of(stream).base
                found[name] = tuple(dict.fromkeys((*found.get(name, ()), *map(str, patterns))))
        return found

    def pass_on(self, job: Job) -> None:
        """Pass on what the shards have reported in the last batch."""
        said = self._of(job)
        passed_on = bool(said.skipped or said.told)
        if not passed_on and not any(status.disclaimed or status.messages for status in job.heard.values()):
            return
        parts = self._parts(job)
        heard = {label: job.heard[label] for part in parts for label in part.group.labels if label in job.heard}
        self._pass_wishes(job, parts, heard)
        reports = {label: status.disclaimed for label, status in heard.items() if status.disclaimed}
        names, started = tuple(part.name for part in parts), job.started
        if not (reports or passed_on):
            return
        same = (reports, names, started) == (said.reports, said.parts, said.started)
        unwanted, outputs = (said.unwanted, said.told) if same else self._passed(parts, heard)
        asleep = self._asleep(job, unwanted, heard)
        if same and asleep == said.asleep:
            return
        streams = {stream: patterns for stream, patterns in unwanted.items() if stream not in asleep}
        records: list[Record] = [
            Skip(self._mill.name, stream, streams.get(stream, ()))
            for stream in {*streams, *said.skipped}
            if started != said.started or streams.get(stream, ()) != said.skipped.get(stream, ())
        ]
        records += [
            Send(self._mill.name, Feedback(Intent.ASSUMED, pattern), part)
            for part, patterns in outputs.items()
            for pattern in patterns
            if not any(known.covers(pattern) for known in said.told.get(part, ()))
        ]
        position = min((status.position for status in heard.values()), default=-1)
        if job.append_if_known(records, position):
            self._said[job] = _Said(reports, names, started, unwanted, asleep, streams, outputs)

    def _asleep(self, job: Job, unwanted: Mapping[str, Patterns], heard: Mapping[int, Status]) -> set[str]:
        rows = {stream: job.rows_of[self._mill.name, stream] for stream in unwanted}
        return self._gates.setdefault(job, SourceGates()).asleep(unwanted, heard.values(), rows)

    def _of(self, job: Job) -> _Said:
        """What was passed on last, before a restart by the log of the job."""
        if job not in self._said:
            held = Topology.of(job.log).unwanted
            own = {stream: patterns for (mill, stream), patterns in held.items() if mill == self._mill.name}
            self._said[job] = _Said(skipped=own)
        return self._said[job]

    def _parts(self, job: Job) -> list[PlacedPart]:
        """The running parts of queries in a job."""
        placed = [placement for placement in [*self._mill.placements.of.values()] if placement.job is job]
        found = {
            (part.group.group, part.name): part
            for placement in placed
            for part in placement.parts
            if part.name not in placement.stopped
        }
        return [*found.values()]

    def _pass_wishes(self, job: Job, parts: Sequence[PlacedPart], heard: Mapping[int, Status]) -> None:
        """Pass on desired and demanded feedback for the output of earlier stages."""
        known = {part.name for part in parts}
        wishes: dict[tuple[str, Feedback], None] = {}
        for status in heard.values():
            for stream, message in status.messages:
                sender = StreamId.of(stream).part
                if isinstance(message, Feedback) and sender in known:
                    wishes[sender, message] = None
        for part, message in wishes:
            job.append(Send(self._mill.name, message, part))

    def _passed(
        self, parts: Sequence[PlacedPart], heard: Mapping[int, Status]
    ) -> tuple[dict[str, Patterns], dict[str, Patterns]]:
        """What may be passed on: to streams, and to parts of queries."""
        readers: dict[StreamId, list[_Reader]] = {}
        wanted: set[str] = set()
        for part in parts:
            for stream, reader in _readers(part):
                if stream.companion == "late":
                    wanted.add(stream.source)  # late rows may match too
                elif not stream.companion:
                    readers.setdefault(stream, []).append(reader)
        streams: dict[str, Patterns] = {}
        outputs: dict[str, Patterns] = {}
        for stream, own in readers.items():
            if str(stream) not in wanted and (found := tuple(common(_of_reader(reader, heard) for reader in own))):
                if stream.exchanged:
                    outputs[stream.part] = found
                else:
                    streams[str(stream)] = found
        return streams, outputs


def _readers(part: PlacedPart) -> Iterator[tuple[StreamId, _Reader]]:
    """The scans of a part, each with the stream, or the output of a part, that its tuples come from."""
    partials = {name: partial for _, name, partial in part.started.partials}
    keys = part.group.keys
    for scan in scans(part.started.plan):
        key = None if keys is None else keys.get(scan.stream)
        reader = _Reader(scan.stream, scan.schema, part.group, key, partials.get(scan.stream))
        yield replace(scan.id, partial="", shard=None), reader


def _of_reader(reader: _Reader, heard: Mapping[int, Status]) -> Patterns:
    """What a reader disclaims of the rows of the stream itself, on all its shards."""
    reports = [heard.get(label) for label in reader.group.labels]
    if any(report is None for report in reports):
        return ()
    said = [() if report is None else report.disclaimed.get(reader.stream, ()) for report in reports]
    found = _of_shards(said, reader)
    if reader.partial is None:
        return found
    below = [omitted for p in found for _, omitted in omitted_by_sources(reader.partial.input, p, Switches.parse(), "")]
    return tuple(pattern for pattern in below if pattern is not None)


def _of_shards(said: Sequence[Patterns], reader: _Reader) -> Patterns:
    """What the shards of a group disclaim together. A pattern concerns only the shards that may see matching tuples."""
    if all(patterns == said[0] for patterns in said):
        return said[0]
    found: list[Pattern] = []
    for pattern in dict.fromkeys(pattern for patterns in said for pattern in patterns):
        if not any(known.covers(pattern) for known in found):
            for piece, concerned in _pieces(pattern, reader, len(said)):
                found += common([(piece,), *(said[number] for number in concerned)])
    return tuple(merged(pruned(found)))


def _pieces(pattern: Pattern, reader: _Reader, shards: int) -> Iterator[tuple[Pattern, Iterable[int]]]:
    """A pattern, or parts of it, each with the numbers of the shards that may see matching tuples."""
    key = reader.key or ()
    restricted = [pattern.get(name) for name in key]
    finite = bool(key) and all(r.form is Form.ONE_OF for r in restricted)
    if not finite or prod(len(r.values) for r in restricted) > MOST_KEYS:
        yield pattern, range(shards)
        return
    types = {name: reader.schema.type_of(name).polars for name in key}
    choices = [*product(*(r.values for r in restricted))]
    numbers = shard_of(pl.DataFrame(choices, schema=types, orient="row"), key, shards).tolist()
    if len(key) > 1:
        yield pattern, sorted({*numbers})
        return
    for number in sorted({*numbers}):
        own = one_of(value for (value,), at in zip(choices, numbers, strict=True) if at == number)
        yield pattern.intersect(Pattern.of({key[0]: own})), (number,)
