"""Mistakes in calls of the Python API: each is an error with a code and a hint, never a trace of its cause."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import millstream as ms
from millstream.errors import MillstreamError


@pytest.fixture
def mill() -> Iterator[ms.Connection]:
    with ms.connect(local=True) as connection:
        connection.sql("CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts")
        yield connection


def refused(call: Callable[[], Any]) -> str:
    with pytest.raises(MillstreamError) as caught:
        call()
    return str(caught.value)


def test_a_misspelt_option_of_a_registration(mill: ms.Connection) -> None:
    wanted = "M6001: unknown option 'nme'\n  hint: did you mean 'name'?"
    for register in (mill.function, mill.aggregate, ms.function, ms.aggregate):
        assert refused(lambda register=register: register(len, nme="x")) == wanted  # type: ignore[misc]
        assert refused(lambda register=register: register(nme="x")) == wanted  # type: ignore[misc]


class Column:
    """A column of Spark, as far as `insert` looks at it: it has any attribute, and no values."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __iter__(self) -> Any:
        raise TypeError("Column is not iterable")

    def __bool__(self) -> bool:
        raise ValueError("Cannot convert column into bool")


def test_a_column_is_no_rows(mill: ms.Connection) -> None:
    assert refused(lambda: mill.insert("s", Column())).startswith("M5013: expected rows for 's', found Column\n")


def test_a_query_that_is_started_again_keeps_its_name(mill: ms.Connection) -> None:
    query = mill.sql("SELECT k FROM s")
    query.start(name="a").stop()
    assert query.start().name == "a"
    query.stop()
    mill.sql("SELECT k FROM s").start(name="a")
    assert query.start().name == "query_1"


CONNECT = [
    ({"stratgy": "dfs"}, "M6001: unknown option 'stratgy'\n  hint: did you mean 'strategy'?"),
    ({"chekpoint": "x"}, "M6001: unknown option 'chekpoint'\n  hint: did you mean 'checkpoint'?"),
    ({"lcoal": True}, "M6001: unknown option 'lcoal'\n  hint: did you mean 'local'?"),
    ({"shard": 3}, "M6001: unknown option 'shard'\n  hint: did you mean 'shards'?"),
    ({"shards": "many"}, "M6002: option 'shards' cannot be 'many'"),
    ({"shards": 0}, "M6002: option 'shards' cannot be 0"),
    ({"shards": 4097}, "M6002: option 'shards' cannot be 4097: input should be less than or equal to 4096"),
    ({"shards": True}, "M6002: option 'shards' cannot be True: it is a number, not a flag"),
    ({"heartbeat": float("inf")}, "M6002: option 'heartbeat' cannot be inf: input should be less than"),
    ({"heartbeat": 1e-300}, "M6002: option 'heartbeat' cannot be 1e-300: input should be greater than"),
    ({"heartbeat": float("nan")}, "M6002: option 'heartbeat' cannot be nan"),
    ({"page_rows": 10**30}, "M6002: option 'page_rows' cannot be 1000000000000000000000000000000"),
    ({"join_memory": 10**400}, f"M6002: option 'join_memory' cannot be 1{'0' * 79}…: input should be less than"),
    ({"propagation": f"count:{10**30}"}, "M6002: option 'propagation' cannot be 'count:1000"),
    ({"log": "no/such/folder/spark.log"}, "M6063: cannot write the log '"),
    ({"log": True}, "M6002: log cannot be True"),
    ({"checkpoint": 5}, "M6002: checkpoint cannot be 5"),
    ({"checkpoint": "s3://bucket/x"}, "M6002: checkpoint cannot be 's3://bucket/x': it is not a path"),
    ({"checkpoint": "/proc/none"}, "M6062: cannot write to the checkpoint '/proc/none'"),
    ({"checkpoint": __file__}, f"M6062: the checkpoint '{__file__}' is a file"),
    ({"checkpoint": f"{__file__}/below"}, "M6062: cannot write to the checkpoint"),
    ({"spark": "local[2]"}, "M6052: 'local[2]' is not a Spark session"),
    ({"local": True, "settings": {"spark.x": "1"}}, "M6052: local with settings"),
    ({"local": True, "log": "spark.log"}, "M6052: local with a log"),
    ({"local": "no"}, "M6002: local cannot be 'no'"),
    ({"local": True, "resume": "no"}, "M6002: resume cannot be 'no'"),
    ({"local": True, "shards": True}, "M6002: option 'shards' cannot be True"),
    ({"local": True, "checkpoint": "a\0b"}, "M6002: checkpoint cannot be 'a\\x00b'"),
    ({"log_format": "xml"}, "M6002: the format of a log cannot be 'xml'"),
]


