"""Files as a stream: each row once, in order, for all limits and arrival times of files."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.schema import Schema, TimeKind
from millstream.algebra.types import Type
from millstream.errors import BindError
from millstream.ingest.paged.base import Offset, PagedSource, Split, open_paged
from millstream.ingest.paged.files.csv import CsvFormat
from millstream.ingest.paged.files.json import JsonFormat
from millstream.ingest.paged.files.parquet import ParquetFormat
from tests.tries import tries

READINGS = Schema.of(("ts", Type.BIGINT), ("k", Type.BIGINT), ("note", Type.VARCHAR), kind=TimeKind.EXTERNAL, time="ts")
STAMPED = Schema.of(("ts", Type.TIMESTAMP), ("x", Type.DOUBLE), ("n", Type.INT), kind=TimeKind.EXTERNAL, time="ts")


def write(path: Path, frame: pl.DataFrame, row_group_size: int = 3) -> None:
    """Write a file that appears whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"_{path.name}")
    match path.suffix:
        case ".parquet":
            frame.write_parquet(unfinished, row_group_size=row_group_size)
        case ".csv":
            frame.write_csv(unfinished)
        case _:
            frame.write_ndjson(unfinished)
    unfinished.rename(path)


def numbered(first: int, count: int) -> pl.DataFrame:
    numbers = list(range(first, first + count))
    return pl.DataFrame({"k": numbers, "note": [f"n {n}" for n in numbers], "ts": [n * 10 for n in numbers]})


def opened(path: Path | str, connector: str = "parquet", schema: Schema = READINGS, **options: Any) -> PagedSource:
    given = {"connector": connector, "path": str(path)} | {name: str(value) for name, value in options.items()}
    required = [schema.time] if schema.time is not None else []
    return open_paged("readings", schema, given, required)


def batches(source: PagedSource, now: int = 0, offset: Offset | None = None) -> Iterator[tuple[Offset, Offset]]:
    start = source.start() if offset is None else offset
    while (end := json.loads(json.dumps(source.latest(start, now)))) != start:
        yield start, end
        start = end


def frame_of(splits: list[Split], columns: list[str] | None = None) -> pl.DataFrame:
    frames = []
    for split in splits:
        made = pickle.loads(pickle.dumps(split)).read(columns)
        assert made.bad.is_empty() and isinstance(made.rows, pl.DataFrame)
        assert split.rows in (None, made.rows.height)
        frames.append(made.rows)
    return pl.concat(frames)


@st.composite
def arrivals(draw: st.DrawFn) -> list[list[tuple[str, int]]]:
    """Rounds of files: their names, in no particular order, and their numbers of rows."""
    names = draw(st.lists(st.sampled_from([f"{a}/{b}-{c}" for a in "ab" for b in "xy" for c in range(4)]), unique=True))
    rounds: list[list[tuple[str, int]]] = [[] for _ in range(draw(st.integers(1, 4)))]
    for name in names:
        rounds[draw(st.integers(0, len(rounds) - 1))].append((name, draw(st.integers(0, 12))))
    return rounds


@pytest.fixture(autouse=True)
def small_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    for format_, worth in ((ParquetFormat, 2), (CsvFormat, 40), (JsonFormat, 40)):
        monkeypatch.setattr(format_, "worth", worth)


@settings(max_examples=tries(60))
@given(
    st.sampled_from(["parquet", "csv", "json"]),
    arrivals(),
    st.integers(1, 20),
    st.none() | st.integers(1, 3),
    st.integers(1, 4),
    st.integers(0, 2),
)
def test_each_row_comes_once_in_the_order_of_names_within_a_discovery(
    connector: str, rounds: list[list[tuple[str, int]]], rows: int, files: int | None, parallelism: int, polls: int
) -> None:
    with TemporaryDirectory() as folder:
        limits = {"max_rows_per_trigger": rows} | ({} if files is None else {"max_files_per_trigger": files})
        source = opened(folder, connector, **limits)
        offset, number, written, cut, taken = source.start(), 0, dict[int, str](), [], []
        for arriving in rounds:
            for name, count in arriving:
                write(Path(folder, f"{name}.{connector}"), numbered(number, count))
                written |= dict.fromkeys(range(number, number + count), name)
                number += count
            for polled, (start, end) in enumerate(batches(source, offset=offset)):
                splits = source.splits(start, end, parallelism)
                cut.append((start, end, splits))
                taken.append(frame_of(splits) if splits else None)
                offset = end
                if polled == polls and arriving is not rounds[-1]:
                    break  # more files appear before all have been read
        got = [k for frame in taken if frame is not None for k in frame["k"]]
        assert sorted(got) == list(range(number))
        assert source.behind(offset) == 0
        again = opened(folder, connector, **limits)
        for (start, end, splits), frame in zip(cut, taken, strict=True):
            made = again.splits(start, end, parallelism)
            assert made == splits
            if frame is None:
                continue
            assert frame.equals(frame_of(again.splits(start, end, 1)))
            names = [written[k] for k in frame["k"]]
            if start["cut"] is not None:
                names = names[names.count(start["cut"][0].removesuffix(f".{connector}")) :]
            assert names == sorted(names)
            assert connector != "parquet" or frame.height <= rows
            assert files is None or len(end["batch"]) <= files


def test_a_file_cut_in_the_middle_continues_before_others(tmp_path: Path) -> None:
    write(tmp_path / "b.parquet", numbered(0, 10))
    source = opened(tmp_path, max_rows_per_trigger=4)
    first = source.latest(source.start(), 0)
    assert first["cut"][0::2] == ["b.parquet", 4] and source.behind(first) == 6
    write(tmp_path / "a.parquet", numbered(10, 3))
    got = [frame_of(source.splits(start, end, 1))["k"].to_list() for start, end in batches(source, offset=first)]
    assert got == [[4, 5, 6, 7], [8, 9, 10, 11], [12]]


