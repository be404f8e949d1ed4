"""A checkpoint has one owner at a time, which the error of a second one names."""

import logging
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import millstream as ms
from millstream.config import Options
from millstream.control.job import ownership
from millstream.control.mill import LocalMill
from millstream.errors import OptionError

HOLDER = """
import sys
import millstream as ms
mill = ms.connect(local=True, checkpoint=sys.argv[1])
mill.sql("CREATE STREAM s (k BIGINT); CREATE QUERY q AS SELECT k FROM s")
print("ready", flush=True)
sys.stdin.read()
"""


def refused(folder: Path) -> OptionError:
    with pytest.raises(OptionError) as caught:
        ms.connect(local=True, checkpoint=folder)
    assert caught.value.code == "M6070"
    return caught.value


def test_a_second_process_is_refused_and_a_kill_frees_the_checkpoint(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"ready\n"
        before = sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*"))
        error = refused(tmp_path)
        assert f"process {holder.pid} on {socket.gethostname()}, since 20" in error.message
        assert "stop that process" in error.hint
        assert before == sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*"))
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    with ms.connect(local=True, checkpoint=tmp_path) as mill:
        assert [query.name for query in mill.queries] == ["q"]


def test_a_second_connection_of_the_same_process(tmp_path: Path) -> None:
    with ms.connect(local=True, checkpoint=tmp_path):
        assert f"this process ({os.getpid()} on" in refused(tmp_path).message
        with pytest.raises(OptionError, match="M6070"):
            LocalMill(checkpoint=tmp_path)
    mill = LocalMill(checkpoint=tmp_path)
    refused(tmp_path)
    mill.close()
    ms.connect(local=True, checkpoint=tmp_path).close()


def test_a_connection_that_fails_to_open_owns_nothing(tmp_path: Path) -> None:
    with ms.connect(local=True, checkpoint=tmp_path, shards=2) as mill:
        mill.sql("CREATE STREAM s (k BIGINT); CREATE QUERY q AS SELECT k FROM s")
    for _ in range(2):
        with pytest.raises(OptionError, match="M6072"):
            ms.connect(local=True, checkpoint=tmp_path, shards=3)
        with pytest.raises(OptionError, match="M6072"):
            LocalMill(Options(shards=3), checkpoint=tmp_path)


def test_a_forked_process_does_not_keep_the_checkpoint(tmp_path: Path) -> None:
    script = f"""
import os, time
import millstream as ms
mill = ms.connect(local=True, checkpoint={str(tmp_path)!r})
if os.fork():
    os._exit(0)
print("forked", flush=True)
time.sleep(20)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, start_new_session=True) as parent:
        assert parent.stdout is not None and parent.stdout.readline() == b"forked\n"
        parent.wait()
        ms.connect(local=True, checkpoint=tmp_path).close()
        os.killpg(parent.pid, signal.SIGKILL)


def test_a_file_system_without_locks_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ownership, "fcntl", None)
    with caplog.at_level(logging.WARNING, "millstream"):
        ms.connect(local=True, checkpoint=tmp_path).close()
    assert "cannot be locked" in caplog.text and "two processes" in caplog.text


def test_a_checkpoint_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OptionError, match="M6062"):
        ms.connect(local=True, checkpoint=tmp_path / "file")
