"""A query whose state can grow for ever warns when it starts, and says what to declare."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

import millstream as ms
from millstream.errors import MillstreamError
from millstream_demo import auction, containment, traffic
from tests.control.observe.test_losses import ran, warned
from tests.paths import ROOT

STREAMS = """
CREATE STREAM auctions (id BIGINT, seller VARCHAR) PRIMARY KEY (id);
CREATE STREAM bids (auction BIGINT, price DOUBLE) PUNCTUATED ON (auction #);
"""
JOIN = "SELECT b.auction, b.price, a.seller FROM bids b JOIN auctions a ON b.auction = a.id"
GROUPS = "SELECT price, COUNT(*) AS n FROM bids GROUP BY price"


@pytest.fixture
def mill() -> Iterator[ms.Connection]:
    with ms.connect(local=True) as connection:
        connection.sql(STREAMS)
        yield connection


def test_the_warning_says_what_to_declare(mill: ms.Connection, caplog: pytest.LogCaptureFixture) -> None:
    mill.sql(JOIN).start(name="joined")
    (warning,) = warned(caplog)
    assert warning.splitlines() == [
        "M3030: the state of query 'joined' can grow for ever",
        "  left b of #3 WindowJoin: auctions PRIMARY KEY (id) closes only values that come",
        "  hint: declare PUNCTUATED ON (id #) on auctions, or add a ROWS window to b; EXPLAIN CONTRACT joined shows "
        "all, SET contracts = 'off' stops this warning",
    ]
    assert "contract: unbounded: 1 part" in str(mill.sql("EXPLAIN CONTRACT joined"))


def test_every_way_to_start_a_query(mill: ms.Connection, caplog: pytest.LogCaptureFixture) -> None:
    mill.sql(f"CREATE QUERY q AS {GROUPS}")
    mill.sql(f"{GROUPS} INTO none")
    mill.sql(GROUPS)  # is not started
    mill.mill.execute(f"CREATE QUERY r AS {GROUPS}")
    assert [line.splitlines()[0] for line in warned(caplog)] == [
        f"M3030: the state of query '{name}' can grow for ever" for name in ("q", "query_1", "r")
    ]
    mill.sql(f"CREATE QUERY shared WITH (start = 'shared') AS {GROUPS}")
    mill.sql("CREATE QUERY bounded AS SELECT auction, COUNT(*) AS n FROM bids GROUP BY auction")
    mill.sql(f"EXPLAIN {GROUPS}")
    assert not warned(caplog)


def test_the_option(mill: ms.Connection, caplog: pytest.LogCaptureFixture) -> None:
    mill.sql("SET contracts = 'off'")
    mill.sql(f"CREATE QUERY q AS {GROUPS}")
    assert not warned(caplog)
    mill.sql("SET contracts = 'warn'")
    mill.sql(f"CREATE QUERY r AS {GROUPS}")
    assert len(warned(caplog)) == 1
    with pytest.raises(MillstreamError, match="M6002"):
        mill.sql("SET contracts = 'no'")


def test_a_restart_does_not_repeat_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with ms.connect(local=True, checkpoint=tmp_path) as mill:
        mill.sql(f"{STREAMS} CREATE QUERY q AS {GROUPS}")
    assert len(warned(caplog)) == 1
    with ms.connect(local=True, checkpoint=tmp_path) as mill:
        mill.insert("bids", [(1, 2.0)])
        assert mill.query("q").progress().state_rows == 1
    assert not warned(caplog)


SOURCES = {
    "csv', path = '{0}', once = true": False,
    "csv', path = '{0}": True,
    "rate', events = '100": False,
    "rate', rate = '100": True,
}


@pytest.mark.parametrize("source", SOURCES)
def test_a_stream_that_ends_bounds_its_state(source: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.csv").write_text("value\n1\n")
    stream = f"CREATE STREAM s (value BIGINT) WITH (connector = '{source.format(tmp_path)}')".replace("true'", "true")
    ran(f"{stream}; CREATE QUERY q AS SELECT value, COUNT(*) AS n FROM s GROUP BY value INTO none", seconds=0.1)
    assert ["M3030" in text for text in warned(caplog)] == [True] * SOURCES[source]


def test_the_state_of_a_stream_that_ends_beside_one_that_does_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a.csv").write_text("k\n1\n")
    once = f"CREATE STREAM a (k BIGINT) WITH (connector = 'csv', path = '{tmp_path}', once = true)"
    with ms.connect(local=True) as mill:
        mill.sql(f"{once}; CREATE STREAM b (k BIGINT); CREATE STREAM c (k BIGINT) PUNCTUATED ON (k #)")
        mill.sql("CREATE QUERY q AS SELECT a.k FROM a JOIN b ON a.k = b.k")
        (warning,) = warned(caplog)
        assert "right b of #3 WindowJoin" in warning and "left a" not in warning
        mill.sql("CREATE QUERY r AS SELECT a.k FROM a JOIN c ON a.k = c.k")
        (warning,) = warned(caplog)  # bids of c wait for a value of a that may never come
        assert "right c of" in warning


def test_examples_and_demos_do_not_warn(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran((ROOT / "examples" / "auctions.sql").read_text(), seconds=0.5)
    for streams, queries in (
        (auction.streams(15), (auction.JOIN, auction.ADDED)),
        (containment.STREAMS, (containment.CONTAINED, containment.ADDED)),
        (traffic.STREAMS, (traffic.MEANS, traffic.PROBES, traffic.ADDED)),
    ):
        with ms.connect(local=True) as mill:
            mill.sql(streams)
            for query in queries:
                mill.sql(query).start()
    assert not warned(caplog)


def test_a_run_of_a_file_warns_and_logs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    ran(f"{STREAMS} CREATE QUERY q AS {GROUPS}", seconds=0.1, checkpoint=tmp_path / "checkpoint")
    assert ["M3030" in text for text in warned(caplog)] == [True, False]  # the other one: nothing feeds the stream
    ran(f"{STREAMS} CREATE QUERY q AS {GROUPS}", seconds=0.1, checkpoint=tmp_path / "checkpoint")
    assert not any("M3030" in text for text in warned(caplog))


def test_a_query_that_starts_at_the_beginning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.csv").write_text("k\n1\n")
    with ms.connect(local=True) as mill:
        mill.sql(f"CREATE STREAM a (k BIGINT) WITH (connector = 'csv', path = '{tmp_path}')")
        mill.sql("CREATE QUERY q AS SELECT k FROM a")
        mill.sql("CREATE QUERY r WITH (start = 'beginning') AS SELECT k, COUNT(*) AS n FROM a GROUP BY k")
        (warning,) = warned(caplog)
        assert "hint: give it a window, or set once = true on a;" in warning


FILES = "CREATE STREAM s (ts TIMESTAMP, k BIGINT) ORDER BY ts {} WITH (connector = 'csv', path = 'data')"
GENERATED = "CREATE STREAM s (ts TIMESTAMP, value BIGINT) ORDER BY ts {} WITH (connector = 'rate', punctuation = '{}')"
KEYED = "CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s GROUP BY k"
WINDOWED = "CREATE QUERY w AS SELECT k, COUNT(*) AS n FROM s [RANGE 10 MINUTES] GROUP BY k"


def test_files_get_no_advice_to_punctuate(
    caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    with ms.connect(local=True) as mill:
        mill.sql(f"{FILES.format('')}; {KEYED}; {WINDOWED}")
        (warning,) = warned(caplog)
        assert "hint: give it a window, or set once = true on s;" in warning
        assert "PUNCTUATED" not in str(mill.sql("EXPLAIN CONTRACT q"))


def test_files_do_not_keep_a_declared_punctuation(
    caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    with ms.connect(local=True) as mill:
        mill.sql(FILES.format("PUNCTUATED ON (k #) PUNCTUATED ON (ts +)"))
        (warning,) = warned(caplog)
        assert warning.splitlines()[0] == "M3031: the connector 'csv' of stream 's' sends no punctuation"
        mill.sql(f"{KEYED}; {WINDOWED}")
        keyed, windowed = warned(caplog)
        assert "hint: set once = true on s;" in keyed
        assert "hint: declare WATERMARK FOR ts on s, or set once = true on s;" in windowed


@pytest.mark.parametrize(
    ("statement", "warns"),
    [
        (FILES.format("WATERMARK FOR ts AS ts - INTERVAL '5 seconds'"), False),
        (GENERATED.format("PUNCTUATED ON (ts +)", "none"), True),
        (GENERATED.format("PUNCTUATED ON (ts +)", "time"), False),
        ("CREATE STREAM s (k BIGINT) PUNCTUATED ON (k #)", False),
        ("SET contracts = 'off'; " + FILES.format("PUNCTUATED ON (k #)"), False),
    ],
)
def test_a_source_that_sends_no_punctuation(statement: str, warns: bool, caplog: pytest.LogCaptureFixture) -> None:
    with ms.connect(local=True) as mill:
        mill.sql(statement)
    assert ["M3031" in text for text in warned(caplog)] == [True] * warns