@pytest.mark.parametrize(("given", "said"), CONNECT, ids=[str(given) for given, _ in CONNECT])
def test_connect(given: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: Any) -> None:
        raise AssertionError("no session may be started")

    monkeypatch.setattr("pyspark.sql.SparkSession.Builder.getOrCreate", start)
    monkeypatch.setattr("millstream.control.connecting.current_session", lambda: None)  # that of other tests
    assert refused(lambda: ms.connect(**given)).startswith(said)


def test_an_option_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLSTREAM_SHARDS", "many")
    assert "set by MILLSTREAM_SHARDS or by keyword" in refused(lambda: ms.connect(local=True))


def test_an_infinite_option_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MILLSTREAM_HEARTBEAT", "inf")
    assert refused(lambda: ms.connect(local=True)).startswith("M6002: option 'heartbeat' cannot be 'inf'")


@pytest.mark.parametrize(
    "setting", ["heartbeat = 1e400", "shards = 1e9", "page_rows = 1e30", "purge_threshold = 1e400"]
)
def test_a_number_that_is_too_large(mill: ms.Connection, setting: str) -> None:
    assert refused(lambda: mill.sql(f"SET {setting}")).startswith(f"M6002: option '{setting.split()[0]}' cannot be ")


def test_a_table_is_no_stream_of_prods(mill: ms.Connection) -> None:
    mill.sql("CREATE TABLE tab (k BIGINT)")
    query = "SELECT k, COUNT(*) AS n FROM s [RANGE 5] GROUP BY k EMIT EARLY PRODDED BY tab"
    assert refused(lambda: mill.sql(query)).startswith("M2108: PRODDED BY: 'tab' is a table, not a stream (line 1")


def test_the_log_may_be_a_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs: list[Any] = []

    def start(_master: str, _settings: Any, log: Any, _format: str) -> None:
        logs.append(log)
        raise KeyboardInterrupt

    monkeypatch.setattr("millstream.control.connecting.start_session", start)
    monkeypatch.setattr("millstream.control.connecting.current_session", lambda: None)
    with pytest.raises(KeyboardInterrupt):
        ms.connect(log=str(tmp_path / "spark.log"))
    assert logs == [tmp_path / "spark.log"]


def test_statements_and_data(mill: ms.Connection) -> None:
    for text in ("", " ; ;", "-- a remark"):
        assert refused(lambda text=text: mill.sql(text)).startswith("M1010: the text has no statement")  # type: ignore[misc]
    args: Any = {"k": 1}
    for call in (lambda: mill.sql("SELECT 1", args), lambda: mill.sql("SELECT 1", args=args)):
        assert refused(call).startswith("M1090: parameters of a statement: not available")
    assert "found NoneType\n  hint: sql('SELECT …')" in refused(lambda: mill.sql(None))  # type: ignore[arg-type]
    wrong: Any = ["[*, < 5]"]
    assert refused(lambda: mill.punctuate("s", wrong)).startswith("M4009: expected a pattern as text, found list\n")
    assert "M2002: expected the name of a stream" in refused(lambda: mill.insert(None, []))  # type: ignore[arg-type]
    assert "M2092: unknown query 'None'" in refused(lambda: mill.query(None))  # type: ignore[arg-type]


