"""A sink that raises: its results wait in the spool, and reach it once and in order when it works again."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.schema import Schema
from millstream.config import Options
from millstream.control.mill import outlet
from millstream.control.mill.local import LocalMill
from millstream.control.mill.restarting import start_again
from millstream.control.observe.metrics import MillCollector
from millstream.errors import MillstreamError, OperatorError, OptionError
from millstream.sinks import SINKS
from tests.tries import tries

STREAM = "CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts"


class Flaky:
    """Raises while `broken`; survives the mill."""

    def __init__(self) -> None:
        self.broken = self.unopened = False
        self.taken: dict[int, tuple[list[Any], list[str]]] = {}
        self.order: list[int] = []

    def open(self, query: str, schema: Schema) -> None:
        if self.unopened:
            raise OSError("no such server")

    def write(self, batch: int, rows: pl.DataFrame, punctuations: Sequence[Pattern]) -> None:
        if self.broken:
            raise ConnectionError("refused")
        self.taken[batch] = rows.rows(), [str(each) for each in punctuations]
        self.order.append(batch)

    def close(self) -> None:
        pass

    def rows(self) -> list[Any]:
        return [row for batch in sorted(self.taken) for row in self.taken[batch][0]]


@pytest.fixture
def sink(monkeypatch: pytest.MonkeyPatch) -> Flaky:
    made = Flaky()
    monkeypatch.setattr(outlet, "FIRST_PAUSE", 0.0)
    monkeypatch.setattr(SINKS, "get", lambda name, get=SINKS.get: (lambda _: made) if name == "flaky" else get(name))
    return made


def opened(folder: Path | None, query: str = "SELECT k FROM s INTO flaky") -> LocalMill:
    mill = LocalMill(Options(), folder)
    if not mill.queries:
        mill.execute(f"{STREAM}; CREATE QUERY q AS {query}; CREATE QUERY other AS SELECT k + 1 AS k FROM s")
    return mill


def feed(mill: LocalMill, *values: int) -> None:
    mill.insert("s", [(value, value) for value in values])
    mill.batch()


@settings(max_examples=tries(80), deadline=None)
@given(
    steps=st.lists(st.sampled_from(["feed", "feed", "break", "mend", "reopen", "restart", "unopen"]), max_size=14),
    kept=st.booleans(),
)
def test_results_arrive_once_and_in_order(
    steps: list[str], kept: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outlet, "FIRST_PAUSE", 0.0)
        sink = Flaky()
        patch.setattr(SINKS, "get", lambda name, get=SINKS.get: (lambda _: sink) if name == "flaky" else get(name))
        folder = tmp_path_factory.mktemp("kept") if kept else None
        mill, fed = opened(folder), 0
        for step in steps:
            match step:
                case "feed":
                    fed += 1
                    feed(mill, fed)
                case "break" | "mend":
                    sink.broken = step == "break"
                case "unopen":
                    sink.unopened = not sink.unopened
                case "reopen" if kept:
                    mill.close()
                    mill = opened(folder)
                case "restart":
                    mill = mill.restarted()
        sink.broken = sink.unopened = False
        mill.deliveries.outlets["q"].retry(now=True)
        fed += 1
        feed(mill, fed)
        assert [k for (k,) in sink.rows()] == [*range(1, fed + 1)]
        assert sink.order == sorted(set(sink.order))
        assert mill.deliveries.outlets["q"].trouble is None
        mill.close()


@pytest.mark.parametrize("kept", [False, True])
def test_it_is_said(sink: Flaky, tmp_path: Path, kept: bool, caplog: pytest.LogCaptureFixture) -> None:
    mill = opened(tmp_path if kept else None)
    sink.broken = True
    feed(mill, 1, 2)
    feed(mill, 3)
    trouble = mill.deliveries.outlets["q"].trouble
    assert trouble is not None and trouble.rows == 3 and trouble.error == "ConnectionError: refused"
    shown = mill.execute("SHOW QUERIES")
    assert "q: 0 rows out, sink failing since 2" in shown and "3 rows spooled: ConnectionError: refused" in shown
    assert sum("its results are spooled" in record.message for record in caplog.records) == 1
    sink.broken = False
    feed(mill, 4)
    assert mill.execute("SHOW QUERIES").splitlines()[0] == "q: 4 rows out"
    assert "works again" in caplog.records[-1].message
    assert sink.rows() == [(1,), (2,), (3,), (4,)]
    mill.close()


def test_it_is_said_again(sink: Flaky, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    mill = opened(None)
    sink.broken = True
    for value in (1, 2):
        feed(mill, value)
    monkeypatch.setattr(outlet, "REMINDED", 0.0)
    mill.deliveries.outlets["q"].retry(now=True)
    assert caplog.messages[0].endswith("its results are spooled: ConnectionError: refused")
    assert caplog.messages[1:] == ["sink flaky of query 'q' still fails; 2 rows spooled: ConnectionError: refused"]


def test_an_error_that_lasts_is_raised_while_results_wait(sink: Flaky, monkeypatch: pytest.MonkeyPatch) -> None:
    mill = opened(None)
    sink.broken = True
    feed(mill, 1)
    assert mill.deliveries.waiting()  # and is tried again
    error = OptionError("M6041", "not ours")
    error.lasting = True  # type: ignore[misc]

    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(sink, "write", refuse)
    mill.deliveries.retry()
    with pytest.raises(OptionError, match="not ours"):
        mill.deliveries.waiting()
    feed(mill, 2)
    failure = mill.queries["q"].failure
    assert failure is not None and failure.error is error
    assert mill.take_rows("other").height == 2


def test_a_query_that_stops_by_option(sink: Flaky, tmp_path: Path) -> None:
    mill = opened(tmp_path, "SELECT k FROM s INTO flaky WITH (on_error = 'stop')")
    feed(mill, 1)
    sink.broken = True
    feed(mill, 2)
    feed(mill, 3)
    failure = mill.queries["q"].failure
    assert failure is not None and failure.error.code == "M6044"
    assert failure.error.message == "sink flaky of query 'q' failed: ConnectionError: refused"
    assert mill.take_rows("other").rows() == [(2,), (3,), (4,)]
    sink.broken = False
    assert "missed 1 row of s since batch" in start_again(mill, "q")
    feed(mill, 4)
    mill.close()
    mill = opened(tmp_path)
    feed(mill, 5)
    assert sink.rows() == [(1,), (2,), (4,), (5,)]  # what was computed is delivered
    mill.close()


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("how", ["broken", "unopened"])
def test_a_query_stops_again_while_its_sink_fails(
    sink: Flaky,
    tmp_path: Path,
    kept: bool,
    how: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outlet, "FIRST_PAUSE", 60.0)  # a query that stops does not wait for it
    mill = opened(tmp_path if kept else None, "SELECT k FROM s INTO flaky WITH (on_error = 'stop')")
    sink.broken = True
    feed(mill, 1)
    setattr(sink, how, True)
    for value in (2, 3):
        mill.failures.settle()
        start_again(mill, "q")
        feed(mill, value)
        failure = mill.queries["q"].failure
        assert failure is not None and failure.error.code == "M6044" and failure.error.message.count("sink flaky") == 1
    assert not any("spooled" in record.message or "discarded" in record.message for record in caplog.records)
    assert any("waiting for its sink: kept until the query starts again" in each.message for each in caplog.records)
    sink.broken = sink.unopened = False
    mill.failures.settle()  # tries the sink once more
    start_again(mill, "q")
    feed(mill, 4)
    assert sink.rows() == [(1,), (4,)]  # it had stopped before 2 and 3 came
    mill.close()


def test_a_spool_has_a_limit(sink: Flaky) -> None:
    mill = opened(None, "SELECT k FROM s INTO flaky WITH (spool_limit = '100 B')")
    sink.broken = True
    feed(mill, 1)
    assert mill.queries["q"].failure is None
    feed(mill, *range(2, 40))
    failure = mill.queries["q"].failure
    assert failure is not None and failure.error.code == "M6045" and "39 rows" in failure.error.detail
    assert mill.take_rows("other").height == 39


def test_a_sink_that_cannot_be_opened(sink: Flaky, tmp_path: Path) -> None:
    sink.unopened = True
    with pytest.raises(OptionError, match="M6044: sink flaky of query 'q' cannot be opened: OSError: no such server"):
        opened(tmp_path)
    mill = LocalMill(Options(), tmp_path / "b")
    mill.execute(STREAM)
    with pytest.raises(OptionError, match="M6044"):
        mill.execute("CREATE QUERY q AS SELECT k FROM s INTO flaky")
    assert not mill.queries and not mill.placements.of
    sink.unopened = False
    mill.execute("CREATE QUERY q AS SELECT k FROM s INTO flaky")
    feed(mill, 1)
    mill.close()


@pytest.mark.parametrize(
    ("options", "code"),
    [("on_error = 'ignore'", "M6002"), ("spool_limit = 'much'", "M6002"), ("on_eror = 'stop'", "M6001")],
)
def test_options_are_checked(options: str, code: str) -> None:
    mill = LocalMill(Options())
    mill.execute(STREAM)
    with pytest.raises(OptionError, match=code):
        mill.execute(f"CREATE QUERY q AS SELECT k FROM s INTO console WITH ({options})")
    assert not mill.queries


def test_a_function_of_the_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(outlet, "FIRST_PAUSE", 0.0)
    found: list[Any] = []
    broken = True

    def take(_batch: int, rows: pl.DataFrame) -> None:
        if broken:
            raise ValueError("boom")
        found.extend(rows.rows())

    with ms.connect(local=True, checkpoint=tmp_path) as mill:
        mill.sql("CREATE STREAM s (k BIGINT)")
        query = mill.sql("SELECT k FROM s").start(take, name="q")
        mill.insert("s", [(1,)])
        trouble = query.progress().sink
        assert trouble is not None and trouble.rows == 1
        mill.check()
    with ms.connect(local=True, checkpoint=tmp_path) as mill:  # it has no such function any more
        mill.insert("s", [(2,)])
        assert mill.query("q").take().rows() == [(1,), (2,)]


def test_a_dropped_query_leaves_nothing(sink: Flaky, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    mill = opened(tmp_path)
    sink.broken = True
    feed(mill, 1)
    assert [*tmp_path.glob("job-*/spool/*/*")]
    mill.execute("DROP QUERY q")
    assert not [*tmp_path.glob("job-*/spool/*")]
    assert any("1 row of query 'q' waiting for its sink: discarded" in each.message for each in caplog.records)
    mill.close()


def test_a_sink_with_options_of_its_own() -> None:
    def make(options: Mapping[str, str]) -> Flaky:
        assert "on_error" not in options
        return Flaky()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SINKS, "get", lambda _: make)
        mill = LocalMill(Options())
        mill.execute(
            f"{STREAM}; CREATE QUERY q AS SELECT k FROM s INTO x WITH (on_error = 'stop', spool_limit = '1 MB')"
        )
    with pytest.raises(MillstreamError):
        mill.query("p")


def test_metrics(sink: Flaky) -> None:
    mill = opened(None, "SELECT k FROM s INTO flaky WITH (on_error = 'stop')")
    mill.execute("CREATE QUERY kept AS SELECT k FROM s INTO flaky")
    sink.broken = True
    feed(mill, 1, 2)
    samples = {
        (sample.name, sample.labels["query"]): sample.value
        for family in MillCollector(mill).collect()
        for sample in family.samples
        if sample.name.startswith(("millstream_query_failed", "millstream_sink"))
    }
    assert samples["millstream_query_failed", "q"] == 1 and samples["millstream_query_failed", "kept"] == 0
    assert samples["millstream_sink_failing", "kept"] == 1
    assert samples["millstream_sink_spooled_rows", "kept"] == 2
    assert samples["millstream_sink_spooled_bytes", "kept"] > 0


def test_queries_that_share_an_operator_fail_together() -> None:
    mill = LocalMill(Options(shards=2))
    mill.execute(f"""{STREAM};
        CREATE QUERY one AS SELECT k * {1 << 62} AS p FROM s;
        CREATE QUERY two WITH (start = 'shared') AS SELECT k * {1 << 62} AS p FROM s;
        CREATE QUERY fine AS SELECT k FROM s""")
    feed(mill, 1)
    feed(mill, 2, 3)
    assert mill.take_rows("fine").rows() == [(1,), (2,), (3,)]
    assert {*mill.failures.of()} == {"one", "two"}
    assert mill.take_rows("one").rows() == mill.take_rows("two").rows() == [(1 << 62,)]
    assert "of queries one, two failed" in mill.failures.of()["one"].error.message
    assert "Other queries go on" in mill.failures.of()["one"].error.hint


def test_no_other_query_goes_on_if_all_fail_together() -> None:
    mill = LocalMill()
    mill.execute(f"""{STREAM};
        CREATE QUERY one AS SELECT k * {1 << 62} AS p FROM s;
        CREATE QUERY two WITH (start = 'shared') AS SELECT k * {1 << 62} AS p FROM s""")
    with pytest.raises(OperatorError):
        feed(mill, 2)
    assert {*mill.failures.of()} == {"one", "two"}
    assert all("Other queries" not in failure.error.hint for failure in mill.failures.of().values())


def test_an_older_copy_of_the_checkpoint_beside_newer_results(tmp_path: Path) -> None:
    kept, copy, out = tmp_path / "kept", tmp_path / "copy", tmp_path / "out"
    (tmp_path / "in").mkdir()
    files = f"WITH (connector = 'csv', path = '{tmp_path}/in')"
    text = f"{STREAM} {files}; CREATE QUERY q AS SELECT k FROM s INTO parquet WITH (path = '{out}')"

    def more(number: int) -> None:
        (tmp_path / "in" / f"{number}.csv").write_text(f"k,ts\n{number},{number}\n")
        with ms.connect(local=True, checkpoint=kept) as mill:
            if not number:
                mill.sql(text)
            mill._work()

    for number in range(4):
        more(number)
        if number == 1:
            shutil.copytree(kept, copy)
    shutil.rmtree(kept)
    shutil.copytree(copy, kept)
    before = {path: path.read_bytes() for path in [*kept.rglob("control.log"), *out.iterdir()]}
    for _ in range(2):
        with pytest.raises(OptionError, match=r"M6078: .* 2 files of query 'q' of batches") as caught:
            ms.connect(local=True, checkpoint=kept)
        assert caught.value.line is None  # no text of this program
        assert [path for path in before if path.read_bytes() != before[path]] == []
    for path in sorted(out.glob("part-*"))[-2:]:
        path.unlink()
    more(4)
    assert sorted(pl.read_parquet(out / "*.parquet")["k"]) == [0, 1, 2, 3, 4]
