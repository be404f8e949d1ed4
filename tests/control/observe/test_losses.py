"""Late and bad rows are said: in the progress, the summary of a run, and one warning with the likely cause."""

from __future__ import annotations

import io
import logging
import re
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

import millstream as ms
from millstream.control.observe.loss_reports import interval_text
from millstream.control.runner import run_file

STREAM = "CREATE STREAM s (k BIGINT, ts TIMESTAMP) ORDER BY ts{} WITH (connector = 'parquet', path = '{}', once = true)"
START = datetime(2024, 1, 1)


def write(path: Path, seconds: list[int]) -> None:
    path.parent.mkdir(exist_ok=True)
    times = [START + timedelta(seconds=second) for second in seconds]
    pl.DataFrame({"k": range(len(seconds)), "ts": times}).write_parquet(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder whose first file has the newest row."""
    write(tmp_path / "in" / "a.parquet", [5000])
    write(tmp_path / "in" / "b.parquet", list(range(5000)))
    return tmp_path / "in"


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The warnings since the last call."""
    found = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    caplog.clear()
    return found


def ran(text: str, **options: object) -> list[str]:
    """The lines that `millstream run --local` prints."""
    console = Console(file=io.StringIO(), width=200, soft_wrap=True)
    run_file(text, console, local=True, **{"checkpoint": None, **options})  # type: ignore[arg-type]
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("shards", [1, 3])
def test_a_folder_whose_first_file_has_the_newest_row(
    folder: Path, shards: int, caplog: pytest.LogCaptureFixture
) -> None:
    text = STREAM.format("", folder)
    lines = ran(f"{text}; SELECT k, COUNT(*) AS n FROM s [RANGE 1 MINUTE] GROUP BY k INTO none", shards=shards)
    assert lines[-1].endswith(": 5,001 rows in, 1 row out, 5,000 late (over 99.9 %)")
    (warning,) = warned(caplog)
    assert warning.splitlines() == [
        "M5060: stream 's': 5,000 of 5,001 rows are late (over 99.9 %)",
        "  Their ts is older than that of rows before them: they break its order. The one with the longest delay has "
        "ts 2024-01-01 00:00:00, after a row with ts 2024-01-01 01:23:20. The rows are in order over long stretches: a "
        "file with newer rows was read before one with older.",
        "  hint: name the files so that the order of their names is that of ts, or declare WATERMARK FOR ts AS ts - "
        "INTERVAL '84 minutes', which would accept all of them; s__late has the rows",
    ]


@pytest.mark.parametrize("shards", [1, 2])
def test_the_watermark_of_the_hint_accepts_all_rows(
    tmp_path: Path, shards: int, caplog: pytest.LogCaptureFixture
) -> None:
    seconds = [n + (n * 7919) % 600 for n in range(3000)]
    write(tmp_path / "in" / "a.parquet", seconds)
    query = "SELECT k FROM s INTO none"
    assert " late (" in ran(f"{STREAM.format('', tmp_path / 'in')}; {query}", shards=shards)[-1]
    (warning,) = warned(caplog)
    assert "hint: sort the rows of the files by ts, or declare" in warning
    (clause,) = re.findall(r"declare (WATERMARK FOR .*?'.*?')", warning)
    line = ran(f"{STREAM.format(' ' + clause, tmp_path / 'in')}; {query}", shards=shards)[-1]
    assert line.endswith("3,000 rows in, 3,000 rows out") and not warned(caplog)


@pytest.mark.parametrize(("files", "devices"), [(1, 4), (2, 30)])
def test_rows_of_a_file_that_are_grouped_by_device(
    files: int, devices: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(files):
        write(tmp_path / "in" / f"{number}.parquet", [*range(number * 100, number * 100 + 100)] * devices)
    ran(f"{STREAM.format('', tmp_path / 'in')}; SELECT k FROM s INTO none")
    (warning,) = warned(caplog)
    assert "hint: sort the rows of the files by ts, or declare" in warning and "a file with newer" not in warning


def test_a_few_rows_with_a_long_delay(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    seconds = [second for n in range(1000, 2000) for second in (n, n - 5)]
    write(tmp_path / "in" / "a.parquet", [*seconds, 0])
    ran(f"{STREAM.format('', tmp_path / 'in')}; SELECT k FROM s INTO none")
    (warning,) = warned(caplog)
    assert "INTERVAL '34 minutes', which would accept all of them (6 seconds: 99 %)" in warning


def test_few_late_rows_are_counted_and_not_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path / "in" / "a.parquet", [*range(500), 3])
    line = ran(f"{STREAM.format('', tmp_path / 'in')}; SELECT k FROM s INTO none")[-1]
    assert line.endswith("501 rows in, 500 rows out, 1 late (0.2 %)") and not warned(caplog)


def test_bad_rows_are_named_with_file_line_and_column(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = [f"{'NA' if n % 7 == 6 else n},{n}" for n in range(70)]
    (tmp_path / "a.csv").write_text("\n".join(["k,ts", *rows, "1"]))
    stream = f"CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts WITH (connector = 'csv', path = '{tmp_path}', once = 1"
    line = ran(f"{stream}); SELECT k FROM s INTO none")[-1]
    assert line.endswith("71 rows in, 60 rows out, 11 bad (15.5 %)")
    (warning,) = warned(caplog)
    assert warning.splitlines() == [
        "M5061: stream 's': 11 of 71 rows are bad (15.5 %)",
        "  Most often (10 of 11): line 8 of a.csv, NA,6: column 'k': 'NA' is not a value of type BIGINT.",
        "  hint: if 'NA' means NULL, set the option null = 'NA', or declare k VARCHAR; s__bad has the rows",
    ]
    assert ran(f"{stream}, null = 'NA'); SELECT k FROM s INTO none")[-1].endswith(
        "71 rows in, 70 rows out, 1 bad (1.4 %)"
    )


HINTS = [
    ("v DOUBLE, ts BIGINT", '"2,5"|1', "write v with a decimal point and no commas, such as 1234.5"),
    ("v BIGINT, ts BIGINT", '"1,234,567"|1', "write v with a decimal point and no commas, such as 1234.5"),
    ("v DOUBLE, ts BIGINT", "n/a|1", "if 'n/a' means NULL, set the option null = 'n/a', or declare v VARCHAR"),
    ("v DOUBLE, ts BIGINT", "-|1", "if '-' means NULL, set the option null = '-', or declare v VARCHAR"),
    ("v DOUBLE, ts BIGINT", "five|1", "declare v VARCHAR"),
    ("v BIGINT, ts BIGINT", "2.5|1", "declare v DOUBLE"),
    ("v BIGINT, ts BIGINT", "99999999999999999999|1", "declare v DOUBLE"),
    ("v BIGINT, ts TIMESTAMP", "1|31.01.2024", "write ts as '2024-01-31 12:00:00' or in seconds since 1970"),
    (
        "v BIGINT, ts TIMESTAMP",
        "1|1706702400000",
        "write ts as '2024-01-31 12:00:00' or in seconds since 1970, not in milliseconds or microseconds; "
        "or declare ts BIGINT",
    ),
    (
        "v BIGINT, ts BIGINT",
        "1|9223372036854775807",
        "leave rows out that have no time in ts, such as those with the largest number",
    ),
    ("v BIGINT, ts INT", "1|2147483648", "declare ts BIGINT"),
    ("v BIGINT, ts BIGINT", "1|2.5", "write ts as a whole number, or declare ts TIMESTAMP"),
    ("v BIGINT, ts BIGINT", "1", "check the option delimiter"),
]


@pytest.mark.parametrize(("columns", "line", "hint"), HINTS, ids=[line for _, line, _ in HINTS])
def test_hints_for_bad_rows(
    columns: str, line: str, hint: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a.csv").write_text(f"v|ts\n{line}\n")
    given = f"connector = 'csv', path = '{tmp_path}', once = true, delimiter = '|'"
    ran(f"CREATE STREAM s ({columns}) ORDER BY ts WITH ({given}); SELECT v FROM s INTO none")
    (warning,) = warned(caplog)
    assert warning.splitlines()[-1] == f"  hint: {hint}; s__bad has the rows"


NESTED = "nested values are not read: write v as text, or its values into columns of their own"
IN_JSON = [("VARCHAR", '{"a": 1}', NESTED), ("BIGINT", "[1, 2]", NESTED), ("BOOLEAN", '"no idea"', "declare v VARCHAR")]


@pytest.mark.parametrize(("type_", "value", "hint"), IN_JSON)
def test_hints_for_values_of_json(
    type_: str, value: str, hint: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a.json").write_text(f'{{"v": {value}}}\n')
    given = f"connector = 'json', path = '{tmp_path}', once = true"
    ran(f"CREATE STREAM s (v {type_}) WITH ({given}); SELECT v FROM s INTO none")
    assert warned(caplog)[0].splitlines()[-1] == f"  hint: {hint}; s__bad has the rows"


def test_lines_in_another_encoding(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.csv").write_bytes("v\nstra\xdfe\n".encode("latin-1"))
    ran(
        f"CREATE STREAM s (v VARCHAR) WITH (connector = 'csv', path = '{tmp_path}', once = 1);"
        " SELECT v FROM s INTO none"
    )
    assert "hint: convert it to UTF-8: iconv -f ISO-8859-1" in warned(caplog)[0]


@pytest.mark.parametrize("text", ['[{"k": 1}, {"k": 2}]', '[\n{"k": 1},\n{"k": 2}\n]', '{\n"k": 1\n}'])
def test_json_that_is_not_one_object_a_line(text: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.json").write_text(text)
    given = f"connector = 'json', path = '{tmp_path}', once = true"
    ran(f"CREATE STREAM s (k BIGINT) WITH ({given}); SELECT k FROM s INTO none")
    (warning,) = warned(caplog)
    assert "hint: a file of JSON has one object on each line, and no [ ] around them; s__bad" in warning


def test_rows_of_parquet_files_have_numbers_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pl.DataFrame({"k": [1.0, 2.0, 2.5], "ts": [1, 2, 3]}).write_parquet(tmp_path / "a.parquet")
    stream = (
        f"CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts WITH (connector = 'parquet', path = '{tmp_path}', once = 1)"
    )
    ran(f"{stream}; SELECT k FROM s INTO none")
    (warning,) = warned(caplog)
    assert "row 3 of a.parquet, 2.5 | 3: column 'k': 2.5 is not" in warning and "hint: declare k DOUBLE" in warning


def test_a_stream_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    with ms.connect(local=True) as mill:
        mill.sql("CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts")
        mill.insert("s", [(1, 10), (1, 4)])
        (late,) = warned(caplog)
        assert "M5060: stream 's': 1 of 2 rows are late (50.0 %)" in late
        assert "hint: sort the rows by ts, or declare WATERMARK FOR ts AS ts - 6, which" in late
        mill.insert("s", [(1, 3), ("x", 12)])
        (bad,) = warned(caplog)
        assert "M5061" in bad and "x | 12: column 'k': 'x' is not a value of type BIGINT" in bad
        mill.insert("s", [(1, 3), ("x", 12)])
        assert not warned(caplog)
        mill.sql("DROP STREAM s")
        mill.sql("CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts")
        mill.insert("s", [(1, 10), (1, 4)])
        assert len(warned(caplog)) == 1
    assert not warned(caplog)


def test_a_restart_does_not_repeat_it(folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    statements = STREAM.replace(", once = true", "").format("", folder)
    checkpoint = tmp_path / "checkpoint"
    with ms.connect(local=True, checkpoint=checkpoint) as mill:
        mill.sql(f"{statements}; CREATE STREAM f (k BIGINT, ts BIGINT) ORDER BY ts; CREATE QUERY q AS SELECT k FROM s")
        mill.insert("f", [(1, 10), (1, 4)])
        assert not mill.await_end(0.2)
    assert len(warned(caplog)) == 2
    with ms.connect(local=True, checkpoint=checkpoint) as mill:
        mill.insert("f", [(1, 11)])
        assert not mill.await_end(0.2)
        assert mill.mill.counts("s")["late"] == 5000 and not warned(caplog)
        write(folder / "c.parquet", [3])
        assert not mill.await_end(0.2)
        (warning,) = warned(caplog)
        assert "stream 's': 1 of 1 rows are late (100 %)" in warning


def test_causes_other_than_the_order(caplog: pytest.LogCaptureFixture) -> None:
    said = {
        "PRIMARY KEY (k)": "A row with their PRIMARY KEY (k) had come.",
        "ASCENDING (k)": "A value of ASCENDING (k) is below an earlier one.",
        "PUNCTUATED ON (k #)": "A punctuation of the stream excludes them.",
    }
    for clause, detail in said.items():
        with ms.connect(local=True) as mill:
            mill.sql(f"CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts {clause}")
            mill.insert("s", [(5, 1), (6, 1)])
            if "PUNCTUATED" in clause:
                mill.punctuate("s", "[k = 5]")
            mill.insert("s", [(5, 2)])
        (warning,) = warned(caplog)
        assert detail in warning


def test_progress_shows_late_and_bad_rows() -> None:
    with ms.connect(local=True) as mill:
        mill.sql("CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts")
        query = mill.sql("SELECT k FROM s").start()
        mill.insert("s", [(1, 10), (1, 4), ("x", 5), (1, 3)])
        assert "rows   4 in, 1 out, 2 late, 1 bad, " in str(query.progress())
        assert "1 accepted, 2 late, 1 bad" in str(mill.sql("SHOW STREAMS"))


SILENT = {
    "SELECT k FROM s WHERE k < 0": "no row meets a condition (WHERE, ON or HAVING), of 10 that reached it",
    "SELECT k, COUNT(*) AS n FROM p [RANGE 5 SECONDS] GROUP BY k": "10 groups are open: no punctuation of p came",
    "SELECT s.k FROM s [RANGE 5 SECONDS], t [RANGE 5 SECONDS] WHERE s.k = t.k + 100": "no rows match in a join, of 20"
    " that reached it",
    "SELECT k FROM s UNION ALL SELECT k FROM p": "rows wait for the time of p, which does not move",
    "SELECT k FROM old": "all 2 rows of old are bad",
}


@pytest.mark.parametrize("query", SILENT)
def test_a_query_without_rows_says_why(tmp_path: Path, query: str) -> None:
    (tmp_path / "a.csv").write_text("\n".join(["k,ts", *(f"{n},{n}" for n in range(10))]))
    (tmp_path / "b.csv").write_text("k,ts\nx,1\ny,2\n")
    stream = "CREATE STREAM {} (k BIGINT, ts TIMESTAMP) ORDER BY ts {} WITH (connector = 'csv', path = '{}')"
    one, two = tmp_path / "a.csv", tmp_path / "b.csv"
    streams = [
        stream.format("s", "", one),
        stream.format("t", "", one),
        stream.format("p", "PUNCTUATED ON (ts +)", one),
    ]
    statements = [*streams, stream.format("old", "", two), f"CREATE QUERY q AS {query} INTO none"]
    assert f"no rows of query 'q': {SILENT[query]}" in ran("; ".join(statements), seconds=0.3)


def test_a_query_with_rows_or_without_input_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("k,ts\n1,1\n")
    stream = (
        f"CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts WITH (connector = 'csv', path = '{tmp_path}', once = 1)"
    )
    assert len(ran(f"{stream}; SELECT k FROM s INTO none; SELECT k FROM s__late INTO none")) == 1


def test_an_interval_is_at_least_as_long() -> None:
    for micros in (1, 999, 1_000_001, 59_999_999, 3_600_000_001, 10**12):
        number, unit = interval_text(micros).split()
        length = {"m": 1000, "s": 10**6, "h": 3600 * 10**6, "d": 86400 * 10**6}[unit[0]]
        length = 60 * 10**6 if unit.startswith("minute") else length
        assert int(number) * length >= micros
