"""A shard whose state is in a store continues as if it had never stopped, from any cut and any cache."""

import pickle
from pathlib import Path

import pytest

from millstream.algebra.element import Page
from millstream.algebra.values import decode, encode
from millstream.config import Options
from millstream.control.job.jobs import LocalJobs
from millstream.control.mill.base import Mill
from millstream.physical.shard import durable
from millstream.physical.shard.host import ShardHost
from millstream.physical.spark.page_source import PageReader
from millstream.physical.wire.hashing import partition_of, spread
from millstream.physical.wire.shard_split import ShardSplit

STATEMENTS = """
CREATE STREAM auctions (id BIGINT, category BIGINT, ts TIMESTAMP) ORDER BY ts PRIMARY KEY (id)
  WITH (connector = 'nexmark', stream = 'auction', events = '4000', max_rows_per_trigger = '700');
CREATE STREAM bids (auction BIGINT, price BIGINT, ts TIMESTAMP) ORDER BY ts
  WITH (connector = 'nexmark', stream = 'bid', events = '4000', max_rows_per_trigger = '700');
CREATE QUERY joined AS SELECT a.category, b.auction, b.price FROM bids b JOIN auctions a ON b.auction = a.id
  WHERE b.ts BETWEEN a.ts AND a.ts + INTERVAL '10' SECOND;
CREATE QUERY tumbling AS SELECT window_start, auction, COUNT(*) AS n, MAX(price) AS top
  FROM bids [RANGE 100 MILLISECONDS] GROUP BY auction;
CREATE QUERY late AS SELECT auction, price FROM bids__late;
"""


class DictStore:
    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}
        self.written = 0

    def get(self, key: str) -> bytes | None:
        return self.held.get(key)

    def put(self, key: str, value: bytes) -> None:
        self.held[key] = value
        self.written += len(value)

    def remove(self, key: str) -> None:
        del self.held[key]

    def clear(self) -> None:
        self.held.clear()


class Rig:
    """Drives the reader and the shards of a job as Spark would, without Spark."""

    def __init__(self, folder: Path, shards: int, way: str) -> None:
        self.way = way
        jobs = LocalJobs(folder, shards=shards)
        Mill(jobs, options=Options(), wall=True).execute(STATEMENTS)
        self.job = jobs.job()
        self.log = {"log": str(folder / "job-1" / "control.log"), "parallelism": "3"}
        self.reader = PageReader(self.log)
        self.stores: dict[int, DictStore] = {}
        self.rows: dict[str, list[tuple[object, ...]]] = {}
        self.left = 0

    def run(self) -> None:
        offset = self.reader.initialOffset()
        while (end := self.reader.latestOffset(offset, None)) != offset:
            self.batch(offset, end)
            if self.way == "replayed":  # a new reader makes the same batch of the same offsets
                self.reader = PageReader(self.log)
            offset = end

    def batch(self, start: dict[str, object], end: dict[str, object]) -> None:
        rows = []
        for work in self.reader.partitions(start, end):
            for made in self.reader.read(pickle.loads(pickle.dumps(work))):
                rows += made.to_pylist()
        self.left = 0
        for label in sorted({row["shard"] for row in rows}):
            mine = sorted((r for r in rows if r["shard"] == label), key=lambda r: (r["kind"], r["seq"]))
            self.shard(label, mine)

    def shard(self, label: int, rows: list[dict[str, object]]) -> None:
        store = self.stores.setdefault(label, DictStore())
        if self.way == "failing":  # an attempt that is lost before its state is kept
            self.apply(durable.take(self.job.id, label, store).host, rows)
        cached = self.way != "uncached"
        shard = durable.take(self.job.id, label, store, cached=cached)
        before = content(shard.host) if self.way == "previous" and shard.token is not None else None
        self.apply(shard.host, rows)
        for query, element, _ in shard.host.take_outputs():
            if isinstance(element, Page):
                self.rows.setdefault(query, []).extend(element.frame.drop("__ts").rows())
        durable.keep(self.job.id, label, store, shard, cached=cached)
        if self.way == "previous":  # the store also has the version before
            previous = durable.load_previous(store)
            assert (None if previous is None else content(previous)) == before
        if self.way == "mapped":  # another worker of the host takes over
            durable._LIVE.clear()
        self.left += sum(shard.host.state_rows().values())

    @staticmethod
    def apply(host: ShardHost, rows: list[dict[str, object]]) -> None:
        control = decode(rows[0]["page"])
        for record in control.records:
            host.apply(record)
        host.reach(control.now)
        for row in rows[1:]:
            host.take_split(ShardSplit.from_bytes(row["stream"], row["head"], row["page"]))
        host.graph.run()

    def close(self) -> None:
        durable.SegmentFiles(self.job.id).clear()


def content(host: ShardHost) -> tuple[object, ...]:
    """All that a shard holds."""
    tables = {name: table.frame().rows() for name, table in durable.tables_of(host).items()}
    return tables, encode(host.setup), encode(host.snapshot())


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[object, ...]]]:
    rig = Rig(tmp_path_factory.mktemp("wanted"), 1, "cached")
    rig.run()
    rig.close()
    return {query: sorted(rows, key=str) for query, rows in rig.rows.items()}


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("way", ["cached", "mapped", "uncached", "failing", "replayed", "previous"])
def test_results_do_not_depend_on_where_state_is(tmp_path: Path, wanted, shards: int, way: str) -> None:
    rig = Rig(tmp_path, shards, way)
    rig.run()
    rig.close()
    assert {query: sorted(rows, key=str) for query, rows in rig.rows.items()} == wanted
    assert rig.left == 0
    assert len(wanted["joined"]) > 3000
    assert sum(n for _, _, n, _ in wanted["tumbling"]) == 3680


def test_purged_state_leaves_the_store(tmp_path: Path) -> None:
    rig = Rig(tmp_path, 1, "cached")
    rig.run()
    rig.close()
    assert all(len(store.held) <= 12 for store in rig.stores.values())


def test_labels_share_the_partitions_evenly() -> None:
    labels = spread(4, 4, set())
    assert [partition_of(label, 4) for label in labels] == [0, 1, 2, 3]
    more = spread(4, 4, set(labels))
    assert not set(more) & set(labels)


def test_the_shards_of_a_job_that_has_ended_are_forgotten() -> None:
    ended, running = durable.SegmentFiles("ended"), durable.SegmentFiles("running")
    for job in ("ended", "running"):
        durable.keep(job, 0, DictStore(), durable.DurableShard())
    assert {("ended", 0), ("running", 0)} <= durable._LIVE.keys()
    ended.clear()
    durable.keep("running", 1, DictStore(), durable.DurableShard())
    assert ("ended", 0) not in durable._LIVE
    assert {("running", 0), ("running", 1)} <= durable._LIVE.keys()
    running.clear()
