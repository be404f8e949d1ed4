"""A checkpoint of which a part is missing, cut off, empty or older is refused, or continues exactly."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from millstream.config import Options
from millstream.control.job import local_state, parts
from millstream.control.job.parts import BatchLog
from millstream.control.mill import LocalMill
from millstream.errors import InputError
from millstream.physical.wire.control_log import ControlLog
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

    def __init__(self, folder: Path) -> None:
        self.folder, self.checkpoint = folder / "run", folder / "run" / "checkpoint"
        (self.folder / "files").mkdir(parents=True)
        mill = self.open()
        mill.execute(STATEMENTS.format(self.folder))
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
        out = self.folder / "out"
        return {name: sorted(pl.read_parquet(out / name / "*.parquet").rows()) for name in ("sums", "pairs")}


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


MAY_CONTINUE = {("job-1/state.db", "cut")}
"""The write-ahead file may have all pages that are cut off."""


def test_files_are_private(run: Run) -> None:
    run.restore(run.killed)
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
    noted.close()
    again = BatchLog(tmp_path, control)
    assert again.number == 59 and again.of(56) is not None and again.of(55) is None
    assert again.outputs(59) == {"main": {"q": {"after": 20}}}
