"""Streams that do not keep what they declare are counted and reported."""

from __future__ import annotations

import pytest

import millstream as ms
from millstream.algebra.types import MICROS
from millstream.control.mill import LocalMill
from millstream.control.observe.progress import progress_of
from millstream.control.observe.promises import PromiseWatch
from millstream.errors import MillstreamError
from tests.control.observe.test_losses import warned

STREAM = "CREATE STREAM bids (auction BIGINT, price BIGINT) PUNCTUATED ON (auction #) EVERY 1 MINUTE"
GROUPS = "SELECT auction, COUNT(*) AS n FROM bids GROUP BY auction"


def opened() -> tuple[LocalMill, PromiseWatch]:
    mill = LocalMill()
    mill.execute(f"{STREAM}; CREATE QUERY q AS {GROUPS}")
    return mill, PromiseWatch(mill)


def test_silence_beyond_the_period(caplog: pytest.LogCaptureFixture) -> None:
    mill, watch = opened()
    caplog.clear()
    mill.advance(600 * MICROS)
    watch.check()
    assert not warned(caplog)  # no row waits
    mill.insert("bids", [(1, 10)])
    mill.batch()
    mill.advance(60 * MICROS)
    watch.check()
    assert not warned(caplog)
    mill.advance(30 * MICROS)
    watch.check()
    watch.check()
    (warning,) = warned(caplog)
    assert warning.splitlines() == [
        "M5065: stream 'bids' has sent no punctuation on (auction #) for longer than 60 seconds",
        "  It declares PUNCTUATED ON (auction #) EVERY 60 SECONDS, and rows have come since the last one.",
        "  hint: state that waits for it grows; check the source",
    ]
    (stream,) = progress_of(mill, "q").streams
    assert stream.conduct.overdue == (("(auction #)", 30.0),)
    assert "broken bids: (auction #) overdue by 30 s" in str(progress_of(mill, "q"))
    mill.punctuate("bids", "[auction = 1]")
    mill.batch()
    watch.check()
    assert progress_of(mill, "q").streams[0].conduct.kept
    mill.insert("bids", [(2, 10)])
    mill.batch()
    mill.advance(61 * MICROS)
    watch.check()
    assert len(warned(caplog)) == 1  # another silence


def test_broken_and_undeclared_punctuation(caplog: pytest.LogCaptureFixture) -> None:
    with ms.connect(local=True) as mill:
        mill.sql(STREAM)
        query = mill.sql(GROUPS).start(name="q")
        mill.insert("bids", [(number, 1) for number in range(1, 400)])
        mill.punctuate("bids", "[auction = 1]")
        assert not warned(caplog)
        mill.punctuate("bids", "[price < 1]")
        mill.insert("bids", [(1, 5)])
        undeclared, broken = warned(caplog)
        assert undeclared.splitlines()[:2] == [
            "M5063: stream 'bids' sends punctuation that it does not declare",
            "  1 so far, the first [price < 1]; it declares PUNCTUATED ON (auction #).",
        ]
        expected = "M5064: stream 'bids' breaks its promise: 1 row matches punctuation that it had sent"
        assert broken.splitlines()[0] == expected
        (stream,) = query.progress().streams
        assert (stream.conduct.strange, stream.conduct.broken, stream.late) == (1, 1, 1)
        mill.sql("SET contracts = 'off'")
        mill.punctuate("bids", "[price < 2]")
        assert not warned(caplog) and query.progress().streams[0].conduct.strange == 2


def test_the_period_is_checked() -> None:
    with ms.connect(local=True) as mill:
        with pytest.raises(MillstreamError, match="EVERY must be positive"):
            mill.sql("CREATE STREAM s (k BIGINT) PUNCTUATED ON (k #) EVERY 0 SECONDS")
        with pytest.raises(MillstreamError, match="expected a period"):
            mill.sql("CREATE STREAM s (k BIGINT) PUNCTUATED ON (k #) EVERY")
        mill.sql("CREATE STREAM s (k BIGINT) PUNCTUATED ON (k #) EVERY 5 SECONDS PUNCTUATED ON (k +) PRIMARY KEY (k)")
        assert [period for _, period in mill.mill.catalog.stream("s").periods] == [5 * MICROS]
