"""A job that hosts mills: it reads the control log, runs the shards, and delivers what they emit.

The log says what it runs: groups of shards, their queries, the elements fed to them. The shards run on Spark
(`control.spark.job`) or in this process (`control.job.local`).
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from millstream.algebra.element import Element
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.python.code import code_of
from millstream.algebra.python.reference import Reference
from millstream.control.job.fed_rows import FedRows
from millstream.control.job.identity import identify
from millstream.control.job.ledger import Ledger
from millstream.control.job.parts import DRIVER, BatchLog, check_parts
from millstream.errors import BindError, MillstreamError
from millstream.physical.failure.transport import read_error
from millstream.physical.shard.batch import Status
from millstream.physical.wire.control_log import ControlLog
from millstream.physical.wire.hashing import spread
from millstream.physical.wire.memory_log import MemoryLog
from millstream.physical.wire.records import (
    Feed,
    Fetch,
    OpenGroup,
    Promise,
    Received,
    Record,
    Send,
    Skip,
    StartQuery,
    Unpark,
    WriteOnce,
)
from millstream.rate import Rate

if TYPE_CHECKING:
    from millstream.control.mill.deliveries import Deliveries

PASSING = (Feed, Promise, Send, Received, Unpark, Fetch, WriteOnce)
"""Records that a log can drop once shards have applied them."""
REPEATABLE = 4
"""Number of last batches whose records are kept; Spark replays at most one."""
OutputStates = Mapping[str, dict[str, object]]
"""State of the outputs of a tenant's queries, by query."""
Result = tuple[int, str, Element]
"""An element that a shard emits: the shard's label, the query, the element."""
Report = tuple[int, Status]
"""A shard's label, and its status."""


@dataclass(frozen=True, slots=True)
class LastBatch:
    """`seconds`: from the request for its results to their delivery; `written`: bytes of state that its shards wrote;
    `ended`: time of delivery, in seconds since the epoch; `before`: the seconds of the batch before it, during which
    its rows came."""

    batch: int = -1
    seconds: float = 0.0
    rows: int = 0
    written: int = 0
    ended: float = 0.0
    before: float = 0.0


