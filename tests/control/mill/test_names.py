"""Names in quotes: what has one runs, restarts and is dropped like anything else; names that could be mistaken for
those that Millstream makes are refused."""

from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

import millstream as ms
from millstream.algebra.stream_id import MARKS
from millstream.control.job.jobs import _job_name
from millstream.control.mill import LocalMill
from millstream.errors import SqlSyntaxError
from millstream.lang.names import quoted

NAMES = ['a"b', "a'b", "a b", "a;b", "a\\b", "a`b", "-- a", "[red]", "{a}", "*", "from", "ü", "İ", "名", '"', "x" * 500]


@pytest.mark.parametrize("name", NAMES)
def test_any_name_in_quotes(tmp_path: Path, name: str) -> None:
    (tmp_path / "in").mkdir()
    pl.DataFrame({"k": range(6), "ts": range(6)}).write_parquet(tmp_path / "in" / "1.parquet")
    stream, fed = quoted(name), quoted(f"{name} fed")
    source = f"WITH (connector = 'parquet', path = '{tmp_path / 'in'}', once = true)"
    with ms.connect(local=True, checkpoint=tmp_path / "kept", shards=2) as mill:
        mill.sql(f"CREATE STREAM {stream} ({stream} BIGINT, k BIGINT, ts BIGINT) ORDER BY ts")
        mill.sql(f"DROP STREAM {stream}; CREATE STREAM {stream} (k BIGINT, ts BIGINT) ORDER BY ts {source}")
        mill.sql(f"CREATE STREAM {fed} (k BIGINT, ts BIGINT) ORDER BY ts")
        mill.sql(f"CREATE QUERY {stream} AS SELECT k, COUNT(*) AS n FROM {stream} [RANGE 2] GROUP BY k")
        mill.sql(f"CREATE QUERY {quoted(name + '2')} WITH (start = 'beginning') AS SELECT k FROM {stream}")
        mill.sql(f"SELECT k FROM {fed}").start(name=f"{name} fed")
        mill.insert(f"{name} fed", [(1, 1)])
        assert mill.await_end(30)
        assert [mill.query(f"{name}{end}").take().height for end in ("", "2", " fed")] == [6, 6, 1]
        assert mill.sql(f"EXPLAIN {stream}") and mill.sql("SHOW STREAMS") and mill.sql("SHOW QUERIES")
    with ms.connect(local=True, checkpoint=tmp_path / "kept") as mill:
        assert [query.name for query in mill.queries] == [f"{name}{end}".lower() for end in ("", "2", " fed")]
        assert len(mill.mill.catalog.streams) == 2
        for end in ("", "2", " fed"):
            mill.sql(f"DROP QUERY {quoted(name + end)}")
        mill.sql(f"DROP STREAM {stream}; DROP STREAM {fed}")
    with ms.connect(local=True, checkpoint=tmp_path / "kept") as mill:
        assert not mill.queries and not mill.mill.catalog.streams


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("statement", ["STREAM {} (k BIGINT)", "TABLE {} (k BIGINT)", "QUERY {} AS SELECT k FROM s"])
def test_marks_of_made_names_are_refused(mark: str, statement: str) -> None:
    mill = LocalMill()
    mill.execute("CREATE STREAM s (k BIGINT)")
    with pytest.raises(SqlSyntaxError, match=r"M1002: .*cannot be a name.* \(line 1, column 1\d\)"):
        mill.execute("CREATE " + statement.format(f'"s{mark}1"'))


@pytest.mark.parametrize("name", ["a.b", "a/0", "a\tb", "a^1"])
def test_names_given_in_python_are_checked_before_they_are_kept(tmp_path: Path, name: str) -> None:
    with ms.connect(local=True, checkpoint=tmp_path) as mill:
        mill.sql("CREATE STREAM s (k BIGINT)")
        with pytest.raises(SqlSyntaxError, match="M1002"):
            mill.sql("SELECT k FROM s").start(name=name)
    with closing(LocalMill(checkpoint=tmp_path)) as local, pytest.raises(SqlSyntaxError, match="M1002"):
        local.add_query(name, "SELECT k FROM s")
    with ms.connect(local=True, checkpoint=tmp_path) as mill:
        assert not mill.queries


def test_hints_have_names_as_statements_need_them() -> None:
    mill = LocalMill()
    mill.execute('CREATE STREAM "a ""s" (k BIGINT); CREATE QUERY "from" AS SELECT k FROM "a ""s"')
    with pytest.raises(ms.errors.BindError, match='hint: DROP QUERY "from" first'):
        mill.execute('DROP STREAM "a ""s"')


def test_jobs_of_different_streams_have_different_names() -> None:
    assert _job_name(frozenset({"a", "b"}), 1) != _job_name(frozenset({"a b"}), 1)
    assert _job_name(frozenset({"a\\", "b"}), 1) != _job_name(frozenset({"a\\ b"}), 1)
