"""Parking: what the operators of a failed query held is reported to the driver, until the query starts again.

The driver asks for it in the batch after the one that the query failed in. By then the shards where it did not fail
have processed that batch: they report their operators as they were before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from millstream.algebra import values
from millstream.algebra.identity import digest
from millstream.algebra.stream_id import StreamId
from millstream.logical.nodes.scan import Scan
from millstream.logical.plan import Plan
from millstream.optimizer.context import bottom_up
from millstream.physical.failure.description import FAULTS
from millstream.physical.plan.partitioning import Keys
from millstream.physical.shard.durable import tables_of
from millstream.physical.shard.host import ShardHost
from millstream.physical.shard.parcel import packed
from millstream.physical.wire.records import Park, Record

Parked = tuple[tuple[str, str, bytes], ...]
"""Query, part of it, parcel; the parcel is empty if the part had not started."""
Before = Callable[[], ShardHost | None]
MOST_BYTES = 1 << 28
"""Most bytes that the shards of a group report together: Spark limits the results of a batch
(`spark.driver.maxResultSize`, 1 GB), and a batch beyond it could never be committed."""


def park(records: Iterable[Record], host: ShardHost, before: Before | None) -> Parked:
    """The parcels that these records ask for. `host`: the shard after the last batch; `before` returns it as it was
    before that batch; None: it is not known. A parcel that is too large is left out."""
    found: list[tuple[str, str, bytes]] = []
    room = MOST_BYTES // max(1, len(host.setup.labels))
    for record in records:
        if isinstance(record, Park):
            try:
                parcel = _parcel_of(record, host, before)
            except FAULTS:  # the query starts again without it, and says so
                continue
            if parcel is not None and len(parcel) <= room:
                found.append((record.query, record.name, parcel))
                room -= len(parcel)
    if host.parcels:
        host.parcels = {name: held for name, held in host.parcels.items() if name not in host.setup.queries}
    return tuple(found)


def _parcel_of(record: Park, host: ShardHost, before: Before | None) -> bytes | None:
    """The parcel; None if it is not known."""
    if not record.before:
        return packed(_copied(host), record.name)
    if record.name in host.parcels:  # it was started in that batch, with this parcel
        return host.parcels[record.name][1]
    if before is None:
        return None
    shard = before()
    return b"" if shard is None or record.name not in shard.setup.running else packed(shard, record.name)


def _copied(host: ShardHost) -> ShardHost:
    made = ShardHost(values.decode(values.encode(host.setup)))
    held = {name: table.frame() for name, table in tables_of(host).items()}
    for name, table in tables_of(made).items():
        table.replace(held[name])
    made.restore(values.decode(values.encode(host.snapshot())))
    return made


def shape(plan: Plan, keys: Keys | None) -> str:
    """A digest of the plan of a part and the keys of its shards, without the names of its readings: parts of the same
    shape can exchange parcels."""

    def unnamed(part: Plan) -> Plan:
        return replace(part, stream="") if isinstance(part, Scan) else part

    read = ((replace(StreamId.of(stream), reading=None, partial=""), key) for stream, key in (keys or {}).items())
    found = [("@" if stream.exchanged else str(stream), key) for stream, key in read]
    return digest((bottom_up(plan, unnamed), keys is None, tuple(sorted(found, key=repr))))
