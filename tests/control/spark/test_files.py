"""Spark's part of a checkpoint, judged without Spark: mended where nothing is lost, refused elsewhere."""

from __future__ import annotations

import json
import shutil
import struct
import zipfile
import zlib
from pathlib import Path
from uuid import UUID

import pytest

from millstream.algebra.values import encode
from millstream.control.job.identity import identify, read_identity
from millstream.control.job.parts import BatchLog, check_checkpoint
from millstream.control.spark.files import SparkFiles, _sound_offsets
from millstream.errors import InputError
from millstream.physical.wire.control_log import ControlLog
from millstream.physical.wire.records import Remember
from millstream_bench.soak.damage import damaged
from tests.control.job.test_parts import swap

LAST, SNAPSHOT = 7, 4
"""The last batch that was begun, of which the commit is there too; the version of the state with a snapshot."""


def put(path: Path, data: bytes) -> None:
    """Write a file and its checksums, as Hadoop does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    pieces = [zlib.crc32(data[at : at + 512]) for at in range(0, len(data), 512)]
    checks = b"crc\0" + struct.pack(f">{len(pieces) + 1}I", 512, *pieces)
    path.with_name(f".{path.name}.crc").write_bytes(checks)


@pytest.fixture
def job(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made.parent, tmp_path / "kept") / "job-1"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkpoint(tmp_path_factory.mktemp("made"))


def checkpoint(parent: Path) -> Path:
    """The folder of a job, in a new checkpoint."""
    folder = parent / "job-1"
    driver = ControlLog(parent / "driver.log", writable=True)
    driver.append(Remember("", "jobs", None))
    identity = identify(folder, "Spark", 2, 1, driver.mark.hex())
    names = [[f"{batch}-of-{shard}" for shard in (0, 1)] for batch in range(LAST + 1)]
    spark = folder / "spark"
    files, noted = opened(folder)
    put(spark / "metadata", json.dumps({"id": str(UUID(bytes=identity.mark))}).encode())
    put(spark / "state/0/_metadata/v2/0", b"v2\n{}")
    put(spark / "state/0/_stateSchema/default/0_a", b'{"a":{}}')
    for batch in range(LAST + 1):
        put(spark / f"offsets/{batch}", f'v1\n{{}}\n{{"log": 0, "now": {batch}, "streams": "{{}}"}}'.encode())
        noted.begin(batch, files.text(batch), outputs={"main": {"q": {"after": batch}}} if batch < LAST else None)
        ids = {"stateUniqueIds": {"0": [[name] for name in names[batch]]}}
        put(spark / f"commits/{batch}", f"v2\n{json.dumps(ids)}".encode())
        for shard in (0, 1):
            put(spark / f"state/0/{shard}/{batch + 1}_{names[batch][shard]}.changelog", bytes(900))
    snapshot = spark / f"state/0/0/{SNAPSHOT}_{names[SNAPSHOT - 1][0]}.zip"
    with zipfile.ZipFile(snapshot, "w") as packed:
        packed.writestr("metadata", 'v1\n{"sstFiles": [{"dfsSstFileName": "a.sst", "sizeBytes": 700}]}')
    put(snapshot, snapshot.read_bytes())
    put(spark / "state/0/0/SSTs/a.sst", bytes(700))
    waiting = {"spool/a": ((3, 3), (6, LAST)), "parked/b": ("0.0", "head")}
    for path in ("spool/a/3", "spool/a/6", f"spool/a/{LAST}", "spool/a/5", "parked/b/head", "parked/b/0.0"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(encode(path))  # nothing names batch 5
    for place, named in waiting.items():
        noted.name(place, "q", named)
    noted.close()
    return folder


def opened(job: Path) -> tuple[SparkFiles, BatchLog]:
    noted = BatchLog(job, ControlLog(job / "control.log", writable=True, mark=read_identity(job).mark))
    return SparkFiles(job / "spark", noted), noted


def test_sound_files_stay_as_they_are(job: Path) -> None:
    before = {path: path.read_bytes() for path in job.rglob("*") if path.is_file()}
    files, noted = opened(job)
    files.mend(0)
    assert {path: path.read_bytes() for path in job.rglob("*") if path.is_file()} == before
    assert noted.outputs(LAST) == {"main": {"q": {"after": LAST - 1}}} and noted.outputs(5)["main"]["q"]["after"] == 5


@pytest.mark.parametrize("damage", ["removed", "cut", "emptied", "older"])
@pytest.mark.parametrize("part", ["offsets", f"offsets/{LAST}", f"offsets/{LAST - 1}", f"commits/{LAST}", "metadata"])
def test_what_is_mended(job: Path, part: str, damage: str) -> None:
    """The offsets are in `batches.log`; a batch whose commit is gone is run again."""
    before = {path: path.read_bytes() for path in (job / "spark" / "offsets").glob("[0-9]*")}
    path = job / "spark" / part
    damaged(path, damage, path.with_name(str(int(path.name) - 1)) if path.name.isdigit() else job / "none")
    opened(job)[0].mend(0)
    for batch in (LAST - 1, LAST):
        path = job / "spark" / "offsets" / str(batch)
        assert path.read_bytes() == before[path]
    assert max(opened(job)[0].committed()) == LAST - (part.startswith("commits"))
    assert json.loads((job / "spark" / "metadata").read_text())["id"]


REFUSED = ["", "commits", "state", "state/0/1", "state/0/1/3_2-of-1.changelog", "state/0/0/SSTs/a.sst"]
REFUSED += [f"state/0/0/{LAST + 1}_{LAST}-of-0.changelog", "state/0/0/4_3-of-0.zip"]
REFUSED += ["state/0/_metadata/v2/0", "state/0/_stateSchema/default/0_a"]


@pytest.mark.parametrize("damage", ["removed", "cut", "emptied"])
@pytest.mark.parametrize("part", REFUSED)
def test_what_is_refused(job: Path, part: str, damage: str) -> None:
    if not damaged(job / "spark" / part, damage, job):
        return
    if damage == "removed" and part.endswith(".zip"):  # the changelogs before it are there
        return
    with pytest.raises(InputError, match=r"M502[345]: .*/job-1/spark") as caught:
        opened(job)[0].mend(0)
    assert "Restore it" in caught.value.hint and caught.value.detail


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkpoint(tmp_path_factory.mktemp("twin")).parent


PARTS = ["driver.log", *(f"job-1/{part}" for part in ("job.json", "control.log", "batches.log", "spark"))]
PARTS += ["job-1"]


@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_a_twin(job: Path, twin: Path, part: str) -> None:
    """A checkpoint with the same statements, positions and batches."""
    assert damaged(job.parent / part, "older", twin / part)
    with pytest.raises(InputError, match=rf"M5027: .*/{part}.* do not belong together"):
        check_checkpoint(ControlLog(job.parent / "driver.log"))
        opened(job)[0].mend(0)


FILES = [*PARTS[:4], "job-1", "job-1/spark", "job-1/spark/offsets", "job-1/spark/commits", "job-1/spark/state"]
FILES += ["job-1/spark/metadata", f"job-1/spark/offsets/{LAST}", f"job-1/spark/commits/{LAST}", "job-1/spool/a/3"]


@pytest.mark.parametrize("part", FILES)
def test_a_folder_in_place_of_a_file(job: Path, part: str) -> None:
    swap(job.parent / part)
    with pytest.raises(InputError, match=rf"M5024: .*/{part}' is (a folder|a file|no folder)"):
        check_checkpoint(ControlLog(job.parent / "driver.log"))
        opened(job)[0].mend(0)


WAITING = ["spool", "spool/a", "spool/a/3", f"spool/a/{LAST}", "spool/a/5", "parked", "parked/b", "parked/b/0.0"]


@pytest.mark.parametrize("damage", ["removed", "cut", "emptied"])
@pytest.mark.parametrize("part", WAITING)
def test_what_waits(job: Path, part: str, damage: str) -> None:
    """Results that wait for a sink, and what a failed query held."""
    driver = ControlLog(job.parent / "driver.log")
    check_checkpoint(driver)
    if not damaged(job / part, damage, job) or part.endswith("5"):
        check_checkpoint(driver)
        return
    with pytest.raises(InputError, match=rf"M5024: .*/job-1/{part}.* is (missing|empty|cut off)") as caught:
        check_checkpoint(driver)
    assert "Restore it" in caught.value.hint and "query 'q'" in caught.value.detail


def test_two_commits_are_gone(job: Path) -> None:
    for batch in (LAST, LAST - 1):
        (job / "spark" / "commits" / str(batch)).unlink()
    with pytest.raises(InputError, match=r"M5025: .* has batch 5, but batch 6 was committed"):
        opened(job)[0].mend(0)


def test_a_batch_of_which_nothing_was_delivered(job: Path) -> None:
    """A power failure leaves its offsets empty: it is planned anew."""
    path = job / "spark" / "offsets" / str(LAST + 1)
    put(path, b"")
    opened(job)[0].mend(0)
    assert not path.exists()


def test_the_control_log_is_short(job: Path) -> None:
    put(job / "spark" / "offsets" / str(LAST + 1), b'v1\n{}\n{"log": 99, "now": 9, "streams": "{}"}')
    with pytest.raises(InputError, match=r"M5025: .*control\.log' ends at position 0, but batch 8 began at .* 99"):
        opened(job)[0].mend(0)


@pytest.mark.parametrize("other", ["0", "-", '{"s":{"0":3}}', ""])
def test_offsets_of_other_sources_are_what_they_like(tmp_path: Path, other: str) -> None:
    path = tmp_path / "0"
    put(path, f'v1\n{{}}\n{{"log": 0}}\n{other}'.encode())
    assert _sound_offsets(path)
    put(path, f'v1\n{{}}\n{{"log": 0\n{other}'.encode())
    assert not _sound_offsets(path)
