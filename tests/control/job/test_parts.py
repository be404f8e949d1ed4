"""A checkpoint of which a part is missing, cut off, empty or older is refused, or continues exactly."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from millstream.algebra import values
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.schema import Schema
from millstream.config import Options
from millstream.control.job import local_state, parts
from millstream.control.job.jobs import LocalJobs
from millstream.control.job.local import LocalJob
from millstream.control.job.local_state import LocalState, last_batch
from millstream.control.job.parts import BatchLog, place_of
from millstream.control.mill import LocalMill
from millstream.control.mill.restarting import start_again
from millstream.errors import InputError, MillstreamError
from millstream.physical.wire.control_log import ControlLog
from millstream.physical.wire.records import OpenGroup, Reached, Settings
from millstream.sinks import SINKS
from millstream_bench.soak.damage import DAMAGES, damaged

STATEMENTS = """
CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts;
CREATE STREAM f (k BIGINT, ts BIGINT) ORDER BY ts
  WITH (connector = 'csv', path = '{0}/files', max_files_per_trigger = 1);
CREATE QUERY sums AS SELECT window_end, k, SUM(v) AS v FROM s [RANGE 40] GROUP BY k
  INTO parquet WITH (path = '{0}/out/sums');
CREATE QUERY pairs AS SELECT s.k, s.v, f.ts FROM s [RANGE 30], f [RANGE 30] WHERE s.k = f.k
  INTO parquet WITH (path = '{0}/out/pairs');
"""
BATCHES, OLDER, KILLED = 12, 4, 9


class Run:
    """A run in a folder, with copies of it as a kill would leave it."""

    statements, folders = STATEMENTS, ("sums", "pairs")

    def __init__(self, folder: Path) -> None:
        self.folder, self.checkpoint = folder / "run", folder / "run" / "checkpoint"
        (self.folder / "files").mkdir(parents=True)
        mill = self.open()
        mill.execute(self.statements.format(self.folder))
        self.feed(mill, 0, OLDER)
        self.older = self.copy(folder / "older")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(local_state, "WAL_BYTES", 100_000)  # it is copied into the database several times
            self.feed(mill, OLDER, KILLED - 2)
        self.feed(mill, KILLED - 2, KILLED)
        self.killed = self.copy(folder / "killed")
        mill.close()
        self.closed = self.copy(folder / "closed")
        self.wanted = self.finished()

    def open(self) -> LocalMill:
        return LocalMill(Options(shards=2), self.checkpoint)

    def feed(self, mill: LocalMill, start: int, end: int) -> None:
        for batch in range(start, end):
            times = range(10 * batch, 10 * batch + 10)
            pl.DataFrame({"k": [t % 3 for t in times], "ts": [*times]}).write_csv(self.folder / f"files/{batch:02}.csv")
            mill.insert("s", [(t % 3, t, t) for t in times])
            mill.batch()
            mill.drain()

    def copy(self, to: Path) -> Path:
        return Path(shutil.copytree(self.folder, to))

    def restore(self, copy: Path) -> None:
        shutil.rmtree(self.folder)
        shutil.copytree(copy, self.folder)

    def finished(self) -> dict[str, list[tuple[object, ...]]]:
        """The rows of a run that goes on to the end."""
        mill = self.open()
        self.feed(mill, KILLED, BATCHES)
        mill.close()
        return {name: self.rows(name) for name in self.folders}

    def rows(self, name: str) -> list[tuple[object, ...]]:
        return sorted(pl.read_parquet(self.folder / "out" / name / "*.parquet").rows())


class Flaky:
    """A sink that raises while there is a file `broken`. A batch that it gets twice is there twice."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.out = folder, folder / "out"

    def open(self, query: str, schema: Schema) -> None:
        self.out = self.folder / "out" / query
        self.out.mkdir(parents=True, exist_ok=True)

    def write(self, batch: int, rows: pl.DataFrame, punctuations: Sequence[Pattern]) -> None:
        if (self.folder / "broken").exists():
            raise ConnectionError("refused")
        rows.write_parquet(self.out / f"{batch}-{len([*self.out.iterdir()])}.parquet")

    def close(self) -> None:
        pass


