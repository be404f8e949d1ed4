"""Tables from files: options, bad rows with their numbers, keys."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from millstream.algebra.schema import Schema
from millstream.algebra.types import Type
from millstream.errors import MillstreamError
from millstream.ingest.tables import BadRow, read_table
from millstream.logical.catalog import TableDefinition

SCHEMA = Schema.of(("k", Type.BIGINT), ("x", Type.DOUBLE))


def table(
    path: Path | str, connector: str = "csv", key: tuple[str, ...] = (), not_null: tuple[str, ...] = (), **options: str
) -> TableDefinition:
    return TableDefinition("t", SCHEMA, {"connector": connector, "path": str(path), **options}, key, not_null)


def test_the_options_of_csv_files_count(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("1;2.5\n2;NA\n")
    read = read_table(table(file, delimiter=";", header="false", null="NA"))
    assert read.rows.rows() == [(1, 2.5), (2, None)] and read.report("t") == ""
    file.write_text("X\tK\n2.5\t1\n")
    assert read_table(table(file, delimiter="tab")).rows.rows() == [(1, 2.5)]


def test_blanks_around_numbers_are_trimmed_and_bad_rows_have_their_numbers(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("k,x\n1, 2.5\n 2 ,3\nthree,4\n4\n5,1e400\n6,-1e400\n7,inf\n8,\n")
    read = read_table(table(file))
    assert read.rows.rows() == [(1, 2.5), (2, 3.0), (7, float("inf")), (8, None)]
    assert read.bad == (
        BadRow("t.csv", "line 4", "column 'k': 'three' is not a value of type BIGINT"),
        BadRow("t.csv", "line 5", "expected 2 values, found 1"),
        BadRow("t.csv", "line 6", "column 'x': 1e400 is out of range for DOUBLE"),
        BadRow("t.csv", "line 7", "column 'x': -1e400 is out of range for DOUBLE"),
    )
    assert read.report("t").splitlines() == [
        "table 't': 4 of 8 rows do not fit and were left out",
        "  line 4 of t.csv: column 'k': 'three' is not a value of type BIGINT",
        "  line 5 of t.csv: expected 2 values, found 1",
        "  line 6 of t.csv: column 'x': 1e400 is out of range for DOUBLE",
        "  …",
    ]


def test_bad_rows_keep_their_numbers_in_a_large_file(tmp_path: Path) -> None:
    lines = [f"{k},{k}.5" for k in range(150_000)]
    wrong = (0, 700, 65_535, 65_536, 149_999)
    for at in wrong:
        lines[at] = f"{at},x"
    (tmp_path / "t.csv").write_text("\n".join(["k,x", *lines]))
    read = read_table(table(tmp_path))
    assert [row.place for row in read.bad] == [f"line {at + 2}" for at in wrong]
    assert read.rows.height == 150_000 - len(wrong)


def test_json_and_parquet(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"k": 1, "x": 1e400}\n{"K": 2, "x": " 3 "}\nno\n')
    read = read_table(table(tmp_path / "t.json", "json"))
    assert read.rows.rows() == [(2, 3.0)] and [row.place for row in read.bad] == ["line 1", "line 3"]
    assert read.bad[0].reason == "column 'x': 1e400 is out of range for DOUBLE"
    pl.DataFrame({"k": ["1", " 2", "x"], "x": [1.0, 2.0, 3.0]}).write_parquet(tmp_path / "t.parquet")
    read = read_table(table(tmp_path / "t.parquet", "parquet"))
    assert read.rows.rows() == [(1, 1.0), (2, 2.0)] and [row.place for row in read.bad] == ["row 3"]


def test_several_files_and_keys(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("k,x\n1,1\n2,2\n1,3\n,4\n")
    (tmp_path / "2.csv").write_text("k,x\n2,5\n3,\n")
    read = read_table(table(tmp_path, key=("k",), not_null=("x",)))
    assert read.rows.rows() == [(1, 1.0), (2, 2.0)]
    assert sorted((row.file, row.place, row.reason) for row in read.bad) == [
        ("1.csv", "line 4", "its key (k = 1) appeared before"),
        ("1.csv", "line 5", "column 'k' must not be NULL"),
        ("2.csv", "line 2", "its key (k = 2) appeared before"),
        ("2.csv", "line 3", "column 'x' must not be NULL"),
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"delimitr": ";"}, "M6001: table 't' has no option 'delimitr'\n  hint: did you mean 'delimiter'?"),
        ({"once": "true"}, "M6001: table 't' has no option 'once'"),
        ({"delimiter": "||"}, "M6002: option 'delimiter' cannot be '||'"),
        ({"header": "perhaps"}, "M6002: option 'header' cannot be 'perhaps'"),
        ({"path": "/no/such"}, "M5040: there is no file or folder '/no/such'"),
        ({"connector": "json", "header": "true"}, "M6001: table 't' has no option 'header'"),
        ({"connector": "excel"}, "M5002: unknown connector 'excel' of table 't'"),
    ],
)
def test_mistakes(tmp_path: Path, options: dict[str, str], said: str) -> None:
    (tmp_path / "t.csv").write_text("k,x\n1,1\n")
    definition = TableDefinition("t", SCHEMA, {"connector": "csv", "path": str(tmp_path / "t.csv")} | options)
    with pytest.raises(MillstreamError) as caught:
        read_table(definition)
    assert str(caught.value).startswith(said)
