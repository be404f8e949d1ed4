"""Replay: rows are held back until their event time, at the requested speed."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.schema import Schema, TimeKind
from millstream.algebra.types import MICROS, Type
from millstream.errors import OptionError
from millstream.ingest.paged.base import PagedSource, open_paged
from tests.tries import tries

SECONDS = Schema.of(("ts", Type.BIGINT), ("k", Type.BIGINT), kind=TimeKind.EXTERNAL, time="ts")
STAMPED = Schema.of(("ts", Type.TIMESTAMP), ("k", Type.BIGINT), kind=TimeKind.EXTERNAL, time="ts")
START = 1_700_000_000 * MICROS


def opened(folder: str | Path, connector: str, schema: Schema = SECONDS, **options: str) -> PagedSource:
    return open_paged("s", schema, {"connector": connector, "path": str(folder)} | options, ["ts"])


def played(source: PagedSource, moments: list[int]) -> list[list[int]]:
    """Return the rows released at each moment, in seconds after the start."""
    offset, made = source.start(), []
    for moment in moments:
        taken: list[int] = []
        while (end := json.loads(json.dumps(source.latest(offset, START + moment * MICROS)))) != offset:
            for split in source.splits(offset, end, 2):
                rows = split.read(["k"]).rows
                assert isinstance(rows, pl.DataFrame)
                taken += rows["k"].to_list()
            offset = end
        made.append(taken)
    return made


def expected(times: list[list[int]], moments: list[int], speed: float) -> list[list[int]]:
    """Reference, row by row: a row is released once it and all rows before it are due."""
    rows = [time for file in times for time in file]
    done, made = 0, []
    for moment in moments:
        first = done
        while done < len(rows) and rows[done] <= rows[0] + (moment - moments[0]) * speed:
            done += 1
        made.append(list(range(first, done)))
    return made


TIMES = st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=8), min_size=1, max_size=4)


@settings(max_examples=tries(60))
@given(
    TIMES,
    st.lists(st.integers(0, 30), min_size=1, max_size=8).map(sorted),
    st.sampled_from(["0.5", "1", "3"]),
    st.booleans(),
    st.booleans(),
    st.integers(1, 9),
)
def test_parquet_is_released_row_by_row(
    times: list[list[int]], moments: list[int], speed: str, stamped: bool, statistics: bool, limit: int
) -> None:
    with TemporaryDirectory() as folder:
        number = 0
        for place, file in enumerate(times):
            frame = pl.DataFrame({"ts": file, "k": range(number, number + len(file))})
            number += len(file)
            if stamped:
                frame = frame.with_columns((pl.col("ts") * 1000).cast(pl.Datetime("ms")))
            frame.write_parquet(Path(folder, f"{place}.parquet"), row_group_size=2, statistics=statistics)
        schema = STAMPED if stamped else SECONDS
        source = opened(folder, "parquet", schema, speed=speed, max_rows_per_trigger=str(limit))
        assert played(source, moments) == expected(times, moments, float(speed))


@pytest.mark.parametrize("connector", ["csv", "json"])
def test_text_is_released_file_by_file(tmp_path: Path, connector: str) -> None:
    for place, times in enumerate(([100, 104], [106, 103], [120])):
        frame = pl.DataFrame({"ts": times, "k": [place, place]} if place < 2 else {"ts": times, "k": [place]})
        path = tmp_path / f"{place}.{connector}"
        frame.write_csv(path) if connector == "csv" else frame.write_ndjson(path)
    source = opened(tmp_path, connector, speed="2")
    assert played(source, [5, 6, 7, 8, 9, 30]) == [[], [], [0, 0], [1, 1], [], [2]]


def test_the_anchor_is_in_the_offset(tmp_path: Path) -> None:
    pl.DataFrame({"ts": [50, 60, 70], "k": [0, 1, 2]}).write_parquet(tmp_path / "a.parquet")
    offset = opened(tmp_path, "parquet", speed="1").latest(opened(tmp_path, "parquet").start(), START)
    assert offset["anchor"] == [START, 50] and offset["cut"][2] == 1
    restarted = opened(tmp_path, "parquet", speed="1")
    assert restarted.latest(offset, START + 9 * MICROS) == offset
    assert restarted.latest(offset, START - 9 * MICROS) == offset
    assert restarted.latest(offset, START + 10 * MICROS)["cut"][2] == 2
    assert restarted.latest(offset, START + 99 * MICROS)["cut"] is None


def test_rows_without_a_time_are_released_at_once(tmp_path: Path) -> None:
    pl.DataFrame({"ts": [None, 60, None, 70], "k": [0, 1, 2, 3]}).write_parquet(tmp_path / "a.parquet")
    assert played(opened(tmp_path, "parquet", speed="1"), [0, 9, 10]) == [[1], [], [3]]


def test_speed_needs_a_time_column(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="M6002: option 'speed' needs event time, and stream 's' has no time column"):
        opened(tmp_path, "csv", Schema.of(("k", Type.BIGINT)), speed="2")
