"""Rows of derived streams whose values do not fit are counted, once each: on any shards, over restarts."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from prometheus_client import CollectorRegistry

from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.control.observe.metrics import MillCollector
from millstream.control.observe.progress import progress_of

HUGE = 1 << 62
DERIVED = "CREATE STREAM d WITH (on_overflow = 'bad') AS SELECT ts, k, v * 4 AS w FROM s WHERE k >= 0"
COUNTED = "CREATE QUERY counted AS SELECT k, window_end, COUNT(*) AS n FROM d [RANGE 1000] GROUP BY k"


def opened(shards: int = 1, path: Path | None = None) -> LocalMill:
    mill = LocalMill(Options(shards=shards))
    source = "" if path is None else f" WITH (connector = 'parquet', path = '{path}')"
    mill.execute(f"CREATE STREAM s (ts BIGINT, k BIGINT, v BIGINT) ORDER BY ts{source}; {DERIVED}")
    return mill


def rows(first: int, count: int) -> list[tuple[int, int, int]]:
    """Every third value does not fit once it is multiplied."""
    return [(n, n % 7, HUGE if n % 3 == 0 else n) for n in range(first, first + count)]


def bad(mill: LocalMill, stream: str = "d") -> tuple[int, int]:
    mill.batch()
    counts = mill.counts(stream)
    return counts["accepted"], counts["bad"]


@pytest.mark.parametrize("shards", [1, 3])
def test_each_row_counts_once_whatever_reads_it(shards: int) -> None:
    mill = opened(shards)
    mill.insert("s", rows(0, 30))
    assert bad(mill) == (0, 0)  # no query reads it
    mill.execute(f"{COUNTED}; CREATE QUERY plain AS SELECT w FROM d WHERE k = 3")
    mill.insert("s", rows(30, 30))
    assert bad(mill) == (20, 10)
    mill.execute(
        "CREATE QUERY b AS SELECT input FROM d__bad; CREATE QUERY both AS SELECT d.w FROM d JOIN d AS e ON d.k = e.k"
    )
    mill.insert("s", rows(60, 30))
    assert bad(mill) == (40, 20) and mill.take_rows("b").height == 10


@pytest.mark.parametrize("shards", [1, 3])
def test_the_count_goes_on_when_queries_come_and_go(shards: int) -> None:
    mill = opened(shards)
    mill.execute(COUNTED)
    mill.insert("s", rows(0, 30))
    mill.execute("CREATE QUERY late AS SELECT w FROM d")
    mill.insert("s", rows(30, 30))
    mill.execute("DROP QUERY counted")
    assert bad(mill) == (40, 20)
    mill.insert("s", rows(60, 30))
    mill = mill.restarted()
    assert bad(mill) == (60, 30)
    mill.execute("DROP QUERY late")
    mill.insert("s", rows(90, 30))
    assert bad(mill) == (60, 30)  # the stream stands still
    mill = mill.restarted()
    mill.execute("CREATE QUERY again AS SELECT reason FROM d__bad")
    mill.insert("s", rows(120, 30))
    assert bad(mill) == (80, 40)
    assert mill.execute("SHOW STREAMS").splitlines()[1].endswith(": derived, 80 accepted, 0 late, 40 bad")
    mill.execute("DROP QUERY again; DROP STREAM d")
    mill.execute(f"{DERIVED}; CREATE QUERY fresh AS SELECT w FROM d")
    assert bad(mill) == (0, 0)


@pytest.mark.parametrize("shards", [1, 2])
def test_a_stream_with_a_connector(tmp_path: Path, shards: int) -> None:
    pl.DataFrame(rows(0, 3000), schema=["ts", "k", "v"], orient="row").write_parquet(tmp_path / "a.parquet")
    mill = opened(shards, tmp_path)
    mill.execute(f"{COUNTED}; CREATE QUERY plain AS SELECT w FROM d WHERE k = 3")
    mill.drain()
    assert bad(mill) == (2000, 1000) and bad(mill, "s") == (3000, 0)
    found = {stream.name: (stream.accepted, stream.bad) for stream in progress_of(mill, "plain").streams}
    assert found == {"s": (3000, 0), "d": (2000, 1000)}
    registry = CollectorRegistry()
    registry.register(MillCollector(mill))
    assert registry.get_sample_value("millstream_stream_rows_total", {"stream": "d", "outcome": "bad"}) == 1000


def test_derived_of_derived() -> None:
    mill = opened()
    mill.execute("CREATE STREAM e WITH (on_overflow = 'bad') AS SELECT ts, w + 9223372036854775000 AS x FROM d")
    mill.execute("CREATE QUERY q AS SELECT x FROM e")
    mill.insert("s", rows(0, 600))
    assert bad(mill) == (400, 200)
    fitting = [v * 4 for _, _, v in rows(0, 600) if v != HUGE]
    over = sum(w + 9223372036854775000 >= 1 << 63 for w in fitting)
    assert bad(mill, "e") == (400 - over, over) and over


def test_results_are_those_of_the_reference_filter() -> None:
    mill = opened(2)
    mill.execute(f"{COUNTED}; CREATE QUERY plain AS SELECT k, w FROM d WHERE k = 3")
    mill.insert("s", rows(0, 300))
    mill.batch()
    expected = sorted((k, v * 4) for _, k, v in rows(0, 300) if v != HUGE and k == 3)
    assert sorted(mill.take_rows("plain").rows()) == expected
