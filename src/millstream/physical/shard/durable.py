"""A shard's state in a key-value store, written as it changes, and the caches that make reading it back unnecessary.

Tables of operators are stored as segments: appended tuples are put, purged ones get tombstones, mostly dead segments
are rewritten or dropped (see `runtime.state`). Everything else (sources, buffers, registers) is one small value per
batch, the head. The cost of a batch follows the size of the change.

A store has the last two versions of a shard: the head of a batch does not replace the one before, but the one before
that, and what a version no longer needs is removed one batch later. So the operators of a query that fails in a batch
are found as they were before it (`shard.parking`).

A live shard is cached in the worker process; its segments and the head are cached as files that any worker on the host
can read. A cached shard is valid only if it carries the token in the store; every attempt at a batch draws a new one.
Segments are named by the attempt that wrote them and never change, so a file of that name is that segment, whichever
worker wrote it.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import polars as pl
import pyarrow as pa

from millstream import scratch
from millstream.algebra import values
from millstream.algebra.values import HINT
from millstream.atomic_file import drafted, write_whole
from millstream.errors import InputError, reason_of
from millstream.physical.failure.description import FAULTS
from millstream.physical.shard.host import ShardHost
from millstream.physical.wire.codec import decode, encode
from millstream.runtime.state.table import Changes, StateTable

CACHED_SHARDS = 1024
"""Largest number of live shards in a worker process."""
TOKEN = "token"
"""The key of the token in a store; it is missing until a shard is first saved."""
SECOND = ".1"
"""Ends the keys of every second head and set-up, and the tokens of these versions."""


class Store(Protocol):
    """The state store of one shard."""

    def get(self, key: str) -> bytes | None: ...
    def put(self, key: str, value: bytes) -> None: ...
    def remove(self, key: str) -> None: ...
    def clear(self) -> None: ...


@values.value("stored_segment")
@dataclass(slots=True)
class StoredSegment:
    """The keys under which a segment and its tombstones are stored."""

    key: str
    gone: list[str] = field(default_factory=list)


Manifest = dict[str, dict[int, StoredSegment]]
"""Table → number of the segment → its keys in the store."""


@dataclass(slots=True)
class DurableShard:
    host: ShardHost = field(default_factory=ShardHost)
    manifest: Manifest = field(default_factory=dict)
    written: int = 0
    """Bytes written by the last save."""
    token: str | None = None
    """The token of the last save."""
    setup: bytes = b""
    """The set-up of the last save, encoded."""
    setup_key: str = "setup"
    dead: list[str] = field(default_factory=list)
    """Keys that only the version before the last save needs."""


class SegmentFiles:
    """Segments as memory-mapped Arrow files in a folder of this host, shared by the workers of a JVM. A folder that
    other users can enter is not used."""

    def __init__(self, job: str) -> None:
        self._job = job
        self.folder = scratch.shared(job)

    def _create(self) -> None:
        if not self.folder.exists():
            scratch.sweep()  # a machine that runs executors alone has no driver that would
        scratch.create_private(self.folder)

    def put(self, key: str, segment: pl.DataFrame) -> None:
        with suppress(OSError):  # without the file, the segment is read from the store
            self._create()
            with drafted(self.folder / key) as draft:
                segment.write_ipc(draft, compression="uncompressed")

    def get(self, key: str) -> pl.DataFrame | None:
        try:
            scratch.check_private(self.folder)
            with pa.memory_map(str(self.folder / key)) as mapped:
                segment = pl.from_arrow(pa.ipc.open_file(mapped).read_all())
        except (OSError, pa.ArrowInvalid):
            return None
        assert isinstance(segment, pl.DataFrame)
        return segment

    def put_bytes(self, key: str, data: bytes) -> None:
        with suppress(OSError):
            self._create()
            write_whole(self.folder / key, data)

    def get_bytes(self, key: str) -> bytes | None:
        try:
            scratch.check_private(self.folder)
            return (self.folder / key).read_bytes()
        except OSError:
            return None

    def remove(self, key: str) -> None:
        with suppress(OSError):
            (self.folder / key).unlink(missing_ok=True)

    def clear(self) -> None:
        """Remove the files of the job, also those of earlier JVMs."""
        scratch.remove_shared(self._job)


_LIVE: OrderedDict[tuple[str, int], DurableShard] = OrderedDict()


def take(job: str, label: int, store: Store, *, cached: bool = True) -> DurableShard:
    """Return the shard as stored, from a cache if possible. It leaves the cache until `keep` puts it back: a failed
    attempt must not leave a half-changed shard behind."""
    live = _LIVE.pop((job, label), None)
    if cached and live is not None and live.token == _token(store):
        return live
    return load(store, SegmentFiles(job) if cached else None)


def _token(store: Store) -> str | None:
    held = store.get(TOKEN)
    return None if held is None else held.decode()


def head_file(token: str) -> str:
    """Name of the file with all of a shard but its segments, as the attempt with that token left it."""
    return f"head-{token}"


def keep(job: str, label: int, store: Store, shard: DurableShard, *, cached: bool = True) -> None:
    """Write what has changed; with `cached` keep the live shard for the next batch."""
    save(shard, store, uuid.uuid4().hex[:16], SegmentFiles(job) if cached else None)
    if cached:
        _LIVE[job, label] = shard
        _forget_ended(job)
        while len(_LIVE) > CACHED_SHARDS:
            _LIVE.popitem(last=False)


def _forget_ended(job: str) -> None:
    """Forget the live shards of other jobs that have ended, as their folders have."""
    ended = {other for other, _ in _LIVE if other != job and not SegmentFiles(other).folder.exists()}
    for held in [held for held in _LIVE if held[0] in ended]:
        del _LIVE[held]


def discard(job: str, label: int, store: Store, shard: DurableShard) -> None:
    """Remove a shard from the store and the caches."""
    files = SegmentFiles(job)
    for table in shard.manifest.values():
        for stored in table.values():
            files.remove(stored.key)
    if shard.token is not None:
        files.remove(head_file(shard.token))
    store.clear()
    _LIVE.pop((job, label), None)


def save(shard: DurableShard, store: Store, token: str, files: SegmentFiles | None) -> None:
    token += SECOND if shard.token is not None and not shard.token.endswith(SECOND) else ""
    writer = _Writer(store, token, files)
    for key in shard.dead:
        store.remove(key)
    tables = tables_of(shard.host)
    for name in shard.manifest.keys() - tables.keys():
        for stored in shard.manifest.pop(name).values():
            writer.remove(stored)
    for name, table in tables.items():
        writer.apply(table.changes(), shard.manifest.setdefault(name, {}))
    if shard.host.setup_changed or not shard.setup:
        shard.setup_key = _other(shard.setup_key) if shard.setup else shard.setup_key
        shard.setup = values.encode(shard.host.setup)
        writer.write(shard.setup_key, shard.setup)
        shard.host.setup_changed = False
    shard.dead = writer.dead
    head = values.encode((shard.manifest, shard.host.snapshot(), shard.setup_key, shard.dead))
    writer.write(_head_key(token), head)
    if files is not None:
        files.put_bytes(head_file(token), values.encode((shard.setup, head)))
        if shard.token is not None:
            files.remove(head_file(shard.token))
    store.put(TOKEN, token.encode())
    shard.written, shard.token = writer.written, token


def _head_key(token: str) -> str:
    return "head" + (SECOND if token.endswith(SECOND) else "")


def _other(key: str) -> str:
    """The key of the version before or after."""
    return key.removesuffix(SECOND) if key.endswith(SECOND) else key + SECOND


def load(store: Store, files: SegmentFiles | None) -> DurableShard:
    """Return the shard as stored, a new one if the store is empty; raise InputError if it cannot be read."""
    token = _token(store)
    if token is None:
        return DurableShard()
    mapped = files.get_bytes(head_file(token)) if files is not None else None
    with _reading():
        if mapped is not None:
            setup, head = values.decode(mapped, f"the state of a shard in {head_file(token)}")
            return _load(store, head, files, token, setup)
        return _load(store, _stored(store, _head_key(token)), files, token)


def load_previous(store: Store) -> ShardHost | None:
    """Return the shard as it was before the last batch that is stored; None if there was no such batch."""
    token = _token(store)
    head = None if token is None else store.get(_other(_head_key(token)))
    if head is None:
        return None
    with _reading():
        return _load(store, head, None, token).host


@contextmanager
def _reading() -> Iterator[None]:
    """Raise InputError if the state of a shard cannot be read."""
    try:
        yield
    except InputError:
        raise
    except FAULTS as error:
        raise InputError(
            "M5023", "the state of a shard is damaged", detail=f"{reason_of(error)}.", hint=HINT
        ) from error


def _load(
    store: Store, head: bytes, files: SegmentFiles | None, token: str | None, setup: bytes | None = None
) -> DurableShard:
    manifest, snapshot, *rest = values.decode(head, "the state of a shard")
    setup_key, dead = rest or ("setup", [])
    setup = _stored(store, setup_key) if setup is None else setup
    host = ShardHost(values.decode(setup, "the set-up of a shard"))
    for name, table in tables_of(host).items():
        stored = manifest.get(name, {})
        segments = {number: _segment(kept.key, store, files) for number, kept in stored.items()}
        gone = {
            number: np.concatenate([np.frombuffer(_stored(store, key), dtype=np.uint32) for key in kept.gone])
            for number, kept in stored.items()
            if kept.gone
        }
        table.restore(segments, gone)
    host.restore(snapshot)
    return DurableShard(host, manifest, token=token, setup=setup, setup_key=setup_key, dead=dead)


def _stored(store: Store, key: str) -> bytes:
    value = store.get(key)
    if value is None:
        raise InputError("M5023", f"the state of a shard lacks '{key}'", hint=HINT)
    return value


def _segment(key: str, store: Store, files: SegmentFiles | None) -> pl.DataFrame:
    mapped = files.get(key) if files is not None else None
    if mapped is not None:
        return mapped
    segment = decode(_stored(store, key))
    if files is not None:
        files.put(key, segment)
    return segment


def tables_of(host: ShardHost) -> dict[str, StateTable]:
    return {
        f"{node.name}/{name}": table
        for node in host.graph.operators.values()
        for name, table in node.operator.tables().items()
    }


@dataclass(slots=True)
class _Writer:
    store: Store
    token: str
    files: SegmentFiles | None
    written: int = 0
    dead: list[str] = field(default_factory=list)
    """Keys that the new version does not need."""
    _number: int = 0

    def apply(self, changes: Changes, stored: dict[int, StoredSegment]) -> None:
        for number in changes.dropped:
            if number in stored:
                self.remove(stored.pop(number))
        for number, segment in changes.put.items():
            if number in stored:
                self.remove(stored[number])
            key = self._key()
            self.write(key, encode(segment, "lz4"))
            if self.files is not None:
                self.files.put(key, segment)
            stored[number] = StoredSegment(key)
        for number, positions in changes.gone.items():
            key = self._key()
            self.write(key, positions.astype(np.uint32).tobytes())
            stored[number].gone.append(key)

    def write(self, key: str, value: bytes) -> None:
        self.store.put(key, value)
        self.written += len(value)

    def remove(self, stored: StoredSegment) -> None:
        self.dead += [stored.key, *stored.gone]
        if self.files is not None:
            self.files.remove(stored.key)

    def _key(self) -> str:
        self._number += 1
        return f"{self.token}-{self._number}"
