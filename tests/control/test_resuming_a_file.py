"""`millstream run FILE --checkpoint`: the file is compared with the statements that the checkpoint was made with."""

import io
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

import millstream as ms
from millstream.control.mill import LocalMill
from millstream.control.runner import run_file
from millstream.errors import MillstreamError, OptionError

STREAM = """CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts
  WITH (connector = 'parquet', path = '{folder}/in', once = true);"""
LOW = "CREATE QUERY low AS SELECT k FROM s WHERE k < 3 INTO parquet WITH (path = '{folder}/low');"
LOWER = LOW.replace("low AS", "low WITH (start = 'beginning') AS").replace("< 3", "< 2")
HIGH = "CREATE QUERY high AS SELECT k FROM s WHERE k > 5 INTO none;"
SHOWN = "SELECT ts FROM s INTO none;"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    pl.DataFrame({"k": range(10), "ts": range(10)}).write_parquet(tmp_path / "in" / "1.parquet")
    return tmp_path


def run(folder: Path, *statements: str, **options: object) -> str:
    console = Console(file=io.StringIO(), width=200)
    text = "\n".join(statements).replace("{folder}", str(folder))
    run_file(text, console, local=True, checkpoint=folder / "kept", seconds=60, **options)  # type: ignore[arg-type]
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def refused(folder: Path, *statements: str) -> OptionError:
    with pytest.raises(OptionError) as caught:
        run(folder, *statements)
    assert caught.value.code == "M6071"
    return caught.value


def running(folder: Path) -> dict[str, str]:
    with ms.connect(local=True, checkpoint=folder / "kept") as mill:
        return {str(query.name): query.text for query in mill.queries}


def test_the_same_statements_resume_whatever_their_layout(folder: Path) -> None:
    run(folder, STREAM, LOW, SHOWN)
    assert "new:" not in run(folder, STREAM.replace("WITH", "with"), SHOWN.lower(), "-- low\n", LOW.replace("\n", " "))


def test_a_view_is_replaced_unless_something_reads_it(folder: Path) -> None:
    view = "CREATE OR REPLACE VIEW v AS SELECT k FROM s WHERE k < 4;"
    run(folder, STREAM, LOW, view.replace("OR REPLACE ", ""))
    assert "new:" not in run(folder, STREAM, LOW, view)
    assert "new: CREATE OR REPLACE VIEW v" in run(folder, STREAM, LOW, view.replace("4", "5"))
    assert "new: CREATE QUERY q" in run(
        folder, STREAM, LOW, view.replace("4", "5"), "CREATE QUERY q AS SELECT k FROM v;"
    )
    assert "view v" in str(refused(folder, STREAM, LOW, view, "CREATE QUERY q AS SELECT k FROM v;"))


def test_new_statements_start(folder: Path) -> None:
    run(folder, STREAM, LOW)
    said = run(folder, STREAM, HIGH, LOW, SHOWN, "SET page_rows = 10;")
    assert "resumed from" in said and ": low" in said
    assert "new: CREATE QUERY high" in said and "new: SELECT ts" in said and "new: CREATE QUERY low" not in said
    assert running(folder).keys() == {"low", "high", "query_1"}
    assert "new:" not in run(folder, STREAM, HIGH, LOW, SHOWN, "SET page_rows = 10;")


def test_a_changed_query_is_refused(folder: Path) -> None:
    run(folder, STREAM, HIGH)
    changed = HIGH.replace("> 5", "> 6")
    error = refused(folder, STREAM, changed)
    assert "query high has changed" in error.detail and "DROP QUERY high" in error.detail
    assert "--replace" in error.hint and "--keep" in error.hint
    assert "k > 5" in running(folder)["high"]


def test_a_query_that_is_gone_and_a_changed_stream_are_refused(folder: Path) -> None:
    run(folder, STREAM, HIGH, SHOWN)
    assert "query high is not in the file" in refused(folder, STREAM, SHOWN).detail
    assert "query query_1 is not in the file" in refused(folder, STREAM, HIGH).detail
    assert "stream s has changed" in refused(folder, STREAM.replace("BY ts", "BY ts MAX SKEW 2"), HIGH, SHOWN).detail


def test_an_unrelated_file_is_refused(folder: Path) -> None:
    run(folder, STREAM, HIGH)
    error = refused(folder, "CREATE STREAM other (k BIGINT);")
    assert "stream s is not in the file" in error.detail and "another --checkpoint" in error.hint
    assert running(folder).keys() == {"high"}


