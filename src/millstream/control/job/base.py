"""A job that hosts mills: it reads the control log, runs the shards, and delivers what they emit.

What it runs is in the log: groups of shards, their queries, what is fed to them. Who runs the shards is its host's
business: Spark (`spark_job`), or this process (`local_job`).
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from millstream.algebra import values
from millstream.algebra.element import Element
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.errors import InputError, MillstreamError, OptionError
from millstream.physical.failure.transport import read_report
from millstream.physical.shard.batch import Status
from millstream.physical.wire.control_log import ControlLog
from millstream.physical.wire.hashing import spread
from millstream.physical.wire.memory_log import MemoryLog
from millstream.physical.wire.records import Feed, OpenGroup, Promise, Record, Send
from millstream.whole_file import write_whole

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from millstream.control.mill.deliveries import Deliveries

PASSING = (Feed, Promise, Send)
"""Records that nobody needs once shards have heard them."""
REPEATABLE = 4
"""Of so many batches at the end the records are kept; Spark repeats one at most."""
COMPACT_AFTER = 16_000_000
"""Bytes by which a log may grow before it is compacted."""
Result = tuple[int, str, Element]
"""What a shard emits: its label, the query, an element."""
Report = tuple[int, Status]
"""A shard's label, and its status."""


@dataclass(frozen=True, slots=True)
class LastBatch:
    """`seconds`: from the call for its results until they were delivered; `written`: bytes of state that its shards
    wrote; `ended`: when it was delivered, in seconds since the epoch."""

    batch: int = -1
    seconds: float = 0.0
    rows: int = 0
    written: int = 0
    ended: float = 0.0

    @property
    def rows_per_second(self) -> float:
        return self.rows / self.seconds if self.seconds else 0.0


class Job(ABC):
    """`folder` is where its log and its state are kept; None: in memory."""

    host_name: ClassVar[str]
    """Who keeps the state of its shards."""

    def __init__(self, folder: Path | None, *, shards: int, stages: int = 1) -> None:
        self.folder = folder
        self.title = "memory" if folder is None else folder.name
        self.id, self.shards, self.stages = _identity(folder, self.host_name, shards, stages)
        self.log = MemoryLog() if folder is None else ControlLog(folder / "control.log", writable=True)
        self.tenants: dict[int, Deliveries] = {}
        """Who owns a label."""
        self._known: dict[str, Deliveries] = {}
        self.heard: dict[int, Status] = {}
        """The last report of every shard, by label."""
        self.position = 0
        """How far the log has been worked off."""
        self.last = LastBatch()
        self.rows_in = 0
        """Rows read by the job itself since it was opened."""
        self.batches, self.seconds = 0, 0.0
        """Batches delivered since it was opened, and how long they took."""
        self.report: dict[str, Any] | None = None
        """Spark's own report on the last batch that the listener has heard of."""
        self._needed = 0
        self._groups = max((r.group for r in self.log.read(0, self.log.end()) if isinstance(r, OpenGroup)), default=0)
        self._last_batch = -1
        self._reached: deque[int] = deque(maxlen=REPEATABLE)
        """How far the log had been worked off after each of the last batches."""
        self._changed = threading.Condition()
        self._appending = threading.Lock()
        self._lifecycle = threading.RLock()

    # --- what a host does -------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def running(self) -> bool:
        """Whether batches are run."""

    @abstractmethod
    def start(self) -> None:
        """Run batches from now on, where the last one ended."""

    @abstractmethod
    def stop(self) -> None:
        """Run no more batches; what was delivered is committed."""

    @abstractmethod
    def wait(self, position: int, timeout: float = 120.0) -> None:
        """Until the log has been worked off up to a position."""

    @abstractmethod
    def check(self) -> None:
        """Raise what has stopped the job, if it has stopped."""

    @abstractmethod
    def places(self) -> dict[str, Any]:
        """How far the job has read its streams, by mill and name."""

    @abstractmethod
    def _committed(self) -> list[int]:
        """The numbers of batches that will not be run again."""

    @abstractmethod
    def adopt(self, mill: str, frames: dict[str, DataFrame]) -> None:
        """Take the DataFrames that a mill's queries read in this job, as far as they are there."""

    def reports(self) -> list[dict[str, Any]]:
        """Spark's own reports on the batches of this start, as far as it keeps them."""
        return []

    def status(self, label: int) -> Status | None:
        """A shard's last report, whole."""
        return self.heard.get(label)

    def restart(self) -> None:
        """Stop, and go on from what was committed."""
        with self._lifecycle:
            self.stop()
            self.start()

    def close(self) -> None:
        self.stop()
        self.log.close()

    # --- the log ----------------------------------------------------------------------------------------------------

    def append(self, record: Record, *, concerns: bool = True) -> int:
        """Write a record to the log. `concerns`: some shard will hear of it, so that one can wait for it."""
        with self._appending:
            end = self.log.append(record)
            if concerns:
                self._needed = end
            return end

    def allot(self, count: int, tenant: Deliveries) -> tuple[int, tuple[int, ...]]:
        """A number for a new group, and labels for its shards, which belong to the tenant from now on."""
        with self._lifecycle:
            self._groups += 1
            labels = spread(count, self.shards, set(self.tenants))
            self.admit(labels, tenant)
            return self._groups, labels

    def admit(self, labels: Iterable[int], tenant: Deliveries) -> None:
        """Let shards belong to a tenant, who takes the place of any other of that name."""
        self.tenants |= dict.fromkeys(labels, tenant)
        self._known[tenant.name] = tenant

    def forget(self, labels: Iterable[int]) -> None:
        """Shards that are closed have nothing to say any more."""
        for label in labels:
            self.heard.pop(label, None)

    @property
    def name(self) -> str:
        """The name of its Spark query."""
        return f"millstream-{self.id}"

    def settled(self) -> bool:
        """Whether everything in the log has been worked off."""
        return self.position >= self._needed

    # --- deliveries -------------------------------------------------------------------------------------------------

    def deliver(self, batch: int, results: Iterable[Result], reports: Iterable[Report], begun: float) -> None:
        """Hand what a batch has made to the tenants. One that was delivered before a restart is not delivered twice."""
        again = batch <= self._last_batch
        position, told, written = self.position, False, 0
        served: dict[int, Deliveries] = {}
        taken: Counter[tuple[int, str, int]] = Counter()
        words: list[Report] = []
        for label, query, element in () if again else results:
            tenant = self.tenants.get(label)
            if tenant is not None:
                served[id(tenant)] = tenant
                told = told or isinstance(element, Punctuations)
                tenant.deliver(label, query, element)
        for label, status in reports:
            tenant = self.tenants.get(label)
            if tenant is not None:
                served[id(tenant)] = tenant
                position, written = max(position, status.position), written + status.written
                for stream, count in status.rows_in.items():
                    taken[id(tenant), stream, status.group] += count
                words.append((label, status))
        rows = _distinct(taken)
        if not again:
            for tenant in served.values():
                tenant.finish_batch(self, batch)
            if told:
                self._save_outputs(batch)
        self.heard.update(words)  # that a stream has ended is heard when its last results are out
        with self._changed:
            self._last_batch = max(batch, self._last_batch)
            self.position = position
            self._reached.append(position)
            self.rows_in += rows
            self.last = LastBatch(batch, time.monotonic() - begun, rows, written, time.time())
            self.batches, self.seconds = self.batches + 1, self.seconds + self.last.seconds
            self._changed.notify_all()
        self._compact()

    def _compact(self) -> None:
        """Drop what shards have heard from a log that has grown: not who runs what, and not what Spark may repeat."""
        if len(self._reached) < REPEATABLE or self.log.size < self.log.compacted + COMPACT_AFTER:
            return
        self._drop_passing(self._reached[0])

    def _drop_passing(self, heard: int) -> None:
        with self._appending:
            self.log.compact(lambda position, record: position > heard or not isinstance(record, PASSING))

    # --- outputs ----------------------------------------------------------------------------------------------------

    def _outputs(self) -> dict[str, dict[str, dict[str, object]]]:
        return {name: tenant.outputs_state(self) for name, tenant in [*self._known.items()]}

    def _save_outputs(self, batch: int) -> None:
        """Keep what later punctuations depend on, for this batch and the one before it."""
        if self.folder is None:
            return
        folder = self.folder / "outputs"
        folder.mkdir(exist_ok=True)
        write_whole(folder / str(batch), values.encode(self._outputs()))
        for old in sorted((path for path in folder.iterdir() if path.name.isdigit()), key=lambda p: int(p.name))[:-3]:
            old.unlink()

    def outputs_state(self, tenant: str) -> dict[str, dict[str, object]]:
        """What was kept of a tenant's outputs by the last batch that will not be delivered again: it is committed, or
        was delivered by this job before it was started anew."""
        if self.folder is None:
            return self._outputs().get(tenant, {})
        kept = [int(path.name) for path in (self.folder / "outputs").glob("[0-9]*")]
        fit = [batch for batch in kept if batch <= max([self._last_batch, *self._committed()])]
        if not fit:
            return {}
        path = self.folder / "outputs" / str(max(fit))
        held: dict[str, dict[str, dict[str, object]]] = values.decode(path.read_bytes(), f"'{path}'")
        return held.get(tenant, {})


