"""What a session of the program has to have, and what of Millstream's it keeps to itself."""

from __future__ import annotations

import logging
import os
import re
import shlex
import subprocess
import threading
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl
import pytest

import millstream as ms
from millstream import scratch
from millstream.control.spark.job import SparkJob, Stopped
from millstream.control.spark.launcher import interpreter
from millstream.control.spark.session import launch_jvm
from millstream.errors import InputError, MillstreamError, redacted
from millstream.sinks import SINKS

INTERRUPTED = r"py4j.protocol.Py4JJavaError: An error occurred while calling((.|\r\n|\r|\n)*)(java.lang.Interrupted)"
"""A part of what Spark searches in an error of a query that it stops (StreamExecution.PROXY_ERROR)."""


def test_settings_reach_the_jvm_by_files_of_this_user_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[str, Any] = {}

    def launched() -> None:
        arguments = shlex.split(os.environ["PYSPARK_SUBMIT_ARGS"])
        found["arguments"], properties = arguments, Path(arguments[1])
        found["modes"] = [path.stat().st_mode & 0o777 for path in (properties, properties.with_name("java-options"))]
        found["properties"], found["java"] = properties.read_text(), properties.with_name("java-options").read_text()

    monkeypatch.setattr("pyspark.SparkContext._gateway", None)
    monkeypatch.setattr("pyspark.SparkContext._ensure_initialized", launched)
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    secrets = {"spark.x.password": "a\\b=ü\n ", "spark.driver.extraJavaOptions": "-Xss1m -Dpassword='q\"r s'"}
    launch_jvm({**secrets, "spark.ui.enabled": True})
    assert found["arguments"][2:] == ["--load-spark-defaults", "pyspark-shell"]
    assert found["modes"] == [0o600, 0o600]
    assert "spark.x.password=a\\\\b\\=ü\\n\\ \n" in found["properties"] and "Dpassword" not in found["properties"]
    assert "spark.ui.enabled=true\n" in found["properties"]
    assert found["java"] == '"-Xss1m"\n"-Dpassword=q\\"r s"'
    assert not {"spark.properties", "java-options"} & {path.name for path in scratch.of_process().iterdir()}


def test_a_batch_that_is_abandoned_is_an_interruption_and_has_a_short_text() -> None:
    job: Any = object.__new__(SparkJob)
    job._query, job._failure, job._delivering = None, None, None

    class Cancelled:
        def toArrow(self) -> None:
            job._stopping = True
            raise RuntimeError("at java.base/java.lang.Thread\n" * 1000)

    with pytest.raises(Stopped) as caught:
        job._receive(Cancelled(), 1)
    assert caught.value.__context__ is None
    assert re.search(INTERRUPTED, str(caught.value))


def test_the_launcher_of_another_python_keeps_its_path() -> None:
    own, other = Path(interpreter("local[2]")), Path(interpreter("local[2]", "/usr/bin/true"))
    assert own != other and 'PYTHONPATH="$kept"' in own.read_text() and "PYTHONPATH" not in other.read_text()
    assert interpreter("yarn", "python3") == "python3"
    echo, module = interpreter("local[2]", "/bin/echo"), "pyspark.sql.streaming.transform_with_state_driver_worker"
    said = [subprocess.run([echo, "-m", name], capture_output=True, check=True).stdout for name in ("other", module)]
    assert said == [b"-m other\n", b""]


def test_values_that_are_secret_are_not_logged(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    log = logging.getLogger("millstream")
    with caplog.at_level(logging.INFO, logger="millstream"):
        log.info("CREATE STREAM s WITH (api_key = 'p1', \"Auth.Token\" = 'it''s p2', pwd=123, url = 'x://u:p3@h/1')")
        try:
            raise ValueError("kafka://ann:p4@host does not answer")
        except ValueError:
            log.exception("%s failed", "access.key='p5'")
    assert not re.search(r"p[1-5]\b|=123", caplog.text) and "x://…@h/1" in caplog.text and "'…'" in caplog.text
    with ms.connect(local=True) as mill, pytest.raises(MillstreamError) as caught:
        mill.sql("CREATE STREAM s (k INT) WITH (connector = 'kept', path = 'x', sasl_password = 'p6')")
    assert "p6" not in str(caught.value)


SECRETS = """CREATE STREAM s WITH (sasl = 'Login username="u" password="p1";', headers = 'Authorization: Bearer p2',
    auth = 'p3', url = 'x://u:p@4@h/?token=p5&n=1', json = '{"pwd": "p6"}', conn = 'Server=x;Password=p7#p7;',
    quoted = 'password=''p8 p8''; y', author = 'ann', auth = 'p9"""


def test_secrets_within_values_are_left_out() -> None:
    said = redacted(SECRETS)
    assert not re.search(r"p@?\d", said) and "author = 'ann'" in said and "x://…@h/?token=…&n=1" in said
    assert 'username="u" password="…";' in said and redacted(said) == said


class Secretive:
    """A sink that tells its address."""

    def open(self, query: str, schema: Any) -> None:
        pass

    def write(self, *_: Any) -> None:
        raise OSError("cannot write to https://u:p1@h/")

    def close(self) -> None:
        pass


def test_secrets_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MillstreamError) as caught:
        ms.connect(local=True, checkpoint="s3a://ak:p1@b/x")
    monkeypatch.setitem(SINKS.known, "secretive", lambda _: Secretive())
    with ms.connect(local=True) as mill:
        mill.sql("CREATE STREAM s (k BIGINT)")
        query = mill.sql("CREATE QUERY q AS SELECT k FROM s INTO secretive WITH (password = 'p2', on_error = 'spool')")
        mill.insert("s", [(1,)])
        mill.await_end(0.1)
        shown = [caught.value, repr(caught.value), mill.sql("SHOW QUERIES"), query.progress(), query._repr_html_()]
        text = "\n".join(map(str, [*shown, mill._repr_html_(), query.progress().to_dict()]))
        assert "sink failing" in text
    assert not re.search(r"p[12]\b", text) and "https://…@h/" in text and "s3a://…@b/x" in text