def test_keep_goes_on_with_the_old_statements(folder: Path) -> None:
    run(folder, STREAM, HIGH)
    said = run(folder, STREAM, HIGH.replace("> 5", "> 6"), LOW, differing="keep")
    assert "kept: query high has changed" in said and "new: CREATE QUERY low" in said
    assert "k > 5" in running(folder)["high"]


def test_replace_drops_what_differs_and_what_reads_it(folder: Path) -> None:
    run(folder, STREAM, HIGH, SHOWN, "SET page_rows = 10;")
    said = run(folder, STREAM.replace("BY ts", "BY ts MAX SKEW 2"), HIGH, differing="replace")
    assert "dropped: stream s" in said and "dropped: query high" in said and "10 rows in, 4 rows out" in said
    assert running(folder).keys() == {"high"}
    assert "new:" not in run(folder, STREAM.replace("BY ts", "BY ts MAX SKEW 2"), HIGH)


def test_replaced_results_are_not_mixed(folder: Path) -> None:
    run(folder, STREAM, LOW)
    with pytest.raises(
        OptionError, match=r"M6041: '.*/low' holds the results of query 'low' from before it was dropped or replaced"
    ):
        run(folder, STREAM, LOWER, differing="replace")
    assert "k < 3" in running(folder)["low"], "nothing was dropped"
    elsewhere = LOWER.replace("/low'", "/lower'")
    assert "dropped: query low" in run(folder, STREAM, elsewhere, differing="replace")
    assert pl.read_parquet(folder / "low" / "*.parquet")["k"].to_list() == [0, 1, 2]
    assert pl.read_parquet(folder / "lower" / "*.parquet")["k"].to_list() == [0, 1]


def test_replaced_results_can_be_overwritten(folder: Path) -> None:
    run(folder, STREAM, LOW)
    run(folder, STREAM, LOWER.replace("/low'", "/low', overwrite = true"), differing="replace")
    assert pl.read_parquet(folder / "low" / "*.parquet")["k"].to_list() == [0, 1]


def test_a_query_that_was_dropped_leaves_its_results(folder: Path) -> None:
    run(folder, STREAM, LOW)
    with pytest.raises(OptionError, match="M6041"):
        run(folder, STREAM, "DROP QUERY IF EXISTS low;", LOWER)
    with ms.connect(local=True, checkpoint=folder / "kept") as mill, pytest.raises(OptionError, match="M6041"):
        mill.sql("DROP QUERY low")
        mill.sql(LOW.replace("{folder}", str(folder)))
    assert pl.read_parquet(folder / "low" / "*.parquet")["k"].to_list() == [0, 1, 2]


def test_a_file_may_drop_what_it_changes(folder: Path) -> None:
    run(folder, STREAM, HIGH, SHOWN)
    changed = ["DROP QUERY IF EXISTS high;", HIGH.replace("> 5", "> 6"), "DROP QUERY query_1;"]
    assert "new: DROP QUERY IF EXISTS high" in run(folder, STREAM, *changed)
    assert running(folder).keys() == {"high"} and "k > 6" in running(folder)["high"]
    assert "new:" not in run(folder, STREAM, *changed)


def test_a_mistake_in_a_file_can_be_corrected(folder: Path) -> None:
    with pytest.raises(MillstreamError, match="M2001"):
        run(folder, STREAM, "CREATE QUERY q AS SELECT nosuch FROM s INTO none;", SHOWN)
    assert "rows out" in run(folder, STREAM, "CREATE QUERY q AS SELECT k FROM s INTO none;", SHOWN)
    assert running(folder).keys() == {"q", "query_1"}


def test_another_number_of_shards_is_refused(folder: Path) -> None:
    run(folder, STREAM, HIGH, shards=2)
    with pytest.raises(OptionError, match=r"M6072: .* has 2 shards, which cannot become 3"):
        run(folder, STREAM, HIGH, shards=3)
    run(folder, STREAM, HIGH)
    with closing(LocalMill(checkpoint=folder / "kept")) as mill:
        mill.execute("DROP QUERY high")
        with pytest.raises(OptionError, match="M6072"):
            mill.execute("SET shards = 3")
        assert mill.options.shards == 2


