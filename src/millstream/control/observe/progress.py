"""The progress of a running query: the last reports of its shards, and Spark's own report.

print(query.progress())           # a table
query.progress().to_dict()        # plain values, for JSON
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.algebra.qualities import Accuracy
from millstream.amounts import amount
from millstream.control.mill.outlet import SinkTrouble
from millstream.control.observe.capacity import Bounds
from millstream.control.observe.notebook import preformatted
from millstream.control.observe.stream_progress import StreamProgress, stream_progress
from millstream.control.reports.assess import EarlyAnswers
from millstream.control.reports.divert import diverted_streams
from millstream.errors import MillstreamError
from millstream.ingest.paged.wanted import Skipped
from millstream.physical.shard.topology import scans
from millstream.runtime.engine import NodeStatistics

if TYPE_CHECKING:
    from millstream.control.job.base import Job
    from millstream.control.mill.base import Mill
    from millstream.control.mill.running_query import RunningQuery

COLUMNS = ("operator", "shard", "rows in", "rows out", "punct in", "punct out", "state rows", "state", "steps", "time")
ENDS = ("source", "sink")
PACE = "Pace"
"""The kind of operator that drops tuples which are too late."""
UNITS = ("B", "kB", "MB", "GB")


@dataclass(frozen=True, slots=True)
class OperatorProgress:
    """One operator on one shard. Sources and the sink are operators here."""

    name: str
    shard: int
    reading: NodeStatistics
    state_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a query. Figures of a batch are those of the last one.

    | | |
    |---|---|
    | `batch` | the last batch since the job was opened; -1: there was none |
    | `batch_seconds`, `shard_seconds` | time to compute and deliver the batch; the longest time that a shard worked |
    | `rows_in` | rows of its streams since the query was started, or the job was opened; late and bad too |
    | `rows_per_second` | rows of all streams that the job took, over the last ten seconds or three batches |
    | `rows_out` | rows that the sink has taken, or that were kept for the program, since the job was opened |
    | `punctuations` | punctuations emitted by the query's shards; each shard counts its own |
    | `waiting`, `awaited` | tuples that wait at operators for time to pass, and the streams whose time it is |
    | `state_rows`, `state_bytes` | state of the query's operators, including those shared with other queries |
    | `state_bytes_written` | bytes that the query's shards wrote in the last batch, for all queries in them |
    | `behind` | rows known to wait in the streams of the query; None: unknown for all of them |
    | `lag` | seconds since the newest event seen, of the stream with the longest lag; None: no stream has a lag |
    | `finished` | whether the query has emitted all its rows, by its LIMIT |
    | `error` | the error that the query has failed with; None while it runs |
    | `sink` | what is wrong with its sink, and the rows that wait for it (`SinkTrouble`); None while the sink works |
    | `durations` | seconds per phase of the last batch that Spark has reported |
    | `accuracy` | how good its early answers were: of all, and of the last ones before final ones |
    | `lead` | time from its own prods to the end of the window, in seconds; None: it has none, or not by windows |
    | `reports` | what its operators report, in words |
    | `bounds` | the most state rows and bytes, and the longest delay of results, by its contract and measured rates |
    """

    query: str
    batch: int
    batch_seconds: float
    shard_seconds: float
    rows_in: int
    rows_out: int
    rows_per_second: float
    punctuations: int
    state_rows: int
    state_bytes: int
    state_bytes_written: int
    behind: int | None
    lag: float | None
    operators: tuple[OperatorProgress, ...]
    streams: tuple[StreamProgress, ...] = ()
    shards: tuple[float, ...] = ()
    """Seconds that each shard worked in the last batch."""
    durations: Mapping[str, float] = field(default_factory=dict)
    error: str | None = None
    sink: SinkTrouble | None = None
    bounds: Bounds = field(default_factory=Bounds)
    finished: bool = False
    accuracy: Accuracy = field(default_factory=Accuracy)
    reports: tuple[str, ...] = ()
    """What its operators report, in words."""
    lead: float | None = None
    waiting: int = 0
    awaited: tuple[str, ...] = ()

    @property
    def paced(self) -> int:
        """Number of tuples that PACE has dropped because they were too late."""
        return sum(operator.reading.late for operator in self.operators if operator.reading.kind == PACE)

    @property
    def shed(self) -> int:
        """Number of tuples that EXPENSIVE has dropped to keep up."""
        return sum(operator.reading.shed for operator in self.operators)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def _repr_html_(self) -> str:
        return preformatted(self)

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        printer.text(str(self))

    def __str__(self) -> str:
        return "\n".join([*self._heading(), "", *_table([COLUMNS, *map(_cells, self.operators)])])

    def _rows_held(self) -> str:
        rows = amount(self.state_rows, "row")
        if not self.waiting:
            return rows
        waiting = f"{rows}, {self.waiting:,} more" if self.state_rows else amount(self.waiting, "row")
        verb = "waits" if self.waiting == 1 else "wait"
        return f"{waiting} {verb} for the time of {' and '.join(self.awaited) or 'another stream'}"

    def _bound(self) -> str:
        most = self.bounds
        size = "" if most.bytes is None else f" ({size_text(most.bytes)})"
        rows = "" if most.rows is None else f", at most {amount(most.rows, 'row')}{size}"
        return rows if most.delay is None or not most.rows else f"{rows}, results after {most.delay:,.0f} s at most"

    def _heading(self) -> Iterator[str]:
        batch = f"{batch_text(self.batch)}, {self.batch_seconds:.2f} s (shards {self.shard_seconds:.2f} s)"
        yield f"{self.query}: {batch}, {self.rows_per_second:,.0f} rows/s"
        behind = "" if self.behind is None else f", {self.behind:,} behind"
        lag = "" if self.lag is None else f", newest event {self.lag:,.1f} s old"
        numbers = (("late", sum(stream.late for stream in self.streams)), ("bad", sum(s.bad for s in self.streams)))
        missed = (*numbers, ("dropped by PACE", self.paced), ("shed", self.shed))
        lost = "".join(f", {number:,} {what}" for what, number in missed if number)
        counts = f"{self.rows_in:,} in, {self.rows_out:,} out{lost}, {self.punctuations:,} punctuations"
        yield f"rows   {counts}{behind}{lag}"
        held, written = size_text(self.state_bytes), size_text(self.state_bytes_written)
        yield f"state  {self._rows_held()}, {held}, {written} written{self._bound()}"
        guards = list(dict.fromkeys(guard for o in self.operators for guard in o.reading.guards))
        if guards:
            dropped = sum(operator.reading.disclaimed for operator in self.operators)
            dropped += sum(stream.skipped.rows for stream in self.streams)
            tests = [test for o in self.operators for test in o.reading.tests]
            tested, asleep = sum(test.tested for test in tests), sum(test.asleep for test in tests)
            sleeping = f", {asleep} of {len(tests)} asleep" if asleep else ""
            most = max(test.count for test in tests)
            named = f"{', '.join(guards[:5])}{f', … of {most:,}' if max(most, len(guards)) > 5 else ''}"
            yield f"guards {named}: {amount(dropped, 'row')} dropped, {tested:,} tested in operators{sleeping}"
        for stream in self.streams:
            if stream.skipped.tested:
                yield f"source {stream.name}: {skipped_text(stream.skipped, stream.unwanted, asleep=stream.asleep)}"
        for stream in (stream for stream in self.streams if not stream.conduct.kept):
            yield f"broken {stream.name}: {stream.conduct}"
        yield from self.reports
        if self.finished:
            yield "ended  all rows of its LIMIT are out"
        if self.error is not None:
            yield f"failed {self.error}"
        if self.sink is not None:
            yield f"sink   {self.sink}"
        if self.durations:
            longest = sorted(self.durations.items(), key=lambda item: -item[1])
            yield "spark  " + ", ".join(f"{phase} {seconds:.2f} s" for phase, seconds in longest)


