"""What stops a job is one message: a disk is named as the cause, and no stack of the JVM is shown."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import millstream as ms
from millstream.control.job.explaining import explained
from millstream.control.job.local_state import LocalState
from millstream.control.job.ownership import Ownership
from millstream.errors import InputError, MillstreamError, OptionError

FOLDER = Path("/kept/job-1")
OF_SPARK = """An error occurred while calling o233.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
\tat org.apache.spark.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:53)
Caused by: org.apache.spark.SparkException: [CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT] Error writing state store files.
\tat org.apache.spark.sql.execution.streaming.state.RocksDB.commit(RocksDB.scala:1905)
Caused by: java.io.IOException: {cause}
\tat java.base/java.io.FileOutputStream.writeBytes(Native Method)
\t... 64 more
"""


@pytest.mark.parametrize(
    "error",
    [
        sqlite3.OperationalError("database or disk is full"),
        sqlite3.OperationalError("disk I/O error"),
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EROFS, "Read-only file system"),
        RuntimeError(OF_SPARK.format(cause="No space left on device")),
        RuntimeError(OF_SPARK.format(cause="Input/output error")),
    ],
    ids=str,
)
def test_a_disk_is_the_cause(error: Exception) -> None:
    found = explained(error, FOLDER)
    assert isinstance(found, OptionError) and found.code == "M6062"
    assert found.message.startswith("cannot write to the checkpoint '/kept': ")


def test_other_errors_of_spark_have_no_stack() -> None:
    found = explained(RuntimeError(OF_SPARK.format(cause="Connection reset")), FOLDER)
    assert isinstance(found, OptionError) and (found.code, found.message) == ("M6051", "IOException: Connection reset")
    assert "CANNOT_COMMIT" in found.detail and "\tat " not in str(found) and "more" not in str(found)


def test_a_part_of_the_checkpoint_that_spark_cannot_read() -> None:
    found = explained(RuntimeError(OF_SPARK.replace("CANNOT_WRITE", "CANNOT_LOAD").format(cause="gone")), FOLDER)
    assert isinstance(found, InputError) and found.code == "M5026" and "/kept/job-1/spark" in found.message
    assert "restore it from a copy" in found.hint and "\tat " not in str(found)


def test_a_disk_that_fills_up_while_a_query_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ms.connect(local=True, checkpoint=tmp_path) as mill:
        mill.sql("CREATE STREAM s (k BIGINT); CREATE QUERY q AS SELECT k FROM s")

        def fail(*_: Any) -> None:
            raise sqlite3.OperationalError("database or disk is full")

        with monkeypatch.context() as patch:
            patch.setattr(LocalState, "commit", fail)
            with pytest.raises(MillstreamError, match=r"M6062: cannot write to the checkpoint '.*': No space left"):
                mill.insert("s", [(1,)])


def test_rows_that_a_full_disk_does_not_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with ms.connect(local=True, checkpoint=tmp_path) as mill:
        mill.sql("CREATE STREAM s (k BIGINT); CREATE QUERY q AS SELECT k FROM s")
        with monkeypatch.context() as patch, pytest.raises(MillstreamError, match="M6062: cannot write") as caught:
            patch.setattr("os.write", fail)
            mill.insert("s", [(1,)])
        assert caught.value.detail == "The rows were not taken." and "start again" not in caught.value.hint
        mill.insert("s", [(2,)])
        assert mill.query("q").take().rows() == [(2,)]


def test_a_full_disk_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Ownership, "_name_holder", fail)
    with pytest.raises(MillstreamError, match=r"M6062: cannot write to the checkpoint '.*': No space left"):
        ms.connect(local=True, checkpoint=tmp_path)
