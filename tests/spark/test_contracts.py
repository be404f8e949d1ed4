"""Contracts on Spark: enforced at the start, promises and capacity watched, on two shards and after a restart."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyspark.sql import SparkSession
from tests.control.observe.test_losses import warned

import millstream as ms
from millstream.control.connection import Connection
from millstream.errors import MillstreamError

STREAM = "CREATE STREAM {} (auction BIGINT, price BIGINT) PUNCTUATED ON (auction #) EVERY 1 SECOND"
OVER_JOIN = """
CREATE QUERY q AS
SELECT auction, COUNT(*) AS n
FROM (SELECT b.auction FROM bids b JOIN asks a ON b.auction = a.auction) x GROUP BY auction
INTO none
"""


def until(mill: Connection, reached: Callable[[], bool], seconds: float = 100) -> bool:
    """Wait until a condition holds; return whether it does."""
    deadline = time.monotonic() + seconds
    while not reached() and time.monotonic() < deadline:
        mill.await_end(0.2)
    return reached()


def test_contracts_on_spark(spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    said: set[str] = set()

    def told(*codes: str) -> bool:
        said.update(text.partition(":")[0] for text in warned(caplog))
        return said >= {*codes}

    with ms.connect(spark, checkpoint=tmp_path, shards=2, contracts="enforce") as mill:
        mill.sql(f"{STREAM.format('bids')}; {STREAM.format('asks')}")
        with pytest.raises(MillstreamError, match="M3033"):
            mill.sql("CREATE QUERY bad AS SELECT price, COUNT(*) AS n FROM bids GROUP BY price INTO none")
        mill.sql(OVER_JOIN)
        query = mill.query("q")
        mill.insert("bids", [(-1, 1)] * 300)
        mill.punctuate("bids", "[price = 7]", "[auction = -1]")
        mill.insert("bids", [(-1, 1)])
        assert until(mill, partial(told, "M5063", "M5064"))
        for last in range(300, 6000, 300):  # no other key is closed
            for stream in ("bids", "asks"):
                mill.insert(stream, [(number, 1) for number in range(last - 299, last + 1)])
            mill.mill.drain()
            if until(mill, partial(told, "M5065", "M5066"), 1.5):
                break
        assert said == {"M5063", "M5064", "M5065", "M5066"}
        most = query.progress().bounds.rows
        assert most is not None and most < query.progress().state_rows
        said.clear()
    with ms.connect(spark, checkpoint=tmp_path, contracts="enforce") as mill:
        query = mill.query("q")
        assert query.contract().bounded
        mill.insert("asks", [(last + 1, 1)])
        assert until(mill, partial(told, "M5065")) and "M3030" not in said
        for stream in ("bids", "asks"):
            mill.punctuate(stream, *(f"[auction = {number}]" for number in range(-1, last + 2)))
        mill.mill.drain()
        assert query.progress().state_rows == 0


def test_a_foreign_key_of_dataframes_over_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    """Bids wait for their auctions, and auctions for the end of their bids: a declared reference bounds both, for
    streams of which two are DataFrames."""
    join = "CREATE QUERY q AS SELECT b.price FROM auctions a JOIN bids b ON a.id = b.auction"
    folders = {"auctions": ("id", "premium"), "bids": ("auction", "price")}

    def write(name: str, batch: int, keys: range) -> None:
        rows = [(key, key + batch) for key in keys]
        frame = pl.DataFrame(rows, schema=dict.fromkeys(folders[name], pl.Int64), orient="row")
        (tmp_path / name).mkdir(exist_ok=True)
        frame.write_parquet(tmp_path / name / f"{batch}.parquet")

    def adopt(mill: Connection, **options: dict[str, Any]) -> None:
        for name, columns in folders.items():
            reader = mill.spark.readStream.schema(", ".join(f"{column} bigint" for column in columns))
            mill.stream(name, reader.parquet(str(tmp_path / name)), **options.get(name, {}))

    write("auctions", 1, range(40))
    write("bids", 1, range(20, 60))
    with ms.connect(spark, checkpoint=tmp_path / "kept", shards=2, contracts="enforce") as mill:
        adopt(mill, auctions={"primary_key": "id"}, bids={"references": {"auction": "auctions"}})
        mill.sql("CREATE STREAM closed_auctions (id BIGINT) CLOSES bids (auction) BY (id)")
        mill.sql(join)
        assert query_rows(mill, 20) == [key + 1 for key in range(20, 40)]
        assert until(mill, lambda: mill.query("q").progress().state_rows == 60)  # 40 auctions, and 20 bids without one
    write("auctions", 2, range(40, 60))
    with ms.connect(spark, checkpoint=tmp_path / "kept", contracts="enforce") as mill:
        adopt(mill, bids={"references": {"auction": "auctions"}})
        assert query_rows(mill, 20) == [key + 1 for key in range(40, 60)]
        assert mill.query("q").contract().bounded
        mill.insert("closed_auctions", [(key,) for key in range(60)])
        mill.mill.drain()
        assert until(mill, lambda: mill.query("q").progress().state_rows == 0)


def query_rows(mill: Connection, number: int) -> list[int]:
    """The values of the next rows of the query, in order of value."""
    found: list[int] = []
    until(mill, lambda: bool(found.extend(mill.query("q").take()["price"]) or len(found) >= number))
    return sorted(found)
