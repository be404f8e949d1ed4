"""Sinks made from specifications, and the errors for invalid ones."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from millstream.errors import OptionError
from millstream.sinks import MemorySink, Sink, make_sink
from millstream.sinks.callback import CallbackSink
from millstream.sinks.files.parquet import ParquetSink
from millstream.sinks.terminal.console import ConsoleSink
from tests.sinks.sample import HOT, hot


@pytest.mark.parametrize(
    ("name", "options", "kind"),
    [
        ("memory", {}, MemorySink),
        ("NONE", {}, CallbackSink),
        ("console", {"rows": "3"}, ConsoleSink),
        ("parquet", {"path": "somewhere", "overwrite": "true"}, ParquetSink),
    ],
)
def test_by_name(name: str, options: dict[str, str], kind: type[Sink]) -> None:
    for run in ({}, {"run": "7"}):
        made = make_sink(name, options | run)
        assert type(made) is kind and isinstance(made, Sink)


def test_a_sink_is_itself_and_a_function_is_called() -> None:
    own, calls = MemorySink(), []
    assert make_sink(own, {"run": "7"}) is own
    made = make_sink(lambda batch, rows: calls.append((batch, rows.height)))
    made.open("hot", HOT)
    for batch, rows in ((0, hot(1)), (0, hot(1)), (1, hot()), (2, hot(2, 3))):
        made.write(batch, rows, [])
    made.close()
    assert isinstance(made, CallbackSink) and calls == [(0, 1), (1, 0), (2, 2)]


def test_a_call_that_failed_is_repeated() -> None:
    seen: list[int] = []

    def fail_once(batch: int, rows: pl.DataFrame) -> None:
        seen.append(batch)
        if len(seen) == 1:
            raise ConnectionError

    made = make_sink(fail_once)
    with pytest.raises(ConnectionError):
        made.write(0, hot(1), [])
    made.write(0, hot(1), [])
    made.write(0, hot(1), [])
    assert seen == [0, 0]


@pytest.mark.parametrize(
    ("spec", "options", "code", "message"),
    [
        ("parquett", {}, "M6003", "did you mean 'parquet'?"),
        ("kafka", {}, "M6003", "known: console, memory, none, parquet"),
        (7, {}, "M6003", "is not a sink"),
        (MemorySink, {}, "M6003", "is not a sink"),
        ("memory", {"path": "x"}, "M6001", "sink 'memory' has no option 'path'"),
        ("parquet", {"path": "x", "overwrit": "true"}, "M6001", "did you mean 'overwrite'?"),
        ("parquet", {}, "M6040", "sink 'parquet' needs option 'path'"),
        ("parquet", {"path": " "}, "M6002", "option 'path' cannot be ' '"),
        ("parquet", {"path": "s3://bucket/hot"}, "M6002", "not a folder on the driver's file system"),
        ("parquet", {"path": "x", "overwrite": "maybe"}, "M6002", "whether to replace"),
        ("console", {"rows": "0"}, "M6002", "greater than or equal to 1"),
        ("console", {"rows": "many"}, "M6002", "option 'rows' cannot be 'many'"),
        (print, {"rows": "3"}, "M6001", "an object as a sink has no option 'rows'"),
    ],
)
def test_invalid_specifications(spec: Any, options: dict[str, str], code: str, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        make_sink(spec, options)
    assert caught.value.code == code and message in str(caught.value)


def test_a_path_that_no_file_system_takes() -> None:
    with pytest.raises(OptionError, match=r"M6002: option 'path' cannot be .*: it has a NUL character"):
        make_sink("parquet", {"path": "a\0b"})