def progress_of(mill: Mill, name: str, streams: Mapping[str, StreamProgress] | None = None) -> Progress:
    """Return the progress of a query. `streams`: the progress of all streams, if the caller has it."""
    if (query := mill.query(name)).failure is not None:
        return _ended(query, query.failure.batch, sum(query.failure.counts.values()), error=query.failure.text)
    if query.finished is not None and name not in mill.placements.of:
        return _ended(query, query.finished)
    job, reports = mill.job(name), mill.reports(name)
    outlet = mill.deliveries.outlets.get(name)
    statuses = [status for _, _, status in reports]
    read = {scan.id.source for scan in scans(query.plan)}
    known = stream_progress(mill) if streams is None else streams
    found = tuple(known[stream] for stream in sorted((read | diverted_streams(query.plan)) & known.keys()))
    behind = [stream.behind for stream in found if stream.behind is not None]
    nodes = dict.fromkeys((part.name, node) for part, _, status in reports for node in status.nodes.get(part.name, ()))
    operators = tuple(
        OperatorProgress(node, shard, status.operators[node], status.sizes.get(node, 0))
        for part_name, node in nodes
        for part, shard, status in reports
        if part.name == part_name and node in status.operators
    )
    last, held = job.last, sum(status.state.get(part.name, 0) for part, _, status in reports)
    size = sum(operator.state_bytes for operator in operators)
    waits = [operator for operator in operators if operator.reading.buffered and operator.reading.kind not in ENDS]
    return Progress(
        query=query.name,
        batch=last.batch,
        batch_seconds=last.seconds,
        shard_seconds=max((status.seconds for status in statuses), default=0.0),
        rows_in=query.rows_in,
        rows_out=query.rows_out,
        rows_per_second=job.rate.at(time.monotonic()),
        punctuations=sum(o.reading.punctuations_in for o in operators if o.reading.kind == "sink"),
        state_rows=held,
        state_bytes=size,
        state_bytes_written=sum(status.written for status in statuses),
        behind=sum(behind) if behind else None,
        lag=max((stream.lag for stream in found if stream.lag is not None), default=None),
        operators=operators,
        streams=found,
        shards=tuple(status.seconds for status in statuses),
        durations=durations(job),
        sink=None if outlet is None else outlet.trouble,
        bounds=mill.capacities.bounds(name, (held, size), max(last.seconds, last.before), _emitted(operators)),
        finished=query.finished is not None,
        accuracy=EarlyAnswers.of(mill).accuracy(name, reports),
        reports=tuple(line for each in mill.reported.values() for line in each.lines(name, reports)),
        lead=EarlyAnswers.of(mill).lead(name),
        waiting=sum(operator.reading.buffered for operator in waits),
        awaited=tuple(sorted(mill.placements.requested({operator.name for operator in waits}))) if waits else (),
    )