def test_unknown_names(mill: ms.Connection) -> None:
    mill.sql("CREATE TABLE rates (k BIGINT); CREATE QUERY hot AS SELECT k FROM s")
    for call in (lambda: mill.insert("nope", []), lambda: mill.punctuate("nope", "[1]")):
        assert refused(call) == "M2002: unknown stream 'nope'\n  hint: known: rates, s"
    assert refused(lambda: mill.insert("rate", [])) == "M2002: unknown stream 'rate'\n  hint: did you mean 'rates'?"
    assert refused(lambda: mill.query("zz")) == "M2092: unknown query 'zz'\n  hint: known: hot"
    with ms.connect(local=True) as empty:
        first = "M2002: unknown stream 'nope'\n  hint: there is no stream yet: CREATE STREAM …"
        assert refused(lambda: empty.insert("nope", [])) == first
        assert "hint: there is no stream yet" in refused(lambda: empty.sql("SELECT k FROM nope"))
        none = "M2092: unknown query 'zz'\n  hint: there is no query yet: CREATE QUERY … AS SELECT …"
        assert refused(lambda: empty.query("zz")) == none


@pytest.mark.parametrize("rows", [5, None, 2.5, True, b"x", "1,2", object(), int, print])
def test_what_is_not_rows(mill: ms.Connection, rows: Any) -> None:
    mill.sql("CREATE TABLE t (k BIGINT)")
    for name in ("s", "t"):
        said = f"M5013: expected rows for '{name}', found {type(rows).__name__}\n  hint: rows are tuples, dicts, "
        assert refused(lambda name=name: mill.insert(name, rows)).startswith(said)  # type: ignore[misc]


def test_columns_are_not_rows(mill: ms.Connection) -> None:
    said = "M5013: expected rows for 's', found a dict of columns\n  hint: mill.insert('s', polars.DataFrame(…))"
    assert refused(lambda: mill.insert("s", {"k": [1, 2], "ts": [1, 2]})).startswith(said)
    mill.insert("s", {"k": 1, "ts": 1})  # one row


@pytest.mark.parametrize("option", ["into", "outputMode", "path", "mode"])
def test_an_option_without_a_sink(mill: ms.Connection, option: str) -> None:
    said = refused(lambda: mill.sql("SELECT k FROM s").start(**{option: "final"}))
    assert said.startswith(f"M6001: option '{option}' needs a sink\n  hint: start('parquet', path='…')")
    assert not mill.queries


async def late(batch: int, rows: Any) -> None: ...


class Unsuited:
    def open(self, query: str, schema: Any) -> None: ...
    def write(self, batch: int, rows: Any) -> None: ...
    def close(self) -> None: ...


@pytest.mark.parametrize(
    ("sink", "said"),
    [
        (
            lambda rows: None,
            "M6003: a sink cannot be a function of (rows)\n  hint: it is called as function(batch, rows)",
        ),
        (lambda: None, "M6003: a sink cannot be a function of ()"),
        (lambda a, b, c: None, "M6003: a sink cannot be a function of (a, b, c)"),
        (late, "M6003: a sink cannot be a coroutine or a generator"),
        (Unsuited(), "M6003: write of a sink cannot be a function of (batch: 'int', rows: 'Any')"),
        (5, "M6003: 5 is not a sink"),
    ],
)
def test_sinks_that_could_never_take_a_batch(mill: ms.Connection, sink: Any, said: str) -> None:
    assert refused(lambda: mill.sql("SELECT k FROM s").start(sink)).startswith(said)
    assert not mill.queries


def test_functions_that_fit_as_sinks(mill: ms.Connection) -> None:
    class Bound:
        def take(self, batch: int, rows: Any, more: int = 0) -> None: ...

    for sink in (print, lambda *_: None, Bound().take, lambda batch, rows, more=1: None):
        mill.sql("SELECT k FROM s").start(sink)


