"""A mill whose queries run in Spark jobs.

Statements and elements fed from the driver go into the jobs' control logs, in order; shards apply them. Results come
back batch by batch. Streams with a connector are read by the jobs themselves. What the driver alone must know (its
statements, and how far the streams are that it feeds) is in a log of its own, from which a mill is recovered.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from millstream.algebra.clock import SystemClock
from millstream.algebra.pattern import Pattern
from millstream.algebra.schema import NEVER, TimeKind
from millstream.config import Options
from millstream.control.adopted import adopted_streams, routes_of
from millstream.control.base import Element, Mill, RunningQuery
from millstream.control.deliveries import Deliveries
from millstream.control.homes import Home, Homes, Place
from millstream.control.job import Job
from millstream.control.jobs import Jobs
from millstream.control.join_settings import join_settings
from millstream.control.outputs import QueryOutput
from millstream.control.recovery import recover
from millstream.errors import BindError
from millstream.ingest.paged import PagedSource, open_paged
from millstream.ingest.source import StreamSource
from millstream.logical.catalog import StreamDefinition
from millstream.logical.plan import Plan
from millstream.physical import stages
from millstream.physical.partitioning import Keys
from millstream.physical.plotting import Plotted, plot
from millstream.physical.records import (
    Ask,
    Configure,
    Feed,
    OpenGroup,
    Promise,
    Record,
    Remember,
    RequestPunctuation,
    Settings,
)
from millstream.physical.stage import Status
from millstream.physical.topology import base_stream, scans

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ON_DEMAND = ("demand", "punctuation")


class SparkMill(Mill):
    """With `wall` its clock is the machine's, and a pacer tells operators that wait the time; otherwise the clock is
    virtual, and `sync` does."""

    def __init__(self, jobs: Jobs, name: str = "main", options: Options | None = None, *, wall: bool = False) -> None:
        super().__init__(options, SystemClock() if wall else None)
        self.jobs, self.name, self.wall = jobs, name, wall
        self.options.shards = jobs.shards
        self.homes = Homes()
        self._deliveries = Deliveries(self.queries, self.homes)
        self._pending: list[tuple[str, Element]] = []
        self._told: dict[str, int] = {}
        self._written: dict[Job, int] = {}
        """How far the logs of its jobs have to be worked off before all that this mill has said has been heard."""
        self._settled = -1  # the clock when operators were last asked what they wait for
        self.recovering = False
        self.noted = 0
        """How many things have been noted that statements do."""
        self.carried_out: tuple[int | None, int] | None = None
        """How many statements of a file have been carried out (None: all), and how much was noted then."""
        self._opened: dict[str, PagedSource] = {}
        self._frames: dict[str, DataFrame] = {}

    # --- statements -------------------------------------------------------------------------------------------------

    def remember(self, kind: str, name: str, text: str, reads: Iterable[str]) -> None:
        super().remember(kind, name, text, reads)
        self._note("statement", text)

    def stop_query(self, name: str) -> None:
        super().stop_query(name)
        self._note("drop", ("query", name))
        self._deliveries.close_sink(name)

    def forget(self, relation: str) -> None:
        super().forget(relation)
        self._opened.pop(relation, None)
        self._note("drop", ("relation", relation))

    def set_option(self, name: str, value: Any) -> None:
        super().set_option(name, value)
        self._note("option", (name, value))

    def _extend_table(self, name: str, rows: Any) -> None:
        super()._extend_table(name, rows)
        self._note("table", (name, self.tables[name]))

    def _note(self, kind: str, value: object) -> None:
        """Write down what whoever recovers this mill must know."""
        self.noted += kind not in ("sources", "file")
        if not self.recovering:
            self.jobs.remember(Remember(self.name, kind, value))

    def carry_on(self, done: int | None) -> None:
        """Note how many statements of the file that is run have been carried out; None: all of them."""
        self.carried_out = done, self.noted
        self._note("file", self.carried_out)

    def _settings(self) -> Settings:
        options = self.options
        return Settings(options.strategy, options.ets, options.page_rows, join_settings(options))

    def _attach(self, name: str, plan: Plan, *, punctuated: bool) -> QueryOutput:
        if name in self.homes.of:  # recovered
            return QueryOutput(plan.schema, len(self.homes.of[name].top.labels))
        connected = self._connected(plan)
        frames = adopted_streams(connected)
        for stream in connected.keys() - frames:
            self._paged(stream)  # a source that cannot be opened is refused here: in the job it would stop all queries
        plotted = self.plot(name, plan)
        job = self.jobs.job(frames, stages.depth([made.part for made in plotted]))
        for adopted in frames:
            job.frames[adopted] = self._frame(adopted)
        groups: dict[str, OpenGroup] = {}
        self.homes.of[name] = home = Home(job)
        for made in plotted:
            groups[made.part.name] = group = self._group(job, made.keys, made.part.stage)
            home.places.append(Place(made.part.name, group, made.reads))
            self._written[job] = job.append(made.start(name, groups, connected, self.tables, punctuated=punctuated))
        if frames:
            job.reroute(self.name)
        return QueryOutput(plan.schema, len(home.top.labels))

    def plot(self, name: str, plan: Plan) -> list[Plotted]:
        return plot(name, plan, self._connected(plan), self.jobs.shards)

    def adopt(self, name: str, frame: DataFrame) -> None:
        """Let a DataFrame be the source of a stream that was declared so."""
        self._frames[name] = frame
        for job in self.jobs.all():
            if name in routes_of(job.log, self.name):
                job.frames[name] = frame
                job.reroute(self.name)

    def _frame(self, name: str) -> DataFrame:
        if name not in self._frames:
            raise BindError("M2102", f"the DataFrame of stream '{name}' is not here", hint=f"mill.stream('{name}', df)")
        return self._frames[name]

    def _sink_to(self, query: RunningQuery) -> None:
        self._deliveries.open_sink(query)

    def _connected(self, plan: Plan) -> dict[str, StreamDefinition]:
        """The streams with a connector that a plan reads."""
        found = {base_stream(scan.stream) for scan in scans(plan)}
        return {name: d for name in found if (d := self.catalog.stream(name)).options.get("connector")}

    def _group(self, job: Job, keys: Keys | None, stage: int) -> OpenGroup:
        def opened() -> OpenGroup:
            number, labels = job.allot(job.shards if keys is not None else 1, self)
            return OpenGroup(number, self.name, labels, keys, self._settings(), stage)

        return self.homes.group(job, keys, stage, opened)

    def _detach(self, name: str) -> None:
        if name in self.homes.of and not self.recovering:
            self.homes.leave(name)

    def _configure(self) -> None:
        self._tell(Configure(self.name, self._settings()))

    def _tell(self, record: Record) -> None:
        """Write a record to the log of every job that runs something for this mill."""
        if not self.recovering:
            for job in self.homes.jobs():
                self._written[job] = job.append(record)

    # --- data -------------------------------------------------------------------------------------------------------

    def _relation(self, name: str) -> str:
        name = super()._relation(name)
        if name in self._sources and (connector := self.catalog.stream(name).options.get("connector")):
            hint = "only streams without a connector are fed"
            raise BindError("M2097", f"stream '{name}' is read from {connector}", hint=hint)
        return name

    def _push(self, stream: str, element: Element) -> None:
        self._pending.append((stream, element))

    def _run(self) -> None:
        if self._pending:
            elements, self._pending = tuple(self._pending), []
            self._tell(Feed(self.name, self.clock.now(), elements))
            self._note("sources", self._sources_state())
        moved = self.clock.now() != self._settled
        if not self.wall and not self.recovering and self.options.ets in ON_DEMAND and (moved or self._skewed()):
            self.sync()

    def advance(self, micros: int) -> None:
        super().advance(micros)
        self._note("sources", self._sources_state())  # whoever recovers this mill goes on at this time

    def _skewed(self) -> bool:
        """Whether some promise depends on when it is asked for."""
        return any(stream.max_skew is not None for stream in self.catalog.streams)

    def _beat(self) -> None:
        self._promise(self._times([*self._sources]), beat=True)

    def _times(self, streams: list[str]) -> dict[str, int]:
        """What these streams, as far as they are fed from here, can promise now and have not promised before."""
        made: dict[str, int] = {}
        for stream in streams:
            value = self._sources[stream].ets() if stream in self._sources else self.clock.now()
            if value is not None and value > self._told.get(stream, NEVER):
                made[stream] = self._told[stream] = value
        return made

    def _promise(self, times: dict[str, int], *, beat: bool = False) -> None:
        if times and self.homes.groups:
            self._tell(Promise(self.name, self.clock.now(), times, beat))
            self._note("sources", self._sources_state())

    def sync(self) -> None:
        """Wait until the jobs have worked off all that was fed and no operator waits for time that could be told."""
        while self.homes.groups:
            for job in self.homes.jobs():
                job.start()
                job.wait(self._written.get(job, 0))
            self._settled = self.clock.now()
            if self.options.ets not in ON_DEMAND:
                return
            times = self._times(sorted(self.homes.asked() - self._connected_streams()))
            if not times or self.wall:
                return
            self._promise(times)

    def pace(self, *, beat: bool = False) -> None:
        """Tell operators that wait the time, if a stream can promise any; with `beat`, tell all of them."""
        if any(not job.settled() for job in self.homes.jobs()):
            return
        asked = set(self._sources) if beat else self.homes.asked()
        connected = {name for name in asked & self._connected_streams() if self._can_promise(name)}
        if connected:
            self._tell(Ask(self.name, tuple(sorted(connected)), beat))
        self._promise(self._times(sorted(asked - self._connected_streams())), beat=beat)

    def _connected_streams(self) -> set[str]:
        return {stream.name for stream in self.catalog.streams if stream.options.get("connector")}

    def _can_promise(self, name: str) -> bool:
        stream = self.catalog.stream(name)
        return stream.schema.kind is not TimeKind.EXTERNAL or stream.max_skew is not None

    def ended(self) -> bool:
        """Whether every stream that the jobs read for some query has ended, on every shard."""
        if not self.queries or any(not job.settled() for job in self.homes.jobs()):
            return False
        return self.homes.ended(self._connected_streams())

    def behind(self) -> int:
        """How many rows are known to wait in the streams that the jobs read."""
        return sum(self.waiting().values())

    def waiting(self) -> dict[str, int]:
        """How many rows wait in each of the streams that the jobs read, as far as that is known."""
        made: dict[str, int] = {}
        for job in self.homes.jobs():
            for key, place in job.places().items():
                mill, _, name = key.partition("/")
                if mill == self.name and name in self.catalog:
                    rows = self._paged(name).behind(place["at"])
                    if rows is not None:
                        made[name] = max(rows, made.get(name, 0))
        return made

    def fed(self, stream: str) -> StreamSource | None:
        """The source of a stream that is fed from here; None if the jobs read it."""
        return None if self.catalog.stream(stream).options.get("connector") else self._sources.get(stream)

    def _paged(self, name: str) -> PagedSource:
        if name not in self._opened:
            stream = self.catalog.stream(name)
            self._opened[name] = open_paged(name, stream.schema, stream.options, stream.required)
        return self._opened[name]

    def close_sinks(self) -> None:
        self._deliveries.close()

    def close(self) -> None:
        """Take everything this mill runs out of its jobs."""
        self.homes.clear()
        self.queries.clear()
        self.close_sinks()

    # --- results ----------------------------------------------------------------------------------------------------

    def deliver(self, job: Job, label: int, query: str, element: Element) -> None:  # noqa: ARG002
        self._deliveries.take(label, query, element)

    def heard(self, job: Job, label: int, status: Status) -> None:
        self.homes.hear(job, label, status)

    def finish_batch(self, job: Job, batch: int) -> None:
        self._deliveries.finish_batch(job, batch)

    def outputs_state(self, job: Job) -> dict[str, dict[str, object]]:
        return self._deliveries.outputs_state(job)

    def take_rows(self, name: str) -> pl.DataFrame:
        self.sync()
        with self._deliveries.lock:
            return super().take_rows(name)

    def take_punctuations(self, name: str) -> list[Pattern]:
        self.sync()
        with self._deliveries.lock:
            return super().take_punctuations(name)

    def state_rows(self, name: str) -> int:
        self.sync()
        if not self.homes.heard_all(self.query(name).name):
            self.call_roll()  # after a restart shards have nothing to say until they are asked
            self.sync()
        return sum(status.state[place.name] for place, _, status in self.heard_of(name))

    def request_punctuation(self, name: str) -> None:
        self.batch()
        job = self.job(name)
        self._written[job] = job.append(RequestPunctuation(self.name, self.query(name).name))

    def heard_of(self, name: str) -> list[tuple[Place, int, Status]]:
        """The last word of the shards that run a query: the part of it, the number of the shard, its status."""
        return self.homes.heard_of(self.query(name).name)

    def statuses(self, name: str) -> list[Status]:
        """The last word of the shards that run a query."""
        return [status for _, _, status in self.heard_of(name)]

    def job(self, name: str) -> Job:
        """The job that runs a query."""
        return self.home(name).job

    def home(self, name: str) -> Home:
        """Where a query runs."""
        return self.homes.of[self.query(name).name]

    # --- recovery ---------------------------------------------------------------------------------------------------

    def _sources_state(self) -> tuple[int, int, dict[str, int], Mapping[str, Any]]:
        held = {name: source.snapshot() for name, source in self._sources.items()}
        return self.clock.now(), self._next_beat, dict(self._told), held

    def restore_sources(self, state: tuple[int, int, dict[str, int], Mapping[str, Any]]) -> None:
        """The streams fed from here go on where they were."""
        now, self._next_beat, self._told, held = state
        self._reach(now)
        for name, values in held.items():
            self._sources[name].restore(values)

    def call_roll(self) -> None:
        """Have every shard report, though there may be nothing left to do."""
        self._tell(Ask(self.name, ()))

    @classmethod
    def recover(
        cls, jobs: Jobs, name: str = "main", options: Options | None = None, *, wall: bool = False
    ) -> SparkMill:
        """The mill of that name as the logs have it."""
        mill = cls(jobs, name, options, wall=wall)
        recover(mill)
        if not wall and mill.homes.groups:
            mill.call_roll()  # to hear what operators wait for
        return mill
