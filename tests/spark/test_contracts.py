"""Contracts on Spark: enforced at the start, promises and capacity watched, on two shards and after a restart."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.control.observe.test_losses import warned

import millstream as ms
from millstream.control.connection import Connection
from millstream.errors import MillstreamError

pytestmark = pytest.mark.xdist_group("spark")

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