class Job(ABC):
    """`folder` holds its log and its state; None: both are in memory."""

    host_name: ClassVar[str]
    """The keeper of its shards' state, as error messages name it."""

    def __init__(self, folder: Path | None, *, shards: int, stages: int = 1) -> None:
        self.folder = folder
        self.title = "memory" if folder is None else folder.name
        if folder is not None:
            check_parts(folder)
        checkpoint = "" if folder is None else ControlLog(folder.parent / DRIVER).mark.hex()
        identity = identify(folder, self.host_name, shards, stages, checkpoint)
        self.id, self.shards, self.stages, self.mark = *identity[:3], identity.mark
        self.log: ControlLog | MemoryLog = MemoryLog()
        self.noted: BatchLog | None = None
        """The batches that were begun; None in memory."""
        if folder is not None:
            self.log = ControlLog(folder / "control.log", writable=True, mark=self.mark)
            self.noted = BatchLog(folder, self.log)
        self.tenants: dict[int, Deliveries] = {}
        """The owner of each shard, by label."""
        self._known: dict[str, Deliveries] = {}
        self.heard: dict[int, Status] = {}
        """The last report of every shard, by label."""
        self.position = 0
        """The position in the log up to which shards have applied it."""
        self.last, self.rate = LastBatch(), Rate(least=0.01)
        self.rows_of: Counter[tuple[str, str]] = Counter()
        """Rows of each stream, by mill and name, since the job was opened: those it has read, and those fed to it."""
        self.ledger = Ledger()
        self.fed = FedRows()
        self.batches, self.seconds = 0, 0.0
        """Batches delivered since it was opened, and the time they took."""
        self.report: dict[str, Any] | None = None
        """Spark's own report on the last batch that the listener was called for."""
        self.spooled: dict[tuple[str, int], Any] = {}
        """Results of a job in memory that wait for the sinks of queries, by query and batch."""
        self.parked: dict[tuple[str, str], bytes] = {}
        """What the operators of failed queries of a job in memory held, by parking and file."""
        self._needed = 0
        self.started = self.log.end()
        """The position behind the last start of a query, or behind the records from before it was opened."""
        self._groups = max((r.group for r in self.log.read(0, self.log.end()) if isinstance(r, OpenGroup)), default=0)
        self._last_batch = self._collected = -1
        """The last batch that was delivered, and the last one whose results the outputs of queries have."""
        self._reached: deque[int] = deque(maxlen=REPEATABLE)
        """`position` after each of the last batches."""
        self._changed = threading.Condition()
        self._appending = threading.Lock()
        self._lifecycle = threading.RLock()

    # --- implemented by each kind of job ----------------------------------------------------------------------------

    @property
    @abstractmethod
    def running(self) -> bool:
        """True while batches are run."""

    @abstractmethod
    def start(self) -> None:
        """Run batches from now on, from where the last one ended."""

    @abstractmethod
    def stop(self) -> None:
        """Run no more batches; what was delivered is committed."""

    @abstractmethod
    def wait(self, position: int, timeout: float = 120.0) -> None:
        """Wait until the shards have applied the log up to a position."""

    @abstractmethod
    def check(self) -> None:
        """Raise the error that has stopped the job, if it has stopped."""

    @abstractmethod
    def places(self) -> dict[str, Any]:
        """The place that the job has reached in each stream it reads, by mill and name."""

    @abstractmethod
    def span(self, batch: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """The places in all streams before and after a batch that is being delivered."""

    def applied(self) -> int:
        """The position up to which shards have applied the log, also before this job was opened."""
        return self.position

    @property
    @abstractmethod
    def time_reached(self) -> int:
        """The time of the last batch, also before this job was opened; 0 if there was none."""

    def adopt(self, frames: dict[str, Any]) -> None:
        """Take the DataFrames of streams that queries read in this job."""
        for name in frames:
            hint = "connect to Spark"
            raise BindError("M2102", f"stream '{name}' is a DataFrame, which this process cannot read", hint=hint)

    def require(self, needed: Iterable[Reference], others: Iterable[Reference] = ()) -> None:  # noqa: ARG002
        """Make sure that its shards have Python code, before a query that uses it starts; raise PlanError if it is not
        registered. `others`: code that later queries may use."""
        for reference in needed:
            code_of(reference)

    def reports(self) -> list[dict[str, Any]]:
        """Spark's own reports on the batches since the last start, as far as Spark keeps them."""
        return []

    def status(self, label: int) -> Status | None:
        """A shard's last report, in full."""
        return self.heard.get(label)

    def restart(self) -> None:
        """Stop, and continue after the last committed batch."""
        with self._lifecycle:
            self.stop()
            self.start()

    def close(self) -> None:
        self.stop()
        if self.noted is not None:
            self.noted.close()
        self.log.close()

    # --- the log ----------------------------------------------------------------------------------------------------

    def append(self, record: Record, *, concerns: bool = True) -> int:
        """Write a record to the log; return the position behind it. `concerns`: some shard will apply it, so that
        `settled` waits for it."""
        with self._appending:
            end = self.log.append(record)
            if isinstance(record, Feed):
                self.fed.add(end, record)
            if isinstance(record, StartQuery):
                self.started = end
            if concerns:
                self._needed = end
            return end

    def append_if_known(self, records: Iterable[Record], position: int) -> bool:
        """Write records that rest on what shards have reported at a position; nothing if a query has been started
        since: its readers may want more. Return whether they are written."""
        with self._appending:
            if self.started > position:
                return False
            for record in records:
                self._needed = self.log.append(record)
            return True

    def allot(self, count: int, tenant: Deliveries) -> tuple[int, tuple[int, ...]]:
        """Return a number for a new group, and labels for its shards, which belong to the tenant from now on."""
        with self._lifecycle:
            self._groups += 1
            labels = spread(count, self.shards, set(self.tenants))
            self.admit(labels, tenant)
            return self._groups, labels

    def admit(self, labels: Iterable[int], tenant: Deliveries) -> None:
        """Assign shards to a tenant, which replaces any other of that name."""
        self.tenants |= dict.fromkeys(labels, tenant)
        self._known[tenant.name] = tenant

    def forget(self, labels: Iterable[int]) -> None:
        """Drop the reports of closed shards."""
        for label in labels:
            self.heard.pop(label, None)

    @property
    def batch(self) -> int:
        """The last batch that was begun."""
        return -1 if self.noted is None else self.noted.number

    @property
    def rows_in(self) -> int:
        """Rows read by the job or fed to it since it was opened."""
        return self.rows_of.total()

    @property
    def name(self) -> str:
        """The name of its Spark query."""
        return f"millstream-{self.id}"

    def settled(self) -> bool:
        """Return whether shards have applied all records that concern them."""
        return self.position >= self._needed

    # --- deliveries -------------------------------------------------------------------------------------------------

    def deliver(self, batch: int, results: Iterable[Result], reports: Iterable[Report], begun: float) -> None:
        """Hand the results of a batch to the tenants, unless they were delivered before a restart."""
        again = batch <= self._last_batch
        position, written = self.position, 0
        reports = [*reports]
        if not again:
            self._note_failures(batch, reports)
            self._keep_outputs(batch, changed=self._collect(batch, results, reports))
        served: dict[Deliveries, None] = {}
        taken: Counter[tuple[Deliveries, str, int]] = Counter()
        received: list[Report] = []
        for label, status in reports:
            tenant = self.tenants.get(label)
            if tenant is not None:
                served[tenant] = None
                position, written = max(position, status.position), written + status.written
                for stream, count in status.rows_in.items():
                    taken[tenant, stream, status.group] += count
                received.append((label, status))
                if status.parked and tenant.failures is not None:
                    tenant.failures.take_parcels(self, label, status.parked)
                if not again:
                    self.ledger.note(tenant.name, status)
        arrived = [(position, _distinct(taken)), *self.fed.deliver(position)]
        rows: Counter[tuple[str, str]] = sum((found for _, found in arrived), Counter())
        for tenant in [*self._known.values()]:
            tenant.count(self, arrived)
        if not again:
            for tenant in served:
                tenant.finish_batch(self, batch)
        for tenant in served:
            own = [status for label, status in received if self.tenants[label] is tenant and status.sources]
            if own:
                tenant.note_sources(self, own)
        for tenant in served:
            if tenant.endings is not None:
                tenant.endings.take(self, batch, received)
        self.heard.update(received)  # the end of a stream shows only after its last results are delivered
        for tenant in served:
            own = [status for label, status in received if self.tenants[label] is tenant]
            for each in tenant.reported:  # before the batch counts as done: a look waits for what follows from it
                each.take(self, own, again=again)
        with self._changed:
            self._last_batch = max(batch, self._last_batch)
            self.position = position
            self._reached.append(position)
            self.rows_of.update(rows)
            now = time.monotonic()
            self.last = LastBatch(batch, now - begun, rows.total(), written, time.time(), self.last.seconds)
            self.rate.add(now, rows.total(), self.last.seconds)
            self.batches, self.seconds = self.batches + 1, self.seconds + self.last.seconds
            self._changed.notify_all()
        for tenant in served:
            tenant.relay(self)
        self._compact()

    def _collect(self, batch: int, results: Iterable[Result], reports: Iterable[Report]) -> bool:
        """Hand the results of a batch to the outputs of queries, once: a batch that was abandoned afterwards has the
        same results when it is repeated. Return whether there may be punctuations."""
        if batch == self._collected:
            return True
        results, position = [*results], max(self.position, *(status.position for _, status in reports), -1)
        for label, query, element in results:
            if (tenant := self.tenants.get(label)) is not None:
                tenant.deliver(label, query, element, position)
        self._collected = batch
        return any(isinstance(element, Punctuations) for _, _, element in results)

    def _note_failures(self, batch: int, reports: Iterable[Report]) -> None:
        """Take out the queries that have failed in a batch, before its results are delivered. If no query is left,
        raise the error: the batch is abandoned, and the next start runs it again."""
        failed: dict[Deliveries, dict[str, MillstreamError]] = {}
        for label, status in reports:
            tenant = self.tenants.get(label)
            if tenant is not None and tenant.failures is not None:
                for part, text in status.failed.items():
                    for name in tenant.failures.among(self, label, part):
                        failed.setdefault(tenant, {}).setdefault(name, read_error(text))
        if self.folder is not None:
            self._raise_last(failed)
        for tenant, errors in failed.items():
            assert tenant.failures is not None
            for name, error in errors.items():
                tenant.failures.note(name, error, batch, failing=errors)

    def _check_read(self, unread: Iterable[tuple[int, Mapping[str, str]]]) -> None:
        """Raise the error of streams that could not be read if all queries read them: the batch, of which nothing was
        done, is read again."""
        failed: dict[Deliveries, dict[str, MillstreamError]] = {}
        for label, streams in unread:
            tenant = self.tenants.get(label)
            for stream, text in streams.items() if tenant is not None and tenant.failures is not None else ():
                assert tenant is not None and tenant.failures is not None
                for name in tenant.failures.reading(self, label, stream):
                    failed.setdefault(tenant, {}).setdefault(name, read_error(text))
        self._raise_last(failed)

    def _raise_last(self, failed: Mapping[Deliveries, Mapping[str, MillstreamError]]) -> None:
        """Raise the first error if no query is left without those that have failed."""
        known = [(tenant.failures, failed.get(tenant, {})) for tenant in self._known.values() if tenant.failures]
        if failed and all(failures.leaves_none(names) for failures, names in known):
            raise next(error for errors in failed.values() for error in errors.values())

    def _compact(self) -> None:
        """Drop passing records from a log that has grown, except those of batches that Spark may replay."""
        if len(self._reached) == REPEATABLE and self.log.grown:
            applied = self._reached[0]
            with self._appending:
                self.log.compact(partial(_needed_later, applied, _last_skips(self.log, applied)))

    # --- outputs ----------------------------------------------------------------------------------------------------

    def _outputs(self) -> dict[str, OutputStates]:
        return {name: tenant.outputs_state(self) for name, tenant in [*self._known.items()]}

    @abstractmethod
    def _keep_outputs(self, batch: int, *, changed: bool) -> None:
        """Keep the state of the outputs after a batch, of which sinks have nothing yet. `changed`: it may not be that
        after the batch before."""

    @abstractmethod
    def _kept_outputs(self) -> Mapping[str, OutputStates]:
        """The outputs as kept after the last batch that will not be delivered again: it is committed, or this job
        delivered it before it was restarted."""

    def outputs_state(self, tenant: str) -> OutputStates:
        """A tenant's outputs, as recovery needs them."""
        return (self._outputs() if self.folder is None else self._kept_outputs()).get(tenant, {})


def _last_skips(log: ControlLog | MemoryLog, applied: int) -> set[int]:
    """The positions of the records that say which rows of a stream are skipped after a position of the log."""
    held = {(r.mill, r.stream): at for at, r in log.numbered() if at <= applied and isinstance(r, Skip)}
    return set(held.values())


def _needed_later(applied: int, skips: set[int], position: int, record: Record) -> bool:
    """Return whether a record is needed once shards have applied the log up to a position."""
    if position > applied:
        return True
    return position in skips if isinstance(record, Skip) else not isinstance(record, PASSING)


def _distinct(taken: Counter[tuple[Deliveries, str, int]]) -> Counter[tuple[str, str]]:
    """Number of rows read of each stream, counting a stream once that several groups of shards have read."""
    most: Counter[tuple[str, str]] = Counter()
    for (tenant, stream, _), count in taken.items():
        most[tenant.name, stream] = max(most[tenant.name, stream], count)
    return most
