"""A file that cannot be read stops the only query; once the file is mended, the query goes on and loses nothing."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import millstream as ms
from millstream.errors import InputError

ROWS = [(1, 1), (11, 31), (12, 32)]


def write(path: Path, rows: list[tuple[int, int]], name: str = "k") -> None:
    frame = pl.DataFrame(rows, schema=[name, "ts"], orient="row")
    match path.suffix:
        case ".csv":
            frame.write_csv(path)
        case ".json":
            path.write_bytes(b"\x1f\x8b\x08" if name != "k" else frame.write_ndjson().encode())
        case ".parquet":
            frame.write_parquet(path)


def declared(folder: Path, kind: str) -> list[str]:
    options = f"connector = '{kind}', path = '{folder}/in', max_files_per_trigger = 1, once = true"
    return [
        f"CREATE STREAM IF NOT EXISTS s (k BIGINT, ts BIGINT) ORDER BY ts WITH ({options})",
        f"CREATE QUERY IF NOT EXISTS q AS SELECT k, ts FROM s INTO parquet WITH (path = '{folder}/out')",
    ]


@pytest.mark.parametrize("again", ["same process", "resumed"])
@pytest.mark.parametrize("size", ["same", "other"])
@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_a_mended_file_is_read(tmp_path: Path, kind: str, size: str, again: str) -> None:
    (tmp_path / "in").mkdir()
    bad = tmp_path / "in" / f"2.{kind}"
    write(tmp_path / "in" / f"1.{kind}", ROWS[:1])
    write(bad, ROWS[1:], name="x")
    mill = ms.connect(local=True, checkpoint=tmp_path / "checkpoint")
    for statement in declared(tmp_path, kind):
        mill.sql(statement)
    with pytest.raises(InputError, match=r"2\."):
        mill.await_end(timeout=30)
    write(bad, ROWS[1:] if size == "same" else [*ROWS[1:], (13, 33)])
    if again == "resumed":
        mill.close()
        mill = ms.connect(local=True, checkpoint=tmp_path / "checkpoint")
    assert mill.await_end(timeout=30) and mill.query("q").error is None
    mill.close()
    found = sorted(pl.read_parquet(tmp_path / "out" / "**" / "*.parquet").rows())
    assert found == (ROWS if size == "same" else [*ROWS, (13, 33)])