def test_a_number_of_shards_that_was_set_survives_a_restart(tmp_path: Path) -> None:
    with closing(LocalMill(checkpoint=tmp_path)) as mill:
        mill.execute("SET shards = 3; CREATE STREAM s (k BIGINT)")
    with closing(LocalMill(checkpoint=tmp_path)) as mill:
        mill.execute("CREATE QUERY q AS SELECT k, COUNT(*) AS n FROM s GROUP BY k")
        assert mill.jobs.shards == 3


TOTAL = """CREATE AGGREGATE total(v INT) : INT
{ TABLE t(s INT);
  INITIALIZE: { INSERT INTO t VALUES (v); }
  ITERATE: { UPDATE t SET s = s + v; }
  TERMINATE: { INSERT INTO RETURN SELECT s FROM t WHERE s % 2 = 0; } }"""
WINDOW = "CREATE WINDOW AGGREGATE total(v INT) : INT { INITIALIZE: ITERATE: { INSERT INTO RETURN VALUES (v); } }"
SUMS = "CREATE QUERY sums AS SELECT total(k) OVER (ROWS 2 PRECEDING) AS t FROM s INTO none;"


def test_aggregates_of_a_file_are_compared_too(folder: Path) -> None:
    run(folder, STREAM, TOTAL, SUMS)
    assert "new:" not in run(folder, STREAM, TOTAL.replace("\n", " "), SUMS)
    assert "new: CREATE WINDOW" in run(folder, STREAM, TOTAL, WINDOW, SUMS)
    changed = TOTAL.replace("% 2", "% 3")
    assert "aggregate total has changed" in refused(folder, STREAM, changed, WINDOW, SUMS).detail
    assert "window aggregate total is not in the file" in refused(folder, STREAM, TOTAL, SUMS).detail
    said = run(folder, STREAM, changed, WINDOW, SUMS, differing="replace")
    assert "dropped: aggregate total" in said and "dropped: query sums" in said
    assert all(f"new: {what}" in said for what in ("CREATE AGGREGATE", "CREATE WINDOW AGGREGATE", "CREATE QUERY sums"))


def test_a_checkpoint_knows_its_aggregates(folder: Path) -> None:
    run(folder, STREAM, TOTAL, WINDOW, SUMS, WINDOW.replace("total", "dropped"), "DROP AGGREGATE dropped;")
    with ms.connect(local=True, checkpoint=folder / "kept") as mill:
        assert mill.sql("SHOW AGGREGATES") == (
            "total(v BIGINT) : BIGINT: base version\ntotal(v BIGINT) : BIGINT: window version"
        )
        mill.sql(TOTAL.replace("CREATE AGGREGATE", "CREATE AGGREGATE IF NOT EXISTS"))
        with pytest.raises(MillstreamError, match="M2010"):
            mill.sql(TOTAL)
        mill.sql("DROP AGGREGATE total")
        assert not mill.sql("SHOW AGGREGATES")


@pytest.mark.parametrize(
    "create",
    [
        "CREATE QUERY high AS SELECT nosuch FROM s INTO none;",
        "CREATE QUERY high AS SELECT k FROM s INTO nowhere;",
        "CREATE QUERY high AS SELECT k FROM s INTO parquet WITH (path = '{folder}/in');",
        "CREATE TABLE t (k BIGINT) WITH (connector = 'csv', path = '{folder}/nosuch.csv');",
        "CREATE TABLE t (k BIGINT) WITH (connector = 'parquet', path = '{folder}/torn.parquet');",
        "SET page_rows = 0;",
    ],
)
def test_a_file_that_fails_changes_nothing(folder: Path, create: str) -> None:
    (folder / "torn.parquet").write_bytes(b"PAR1")
    run(folder, STREAM, HIGH, LOW)
    before = running(folder)
    for options in ({}, {"differing": "replace"}):
        with pytest.raises(MillstreamError):
            run(folder, STREAM, "DROP QUERY IF EXISTS low; DROP QUERY high;", create, **options)
        assert running(folder) == before


def test_a_changed_query_into_the_folder_of_its_results_changes_nothing(folder: Path) -> None:
    run(folder, STREAM, LOW)
    with pytest.raises(OptionError, match="M6041"):
        run(folder, STREAM, "DROP QUERY low;", LOWER)
    assert "k < 3" in running(folder)["low"]
