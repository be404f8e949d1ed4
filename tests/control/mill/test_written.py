"""Tables that streams write, from the side of the driver: Python, files of statements, recovery, failures, metrics."""

from __future__ import annotations

import io
from contextlib import nullcontext
from pathlib import Path

import polars as pl
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from rich.console import Console

import millstream as ms
from millstream.config import Options
from millstream.control.job.jobs import Jobs
from millstream.control.mill import LocalMill
from millstream.control.observe.metrics import MillCollector
from millstream.control.rehearsal import rehearse
from millstream.control.runner import run_file
from millstream.errors import BindError, MillstreamError, PlanError
from millstream.lang import parse
from millstream.physical.wire.records import Remember
from millstream.runtime.table.written_table import WrittenTable

SCRIPT = """
SET contracts = 'off';
CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts;
CREATE STREAM r (k BIGINT, ts BIGINT) ORDER BY ts;
CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT);
CREATE QUERY w AS INSERT INTO t SELECT k, v FROM s;
CREATE QUERY q AS SELECT r.ts, 10 / t.v AS share, t.v + 9223372036854775800 AS sum FROM r JOIN t ON r.k = t.k
"""


def test_select_returns_a_frame_in_python() -> None:
    with ms.connect(local=True, contracts="off") as mill:
        mill.sql("CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts; CREATE TABLE t (k BIGINT, v BIGINT)")
        writer = mill.sql("INSERT INTO t SELECT k, v FROM s")
        assert writer.name == "insert_t_1" and writer.running
        mill.insert("s", [(1, 10, 1), (2, 20, 2)])
        mill.insert("t", [(3, 30)])
        rows = mill.sql("SELECT k, SUM(v) AS total FROM t GROUP BY k ORDER BY k DESC")
        assert isinstance(rows, pl.DataFrame)
        assert rows.rows() == [(3, 30), (2, 20), (1, 10)] and rows.columns == ["k", "total"]
        assert mill.sql("DELETE FROM t WHERE k < 3") is None
        assert mill.sql("SELECT k FROM t").rows() == [(3,)]  # type: ignore[attr-defined]
        writer.stop()
        assert mill.sql("SELECT COUNT(*) FROM t").rows() == [(1,)]  # type: ignore[attr-defined]


def test_a_table_is_kept_in_a_checkpoint(tmp_path: Path) -> None:
    mill = LocalMill(checkpoint=tmp_path)
    mill.execute(SCRIPT)
    mill.execute("CREATE TABLE static (k BIGINT); INSERT INTO static VALUES (1), (2)")
    mill.insert("s", [(1, 10, 1), (1, 11, 2), (2, 5, 3)])
    mill.batch()
    mill.execute("INSERT INTO t VALUES (7, 70)")
    mill.execute("CREATE VIEW v AS SELECT t.k FROM t JOIN static ON t.k = static.k")
    mill.close()
    mill = LocalMill(checkpoint=tmp_path)
    assert mill.execute("SELECT k, v FROM t ORDER BY k") == "1 | 10\n2 | 5\n7 | 70"
    assert mill.execute("SELECT k FROM v ORDER BY k") == "1\n2"
    assert mill.counts("t") == {"accepted": 3, "late": 0, "bad": 1}
    mill.execute("DROP QUERY w; DROP QUERY q; DROP VIEW v; DROP TABLE t")
    mill.close()
    mill = LocalMill(checkpoint=tmp_path)
    assert mill.execute("SHOW TABLES") == "static (k BIGINT): 2 rows"
    assert not mill.placements.of
    mill.close()


def test_a_reader_that_fails_leaves_the_table_alone() -> None:
    mill = LocalMill(Options.read(contracts="off"))
    mill.execute(SCRIPT)
    mill.insert("s", [(1, 1, 1), (2, 100, 2)])
    mill.insert("r", [(1, 1), (2, 2)])
    mill.insert("s", [(3, 3, 9)])
    mill.batch()
    mill.sync()
    assert mill.queries["q"].failure is not None
    assert mill.execute("SELECT k, v FROM t ORDER BY k") == "1 | 1\n2 | 100\n3 | 3"
    mill.insert("s", [(4, 4, 10)])
    mill.batch()
    assert mill.execute("SELECT COUNT(*) FROM t") == "4"


