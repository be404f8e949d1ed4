"""Shards report how a stream that they read keeps its scheme, as the driver does for a fed one."""

from __future__ import annotations

from time import sleep

import pytest

import millstream as ms
from millstream.control.observe.losses import losses
from millstream.ingest.losses import Losses
from tests.control.observe.test_losses import warned


@pytest.mark.parametrize("shards", [1, 3])
def test_a_stream_that_shards_read(shards: int, caplog: pytest.LogCaptureFixture) -> None:
    clause = "PUNCTUATED ON (ts +) EVERY 1 MINUTE PUNCTUATED ON (value #) EVERY 1 MILLISECOND"
    with ms.connect(local=True, shards=shards) as mill:
        mill.sql(
            f"CREATE STREAM s (ts TIMESTAMP, value BIGINT) ORDER BY ts {clause} "
            "WITH (connector = 'rate', rate = '1000', punctuation = 'time')"
        )
        query = mill.sql("SELECT value, COUNT(*) AS n FROM s [RANGE 1 SECOND] GROUP BY value").start(name="q")
        while "(value #)" not in (kept := losses(mill.mill).get("s", Losses()).kept).since or not kept.told:
            query.take()
            sleep(0.01)
        assert kept.told.keys() == {"(ts +)"} and not kept.strange
    assert ["no punctuation on (value #)" in text for text in warned(caplog)] == [True]