class WaitingRun(Run):
    """A run whose sink raises from the third batch on: results wait for it, and a query has failed."""

    statements = (
        STATEMENTS.partition("CREATE QUERY")[0]
        + """
CREATE QUERY sums AS SELECT window_end, k, SUM(v) AS v FROM s [RANGE 40] GROUP BY k INTO flaky;
CREATE QUERY pairs AS SELECT x.k, x.ts, y.ts AS other FROM f [RANGE 30] x, f [RANGE 30] y WHERE x.k = y.k
  INTO flaky WITH (on_error = 'stop');
"""
    )

    def open(self) -> LocalMill:
        mill = super().open()
        if not (self.folder / "broken").exists():
            for name in mill.failures.of():
                assert start_again(mill, name).endswith("and missed no rows")
        return mill

    def feed(self, mill: LocalMill, start: int, end: int) -> None:
        if start == 0:
            super().feed(mill, 0, 2)
            (self.folder / "broken").touch()
        super().feed(mill, start or 2, end)

    def finished(self) -> dict[str, list[tuple[object, ...]]]:
        (self.folder / "broken").unlink()
        return super().finished()


@pytest.fixture(scope="module")
def waiting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WaitingRun]:
    folder, get = tmp_path_factory.mktemp("waiting"), SINKS.get
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SINKS, "get", lambda name: (lambda _: Flaky(folder / "run")) if name == "flaky" else get(name))
        yield WaitingRun(folder)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    yield Run(tmp_path_factory.mktemp("parts"))


PARTS = ["driver.log", "job-1", *(f"job-1/{name}" for name in ("job.json", "control.log", "batches.log", "state.db"))]


@pytest.mark.parametrize("part", [*PARTS, "job-1/state.db-wal"])
def test_damages(run: Run, part: str) -> None:
    assert len(run.wanted["pairs"]) > 100 and run.wanted["sums"][-1][0] == 80
    for copy in (run.killed, run.closed):
        for damage in DAMAGES:
            run.restore(copy)
            if not damaged(run.checkpoint / part, damage, run.older / "checkpoint" / part):
                continue
            case = part, damage, copy.name
            before = {path: path.read_bytes() for name in PARTS if (path := run.checkpoint / name).is_file()}
            try:
                assert run.finished() == run.wanted, case
                assert case[:2] in MAY_CONTINUE, case
            except InputError as error:
                assert error.code in ("M5022", "M5023", "M5024", "M5025"), (case, error)
                assert "Restore it from a copy" in error.hint and error.detail, error
                assert damage != "removed" or part == "job-1/state.db-wal" or error.code == "M5024"
                changed = [path.name for path, data in before.items() if path.read_bytes() != data]
                assert not changed, case


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(tmp_path_factory.mktemp("twin"))


@pytest.mark.parametrize("part", [*PARTS, "job-1/state.db-wal"])
def test_a_part_of_a_twin(run: Run, twin: Run, part: str) -> None:
    """Another checkpoint, with the same statements and rows."""
    for copy in ("killed", "closed"):
        run.restore(getattr(run, copy))
        if not damaged(run.checkpoint / part, "older", getattr(twin, copy) / "checkpoint" / part):
            continue
        with pytest.raises(InputError, match=rf"M502[357]: .*/{part}") as caught:
            run.open()
        assert caught.value.code == "M5027" or part.startswith("job-1/state.db")


def test_a_changed_identity(run: Run) -> None:
    path = run.checkpoint / "job-1/job.json"
    run.restore(run.killed)
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(MillstreamError, match=r"M5020|M5022|M5027|M6058"):
            run.open()


def test_an_older_write_ahead_file(tmp_path: Path) -> None:
    """It was copied into the database since; its batch is the one before the last."""
    path, wal, mark = tmp_path / "state.db", tmp_path / "state.db-wal", b"m" * 16
    state = LocalState(path, mark)
    for batch in (0, 1):
        state.begin()
        state.store(0).put(f"key {batch}", b"")
        state.commit(batch, {"log": batch})
        assert last_batch(path, mark) == batch
        if batch == 0:
            older = wal.read_bytes()
            state._copy()
            assert last_batch(path, mark) == batch
    (tmp_path / "copy").mkdir()
    again = Path(shutil.copy(path, tmp_path / "copy"))
    again.with_name(wal.name).write_bytes(older)
    with pytest.raises(InputError, match=r"M5025: .*/state\.db-wal' follows copy 1, but .* is copy 2"):
        last_batch(again, mark)
    state.close()


