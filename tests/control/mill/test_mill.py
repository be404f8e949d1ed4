"""The in-process host: statements, queries that start and stop, shared operators, checkpoints."""

import polars as pl
import pytest

import millstream as ms
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import equal
from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.errors import BindError, MillstreamError, OptionError, PatternError

STREAM = "CREATE STREAM s (k BIGINT, v DOUBLE, ts BIGINT) ORDER BY ts PUNCTUATED ON (ts +)"


@pytest.fixture
def mill() -> LocalMill:
    made = LocalMill()
    made.execute(STREAM)
    return made


def test_rows_in_every_form(mill: LocalMill) -> None:
    mill.add_query("q", "SELECT k, v FROM s")
    mill.insert("s", [(1, 1.0, 1)])
    mill.insert("s", [{"k": 2, "v": 2.0, "ts": 2}])
    mill.insert("s", pl.DataFrame({"ts": [3], "k": [3], "v": [3.0]}))
    mill.insert("s", pl.DataFrame({"ts": [4], "k": [4], "v": [4.0]}).to_arrow())
    mill.batch()
    assert mill.take_rows("q").rows() == [(1, 1.0), (2, 2.0), (3, 3.0), (4, 4.0)]


def test_a_bare_select_is_a_query(mill: LocalMill) -> None:
    mill.execute("SELECT k FROM s")
    mill.insert("s", [(1, 1.0, 1)])
    mill.batch()
    assert mill.take_rows("query_1").rows() == [(1,)]
    assert "query_1: 1 row out" in mill.execute("SHOW QUERIES")
    assert "s (k BIGINT, v DOUBLE, ts BIGINT): 1 accepted, 0 late, 0 bad" in mill.execute("SHOW STREAMS")


def test_equal_prefixes_are_one_operator(mill: LocalMill) -> None:
    mill.add_query("a", "SELECT window_end, COUNT(*) AS n FROM s [RANGE 10] WHERE v > 1 GROUP BY k")
    before = len(mill.hosts("a")[0].graph.operators)
    mill.add_query("b", "SELECT window_end, COUNT(*) AS n FROM s [RANGE 10] WHERE v > 1 GROUP BY k")
    assert len(mill.hosts("a")[0].graph.operators) == before
    mill.add_query("c", "SELECT window_end, COUNT(*) AS n FROM s [RANGE 10] WHERE v > 1 GROUP BY k HAVING COUNT(*) > 1")
    graph = mill.hosts("a")[0].graph
    grown = len(graph.operators)
    assert before < grown <= before + 2
    mill.execute("DROP QUERY c; DROP QUERY a")
    assert len(graph.operators) == before
    mill.execute("DROP QUERY b")
    assert not graph.operators and not graph.sources


def test_dropping_one_reader_leaves_the_other(mill: LocalMill) -> None:
    mill.add_query("counted", "SELECT COUNT(*) AS n FROM s [RANGE 10] WHERE v > 1")
    mill.add_query("listed", "SELECT k FROM s WHERE v > 1")
    mill.execute("DROP QUERY counted")
    mill.add_query("again", "SELECT COUNT(*) AS n FROM s [RANGE 10] WHERE v > 1")
    mill.insert("s", [(1, 5.0, 1)])
    mill.punctuate("s", "[ts < 10]")
    mill.batch()
    assert mill.take_rows("listed").rows() == [(1,)]
    assert mill.take_rows("again").rows() == [(1,)]


def half_way() -> LocalMill:
    mill = LocalMill(Options(shards=2, strategy="batch:3"))
    mill.execute(STREAM)
    mill.execute("CREATE TABLE t (id BIGINT, name VARCHAR)")
    mill.insert("t", [(1, "one")])
    mill.batch()
    mill.execute("CREATE STREAM big AS SELECT k, v, ts FROM s WHERE v > 1")
    mill.add_query("q", "SELECT b.k, t.name FROM big b JOIN t ON b.k = t.id")
    mill.add_query("gone", "SELECT k FROM s")
    mill.add_query("w", "SELECT window_end, k, SUM(v) AS total FROM s [RANGE 10 SLIDE 5] GROUP BY k")
    mill.execute("DROP QUERY gone")
    mill.advance(1_000_000)
    mill.insert("s", [(1, 5.0, 1), (2, 6.0, 7)])
    return mill


def test_a_checkpoint_holds_everything() -> None:
    mill, copy = half_way(), half_way().restarted()
    assert copy.clock.now() == 1_000_000 and copy.options.strategy == "batch:3"
    for one in (mill, copy):
        one.batch()
        one.take_rows("q")
        one.insert("s", [(1, 2.0, 8)])
        one.punctuate("s", "[ts < 100]")
        one.batch()
    assert copy.take_rows("q").rows() == mill.take_rows("q").rows() == [(1, "one")]
    assert sorted(copy.take_rows("w").rows()) == sorted(mill.take_rows("w").rows())
    assert copy.counts("s") == mill.counts("s") == {"accepted": 3, "late": 0, "bad": 0}


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda m: m.insert("nosuch", [(1,)]), BindError),
        (lambda m: m.punctuate("s", "[ts <"), PatternError),
        (lambda m: m.punctuate("s", "[k = abc]"), PatternError),
        (lambda m: m.take_rows("nosuch"), BindError),
        (lambda m: m.execute("CREATE QUERY q AS SELECT k FROM s INTO kafka"), OptionError),
        (lambda m: m.execute("DROP STREAM nosuch"), BindError),
        (lambda m: m.execute("SET page_rows = 0"), OptionError),
        (
            lambda m: m.execute("CREATE TABLE t (a BIGINT) WITH (connector = 'csv', path = 'no/such.csv')"),
            MillstreamError,
        ),
        (
            lambda m: m.execute("CREATE TABLE t (a BIGINT) WITH (connector = 'carrier pigeon', path = 'x')"),
            MillstreamError,
        ),
    ],
)
def test_mistakes_raise_errors_with_codes(mill: LocalMill, act, error) -> None:
    with pytest.raises(error) as caught:
        act(mill)
    assert caught.value.code.startswith("M")


