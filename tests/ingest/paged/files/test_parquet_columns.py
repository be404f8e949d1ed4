"""The rows of parquet files are judged alike, whatever columns are read; columns that cannot be bad are left out."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from millstream.algebra.schema import Schema, TimeKind
from millstream.algebra.types import Type
from millstream.errors import InputError
from millstream.ingest.paged.files import parquet
from tests.ingest.paged.files.test_files import batches, opened


def schema_of(type_: Type) -> Schema:
    columns = (("ts", Type.BIGINT), ("k", Type.BIGINT), ("x", type_))
    return Schema.of(*columns, kind=TimeKind.EXTERNAL, time="ts")


def written(folder: Path, x: pl.Series) -> None:
    count = len(x)
    frame = pl.DataFrame({"ts": range(count), "k": range(count), "x": x, "more": ["m"] * count})
    frame.write_parquet(folder / "a.parquet", row_group_size=2)


UNREAL = pl.Series([0, 1 << 62, 1]).cast(pl.Datetime("us"))
CASES: list[tuple[pl.Series, Type, str, bool]] = [
    (pl.Series(["1", "two", "3"]), Type.BIGINT, "column 'x': 'two' is not a value of type BIGINT", True),
    (pl.Series([1, 1 << 40, 3]), Type.INT, "column 'x': 1099511627776 is out of range for INT", True),
    (pl.Series([1, 2, 3]), Type.INT, "", False),
    (pl.Series([1, 2, 3], dtype=pl.Int32), Type.BIGINT, "", False),
    (pl.Series([1.0, 2.5, 3.0]), Type.BIGINT, "column 'x': 2.5 is not a value of type BIGINT", True),
    (pl.Series([1, 2, 3]), Type.DOUBLE, "", False),
    (pl.Series([1, (1 << 64) - 1, 3], dtype=pl.UInt64), Type.BIGINT, "is out of range for BIGINT", True),
    (UNREAL, Type.TIMESTAMP, "column 'x': 4611686018427387904 (us) is out of range for TIMESTAMP", True),
    (pl.Series([datetime(2024, 1, 1)] * 3), Type.TIMESTAMP, "", False),
    (pl.Series([None] * 3, dtype=pl.Datetime("ms")), Type.TIMESTAMP, "", False),
    (pl.Series([date(2024, 1, 1)] * 3), Type.DATE, "", False),
    (pl.Series([b"a", b"\xff", b"c"]), Type.VARCHAR, "column 'x': b'\\xff' is not UTF-8", True),
    (pl.Series(["a", None, "c"]), Type.VARCHAR, "", False),
]


@pytest.mark.parametrize(("x", "type_", "reason", "read"), CASES, ids=[f"{x.dtype} {t.value}" for x, t, _, _ in CASES])
def test_a_row_is_bad_whatever_columns_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, x: pl.Series, type_: Type, reason: str, read: bool
) -> None:
    written(tmp_path, x)
    asked: list[list[str]] = []
    original = parquet._read

    def noted(part: Any, names: dict[str, str], *more: Any) -> pl.DataFrame:
        asked.append(list(names))
        return original(part, names, *more)

    source = opened(tmp_path, schema=schema_of(type_))
    [(start, end)] = batches(source)
    [split] = source.splits(start, end, 1)
    whole = split.read()
    monkeypatch.setattr(parquet, "_read", noted)
    for columns in (["ts", "k"], ["k"], []):
        asked.clear()
        made = split.read(columns)
        assert isinstance(made.rows, pl.DataFrame) and made.rows.height == (2 if reason else 3)
        assert made.bad.equals(whole.bad)
        assert ("x" in asked[0]) is read
    assert [reason in found for found in whole.bad.get_column("reason")] == ([True] if reason else [])
    assert all(text.count("|") == 2 for text in whole.bad.get_column("input"))


def test_a_column_without_statistics_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pl.DataFrame({"ts": [1, 2], "k": [1, 2], "x": [datetime(2024, 1, 1)] * 2})
    frame.write_parquet(tmp_path / "a.parquet", statistics=False)
    asked: list[str] = []
    original = parquet._read
    monkeypatch.setattr(
        parquet, "_read", lambda part, names, *more: (asked.extend(names), original(part, names, *more))[1]
    )
    source = opened(tmp_path, schema=schema_of(Type.TIMESTAMP))
    [(start, end)] = batches(source)
    source.splits(start, end, 1)[0].read(["k"])
    assert "x" in asked


@pytest.mark.parametrize(
    ("x", "type_", "found"),
    [
        (pl.Series([True]), Type.BIGINT, "bool"),
        (pl.Series([1]), Type.BOOLEAN, "int64"),
        (pl.Series([1]), Type.DATE, "int64"),
        (pl.Series([date(2024, 1, 1)]), Type.DOUBLE, "date32"),
        (pl.Series([b"1"]), Type.BIGINT, "large_binary"),
        (pl.Series([[1]]), Type.VARCHAR, "large_list"),
        (pl.Series([{"a": 1}]), Type.VARCHAR, "struct"),
        (pl.Series([0]).cast(pl.Time), Type.VARCHAR, "time64"),
    ],
    ids=["bool", "int to bool", "int to date", "date", "binary", "list", "struct", "time"],
)
def test_a_type_that_never_fits_is_an_error(tmp_path: Path, x: pl.Series, type_: Type, found: str) -> None:
    written(tmp_path, x)
    with pytest.raises(InputError, match=f"column 'x' of file .* is {found}.*, which cannot become {type_.value}"):
        opened(tmp_path, schema=schema_of(type_))


def test_a_time_that_python_does_not_have_is_bad_in_a_replay(tmp_path: Path) -> None:
    schema = Schema.of(("ts", Type.TIMESTAMP), ("k", Type.BIGINT), kind=TimeKind.EXTERNAL, time="ts")
    pl.DataFrame({"ts": UNREAL, "k": [1, 2, 3]}).write_parquet(tmp_path / "a.parquet")
    source = opened(tmp_path, schema=schema, speed=1_000_000)
    made = [split.read() for start, end in batches(source) for split in source.splits(start, end, 1)]
    assert sum(part.bad.height for part in made) == 1