def _emitted(operators: Iterable[OperatorProgress]) -> Counter[str]:
    """Return the tuples that operators have emitted on all shards, by their kind."""
    found = Counter[str]()
    for operator in operators:
        found[operator.reading.kind] += operator.reading.tuples_out
    return found


def _ended(query: RunningQuery, batch: int, rows: int = 0, error: str | None = None) -> Progress:
    """The progress of a query that has failed or finished: it has no operators."""
    return Progress(
        query=query.name,
        batch=batch,
        batch_seconds=0.0,
        shard_seconds=0.0,
        rows_in=rows,
        rows_out=query.rows_out,
        rows_per_second=0.0,
        punctuations=0,
        state_rows=0,
        state_bytes=0,
        state_bytes_written=0,
        behind=None,
        lag=None,
        operators=(),
        error=error,
        finished=query.finished is not None,
    )


def running(mill: Mill, job: Job | None = None) -> Iterator[Progress]:
    """The progress of all queries, or of those that a job runs; without queries that stop meanwhile."""
    streams = stream_progress(mill)
    for name in list(mill.queries):
        try:
            if job is None or mill.job(name) is job:
                yield progress_of(mill, name, streams)
        except (MillstreamError, KeyError):
            continue


def durations(job: Job) -> dict[str, float]:
    """Seconds per phase of the last batch that Spark has reported."""
    return {phase: millis / 1000 for phase, millis in (job.report or {}).get("durationMs", {}).items()}


def batch_text(batch: int) -> str:
    """
    >>> batch_text(0), batch_text(-1)
    ('batch 0', 'no batch yet')
    """
    return f"batch {batch}" if batch >= 0 else "no batch yet"


def skipped_text(skipped: Skipped, unwanted: Sequence[str], *, asleep: bool = False) -> str:
    """
    >>> skipped_text(Skipped(900, 880, 1, 9, 12, 30), ["[k = 1]"])
    'leaves out [k = 1]: 880 of 900 rows, 9 of 10 row groups, 30 of 42 column chunks'
    """
    leaves = f"leaves out {', '.join(unwanted)}{' (asleep)' if asleep else ''}" if unwanted else "has left out"
    parts = [f"{skipped.rows:,} of {skipped.tested:,} rows"]
    if skipped.groups or skipped.groups_read:
        parts.append(f"{skipped.groups:,} of {skipped.groups + skipped.groups_read:,} row groups")
        parts.append(f"{skipped.chunks:,} of {skipped.chunks + skipped.chunks_read:,} column chunks")
    return f"{leaves}: {', '.join(parts)}"


def size_text(count: float) -> str:
    """
    >>> size_text(999), size_text(1_500), size_text(28_000_000), size_text(3.2e12)
    ('999 B', '1.5 kB', '28.0 MB', '3,200.0 GB')
    """
    power = 0
    while count >= 1000 and power < len(UNITS) - 1:
        count, power = count / 1000, power + 1
    return f"{count:,.0f} B" if not power else f"{count:,.1f} {UNITS[power]}"


def _cells(operator: OperatorProgress) -> tuple[str, ...]:
    r = operator.reading
    counts = (r.tuples_in, r.tuples_out, r.punctuations_in, r.punctuations_out, r.state)
    numbers = (f"{count:,}" for count in counts)
    held, taken = size_text(operator.state_bytes), f"{r.seconds:.2f} s"
    return operator.name, str(operator.shard), *numbers, held, f"{r.steps:,}", taken


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of aligned columns: the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    rest = [[cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)] for row in rows]
    return ["  ".join([row[0].ljust(widths[0]), *cells]) for row, cells in zip(rows, rest, strict=True)]
