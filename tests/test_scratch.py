"""Folders of processes: their names, who may use them, and what is swept."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from millstream import scratch
from millstream.physical.shard.durable import SegmentFiles


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Shared memory and temporary files of this test alone."""
    for name in ("shm", "tmp"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(scratch, "SHARED", tmp_path / "shm")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return tmp_path


def owned_by(root: Path, owner: scratch.Owner, name: str = "x") -> Path:
    folder = root / f"millstream-{owner}-{name}"
    folder.mkdir()
    (folder / "file").write_text("held")
    return folder


def test_a_folder_names_its_owner_and_is_closed_to_others() -> None:
    with scratch.temporary() as folder:
        named = scratch.NAMED.match(folder.name)
        assert named is not None and int(named[2]) == os.getpid()
        assert folder.stat().st_mode & 0o777 == 0o700
        assert not scratch.sweep() and folder.exists()
    assert not folder.exists()


@pytest.mark.parametrize("place", ["shm", "tmp"])
def test_folders_of_dead_processes_alone_are_swept(places: Path, place: str) -> None:
    here, child = scratch.owner(), subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    other = scratch.Owner(here.space, child.pid, scratch._start(child.pid))
    living = owned_by(places / place, other)
    reused = owned_by(places / place, other._replace(start=other.start - 1))
    elsewhere = owned_by(places / place, other._replace(space=here.space + 1, start=1))
    foreign = places / place / "millstream-of-somebody-else"
    foreign.mkdir()
    assert scratch.sweep() == [reused]
    assert living.exists() and elsewhere.exists() and foreign.exists() and not reused.exists()
    child.kill()
    while scratch._start(child.pid):  # it has ended, and is a zombie until its parent waits for it
        time.sleep(0.01)
    assert scratch.sweep() == [living]
    child.wait()


def test_a_link_is_not_swept(places: Path) -> None:
    kept = places / "kept"
    kept.mkdir()
    (places / "shm" / f"millstream-{scratch.owner()._replace(start=1)}-x").symlink_to(kept)
    assert not scratch.sweep() and kept.exists()


def test_the_owner_of_a_worker_is_its_jvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "PROCESSES", tmp_path)
    commands = {
        30: "java\0SparkSubmit\0pyspark-shell",
        31: "python\0-m\0pyspark.daemon",
        32: "python\0-m\0pyspark.daemon",
    }
    for pid, command in commands.items():
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "cmdline").write_text(command)
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (a name) S {pid - 1} {'0 ' * 17}{pid}00 0")
    assert scratch._owner_of(32)[1:] == (30, 3000)
    assert scratch._owner_of(30)[1:] == (30, 3000)


def test_a_shared_folder_that_others_can_enter_is_not_used(places: Path) -> None:
    files = SegmentFiles("job")
    files.put_bytes("a", b"1")
    assert files.folder.stat().st_mode & 0o777 == 0o700 and files.get_bytes("a") == b"1"
    files.folder.chmod(0o755)
    files.put_bytes("b", b"2")
    assert files.get_bytes("a") is None and not (files.folder / "b").exists()
    files.clear()
    assert not files.folder.exists()


def test_a_shared_folder_behind_a_link_is_not_used(places: Path) -> None:
    files, elsewhere = SegmentFiles("job"), places / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    (elsewhere / "a").write_bytes(b"forged")
    files.folder.symlink_to(elsewhere)
    assert files.get_bytes("a") is None and files.get("a") is None
    files.put_bytes("b", b"2")
    assert not (elsewhere / "b").exists()


def test_a_folder_of_another_user_is_not_used(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = SegmentFiles("job")
    files.put_bytes("a", b"1")
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert files.get_bytes("a") is None
    assert not scratch.sweep()


def test_clearing_a_job_removes_what_earlier_owners_left(places: Path) -> None:
    before = owned_by(places / "shm", scratch.owner()._replace(pid=1), "job")
    other = owned_by(places / "shm", scratch.owner()._replace(pid=1), "another")
    SegmentFiles("job").clear()
    assert not before.exists() and other.exists()
