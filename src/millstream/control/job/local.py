"""A job that this process runs, batch by batch, whenever a caller waits for its results.

Batches, shards, stages and deliveries are those of a Spark job; pages pass from shard to shard without being encoded.
The live shards are authoritative: a job without a folder writes its state only when it is stopped.
"""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from millstream.algebra import values
from millstream.algebra.clock import SystemClock
from millstream.control.job.base import Job, OutputStates, Result
from millstream.control.job.explaining import explained
from millstream.control.job.local_state import OUTPUTS, LocalState, copies, last_batch
from millstream.control.job.parts import lacking, whole
from millstream.errors import OptionError, fresh
from millstream.physical.shard import durable
from millstream.physical.shard.batch import Given, Made, Status, brief_status, full_status, run_batch
from millstream.physical.shard.durable import DurableShard
from millstream.physical.shard.host import ShardHost
from millstream.physical.wire.reading import BatchReader, Dealt, Offset
from millstream.physical.wire.shard_split import ShardSplit


class LocalJob(Job):
    """`clock` returns the time of batches. Without `cached` every batch reads its state back from the database."""

    host_name = "a single process"

    def __init__(
        self,
        folder: Path | None = None,
        *,
        shards: int = 1,
        stages: int = 1,
        clock: Callable[[], int] | None = None,
        cached: bool = True,
    ) -> None:
        super().__init__(folder, shards=shards, stages=stages)
        self.clock, self.cached = clock or SystemClock().now, cached
        path = None if folder is None else folder / "state.db"
        if path is not None:
            self._check(path)
        self._state = LocalState(path, self.mark)
        self._reader = BatchReader(self.log, shards)
        self._batch, self._offset = self._state.last() or (-1, self._reader.initial())
        self._last_batch, self.position = self._batch, self._offset["log"]
        self._span = self._offset, self._offset
        """The offsets of the last batch that was begun."""
        self._shards: dict[int, DurableShard] = {}
        self._closed = False
        self._failure: Exception | None = None
        """The error that has stopped it: a batch whose results are lost cannot be repeated."""
        self._stepping = self._touched = False
        """True while a batch runs; true once shards have begun to process it."""
        self._working = threading.RLock()
        """Held while shards are used: metrics are read from other threads."""
        self.before_batch: list[Callable[[], None]] = []
        self.after_batch: Callable[[LocalJob], None] = lambda _: None

    def _check(self, path: Path) -> None:
        """Raise InputError if the database is missing, or behind the logs."""
        assert self.noted is not None
        for suffix in ("-wal", "-shm"):
            whole(path.with_name(path.name + suffix))
        if not whole(path):
            if self.log.end() or self.noted.last is not None:
                raise lacking(path, "is empty" if path.exists() else "is missing")
            return
        self.noted.check_copies(path, copies(path))
        cause = "It is an older copy, or its write-ahead file 'state.db-wal' is gone."
        self.noted.check(path, last_batch(path, self.mark), cause)

    # --- batches ----------------------------------------------------------------------------------------------------

    def step(self, *, streams: bool = True) -> bool:
        """Run one batch; return False if there is none to run. Without `streams` it applies the log and reads no
        streams."""
        with self._working:
            self.check()
            if self._stepping:  # a sink of the running batch has fed elements, which the next batch takes
                return False
            self._stepping, self._touched = True, False
            try:
                if not self._step(streams):
                    return False
            except Exception as error:
                cause = explained(error, self.folder)
                self._failure = cause if self._touched else None
                raise cause from error
            except BaseException:  # Ctrl-C: shards in memory have done a part of the batch
                if self._touched and not self._state.durable:
                    hint = "start anew; connect(checkpoint=…) keeps what runs the batch again"
                    self._failure = OptionError("M6051", "a batch was interrupted, and its results are lost", hint=hint)
                raise
            finally:
                self._stepping = False
        self.after_batch(self)
        return True

    def _step(self, streams: bool) -> bool:
        start, begun = self._offset, time.monotonic()
        batch = self._batch + 1
        begun_before = self._begun(batch)
        end = begun_before or self._reader.latest(start, self.clock(), streams=streams)
        if end == start:
            return False
        for call in self.before_batch:
            call()
        try:
            if self.noted is not None and begun_before is None:
                self.noted.begin(batch, json.dumps(end), copies=self._state.copies)
            self._state.begin()
            self._span = start, end
            results, reports = self._run(self._reader.deal(start, end))
            self.deliver(batch, results, reports, begun)
            self.position = max(self.position, end["log"])
            self._state.commit(batch, end)
            self._batch, self._offset = batch, end
        except BaseException:
            self._state.abandon()
            if self._state.durable:  # the database says which batch is next
                self._shards.clear()
                self._batch, self._offset = self._state.last() or (-1, self._reader.initial())
            raise
        return True

    def _begun(self, batch: int) -> Offset | None:
        """The end of a batch that was begun and not committed: it runs again with the same input."""
        last = None if self.noted is None else self.noted.last
        return json.loads(last.offset) if last is not None and last.number == batch else None

    def _run(self, dealt: Dealt) -> tuple[list[Result], list[tuple[int, Status]]]:
        stages: list[dict[int, Given]] = [defaultdict(Given) for _ in range(self.stages)]
        for label, stage, control in dealt.control:
            stages[stage][label].control = control
        for label, split in self._splits(dealt):
            stages[0][label].splits.append(split)
        self._check_read((label, split.failed) for label, given in stages[0].items() for split in given.splits)
        self._touched = True
        results: list[Result] = []
        reports: list[tuple[int, Status]] = []
        for shards in stages:
            for label, given in shards.items():
                made, status = self._run_shard(label, given)
                results += [(label, query, element) for query, element in made.results]
                reports.append((label, status))
                for message in made.sent:
                    stages[message.stage][message.label].sent.append(message)
        return results, reports

    def _splits(self, dealt: Dealt) -> Iterator[tuple[int, ShardSplit]]:
        """Read the splits of a batch: each shard's share of them, by label."""
        return (packed for work in dealt.splits for packed in work.packed())

    def _run_shard(self, label: int, given: Given) -> tuple[Made, Status]:
        """Run one batch of one shard."""
        begun, store, shard = time.perf_counter(), self._state.store(label), self._shard(label)
        if kept := self._state.durable or not self.cached:
            fresh, previous = partial(durable.load, store, None), partial(durable.load_previous, store)
            made = run_batch(shard.host, given, lambda: fresh().host, previous)
        else:
            made = run_batch(shard.host, given)
        if shard.host.closed:
            store.clear()
            del self._shards[label]
        elif kept:
            self._keep(label, shard)
        seconds, written = time.perf_counter() - begun, shard.written if kept else 0
        return made, brief_status(shard.host, given.control.position, made, seconds, written)

    def _shard(self, label: int) -> DurableShard:
        if label not in self._shards:
            self._shards[label] = durable.load(self._state.store(label), None)
        return self._shards[label]

    def _keep(self, label: int, shard: DurableShard) -> None:
        """Write what has changed."""
        durable.keep(self.id, label, self._state.store(label), shard, cached=False)
        if not self.cached:
            self._shards.pop(label, None)

    def host(self, label: int) -> ShardHost:
        """The live shard with a label."""
        return self._shard(label).host

    def status(self, label: int) -> Status | None:
        with self._working:
            brief = self.heard.get(label)
            return None if brief is None else full_status(self.host(label), brief)

    # --- life -------------------------------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        return not self._closed

    @property
    def busy(self) -> bool:
        """True while a batch runs: shards report when it has ended."""
        return self._stepping

    def start(self) -> None:
        if self._state.durable:  # the failed batch is run again
            self._failure = None

    def stop(self) -> None:
        """Write state held in memory to the database, where a new mill finds it as in a checkpoint."""
        if not self._state.durable:
            for label, shard in list(self._shards.items()):
                self._keep(label, shard)
        self._shards.clear()
        self._reader = BatchReader(self.log, self.shards)

    def close(self) -> None:
        self._closed = True
        self._shards.clear()
        self._state.close()
        super().close()

    def wait(self, position: int, timeout: float = 120.0) -> None:  # noqa: ARG002
        with self._working:
            while not self._stepping and self.position < max(position, self.log.end()):
                if not self.step(streams=False):
                    raise OptionError("M6050", f"the log ends at {self.position}, before position {position}")

    def check(self) -> None:
        if self._failure is not None:
            raise fresh(self._failure)

    def places(self) -> dict[str, Any]:
        made: dict[str, Any] = json.loads(self._offset["streams"])
        return made

    def span(self, batch: int) -> tuple[dict[str, Any], dict[str, Any]]:  # noqa: ARG002
        before, after = (json.loads(offset["streams"]) for offset in self._span)
        return before, after

    @property
    def time_reached(self) -> int:
        return int(self._offset["now"])

    def _keep_outputs(self, batch: int, *, changed: bool) -> None:  # noqa: ARG002
        if changed and self._state.durable:
            self._state.store(OUTPUTS).put("outputs", values.encode(self._outputs()))

    def _kept_outputs(self) -> Mapping[str, OutputStates]:
        held = self._state.store(OUTPUTS).get("outputs")
        kept: Mapping[str, OutputStates] = {} if held is None else values.decode(held, "the state of outputs")
        return kept
