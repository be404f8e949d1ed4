from __future__ import annotations

from pathlib import Path

import pytest

import millstream as ms
from millstream.algebra.clock import Clock, SystemClock, VirtualClock
from millstream.control.connection import Connection
from millstream.errors import OptionError
from millstream.physical.spark.page_source import PageReader
from millstream.physical.wire.control_log import ControlLog
from millstream.physical.wire.reading import Offset
from millstream.physical.wire.records import OpenGroup, Settings

START, HOUR = 1_700_000_000_000_000, 3_600_000_000


class Machine:
    """A machine whose clock can be set; both clocks are in microseconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall, self.monotonic = START, 0
        monkeypatch.setattr("time.time_ns", lambda: self.wall * 1000)
        monkeypatch.setattr("time.monotonic_ns", lambda: self.monotonic * 1000)

    def passes(self, micros: int) -> None:
        self.wall += micros
        self.monotonic += micros


def test_virtual_time_moves_when_set() -> None:
    clock = VirtualClock()
    seen: Clock = clock
    assert seen.now() == 0
    clock.advance(5)
    clock.at = 7
    assert (seen.now(), clock.at) == (7, 7)
    assert VirtualClock(at=3).now() == 3


def test_virtual_time_does_not_go_back() -> None:
    clock = VirtualClock(at=10)
    with pytest.raises(OptionError, match="does not go back"):
        clock.at = 9
    with pytest.raises(OptionError):
        clock.advance(-1)
    assert clock.now() == 10


def test_system_time_passes_on_when_the_clock_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch)
    clock: Clock = SystemClock()
    assert clock.now() == machine.wall and clock.ahead == 0
    machine.passes(2)
    machine.wall -= HOUR
    machine.passes(3)
    assert clock.now() == START + 5 and clock.ahead == HOUR
    machine.wall += HOUR + 7
    assert clock.now() == machine.wall == START + 12 and clock.ahead == 0
    clock.reach(START + 20)
    clock.reach(START)
    machine.passes(1)
    assert clock.now() == START + 21 and clock.ahead == 8


def test_streams_go_on_and_it_is_told_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    machine = Machine(monkeypatch)
    text = "SELECT window_end, COUNT(*) AS n FROM s [RANGE 10 SECONDS]"

    def batch(mill: Connection) -> list[int]:
        mill.insert("s", [(1,)])
        machine.passes(10_000_000)
        mill._pacer._polled = 0.0
        mill._work()
        mill._work()
        return mill.query("q").take()["n"].to_list()

    with ms.connect(local=True, checkpoint=tmp_path) as mill:
        mill.sql(f"CREATE STREAM s (k BIGINT) ORDER BY current_time; CREATE QUERY q AS {text}")
        assert batch(mill) == [1]
        machine.wall -= HOUR
        assert batch(mill) == batch(mill) == [1]
    machine.wall -= HOUR
    with ms.connect(local=True, checkpoint=tmp_path) as mill:
        assert batch(mill) == batch(mill) == [1]
    first, second = (text for text in caplog.messages if text.startswith("M5050"))
    assert "gone back by 1 hour\n" in first and "gone back by 2 hours\n" in second


def test_a_job_on_spark_goes_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine = Machine(monkeypatch)
    log = ControlLog(tmp_path / "control.log", writable=True)
    log.append(OpenGroup(1, "main", (0,), None, Settings("batch", "demand", 64)))

    def latest(reader: PageReader, start: Offset) -> int:
        log.append(OpenGroup(1, "main", (0,), None, Settings("batch", "demand", 64)))
        return int(reader.latestOffset(start, None)["now"])

    options = {"log": str(tmp_path / "control.log")}
    reader = PageReader(options)
    start = reader.initialOffset()
    assert latest(reader, start) == START
    machine.wall -= HOUR
    machine.passes(5)
    assert latest(reader, start) == START + 5
    assert latest(again := PageReader(options), start | {"now": START + 5}) == START + 5
    machine.passes(5)
    assert latest(again, start) == START + 10
