"""The bound of a query beside its state: kept while the stream keeps its period, reported when it does not."""

from __future__ import annotations

from pathlib import Path

import pytest

import millstream as ms
from millstream.algebra.types import MICROS
from millstream.control.mill import LocalMill
from millstream.control.observe.capacity import CapacityWatch
from millstream.control.observe.progress import progress_of
from tests.control.observe.test_losses import warned

STREAM = "CREATE STREAM bids (auction BIGINT, price BIGINT) PUNCTUATED ON (auction #) EVERY 10 SECONDS"
GROUPS = "SELECT auction, COUNT(*) AS n FROM bids GROUP BY auction"


def run(mill: LocalMill, watch: CapacityWatch, seconds: range, lag: int | None) -> None:
    """Feed twenty rows a second, each of a key of its own that is closed `lag` seconds later, if at all."""
    for second in seconds:
        mill.insert("bids", [(20 * second + number, 1) for number in range(20)])
        if lag is not None and second >= lag:
            mill.punctuate("bids", *(f"[auction = {20 * (second - lag) + number}]" for number in range(20)))
        mill.batch()
        mill.advance(MICROS)
        watch.look()


def test_a_stream_that_keeps_its_period_stays_within_the_bound(caplog: pytest.LogCaptureFixture) -> None:
    mill = LocalMill()
    mill.execute(f"{STREAM}; CREATE QUERY q AS {GROUPS}")
    watch = CapacityWatch(mill)
    caplog.clear()
    run(mill, watch, range(40), lag=9)
    progress = progress_of(mill, "q")
    assert progress.bounds.rows is not None and progress.bounds.delay == 10
    assert 180 <= progress.state_rows <= progress.bounds.rows <= 250
    assert progress.bounds.bytes == round(progress.bounds.rows * progress.state_bytes / progress.state_rows)
    assert f"at most {progress.bounds.rows} rows" in str(progress) and "results after 10 s at most" in str(progress)
    assert not warned(caplog)


def test_state_that_passes_its_bound_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    mill = LocalMill()
    mill.execute(f"{STREAM}; CREATE QUERY q AS {GROUPS}")
    watch = CapacityWatch(mill)
    caplog.clear()
    run(mill, watch, range(30), lag=None)
    mill.punctuate("bids", *(f"[auction = {key}]" for key in range(600)))
    run(mill, watch, range(30, 60), lag=None)
    (warning,) = warned(caplog)
    assert warning.startswith("M5066: the state of query 'q' passes its bound")


def test_a_bound_that_rests_on_the_time_of_events_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    """All rows come with one event time, and again after the state was within the bound."""
    mill = LocalMill()
    mill.execute("CREATE STREAM s (k BIGINT, ts TIMESTAMP) WATERMARK FOR ts AS ts - INTERVAL '1' SECOND")
    mill.execute("CREATE QUERY q AS SELECT a.k FROM s [RANGE 1 SECOND] a JOIN s [RANGE 1 SECOND] b ON a.k = b.k")
    watch = CapacityWatch(mill)
    caplog.clear()
    most = []
    for second in range(24):
        mill.insert("s", [(20 * second + number, second // 12 * 60_000_000) for number in range(20)])
        mill.batch()
        mill.advance(MICROS)
        watch.look()
        most.append(progress_of(mill, "q").state_rows - (progress_of(mill, "q").bounds.rows or 10**9))
    assert max(most) > 0 and not warned(caplog)


def test_state_from_before_a_restart_is_within_the_bound(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for looks in (1, 3):
        with ms.connect(local=True, checkpoint=tmp_path) as mill:
            if looks == 1:
                mill.sql("CREATE STREAM s (k BIGINT) ORDER BY current_time")
                mill.sql("CREATE QUERY w AS SELECT window_end, COUNT(*) AS n FROM s [RANGE 200 MILLISECONDS]")
            watch = CapacityWatch(mill.mill)
            for _ in range(looks):
                watch.look()
                mill.insert("s", [(1,)])
    assert not warned(caplog)
    mill = LocalMill()
    mill.execute(f"{STREAM}; CREATE QUERY q AS {GROUPS}")
    mill.capacities.recovered.add("q")
    run(mill, CapacityWatch(mill), range(30), lag=None)
    assert len(warned(caplog)) == 1  # state that grows afterwards is still reported


def test_no_bound_without_a_period() -> None:
    mill = LocalMill()
    mill.execute(
        f"{STREAM.partition(' EVERY')[0]}; CREATE QUERY q AS {GROUPS}; CREATE QUERY r AS SELECT price FROM bids"
    )
    mill.insert("bids", [(1, 1)])
    mill.batch()
    assert progress_of(mill, "q").bounds.rows is None
    assert progress_of(mill, "r").bounds.rows == 0 and "at most" in str(progress_of(mill, "r"))


def test_the_bound_of_groups_over_a_join_follows_from_its_measured_results(caplog: pytest.LogCaptureFixture) -> None:
    mill = LocalMill()
    mill.execute(f"{STREAM}; {STREAM.replace('bids', 'asks')}")
    mill.execute(
        "CREATE QUERY q AS SELECT auction, COUNT(*) AS n"
        " FROM (SELECT b.auction FROM bids b JOIN asks a ON b.auction = a.auction) x GROUP BY auction"
    )
    watch = CapacityWatch(mill)
    caplog.clear()
    for second in range(40):
        for stream in ("bids", "asks"):
            mill.insert(stream, [(20 * second + number, 1) for number in range(20)])
            if second >= 9:
                mill.punctuate(stream, *(f"[auction = {20 * (second - 9) + number}]" for number in range(20)))
        mill.batch()
        mill.advance(MICROS)
        watch.look()
    progress = progress_of(mill, "q")
    assert progress.bounds.rows is not None and 500 <= progress.state_rows <= progress.bounds.rows <= 1000
    assert not warned(caplog)