def test_old_modification_times_do_not_hide_a_file(tmp_path: Path) -> None:
    write(tmp_path / "b.csv", numbered(0, 2))
    source = opened(tmp_path, "csv")
    offset = source.latest(source.start(), 0)
    write(tmp_path / "a.csv", numbered(2, 2))
    os.utime(tmp_path / "a.csv", (0, 0))
    os.utime(tmp_path / "b.csv")
    assert [frame_of(source.splits(s, e, 1))["k"].to_list() for s, e in batches(source, offset=offset)] == [[2, 3]]


@pytest.mark.parametrize("connector", ["parquet", "json"])
def test_splits_are_as_many_as_are_asked_for_if_there_is_enough(tmp_path: Path, connector: str) -> None:
    write(tmp_path / f"a.{connector}", numbered(0, 100), row_group_size=7)
    write(tmp_path / f"b.{connector}", numbered(100, 3))
    source = opened(tmp_path, connector)
    [(start, end)] = batches(source)
    for parallelism in (1, 2, 3, 7):
        splits = source.splits(start, end, parallelism)
        assert len(splits) == parallelism
        assert frame_of(splits)["k"].to_list() == list(range(103))
    if connector == "parquet":
        assert [split.rows for split in source.splits(start, end, 3)] == [35, 35, 33]  # between row groups


def test_what_is_hidden_or_unfinished_is_no_data(tmp_path: Path) -> None:
    for name in ("_SUCCESS", ".a.csv.crc", "x.csv.tmp", "y.inprogress", "_temporary/z.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("nonsense")
    write(tmp_path / "deep/er/a.csv", numbered(0, 2))
    [(start, end)] = batches(source := opened(tmp_path, "csv"))
    assert frame_of(source.splits(start, end, 1))["k"].to_list() == [0, 1]


def test_a_path_is_a_folder_a_file_or_a_pattern(tmp_path: Path) -> None:
    for number, name in enumerate(("a/x-1.csv", "a/y-1.csv", "b/x-2.csv")):
        write(tmp_path / name, numbered(number, 1))
    for path, expected in (("", [0, 1, 2]), ("a", [0, 1]), ("a/y-1.csv", [1]), ("*/x-*.csv", [0, 2]), ("**/y*", [1])):
        [(start, end)] = batches(source := opened(tmp_path / path, "csv"))
        assert frame_of(source.splits(start, end, 1))["k"].to_list() == expected


def test_only_once_ends(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", numbered(0, 1))
    once, forever = opened(tmp_path, "csv", once="true"), opened(tmp_path, "csv")
    end = once.latest(once.start(), 0)
    assert not once.ended(once.start()) and once.ended(end) and not forever.ended(end)


@pytest.mark.parametrize("connector", ["parquet", "csv", "json"])
def test_columns_are_pruned_and_in_the_order_of_the_schema(tmp_path: Path, connector: str) -> None:
    write(tmp_path / f"a.{connector}", numbered(0, 5).with_columns(more=pl.lit("x")))
    write(tmp_path / f"b.{connector}", numbered(5, 2).with_columns(more=pl.lit("x")))
    source = opened(tmp_path, connector)
    [(start, end)] = batches(source)
    [split] = source.splits(start, end, 1)
    assert frame_of([split]).columns == ["ts", "k", "note"]
    assert frame_of([split], ["note", "ts"]).columns == ["ts", "note"]
    assert frame_of([split], ["k"]).to_dict(as_series=False) == {"k": [0, 1, 2, 3, 4, 5, 6]}
    none = split.read([]).rows
    assert isinstance(none, pl.DataFrame) and none.shape == (7, 0)
    with pytest.raises(BindError, match="unknown column 'nope'"):
        split.read(["nope"])


def test_a_column_that_is_not_needed_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a.parquet", numbered(0, 5))
    source = opened(tmp_path)
    [(start, end)] = batches(source)
    read, asked = pl.LazyFrame.select, []
    monkeypatch.setattr(pl.LazyFrame, "select", lambda self, what: asked.append(what) or read(self, what))
    source.splits(start, end, 1)[0].read(["k"])
    assert [expression.meta.output_name() for expression in asked[0]] == ["ts", "k"]


def test_types_are_converted(tmp_path: Path) -> None:
    times = [datetime(2024, 1, 1, 0, 0, second) for second in range(3)]
    frame = pl.DataFrame(
        {"TS": pl.Series(times, dtype=pl.Datetime("ms", "UTC")), "X": [1, 2, 3], "n": [1.0, 2.5, None]}
    )
    write(tmp_path / "a.parquet", frame)
    source = opened(tmp_path, schema=STAMPED)
    [(start, end)] = batches(source)
    made = source.splits(start, end, 1)[0].read()
    assert isinstance(made.rows, pl.DataFrame) and made.rows.rows() == [(times[0], 1.0, 1), (times[2], 3.0, None)]
    assert made.rows.dtypes == [a.type.polars for a in STAMPED]
    assert made.bad["reason"].to_list() == ["column 'n': 2.5 is not a value of type INT (row 2 of a.parquet)"]


def test_rows_without_a_time_are_bad_even_if_the_time_is_not_read(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", pl.DataFrame({"ts": [1, None], "k": [1, 2], "note": ["a", "b"]}))
    source = opened(tmp_path)
    [(start, end)] = batches(source)
    made = source.splits(start, end, 1)[0].read(["k"])
    assert isinstance(made.rows, pl.DataFrame) and made.rows.rows() == [(1,)]
    assert made.bad.rows() == [("NULL | 2 | b", "column 'ts' must not be NULL (row 2 of a.parquet)")]