def test_parts_of_two_jobs(tmp_path: Path) -> None:
    """They are exchanged, one by one and all."""
    jobs = LocalJobs(tmp_path / "kept")
    names = sorted(jobs.job(stages=stages).title for stages in (1, 2))
    assert names == ["job-1", "job-1-2"]
    for job in jobs.all():
        job.append(OpenGroup(1, "", (0,), None, Settings("dfs", "demand", 100)))
        assert isinstance(job, LocalJob) and job.step()
    jobs.close()
    for part in ("job.json", "control.log", "batches.log", "state.db", ""):
        kept = shutil.copytree(tmp_path / "kept", tmp_path / f"kept-{part}")
        first, second = (kept / name / part for name in names)
        first.rename(kept / "first")
        second.rename(first)
        (kept / "first").rename(second)
        with pytest.raises(InputError, match=r"M5027: .*/job-1"):
            LocalJobs(kept)


def swap(path: Path) -> None:
    """Put a folder in place of a file, or a file in place of a folder."""
    if path.is_dir():
        shutil.rmtree(path)
        path.touch()
    else:
        path.unlink()
        path.mkdir()


@pytest.mark.parametrize("part", [*PARTS, "job-1/state.db-wal"])
def test_a_folder_in_place_of_a_file(run: Run, part: str) -> None:
    run.restore(run.killed)
    swap(run.checkpoint / part)
    with pytest.raises(InputError, match=rf"M5024: .*/{part}' is (a folder|no folder)"):
        run.open()


MAY_CONTINUE = {("job-1/state.db", "cut")}
"""The write-ahead file may have all pages that are cut off."""


def held(part: Path) -> dict[Path, bytes]:
    return {path.relative_to(part): path.read_bytes() for path in part.rglob("*") if path.is_file()}