def test_tables_are_read_from_files(tmp_path, mill: LocalMill) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,name\n1,one\n2,two\n")
    mill.execute(f"CREATE TABLE t (id BIGINT, name VARCHAR) WITH (connector = 'csv', path = '{path}')")
    mill.add_query("q", "SELECT t.name FROM s JOIN t ON s.k = t.id")
    mill.insert("s", [(2, 0.0, 1)])
    mill.batch()
    assert mill.take_rows("q").rows() == [("two",)]


def test_the_strategy_is_switched_while_queries_run(mill: LocalMill) -> None:
    mill.add_query("q", "SELECT window_end, COUNT(*) AS n FROM s [RANGE 10] WHERE v > 0 GROUP BY k")
    graph = mill.hosts("q")[0].graph
    assert all(row.transition.startswith("KB") for row in graph.table())
    mill.execute("SET strategy = 'dfs'")
    assert all(row.transition.startswith("DFS") for row in graph.table())
    mill.execute("SET strategy = 'bfs'")
    assert all(row.transition.startswith("BFS") for row in graph.table())
    mill.execute("SET strategy = 'rr'")
    assert all(row.transition.startswith("RR") for row in graph.table())
    mill.execute("SET strategy = 'batch:5'")
    assert all(row.transition.startswith("KB") for row in graph.table())


def test_a_derived_stream_protects_what_it_reads(mill: LocalMill) -> None:
    mill.execute("CREATE STREAM d AS SELECT k, ts FROM s")
    mill.add_query("q", "SELECT k FROM d")
    with pytest.raises(BindError, match="read by query 'q'"):
        mill.execute("DROP STREAM d")
    with pytest.raises(BindError, match="read by stream 'd'"):
        mill.execute("DROP STREAM s")
    mill.restarted()
    mill.execute("DROP QUERY q; DROP STREAM d; DROP STREAM s")


def test_a_mistake_loses_no_input(mill: LocalMill) -> None:
    mill.add_query("q", "SELECT k FROM s")
    mill.insert("s", [(1, 1.0, 1)])
    with pytest.raises(PatternError):
        mill.punctuate("s", Pattern.of(nosuch=equal(1)))
    mill.batch()
    assert mill.take_rows("q").rows() == [(1,)]


def test_a_failed_table_leaves_its_name_free(mill: LocalMill) -> None:
    with pytest.raises(MillstreamError):
        mill.execute("CREATE TABLE t (a BIGINT) WITH (connector = 'csv', path = 'no/such.csv')")
    mill.execute("CREATE TABLE t (a BIGINT)")
    assert "t (a BIGINT): 0 rows" in mill.execute("SHOW TABLES")


def test_errors_in_scripts_have_a_position(mill: LocalMill) -> None:
    with pytest.raises(BindError) as caught:
        mill.execute("SELECT k FROM s;\n\n  DROP QUERY nosuch;")
    assert (caught.value.line, caught.value.column) == (3, 3)
    with pytest.raises(BindError) as caught:
        mill.execute("SELECT k FROM s;\nSELECT nosuch FROM s")
    assert (caught.value.line, caught.value.column) == (2, 8)


def test_only_punctuation_advances_time_where_tuples_arrive_in_any_order() -> None:
    for cut in (False, True):
        mill = LocalMill()
        mill.execute("CREATE STREAM s (ts BIGINT) ORDER BY ts MAX SKEW 2 PUNCTUATED ON (ts +)")
        mill.add_query("q", "SELECT COUNT(*) AS n FROM s [RANGE 100]")
        mill.insert("s", [(10,)])
        if cut:
            mill.batch()
        mill.insert("s", [(7,)])
        mill.batch()
        assert mill.counts("s")["late"] == 0


def test_a_query_into_memory_is_taken_like_one_without_a_sink() -> None:
    with ms.connect(local=True) as mill:
        mill.sql("CREATE STREAM s (k BIGINT)")
        queries = [
            mill.sql("CREATE QUERY x AS SELECT k FROM s INTO memory"),
            mill.sql("SELECT k FROM s").start("memory"),
        ]
        mill.insert("s", [(1,)])
        assert [query.take().rows() for query in queries] == [[(1,)], [(1,)]]


def test_a_query_that_was_stopped_is_not_one_of_its_name() -> None:
    with ms.connect(local=True) as mill:
        mill.sql("CREATE STREAM s (k BIGINT, v DOUBLE)")
        first = mill.sql("SELECT k FROM s").start(name="a")
        mill.query("a").stop()
        second = mill.sql("SELECT v FROM s").start(name="a")
        mill.insert("s", [(1, 7.0)])
        assert not first.running and first.name is None and second.take().rows() == [(7.0,)]
        for action in (first.take, first.stop, first.progress):
            with pytest.raises(BindError, match="M2098"):
                action()
        mill.sql("DROP QUERY a")
        assert not second.running and second.start().running
