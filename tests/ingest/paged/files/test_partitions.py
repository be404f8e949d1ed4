"""Columns from the names of folders, in files of every format."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import polars as pl
import pytest

from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.errors import InputError

COLUMNS = "k BIGINT, day DATE, place VARCHAR, ts BIGINT"


def write(folder: Path, connector: str) -> None:
    for number, name in enumerate(
        ("day=2024-05-01/Place=a%20b", f"day=2024-05-02/place={'__HIVE_DEFAULT_PARTITION__'}")
    ):
        into = folder / name
        into.mkdir(parents=True)
        first = 2 * number
        rows = pl.DataFrame({"ts": [first, first + 1], "k": [first, first + 1], "day": ["x", "y"]})
        if connector == "parquet":
            rows.write_parquet(into / "0.parquet")
        elif connector == "csv":
            rows.write_csv(into / "0.csv")
        else:
            rows.write_ndjson(into / "0.json")


EXPECTED = [(k, date(2024, 5, 1 + k // 2), "a b" if k < 2 else None) for k in range(4)]


@pytest.mark.parametrize("connector", ["csv", "json", "parquet"])
@pytest.mark.parametrize("shards", [1, 2])
def test_folders_are_columns(tmp_path: Path, connector: str, shards: int) -> None:
    write(tmp_path / "in", connector)
    mill = LocalMill(Options.read(shards=shards))
    options = f"WITH (connector = '{connector}', path = '{tmp_path / 'in'}')"
    mill.execute(f"CREATE STREAM s ({COLUMNS}) ORDER BY ts {options}; CREATE TABLE t ({COLUMNS}) {options}")
    text = connector != "parquet"
    if text:
        mill.execute(f"CREATE STREAM p ({COLUMNS}) ORDER BY ts {options.replace(')', ', prods = true)')}")
    mill.add_query("q", "SELECT k, day, place FROM s")
    mill.add_query("days", "SELECT day FROM s WHERE day > DATE '2024-05-01'")
    mill.add_query("filtered", "SELECT k FROM s WHERE place = 'a b'")
    if text:
        mill.add_query("prodded", "SELECT k, day, place FROM p")
    mill.feedback("q", "~[k = 1]")
    mill.drain()
    assert sorted(mill.take_rows("q").rows()) == [row for row in EXPECTED if row[0] != 1]
    assert mill.take_rows("days").rows() == [(date(2024, 5, 2),)] * 2
    assert sorted(mill.take_rows("filtered")["k"]) == [0, 1]
    assert mill.tables["t"].select("k", "day", "place").rows() == EXPECTED
    if text:
        assert sorted(mill.take_rows("prodded").rows()) == EXPECTED


@pytest.mark.parametrize(
    ("name", "columns", "says"),
    [
        ("k=x", "k BIGINT, v BIGINT", "folder '.*k=x', column 'k': 'x' is not a value of type BIGINT"),
        ("k=__HIVE_DEFAULT_PARTITION__", "k BIGINT NOT NULL, v BIGINT", "folder '.*', column 'k': NULL"),
        ("k=1", "k BIGINT", "all columns are in the name of folder"),
    ],
)
def test_folders_that_do_not_fit(tmp_path: Path, name: str, columns: str, says: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "a.csv").write_text("v\n1\n")
    mill = LocalMill()
    with pytest.raises(InputError, match=f"M5048: {says}"):
        mill.execute(f"CREATE TABLE s ({columns}) WITH (connector = 'csv', path = '{tmp_path}')")


def test_the_time_may_be_in_a_folder(tmp_path: Path) -> None:
    for ts in (3, 5):
        (tmp_path / f"ts={ts}").mkdir()
        (tmp_path / f"ts={ts}" / "a.csv").write_text(f"v\n{ts}\n{ts + 1}\n")
    mill = LocalMill()
    options = f"connector = 'csv', path = '{tmp_path}', speed = 1"
    mill.execute(f"CREATE STREAM s (v BIGINT, ts BIGINT) ORDER BY ts WITH ({options})")
    mill.add_query("q", "SELECT v, ts FROM s")
    mill.drain()
    assert mill.take_rows("q").rows() == [(3, 3), (4, 3)]
    mill.advance(2_000_000)
    mill.drain()
    assert mill.take_rows("q").rows() == [(5, 5), (6, 5)]