@pytest.mark.parametrize("copy", ["killed", "closed"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_damages_of_what_waits(waiting: WaitingRun, copy: str, damage: str) -> None:
    """Results that wait for a sink, and what a failed query held."""
    made = getattr(waiting, copy)
    parked = sorted(path.relative_to(made) for path in made.glob("checkpoint/job-1/parked/*/*"))
    folders = sorted(made.glob("checkpoint/job-1/spool/*"))
    spooled = [sorted(each.relative_to(made) for each in folder.iterdir()) for folder in folders]
    assert len(parked) == 3 and len(waiting.wanted["pairs"]) > 100
    assert min(map(len, spooled)) == 1 and max(map(len, spooled)) >= KILLED - 2
    files = [*parked, *(batches[at] for batches in spooled for at in (0, -1))]
    for part in [*files, *{path.parent for path in files}, *{path.parents[1] for path in files}]:
        waiting.restore(made)
        if damaged(waiting.folder / part, damage, waiting.older / part):
            if held(waiting.folder / part) == held(made / part):  # of the query that had failed by then
                continue
            logs = {path: path.read_bytes() for path in waiting.checkpoint.glob("job-1/*.*")}
            with pytest.raises(InputError, match=r"^M5024: .*/(spool|parked)/") as caught:
                waiting.finished()
            assert "Restore it from a copy" in caught.value.hint
            assert any(f"query '{name}'" in caught.value.detail for name in waiting.folders)
            assert logs == {path: path.read_bytes() for path in logs}, part


def test_a_file_of_another_batch_or_part(waiting: WaitingRun) -> None:
    """Each is whole, and of the same job. Files that do not say what they are of are read as before."""
    (folder,) = (path for path in waiting.closed.glob("checkpoint/job-1/spool/*") if len([*path.iterdir()]) > 1)
    batches = sorted(folder.iterdir(), key=lambda path: int(path.name))
    for files in (batches[-2:], sorted(waiting.closed.glob("checkpoint/job-1/parked/*/*"))[:2]):
        waiting.restore(waiting.closed)
        one, other = (waiting.folder / path.relative_to(waiting.closed) for path in files)
        kept = one.read_bytes()
        shutil.copy(other, one)
        with pytest.raises(InputError, match=r"^M5027: ") as caught:
            waiting.open()
        assert f"as '{place_of(other)}'" in caught.value.detail
        one.write_bytes(values.encode(replace(values.decode(kept), mark=b"another")))
        with pytest.raises(InputError, match=r"^M5027: ") as caught:
            waiting.open()
        assert f"as '{place_of(one)}' of another job" in caught.value.detail
        one.write_bytes(values.decode(kept).content)
        waiting.open().close()


def test_files_that_nothing_names(waiting: WaitingRun) -> None:
    """A kill leaves one that is not named yet, or one that was delivered and not yet removed."""
    waiting.restore(waiting.killed)
    log = ControlLog(waiting.checkpoint / "job-1" / "batches.log")
    (folder,) = (path for path in waiting.checkpoint.glob("job-1/spool/*") if len([*path.iterdir()]) > 1)
    last = log.last()
    assert isinstance(last, Reached) and str(last.number) in {path.name for path in folder.iterdir()}
    noted = BatchLog(waiting.checkpoint / "job-1", ControlLog(waiting.checkpoint / "job-1/control.log"))
    place = f"spool/{folder.name}"
    noted.name(place, "sums", ((last.number - 3, last.number - 1),))  # those before were delivered
    noted.close()
    before = {path.name for path in folder.iterdir()}
    mill = waiting.open()
    assert {path.name for path in folder.iterdir()} == {str(last.number - at) for at in range(4)} < before
    mill.close()


def test_newer_results_than_batches(waiting: WaitingRun) -> None:
    """A copy put over a newer checkpoint, which keeps the files that the copy does not have."""
    waiting.restore(waiting.closed)
    shutil.copytree(waiting.older / "checkpoint", waiting.checkpoint, dirs_exist_ok=True)
    with pytest.raises(
        InputError, match=r"^M5025: .*batches.log' ends with batch \d+, but .*spool.* has results of batch"
    ):
        waiting.open()


def test_what_is_no_longer_there_is_not_named(waiting: WaitingRun) -> None:
    """Results that were delivered or discarded, and what a query held that has started again."""
    waiting.restore(waiting.killed)
    (waiting.folder / "broken").unlink()
    waiting.open().close()
    last = ControlLog(waiting.checkpoint / "job-1" / "batches.log").last()
    assert isinstance(last, Reached) and not last.files
    assert not [*waiting.checkpoint.glob("job-1/spool/*/*"), *waiting.checkpoint.glob("job-1/parked/*")]
    waiting.restore(waiting.killed)
    mill = waiting.open()
    mill.execute("DROP QUERY sums; DROP QUERY pairs")
    last = ControlLog(waiting.checkpoint / "job-1" / "batches.log").last()
    assert isinstance(last, Reached) and not last.files
    assert not [*waiting.checkpoint.glob("job-1/spool/*"), *waiting.checkpoint.glob("job-1/parked/*")]
    mill.close()
    waiting.open().close()


def test_files_are_private(run: Run, waiting: WaitingRun) -> None:
    run.restore(run.killed)
    waiting.restore(waiting.killed)
    for path in (*waiting.checkpoint.glob("job-1/spool/*/*"), *waiting.checkpoint.glob("job-1/parked/*/*")):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    for name in ("driver.log", "job-1/control.log", "job-1/batches.log", "job-1/state.db", "job-1/state.db-wal"):
        assert stat.S_IMODE((run.checkpoint / name).stat().st_mode) == 0o600, name


def test_the_log_of_batches_does_not_grow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps the last batches, and the last state of the outputs before them."""
    monkeypatch.setattr(parts, "GROWTH", 3_000)
    control = ControlLog(tmp_path / "control.log", writable=True)
    noted = BatchLog(tmp_path, control)
    for batch in range(60):
        noted.begin(batch, "x" * 200, outputs={"main": {"q": {"after": batch}}} if batch == 20 else None)
    assert (tmp_path / "batches.log").stat().st_size < 6_000
    for waiting in range(1, 100):  # batches wait for a sink, and none is run
        noted.name("spool/q", "q", ((0, waiting),), synced=False)
    noted.name("parked/q", "q", ("0.0", "head"))
    assert (tmp_path / "batches.log").stat().st_size < 6_000
    noted.close()
    again = BatchLog(tmp_path, control)
    assert again.names("parked/q") == {"0.0", "head"} and len(again.names("spool/q")) == 100
    assert again.number == 59 and again.of(56) is not None and again.of(55) is None
    assert again.outputs(59) == {"main": {"q": {"after": 20}}}