@pytest.mark.parametrize("timeout", ["x", float("nan"), True, [], "60"])
def test_how_long_to_wait(mill: ms.Connection, timeout: Any) -> None:
    query = mill.sql("SELECT k FROM s").start()
    for call in (query.await_end, mill.await_end):
        assert refused(lambda call=call: call(timeout)).startswith(f"M6002: timeout cannot be {timeout!r}\n  hint: ")  # type: ignore[misc]


def test_callbacks_names_and_statements(mill: ms.Connection) -> None:
    wrong: Any = 5
    assert refused(lambda: mill.on_progress(wrong)).startswith("M6002: a callback cannot be 5")
    assert refused(lambda: mill.on_progress(lambda: None)).startswith("M6002: a callback cannot be a function of ()")
    assert refused(lambda: mill.at_close(wrong)).startswith("M6002: an action at the end cannot be 5")
    assert refused(lambda: mill.await_end(0, wrong)).startswith("M6002: poll cannot be 5")
    assert refused(lambda: mill.stream(wrong, wrong)).startswith("M2002: expected the name of a stream, found int")
    assert refused(lambda: mill.run(wrong)).startswith("M1010: expected a parsed statement, found int")
    assert refused(lambda: mill.sql("SELECT k FROM s").start(start=wrong)).startswith("M6002: start cannot be '5'")


def test_a_stream_of_a_data_frame(mill: ms.Connection) -> None:
    class Frame:
        isStreaming = True
        columns = ("k", "ts")

        class schema:
            fields = ()

    frame: Any = Frame()
    assert "M2100: 'd' is not a streaming DataFrame" in refused(lambda: mill.stream("d", None))  # type: ignore[arg-type]
    needs = "M2021: the watermark of 'd' needs a time column\n  hint: order_by='ts'"
    assert refused(lambda: mill.stream("d", frame, watermark="5 seconds")) == needs
    assert "M2021: the watermark of 'd' is a text" in refused(lambda: mill.stream("d", frame, watermark=5))  # type: ignore[arg-type]
    assert "unknown column 'id'" in refused(lambda: mill.stream("d", frame, primary_key="id"))


def test_queries(mill: ms.Connection) -> None:
    query = mill.sql("SELECT k FROM s")
    stages = "M6002: stage cannot be 'bogus': one of logical, optimized, physical, contract"
    assert refused(lambda: query.explain("bogus")).startswith(stages)
    for option in ("mod", "on_eror", "spool"):
        assert "M6001: sink 'memory' has no option" in refused(
            lambda option=option: query.start("memory", **{option: 1})
        )  # type: ignore[misc]
    assert "did you mean 'mode'?" in refused(lambda: query.start("parquet", path="x", mod="all"))
    assert "M6001: sink 'console' has no option 'run'" in refused(lambda: query.start("console", run="x"))
    assert "M2092: the name of a query is a text" in refused(lambda: query.start(name=5))  # type: ignore[arg-type]
    query.start("none")
    assert refused(query.take).startswith("M2105: the results of query 'query_1' go to none\n  hint: ")
    assert refused(query.punctuations).startswith("M2105")
    mill.insert("s", [(1, 1)])
    kept = mill.sql("SELECT k FROM s INTO memory")
    mill.insert("s", [(2, 2)])
    assert kept.take().rows() == [(2,)]


def test_a_closed_connection() -> None:
    mill = ms.connect(local=True)
    mill.sql("CREATE STREAM s (k BIGINT)")
    waiting, running = mill.sql("SELECT k FROM s"), mill.sql("SELECT k FROM s").start()
    mill.close()
    calls = [waiting.start, running.start, running.take, running.stop, waiting.explain, waiting.to_df, mill.await_end]
    for call in [*calls, lambda: mill.sql("SHOW STREAMS"), lambda: mill.on_progress(lambda _: None)]:
        assert refused(call).startswith("M6059: the connection is closed")  # type: ignore[arg-type]
    mill.close()


