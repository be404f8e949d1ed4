import errno
import io
import os
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.element import Page
from millstream.control.job.jobs import LocalJobs
from millstream.control.mill.base import Mill
from millstream.control.mill.recovery import recovered
from millstream.errors import OptionError
from millstream.physical.wire.control_log import ControlLog
from millstream.physical.wire.records import Record, Remember
from tests.tries import tries


def note(value: int) -> Remember:
    return Remember("m", "n", value)


def value(record: Record) -> object:
    assert isinstance(record, Remember)
    return record.value


def test_a_torn_record_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "control.log"
    log = ControlLog(path, writable=True)
    ends = [log.append(note(1)), log.append(note(2))]
    log.close()
    path.write_bytes(path.read_bytes()[:-3])
    assert ControlLog(path).end() == ends[0]
    again = ControlLog(path, writable=True)
    end = again.append(note(3))
    assert [value(record) for record in ControlLog(path).read(0, end)] == [1, 3]
    assert [value(record) for record in ControlLog(path).read(ends[0], end)] == [3]


def test_a_record_that_is_being_written_is_not_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader finds a part of the last record, and the rest is there when it looks again."""
    path = tmp_path / "control.log"
    log = ControlLog(path, writable=True)
    ends = [log.append(note(1)), log.append(note(2))]
    data = path.read_bytes()

    class Growing:
        def __init__(self) -> None:
            self.file, self.left = io.BytesIO(data), len(data) - 3

        def seek(self, place: int) -> None:
            self.left -= place - self.file.tell()
            self.file.seek(place)

        def read(self, count: int) -> bytes:
            found = self.file.read(min(count, self.left))
            self.left = self.left - len(found) if len(found) == count else 3
            return found

        def __enter__(self) -> "Growing":
            return self

        def __exit__(self, *_: object) -> None: ...

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", lambda *_: Growing())
        assert ControlLog(path).end() == ends[0]
    assert ControlLog(path).end() == ends[1]


@given(st.lists(st.one_of(st.integers(0, 50), st.sets(st.integers(0, 50)), st.just("open")), max_size=30), st.data())
@settings(max_examples=tries(50))
def test_records_keep_their_positions(tmp_path_factory, steps, data) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path_factory.mktemp("log") / "control.log"
    log = ControlLog(path, writable=True)
    reader = ControlLog(path)
    held: list[tuple[int, int]] = []
    for step in steps:
        if isinstance(step, int):
            held.append((log.append(note(step)), step))
        elif step == "open":
            log.close()
            log = ControlLog(path, writable=True)
        elif held:
            log.compact(lambda _, record, kept=step: value(record) in kept)
            held = [(at, number) for at, number in held if number in step or at == held[-1][0]]
        assert log.end() == reader.end() == (held[-1][0] if held else 0)
        places = [0, *(at for at, _ in held)]
        start, end = sorted([data.draw(st.sampled_from(places)), data.draw(st.sampled_from(places))])
        assert [value(r) for r in reader.read(start, end)] == [n for at, n in held if start < at <= end]


def test_a_job_drops_records_that_its_shards_have_applied(tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr("millstream.physical.wire.control_log.GROWTH", 5_000)
    mill = Mill(LocalJobs(tmp_path, shards=2), wall=True)
    mill.execute("CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts")
    mill.execute("CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s [RANGE 10] GROUP BY k")
    for ts in range(200):
        mill.insert("s", [(ts % 3, ts)])
        mill.batch()
        mill.sync()
    sizes = [log.path.stat().st_size for log in (mill.jobs.job().log, mill.jobs.log)]
    assert sizes[0] < 40_000 and sizes[1] < 20_000
    assert mill.jobs.job().log.end() > 100_000
    mill.jobs.close()
    again = recovered(LocalJobs(tmp_path, shards=2), wall=True)
    assert set(again.queries) == {"q"} and again.counts("s")["accepted"] == 200
    again.jobs.close()


def test_a_batch_may_be_delivered_while_a_query_starts_or_stops(tmp_path: Path) -> None:
    mill = Mill(LocalJobs(tmp_path, shards=2), wall=True)
    mill.execute("CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts")
    mill.execute("CREATE QUERY q AS SELECT k FROM s")
    mill.execute("CREATE QUERY r AS SELECT k FROM s")
    job = mill.jobs.job()
    [label, *_] = mill.placements.of["q"].top.labels
    rows = Page(pl.DataFrame({"k": [1]}))
    assert set(mill.deliveries.outputs_state(job)) == {"q", "r"}
    held = mill.placements.of.pop("q")  # the query is stopping
    mill.deliveries.deliver(label, "q", rows, mill.jobs.job().log.end())
    mill.deliveries.finish_batch(job, 0)
    assert set(mill.deliveries.outputs_state(job)) == {"r"}
    mill.placements.of["q"] = held
    del mill.queries["q"]  # the query is starting
    mill.deliveries.deliver(label, "q", rows, mill.jobs.job().log.end())
    assert set(mill.deliveries.outputs_state(job)) == {"r"}
    mill.jobs.close()


@pytest.mark.parametrize("part", [0, 1, 9, 30])
def test_a_full_disk_leaves_no_part_of_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int) -> None:
    log = ControlLog(tmp_path / "control.log", writable=True)
    log.append(note(1))
    room, write = part, os.write

    def short_write(file: int, data: bytes) -> int:
        nonlocal room
        if not room:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken, room = write(file, data[:room]), 0
        return taken

    with monkeypatch.context() as patched:
        patched.setattr("millstream.physical.wire.control_log.os.write", short_write)
        with pytest.raises(OptionError, match=r"M6062: cannot write to the checkpoint '.*': No space left on device"):
            log.append(note(2))
    end = log.append(note(3))
    assert [value(record) for record in ControlLog(tmp_path / "control.log").read(0, end)] == [1, 3]


def test_a_disk_that_takes_parts_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, write = ControlLog(tmp_path / "control.log", writable=True), os.write
    monkeypatch.setattr("millstream.physical.wire.control_log.os.write", lambda file, data: write(file, data[:7]))
    log.append(note(1))
    end = log.append(note(2))
    assert [value(record) for record in ControlLog(tmp_path / "control.log").read(0, end)] == [1, 2]
