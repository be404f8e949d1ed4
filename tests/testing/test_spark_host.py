"""A restart of transcripts on Spark: no batch runs until the last mill is recovered."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from millstream.testing import spark
from millstream.testing.spark import SparkHost


class _Job:
    log = None

    def __init__(self, events: list[str]) -> None:
        self.events = events

    def stop(self) -> None:
        self.events.append("stop")

    def start(self) -> None:
        self.events.append("start")


class _Jobs:
    def __init__(self, *_: Any, **__: Any) -> None:
        self.events: list[str] = []

    def all(self) -> list[_Job]:
        return [_Job(self.events)]


class _Mill:
    def __init__(self, jobs: _Jobs, name: str, options: Any) -> None:
        self.jobs, self.name, self.options = jobs, name, options

    def sync(self) -> None: ...
    def close(self) -> None: ...


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SparkHost:
    def recovered(jobs: _Jobs, name: str, options: Any) -> _Mill:
        time.sleep(0.01 * int(name.removeprefix("t")))
        jobs.events.append(name)
        return _Mill(jobs, name, options)

    monkeypatch.setattr(spark, "SparkJobs", _Jobs)
    monkeypatch.setattr(spark, "Mill", _Mill)
    monkeypatch.setattr(spark, "recovered", recovered)
    return SparkHost(None, 1)  # type: ignore[arg-type]


@pytest.mark.timeout(20)
def test_the_jobs_start_when_all_mills_are_recovered(host: SparkHost) -> None:
    mills: list[Any] = [host.open(None) for _ in range(4)]  # type: ignore[arg-type]
    with ThreadPoolExecutor(4) as pool:
        mills = list(pool.map(host.restart, mills))
        list(pool.map(host.restart, mills))
    events: Any = host.jobs.events  # type: ignore[attr-defined]
    assert events[0] == events[6] == "stop" and events[5] == events[11] == "start"
    assert {*events[1:5]} == {*events[7:11]} == {"t1", "t2", "t3", "t4"}


@pytest.mark.timeout(20)
def test_one_that_ends_does_not_hold_up_the_others(host: SparkHost) -> None:
    staying, leaving = host.open(None), host.open(None)  # type: ignore[arg-type]
    waiting = threading.Thread(target=host.restart, args=(staying,))
    waiting.start()
    time.sleep(0.05)
    assert waiting.is_alive()
    host.close(leaving)
    waiting.join(10)
    assert host.jobs.events == ["stop", "t1", "start"]  # type: ignore[attr-defined]


@pytest.mark.timeout(20)
def test_a_mill_that_cannot_be_recovered_does_not_hold_up_the_others(
    host: SparkHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    mills: list[Any] = [host.open(None) for _ in range(2)]  # type: ignore[arg-type]
    recovered = spark.recovered

    def failing(jobs: Any, name: str, options: Any) -> Any:
        if name == "t1":
            raise RuntimeError(name)
        return recovered(jobs, name, options)

    monkeypatch.setattr(spark, "recovered", failing)
    with ThreadPoolExecutor(2) as pool:
        first, second = [pool.submit(host.restart, mill) for mill in mills]
        assert isinstance(first.exception(10), RuntimeError) and second.result(10).name == "t2"
    assert host.jobs.events == ["stop", "t2", "start"]  # type: ignore[attr-defined]
