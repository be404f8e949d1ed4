"""A job that this process runs, batch by batch, whenever its results are waited for.

Batches, shards, stages and deliveries are those of a Spark job; pages go from shard to shard as they are. Live shards
are the truth: a job without a folder writes its state only when it is stopped.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.algebra.values import HINT
from millstream.control.job.base import Job, Result, explained
from millstream.control.job.local_state import LocalState
from millstream.errors import BindError, InputError, OptionError
from millstream.physical.shard import durable
from millstream.physical.shard.batch import Given, Sent, Status, brief_status, full_status, run_batch
from millstream.physical.shard.durable import DurableShard
from millstream.physical.shard.host import ShardHost
from millstream.physical.wire.reading import BatchReader, Dealt
from millstream.physical.wire.shard_split import ShardSplit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def wall_clock() -> int:
    return time.time_ns() // 1000


class LocalJob(Job):
    """`clock` tells the time of batches. Without `cached` every batch reads its state back from where it is kept."""

    host_name = "a single process"

    def __init__(
        self,
        folder: Path | None = None,
        *,
        shards: int = 1,
        stages: int = 1,
        clock: Callable[[], int] = wall_clock,
        cached: bool = True,
    ) -> None:
        super().__init__(folder, shards=shards, stages=stages)
        self.clock, self.cached = clock, cached
        path = None if folder is None else folder / "state.db"
        if path is not None and not path.exists() and self.log.end():
            raise InputError("M5023", f"'{path}' is missing", hint=HINT)
        self._state = LocalState(path)
        self._reader = BatchReader(self.log, shards)
        self._batch, self._offset = self._state.last() or (-1, self._reader.initial())
        self._last_batch, self.position = self._batch, self._offset["log"]
        if self.position > self.log.end():
            raise InputError("M5023", f"the control log in {folder} ends before what was worked off of it", hint=HINT)
        self._shards: dict[int, DurableShard] = {}
        self._closed = False
        self._failure: Exception | None = None
        """What has stopped it: a batch whose results were lost cannot be gone over."""
        self._stepping = self._touched = False
        """Whether a batch runs, and whether shards have begun to work on it."""
        self._working = threading.RLock()
        """Held while shards are used: metrics are read from other threads."""
        self.after_batch: Callable[[LocalJob], None] = lambda _: None

    # --- batches ----------------------------------------------------------------------------------------------------

    def step(self, *, streams: bool = True) -> bool:
        """Run one batch; false if there is nothing to do. Without `streams` the streams that the job reads stay where
        they are."""
        with self._working:
            self.check()
            if self._stepping:  # a sink of the batch that runs has fed something, which the next one takes
                return False
            self._stepping, self._touched = True, False
            try:
                if not self._step(streams):
                    return False
            except Exception as error:
                made = explained(error)
                self._failure = made if self._touched else None
                raise made from error
            finally:
                self._stepping = False
        self.after_batch(self)
        return True

    def _step(self, streams: bool) -> bool:
        start, begun = self._offset, time.monotonic()
        end = self._state.begun() or self._reader.latest(start, self.clock(), streams=streams)
        if end == start:
            return False
        batch = self._batch + 1
        self._state.begin(batch, end)
        try:
            results, reports = self._run(self._reader.deal(start, end))
            self.deliver(batch, results, reports, begun)
            self.position = max(self.position, end["log"])
        except BaseException:
            self._state.abandon()
            if self._state.durable:
                self._shards.clear()
            raise
        self._state.commit(batch)
        self._batch, self._offset = batch, end
        return True

    def _run(self, dealt: Dealt) -> tuple[list[Result], list[tuple[int, Status]]]:
        stages: list[dict[int, Given]] = [defaultdict(Given) for _ in range(self.stages)]
        for label, stage, control in dealt.control:
            stages[stage][label].control = control
        for label, part in self._parts(dealt):
            stages[0][label].parts.append(part)
        self._touched = True
        results: list[Result] = []
        reports: list[tuple[int, Status]] = []
        for shards in stages:
            for label, given in shards.items():
                status, made, sent = self._work(label, given)
                results += made
                reports.append((label, status))
                for message in sent:
                    stages[message.stage][message.label].sent.append(message)
        return results, reports

    def _parts(self, dealt: Dealt) -> Iterator[tuple[int, ShardSplit]]:
        """What shards get of the streams that the job reads."""
        return (packed for work in dealt.splits for packed in work.packed())

    def _work(self, label: int, given: Given) -> tuple[Status, list[Result], list[Sent]]:
        """One batch of one shard."""
        begun, store = time.perf_counter(), self._state.store(label)
        shard = self._shard(label)
        kept = self._state.durable or not self.cached

        def fresh() -> ShardHost:
            return ShardHost() if store.token() is None else durable.load(store, None).host

        made = run_batch(shard.host, given, fresh if kept else None)
        if shard.host.closed:
            store.clear()
            del self._shards[label]
        elif kept:
            self._keep(label, shard)
        status = brief_status(
            shard.host, given.control.position, made, time.perf_counter() - begun, shard.written if kept else 0
        )
        return status, [(label, query, element) for query, element in made.results], made.sent

    def _shard(self, label: int) -> DurableShard:
        if label not in self._shards:
            store = self._state.store(label)
            self._shards[label] = DurableShard() if store.token() is None else durable.load(store, None)
        return self._shards[label]

    def _keep(self, label: int, shard: DurableShard) -> None:
        """Write what has changed."""
        store, token = self._state.store(label), uuid.uuid4().hex[:16]
        durable.save(shard, store, token, None)
        store.put_token(token)
        if not self.cached:
            self._shards.pop(label, None)

    def host(self, label: int) -> ShardHost:
        """A shard as it is now."""
        return self._shard(label).host

    def status(self, label: int) -> Status | None:
        with self._working:
            heard = self.heard.get(label)
            return None if heard is None else full_status(self.host(label), heard)

    def _compact(self) -> None:
        if self._state.durable:
            super()._compact()
        elif self.position > self.log.compacted + _MANY:
            self._drop_passing(self.position)
            self.log.compacted = self.position

    # --- life -------------------------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        return not self._closed

    def start(self) -> None:
        if self._state.durable:  # the batch that failed is run again
            self._failure = None

    def stop(self) -> None:
        """What is kept in memory is written down, so that a new mill finds it as it would find a checkpoint."""
        if not self._state.durable:
            for label, shard in list(self._shards.items()):
                self._keep(label, shard)
        self._shards.clear()
        self._reader = BatchReader(self.log, self.shards)

    def close(self) -> None:
        self._closed = True
        self._shards.clear()
        self._state.close()
        self.log.close()

    def wait(self, position: int, timeout: float = 120.0) -> None:  # noqa: ARG002
        with self._working:
            while not self._stepping and self.position < max(position, self.log.end()):
                if not self.step(streams=False):
                    raise OptionError("M6050", f"the log ends at {self.position}, before position {position}")

    def check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def places(self) -> dict[str, Any]:
        made: dict[str, Any] = json.loads(self._offset["streams"])
        return made

    def _committed(self) -> list[int]:
        return [self._batch]

    def adopt(self, mill: str, frames: dict[str, DataFrame]) -> None:  # noqa: ARG002
        for name in frames:
            hint = "connect to Spark"
            raise BindError("M2102", f"stream '{name}' is a DataFrame, which this process cannot read", hint=hint)


_MANY = 1_000
"""Records after which a log in memory is rid of those that nobody needs."""
