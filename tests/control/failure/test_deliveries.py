"""Deliveries at awkward moments: every result reaches the output of its own query, once."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import millstream as ms
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.schema import Schema
from millstream.config import Options
from millstream.control.job.local import LocalJob
from millstream.control.mill import outlet, spool
from millstream.control.mill.local import LocalMill
from millstream.control.mill.placement import Placements
from millstream.control.mill.restarting import start_again
from millstream.errors import OptionError
from millstream.lang import ast, parse
from millstream.sinks import SINKS

STREAM = "CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts"


class Sink:
    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.taken: dict[int, list[Any]] = {}
        self.promised: list[str] = []

    def open(self, query: str, schema: Schema) -> None:
        pass

    def write(self, batch: int, rows: pl.DataFrame, punctuations: Sequence[Pattern]) -> None:
        if self.error is not None:
            raise self.error
        assert batch not in self.taken
        self.taken[batch] = rows.to_series().to_list()
        self.promised += [str(each) for each in punctuations]

    def close(self) -> None:
        pass

    def rows(self) -> list[Any]:
        return [row for batch in sorted(self.taken) for row in self.taken[batch]]


@pytest.fixture
def sink(monkeypatch: pytest.MonkeyPatch) -> Sink:
    made = Sink()
    monkeypatch.setattr(outlet, "FIRST_PAUSE", 0.0)
    monkeypatch.setattr(SINKS, "get", lambda name, get=SINKS.get: (lambda _: made) if name == "test" else get(name))
    return made


def feed(mill: LocalMill, *values: int) -> None:
    mill.insert("s", [(value, value) for value in values])
    mill.batch()


def opened(folder: Path) -> LocalMill:
    mill = LocalMill(Options(), folder)
    if not mill.queries:
        mill.execute(f"{STREAM}; CREATE QUERY kept AS SELECT k + 1 AS k FROM s")
        mill.execute("CREATE QUERY sent AS SELECT k FROM s INTO test; CREATE QUERY more AS SELECT k + 2 AS k FROM s")
    return mill


def test_streams_have_not_ended_while_results_wait_for_a_sink(sink: Sink, tmp_path: Path) -> None:
    sink.error = ConnectionError("refused")
    mill = ms.connect(local=True, checkpoint=tmp_path)
    mill.sql("""CREATE STREAM bids (auction BIGINT, ts TIMESTAMP) ORDER BY ts
                WITH (connector = 'nexmark', stream = 'bid', events = 50)""")
    mill.sql("CREATE QUERY q AS SELECT auction FROM bids INTO test")
    assert not mill.await_end(0.3) and not mill.ended() and not sink.taken
    sink.error = None
    assert mill.await_end(20) and len(sink.rows()) == 46
    mill.close()


@pytest.mark.parametrize("where", ["spool", "outputs", "commit"])
def test_a_batch_that_is_abandoned_and_repeated(
    where: str, sink: Sink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mill = opened(tmp_path)
    feed(mill, 1)
    job = mill.jobs.job()
    assert isinstance(job, LocalJob)
    with monkeypatch.context() as patch:
        if where == "spool":
            sink.error = ConnectionError("refused")
            patch.setattr(spool, "write_whole", _full)
        elif where == "outputs":
            patch.setattr(job, "_compact", _full)
        else:
            patch.setattr(job._state, "commit", _full)
        with pytest.raises(OptionError, match="M6062"):
            feed(mill, 2)
    sink.error = None
    start_again(mill, "kept")  # the job
    feed(mill, 3)
    assert mill.take_rows("kept").to_series().to_list() == [2, 3, 4]
    assert mill.take_rows("more").to_series().to_list() == [3, 4, 5]
    assert sink.rows() == [1, 2, 3]
    mill.close()


def _full(*_: object, **__: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_repeated_batch_of_a_query_that_was_replaced(sink: Sink, tmp_path: Path) -> None:
    mill = opened(tmp_path)
    sink.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        feed(mill, 1)
    mill.jobs.close()
    sink.error = None
    mill = LocalMill(Options(), tmp_path)
    mill.stop_query("sent")  # before the batch is repeated
    mill.start_query("sent", "CREATE QUERY sent AS SELECT ts FROM s INTO test", _select("SELECT ts FROM s"), "test", {})
    mill.sync()
    feed(mill, 7)
    assert sink.rows() == [7]
    assert mill.take_rows("kept").to_series().to_list() == [2, 8]
    mill.close()


def _select(text: str) -> ast.Runs:
    (statement,) = parse(text)
    assert isinstance(statement, ast.SelectStatement)
    return statement.select


def test_a_batch_that_ends_while_its_query_starts(sink: Sink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Spark, where a batch may take the first records of a query before the query is registered."""
    mill = opened(tmp_path)
    job, begin, threads = mill.jobs.job(), Placements.begin, list[threading.Thread]()
    assert isinstance(job, LocalJob)

    def begun(self: Placements, *arguments: Any) -> None:
        begin(self, *arguments)
        mill.insert("s", [(5, 5)])
        mill._feed_next()
        threads.append(threading.Thread(target=job.step))
        threads[0].start()
        threads[0].join(0.3)

    monkeypatch.setattr(Placements, "begin", begun)
    mill.execute("CREATE QUERY late AS SELECT k * 10 AS k FROM s")
    threads[0].join()
    assert mill.take_rows("late").to_series().to_list() == [50]
    mill.close()