def _distinct(taken: Counter[tuple[int, str, int]]) -> int:
    """How many rows came, where several groups of shards may have read the same stream."""
    most: dict[tuple[int, str], int] = {}
    for (tenant, stream, _), count in taken.items():
        most[tenant, stream] = max(most.get((tenant, stream), 0), count)
    return sum(most.values())


def _identity(folder: Path | None, host: str, shards: int, stages: int) -> tuple[str, int, int]:
    """A job's name, and the numbers of shards and stages it was begun with. State kept by another host is refused."""
    made = uuid.uuid4().hex[:12]
    if folder is None:
        return made, shards, stages
    path = folder / "job.json"
    if not path.exists() and (folder / "control.log").exists():
        raise InputError("M5023", f"'{path}' is missing", hint=values.HINT)
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        held = {"format": values.FORMAT, "id": made, "host": host, "shards": shards, "stages": stages}
        write_whole(path, json.dumps(held).encode(), durable=True)
        return made, shards, stages
    try:
        held = json.loads(path.read_text())
        values.check_format(held.get("format"), f"'{path}'")
        found = str(held["id"]), int(held["shards"]), int(held["stages"])
        if min(found[1:]) < 1:
            raise ValueError("no shards, or no stages")
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise values.unversioned(f"'{path}'") from error
    if held.get("host") != host:
        hint = "run it there, or take another checkpoint folder"
        raise OptionError("M6058", f"the state in {folder} is kept by {held.get('host')}, not by {host}", hint=hint)
    return found


def explained(error: BaseException) -> Exception:
    """What has stopped a job, as an error of Millstream's: the one that Spark's carries, if it does."""
    if isinstance(error, MillstreamError):
        return error
    text = str(error).strip()
    if (found := read_report(text)) is not None:
        return found
    said = text.partition("\n\n=== Streaming Query ===")[0].partition("\n=== Streaming Query ===")[0].splitlines()
    hint = "Start again with the same checkpoint, and it goes on where it was."
    first = said[0] if said else type(error).__name__
    return OptionError("M6051", first, detail="\n".join(said[1:]), hint=hint)
