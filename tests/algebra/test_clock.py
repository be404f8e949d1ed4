from __future__ import annotations

import pytest

from millstream.algebra.clock import Clock, SystemClock, VirtualClock
from millstream.errors import OptionError


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


def test_system_time_never_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([5_000, 3_000, 9_000])
    monkeypatch.setattr("time.time_ns", lambda: next(readings))
    clock: Clock = SystemClock()
    assert [clock.now() for _ in range(3)] == [5, 5, 9]
