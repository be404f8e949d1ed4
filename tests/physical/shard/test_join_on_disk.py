"""A join with more state than memory, in shards whose state is in a store."""

from collections import Counter
from pathlib import Path

import pytest

from millstream.config import Options
from millstream.control.job.jobs import LocalJobs
from millstream.control.mill.base import Mill
from millstream.physical.spark.page_source import PageReader
from tests.physical.shard.test_durable import Rig

STATEMENTS = """
CREATE STREAM auctions (id BIGINT, category BIGINT, ts TIMESTAMP) ORDER BY ts
  WITH (connector = 'nexmark', stream = 'auction', events = '4000', max_rows_per_trigger = '700');
CREATE STREAM bids (auction BIGINT, price BIGINT, ts TIMESTAMP) ORDER BY ts
  WITH (connector = 'nexmark', stream = 'bid', events = '4000', max_rows_per_trigger = '700');
CREATE QUERY joined AS SELECT a.category, b.auction, b.price FROM bids b JOIN auctions a ON b.auction = a.id;
CREATE QUERY recent AS SELECT a.category, b.auction, b.price FROM bids b [RANGE 1 SECOND] JOIN
  auctions a [RANGE 0.1 SECONDS] ON b.auction = a.id;
CREATE QUERY padded AS SELECT a.category, a.id, b.price FROM auctions a LEFT JOIN bids b
  ON b.auction = a.id AND b.price > 1000000;
"""


class DiskRig(Rig):
    def __init__(self, folder: Path, shards: int, way: str, memory: str) -> None:
        self.way = way
        jobs = LocalJobs(folder, shards=shards)
        Mill(jobs, options=Options(join_memory=memory), wall=True).execute(STATEMENTS)
        self.job = jobs.job()
        self.log = {"log": str(folder / "job-1" / "control.log"), "parallelism": "3"}
        self.reader = PageReader(self.log)
        self.stores, self.rows, self.left = {}, {}, 0


def results(folder: Path, shards: int, way: str, memory: str) -> dict[str, Counter[tuple[object, ...]]]:
    rig = DiskRig(folder, shards, way, memory)
    rig.run()
    rig.close()
    assert rig.left == 0
    return {name: Counter(rows) for name, rows in rig.rows.items()}


@pytest.mark.parametrize(("shards", "way"), [(1, "cached"), (1, "mapped"), (2, "uncached"), (2, "failing")])
def test_results_do_not_depend_on_the_memory_limit(tmp_path: Path, shards: int, way: str) -> None:
    wanted = results(tmp_path / "wanted", 1, "cached", "0")
    assert {name: rows.total() > 200 for name, rows in wanted.items()} == dict.fromkeys(
        ("joined", "recent", "padded"), True
    )
    assert results(tmp_path / "found", shards, way, "10 kB") == wanted