def test_a_table_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    mill = LocalMill(Options.read(contracts="off"))
    mill.execute(SCRIPT)
    mill.execute("CREATE QUERY other AS SELECT k FROM s")

    def broken(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(WrittenTable, "_run", broken)
    mill.insert("s", [(1, 1, 1)])
    mill.batch()
    mill.sync()
    assert {name for name, query in mill.queries.items() if query.failure} == {"w", "q"}
    with pytest.raises(MillstreamError, match="M2126: table 't' has failed"):
        mill.execute("SELECT k FROM t")


def test_statements_that_ran_once_do_not_run_again(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("k,v,ts\n1,10,1\n2,20,2\n")
    text = f"""
        SET contracts = 'off';
        CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts
            WITH (connector = 'csv', path = '{tmp_path}/s.csv', once = true);
        CREATE TABLE t (k BIGINT, v BIGINT);
        INSERT INTO t VALUES (0, 0);
        INSERT INTO t SELECT k, v FROM s;
        SELECT k, v FROM t ORDER BY k
    """
    for _ in range(2):
        out = io.StringIO()
        run_file(text, Console(file=out, width=80), local=True, checkpoint=tmp_path / "checkpoint", seconds=20)
        assert "     0 |      0\n     1 |     10\n     2 |     20\n" in out.getvalue()


class Death(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("writer", ["", "INSERT INTO t SELECT k, v FROM s;"])
def test_a_statement_that_ran_before_the_driver_ended_does_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: str
) -> None:
    """With a writer the table is a part of a job, without one the driver holds it."""
    (tmp_path / "s.csv").write_text("k,v,ts\n1,10,1\n")
    options = f"connector = 'csv', path = '{tmp_path}/s.csv', once = true"
    text = f"""
        SET contracts = 'off';
        CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts WITH ({options});
        CREATE TABLE t (k BIGINT, v BIGINT);
        {writer}
        CREATE QUERY q AS SELECT k FROM s INTO none;
        INSERT INTO t VALUES (7, 0);
        INSERT INTO t VALUES (7, 0);
        SELECT k, v FROM t WHERE k = 7
    """

    note, out = Jobs.remember, io.StringIO()

    def last(jobs: Jobs, noted: Remember) -> None:
        """Note, and end with the note of the first INSERT: after it, or before it if a job has the rows by then."""
        ends = noted.kind in ("table", "once") and jobs.folder is not None
        if not ends or not writer:
            note(jobs, noted)
        if ends:
            raise Death

    for remember in (last, note):
        monkeypatch.setattr(Jobs, "remember", remember)
        with nullcontext() if remember is note else pytest.raises(Death):
            run_file(text, Console(file=out, width=80), local=True, checkpoint=tmp_path / "checkpoint", seconds=20)
    assert out.getvalue().count("     7 |      0\n") == 2


def test_metrics_and_progress() -> None:
    mill = LocalMill(Options.read(contracts="off"))
    mill.execute(SCRIPT)
    mill.insert("s", [(1, 1, 1), (1, 1, 2)])
    mill.batch()
    mill.report_all()
    registry = CollectorRegistry()
    registry.register(MillCollector(mill))
    text = generate_latest(registry).decode()
    assert 'millstream_table_rows{table="t"} 1.0' in text
    assert 'millstream_table_rows_bad_total{table="t"} 1.0' in text
    assert mill.execute("SHOW TABLES") == (
        "t (k BIGINT, v BIGINT): 1 row, 1 bad (the last: the table has its key (k)), written by streams"
    )
    assert mill.execute("SHOW QUERIES").startswith("w: writes t\n")
    assert {n.kind: n.tuples_in for n in mill.statistics("w")[0].values()}["WrittenTable"] == 2


def test_the_number_of_shards_stays_while_a_table_is_held() -> None:
    mill = LocalMill(Options.read(contracts="off"))
    mill.execute(SCRIPT)
    mill.execute("DROP QUERY w; DROP QUERY q")
    with pytest.raises(MillstreamError, match="M6004"):
        mill.execute("SET shards = 3")


def test_a_select_over_tables_reports_values_that_do_not_fit() -> None:
    mill = LocalMill()
    mill.execute(
        "CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT); INSERT INTO t VALUES (1, 9223372036854775807), (2, 5)"
    )
    with pytest.raises(PlanError, match=r"M3083: .* does not fit BIGINT"):
        mill.execute("SELECT k, v * 2 AS d FROM t")
    mill.execute("CREATE TABLE z (at TIMESTAMP); INSERT INTO z VALUES (TIMESTAMP '0001-01-01 00:00:00')")
    with pytest.raises(PlanError) as caught:
        mill.execute("SELECT at - INTERVAL '90' MINUTE FROM z")
    length = "INTERVAL '5400' SECOND"
    values = f"TIMESTAMP '0001-01-01 00:00:00' - {length}"
    assert caught.value.message == f"(z.at - {length}) does not fit TIMESTAMP: {values}"
    with pytest.raises(BindError, match="M3084: SELECT DISTINCT"):
        mill.execute("SELECT DISTINCT v FROM t ORDER BY k")
    assert mill.execute("SELECT DISTINCT v FROM t ORDER BY v") == "5\n9223372036854775807"


def test_a_file_with_a_select_over_tables_is_tried_before_spark_starts() -> None:
    text = "CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT); INSERT INTO t VALUES (1, 2); SELECT k, v FROM t ORDER BY k"
    rehearse(parse(text), None, {}, lambda mill: [])
    with pytest.raises(BindError, match="unknown column 'w'"):
        rehearse(parse(text.replace("k, v FROM", "w FROM")), None, {}, lambda mill: [])


def test_a_row_that_does_not_fit_keeps_no_other_from_an_update(caplog: pytest.LogCaptureFixture) -> None:
    with ms.connect(local=True, contracts="off") as mill:
        mill.sql("CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts")
        mill.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v INT NOT NULL, n INT)")
        mill.sql("INSERT INTO t VALUES (1, 10, 0), (2, 2000000000, 0), (3, 30, NULL), (4, 40, 0)")
        writer = mill.sql("UPDATE t SET v = t.v + s.v + t.n FROM s WHERE t.k <= s.k")
        mill.insert("s", [(3, 1000000000, 1)])
        rows = mill.sql("SELECT k, v FROM t ORDER BY k").rows()  # type: ignore[attr-defined]
        assert rows == [(1, 1000000010), (2, 2000000000), (3, 30), (4, 40)]
        assert mill.mill.counts("t")["bad"] == 2
        assert "M5070: table 't' has refused 2 rows that do not fit" in caplog.text
        assert "column 'v' is NULL" in caplog.text
        writer.stop()
        mill.sql("INSERT INTO t VALUES (1, 5, 5), (8, 8, 8), (2, 0, 0)")  # no stream writes it any more
        assert "M5070: table 't' has refused 4 rows that do not fit" in caplog.text
        assert "the table has its key (k)" in caplog.text


def test_rows_that_tables_refuse_are_in_the_summary(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("k,ts\n1,1\n1,2\n2,3\n")
    out = io.StringIO()
    text = f"""CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts
            WITH (connector = 'csv', path = '{tmp_path}/s.csv', once = true);
        CREATE TABLE t (k BIGINT PRIMARY KEY); INSERT INTO t SELECT k FROM s; INSERT INTO t VALUES (9)"""
    run_file(text, Console(file=out, width=80), local=True, checkpoint=tmp_path / "kept", seconds=20)
    assert "3 rows in, 0 rows out, 1 refused by tables" in out.getvalue()


def test_a_select_over_tables_groups_by_place() -> None:
    mill = LocalMill()
    mill.execute("CREATE TABLE t (k BIGINT, v BIGINT); INSERT INTO t VALUES (1, 1), (2, 2), (1, 3)")
    assert mill.execute("SELECT k + 1, SUM(v) FROM t GROUP BY 1 ORDER BY 1") == "2 | 4\n3 | 2"