def test_a_session_that_is_stopped_first_is_no_error_when_the_connection_closes() -> None:
    class Ended:
        """A session, or its query, of a context that the program has stopped."""

        isActive, _jsc = True, None

        def __getattr__(self, _: str) -> Any:
            return self

        def stop(self) -> None:
            raise RuntimeError("Cannot call methods on a stopped SparkContext.")

    job: Any = object.__new__(SparkJob)
    job._changed, job._query, job.spark, job._delivering = threading.Condition(), Ended(), Ended(), None
    job._last_batch, job.checkpoint = -1, Path()
    job.stop()
    assert job._query is None
    assert "M6051: the Spark session is stopped" in str(job._explained(RuntimeError("jsc is null")))
    with pytest.raises(MillstreamError, match="M6052: the Spark session is stopped"):
        ms.connect(spark=cast("Any", Ended()))


ARRAYS = [
    np.array([[1, 2], [3, 4]]),
    np.array([[1.0, 2.0], [3.0, 4.0]], dtype=np.float32),
    [np.array([1, 2]), np.array([3, 4])],
    np.array([(1, 2), (3, 4)], dtype=[("k", "i4"), ("v", "f8")]),
    [np.array([1, 2]), (3, 4)],
    np.array([[1, 2], [3, 4]], dtype=object),
]


@pytest.mark.parametrize("rows", ARRAYS, ids=str)
def test_arrays_are_rows(rows: Any) -> None:
    with ms.connect(local=True) as mill:
        mill.sql("CREATE STREAM s (k BIGINT, v DOUBLE)")
        query = mill.sql("SELECT k, v FROM s").start()
        mill.insert("s", rows)
        assert query.take().rows() == [(1, 2.0), (3, 4.0)]
        mill.insert("s", np.array([5, 6]))
        assert query.take().rows() == [(5, 6.0)]


def test_masked_values_are_null() -> None:
    row = np.ma.array([1, 2], mask=[False, True])
    with ms.connect(local=True) as mill:
        mill.sql("CREATE STREAM s (k BIGINT, v DOUBLE)")
        query = mill.sql("SELECT k, v FROM s").start()
        pair = np.ma.array([(1, 2)], mask=[(False, True)], dtype=[("k", "i4"), ("v", "f8")])
        for rows in (row, row[None], [row], [(1, np.ma.masked)], {"k": 1, "v": np.ma.masked}, pair):
            mill.insert("s", rows)
            assert query.take().rows() == [(1, None)]


class Frame:
    """A DataFrame of Spark, as far as `insert` looks at it."""

    __arrow_c_stream__ = None

    def __init__(self, rows: pl.DataFrame, *, streaming: bool) -> None:
        self.isStreaming, self._rows = streaming, rows

    def toArrow(self) -> Any:
        return self._rows.to_arrow()


def test_frames_of_spark_are_rows_and_streaming_ones_are_refused() -> None:
    rows = pl.DataFrame({"k": [1, 3], "v": [2.0, 4.0]})
    with ms.connect(local=True) as mill:
        mill.sql("CREATE STREAM s (k BIGINT, v DOUBLE)")
        query = mill.sql("SELECT k, v FROM s").start()
        mill.insert("s", Frame(rows, streaming=False))
        assert query.take().equals(rows)
        with pytest.raises(InputError, match=r"M5013: .*found a streaming DataFrame\n.*mill.stream\('s', frame\)"):
            mill.insert("s", Frame(rows, streaming=True))
        with pytest.raises(InputError, match=r"M5013: .*found 3 dimensions"):
            mill.insert("s", np.zeros((2, 2, 2)))