def test_functions_of_the_program_are_suggested() -> None:
    with ms.connect(local=True) as mill:

        @mill.function
        def doubled(x: int) -> int:
            return 2 * x

        mill.sql("CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts")
        with pytest.raises(MillstreamError, match="unknown function 'dubled'") as caught:
            mill.sql("SELECT dubled(k) AS d FROM s WHERE k > 1")
        assert caught.value.hint == "did you mean 'doubled'?" and caught.value.column == 8


def test_every_row_is_written_out(mill: ms.Connection) -> None:
    query = mill.sql("CREATE QUERY q AS SELECT window_end, k, COUNT(*) AS n, finality FROM s [RANGE 10] GROUP BY k")
    for sign in "~?!":
        said = f"M4011: {sign}[] restricts no column\n  hint: write {sign}[*] for every row"
        assert refused(lambda sign=sign: query.feedback(f"{sign}[]")) == said  # type: ignore[misc]
    mill.insert("s", [(1, 5)])
    query.prod("{}")  # all windows
    query.feedback("![*]")
    query.feedback("?[*]")
    mill.insert("s", [(1, 11)])
    assert [row[3] for row in query.take().rows()] == ["early", "early", "final"]
    query.feedback("~[*]")
    mill.insert("s", [(1, 21)])
    assert not query.take().rows()


@pytest.mark.parametrize("given", [None, 5, {"k": 1}, ["{}"]])
def test_patterns_that_are_no_text(mill: ms.Connection, given: Any) -> None:
    query = mill.sql("CREATE QUERY q AS SELECT window_end, k, COUNT(*) AS n, finality FROM s [RANGE 10] GROUP BY k")
    assert refused(lambda: query.feedback(given)).startswith("M6002: feedback cannot be ")
    assert refused(lambda: query.prod(given)).startswith("M6002: a prod cannot be ")
    mill.insert("s", [(1, 5), (1, 11)])
    assert query.take().rows() == [(10, 1, 1, "final")]


@pytest.mark.parametrize("given", ["{n = 3}", "{finality = 'early'}", "{k = 1, late > 5}"])
def test_a_prod_that_has_no_answer(mill: ms.Connection, given: str, caplog: pytest.LogCaptureFixture) -> None:
    columns = "window_end, k, COUNT(*) AS n, window_end + 5 AS late, finality"
    query = mill.sql(f"CREATE QUERY q AS SELECT {columns} FROM s [RANGE 10] GROUP BY k")
    mill.insert("s", [(1, 5)])
    for _ in range(2):
        query.prod(given)
    query.feedback(f"![{given[1:-1]}]")
    column = given[1:-1].rpartition(", ")[2].split()[0]
    said = f"M4018: a prod of query 'q' has no answer: column '{column}' is neither a window nor a group\n  hint: "
    assert [record.message.startswith(said) for record in caplog.records] == [True]
    assert not query.take().rows()
    query.prod("{window_end <= 10, k = 1}")
    assert [row[-1] for row in query.take().rows()] == ["early"] and len(caplog.records) == 1


def test_a_checkpoint_among_other_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "bids.csv").write_text("k,ts\n")
    for _ in range(2):
        ms.connect(local=True, checkpoint=tmp_path).close()
    (said,) = (record.message for record in caplog.records)
    assert said.startswith(f"M6065: the folder '{tmp_path}' of the checkpoint has files that are not a checkpoint's, ")
    ms.connect(local=True, checkpoint=tmp_path / "new").close()
    ms.connect(local=True, checkpoint=tmp_path / "new").close()
    assert len(caplog.records) == 1


def test_a_select_before_the_last_statement_is_named(mill: ms.Connection, caplog: pytest.LogCaptureFixture) -> None:
    mill.sql("SHOW STREAMS; SELECT k FROM s").start()
    assert "M2113" not in caplog.text
    mill.sql("SHOW STREAMS;\nSELECT k FROM s; SELECT ts FROM s")
    assert "M2113: a SELECT that does not run: sql returns the query of the last statement alone (line 2" in caplog.text
