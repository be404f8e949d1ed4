"""Columns that never fall, in streams that jobs read: the same tuples are late as in one process, however the stream is
cut into batches, splits and shards."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millstream.algebra.clock import VirtualClock
from millstream.algebra.element import Page
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.punctuation.restriction import equal
from millstream.algebra.values import value
from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.control.mill.base import Mill
from millstream.ingest.arrivals import PunctuatedRows
from millstream.ingest.paged import SplitRows
from millstream.ingest.paged.files import source as file_source
from millstream.ingest.rows import NO_BAD
from millstream.ingest.source import StreamSource
from millstream.physical.spark import frame_packing
from millstream.physical.wire.own_rows import take_own_rows
from millstream.physical.wire.packing import pack
from millstream.physical.wire.shard_split import ShardSplit, Target
from millstream.testing.runner import LocalHost
from tests.physical.wire.frame_jobs import FrameJob, frame_mill
from tests.tries import tries

COLUMNS = "k BIGINT, seq BIGINT, day DATE, ts BIGINT"
DECLARED = {
    "alone": "ASCENDING (seq)",
    "two": "ASCENDING (seq) ASCENDING (day)",
    "in order": "ORDER BY ts ASCENDING (seq)",
    "with a watermark": "ORDER BY ts WATERMARK FOR ts AS ts - 3 ASCENDING (day, seq)",
    "with a key": "PRIMARY KEY (k, ts) ASCENDING (seq)",
}
QUERIES = {
    "read": "SELECT k, seq, day, ts FROM s",
    "closed": "SELECT seq, COUNT(*) AS n FROM s GROUP BY seq",
    "late": "SELECT k, seq, day, ts FROM s__late",
    "joined": "SELECT x.k, x.seq, y.ts FROM s AS x JOIN s AS y ON x.k = y.ts",
}
SCHEMA = {"k": pl.Int64(), "seq": pl.Int64(), "day": pl.Date(), "ts": pl.Int64()}
ASKED = [("read", "late"), ("read", "late"), ("read", "closed"), ("read", "joined")]
Found = dict[str, Counter[Any]]


@st.composite
def streams(draw: st.DrawFn) -> pl.DataFrame:
    """Rows whose columns rise; now and then one falls, for one row or for longer."""
    falls = draw(st.sampled_from([0.0, 0.1, 0.3, 0.3]))
    chance = random.Random(draw(st.integers(0, 10_000)))
    values = [0, 0, 0]
    made: list[list[int | None]] = []
    for _ in range(draw(st.integers(0, 30))):
        values = [value + chance.randrange(3) for value in values]
        if chance.random() < falls:
            values[chance.randrange(3)] -= chance.randrange(8)
        row = [value - (chance.random() < falls / 2) * chance.randrange(4) for value in values]
        missing = chance.random() < falls / 8
        made.append([chance.randrange(4), None if missing else row[0], *row[1:]])
    frame = pl.DataFrame(made, schema=list(SCHEMA), orient="row")
    return frame.select(pl.col(name).cast(type_) for name, type_ in SCHEMA.items())


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield tmp_path_factory.mktemp("streams")


def begin(mill: Mill, asked: tuple[str, ...], declared: str, options: str = "") -> None:
    mill.execute(f"CREATE STREAM s ({COLUMNS}) {declared} {options}")
    for name in asked:
        mill.add_query(name, QUERIES[name])


def taken(mill: LocalMill, found: Found) -> None:
    mill.drain()
    for name in mill.queries:
        found.setdefault(name, Counter()).update(mill.take_rows(name).rows())
        found.setdefault(f"{name} punctuation", Counter()).update(map(str, mill.take_punctuations(name)))


def fed(asked: tuple[str, ...], declared: str, rows: pl.DataFrame) -> tuple[Found, tuple[int, ...]]:
    """The results of one process for the rows."""
    mill, found = LocalMill(), Found()
    begin(mill, asked, declared)
    mill.insert("s", rows)
    mill.batch()
    taken(mill, found)
    return found, tuple(mill.counts("s").values())


def counted(mill: Mill) -> tuple[int, ...]:
    """Rows accepted, late and bad, over all shards."""
    mill.request_reports()
    mill.sync()
    return tuple(
        map(sum, zip(*(status.counts["s"] for status in [status for *_, status in mill.reports("read")]), strict=True))
    )


def check(found: Found, expected: Found, asked: tuple[str, ...]) -> None:
    for name in asked:
        assert found[name] == expected[name], name
        said, known = found[f"{name} punctuation"], expected[f"{name} punctuation"]
        assert all(count == 1 for count in said.values())
        assert set(said) <= set(known) or name == "joined"
        if name == "read":
            assert {line.split("<")[0]: line for line in said} == {line.split("<")[0]: line for line in known}


@value("marked_in_tests")
@dataclass(frozen=True)
class Given:
    """A split with at most one punctuation, at a position among its rows."""

    frame: pl.DataFrame
    mark: tuple[int, Pattern] | None = None
    rows: int | None = None

    def read(self, columns: Any = None) -> SplitRows:
        rows = self.frame.select(columns)
        if self.mark is None:
            return SplitRows(rows, NO_BAD)
        return SplitRows(PunctuatedRows(rows, Punctuations.of([self.mark[1]]), np.array([self.mark[0]])), NO_BAD)


@given(streams(), st.sampled_from(sorted(DECLARED)), st.integers(0, 10_000), st.integers(1, 3), st.booleans())
@settings(max_examples=tries(80))
def test_shares_of_splits_are_judged_as_the_whole(
    rows: pl.DataFrame, declared: str, seed: int, shards: int, marked: bool
) -> None:
    mill, chance, rows = LocalMill(), random.Random(seed), rows.drop_nulls()
    mill.execute(f"CREATE STREAM s ({COLUMNS}) {DECLARED[declared]}")
    stream = mill.catalog.stream("s")
    whole, *parts = (StreamSource(stream, VirtualClock()) for _ in range(shards + 1))
    target = Target(tuple(range(shards)), ("k",))
    while rows.height:
        size = min(rows.height, chance.choice([1, 2, 5, 20]))
        frame, rows = rows.head(size), rows.slice(size)
        day = date(1970, 1, 1 + chance.randrange(20))
        closed = Pattern.of(k=equal(chance.randrange(4))) if chance.random() < 0.5 else Pattern.of(day=equal(day))
        split = Given(frame, (chance.randrange(size + 1), closed) if marked and chance.random() < 0.4 else None)
        expected = whole.take([split.read(frame.columns).rows])
        accepted, late = list[Any](), list[Any]()
        for label, made in pack(stream, split, tuple(frame.columns), (target,)):
            part = ShardSplit.from_bytes("s", *made.to_bytes())
            taken = take_own_rows(parts[label], part.judged_by(parts[label]))
            accepted += [row for page in taken.elements if isinstance(page, Page) for row in page.frame.rows()]
            late += taken.late.rows()
        pages = [page.frame for page in expected.elements if isinstance(page, Page)]
        assert Counter(accepted) == Counter(row for page in pages for row in page.rows())
        assert Counter(late) == Counter(expected.late.rows())
        for source in parts:
            assert source.snapshot()["ascending"] == whole.snapshot()["ascending"]
            assert (source.newest, source.order()) == (whole.newest, whole.order()) or not stream.schema.time
    assert sum(source.accepted for source in parts) == whole.accepted
    assert sum(source.late for source in parts) == whole.late


def written(folder: Path, connector: str, rows: pl.DataFrame, number: int) -> None:
    path = folder / f"{number:03}"
    match connector:
        case "parquet":
            rows.write_parquet(path)
        case "csv":
            rows.write_csv(path)
        case _:
            rows.with_columns(pl.col("day").cast(pl.String)).write_ndjson(path)
    path.rename(folder / f"{number:03}.{connector}")


@given(
    streams(),
    st.sampled_from(ASKED),
    st.sampled_from(sorted(DECLARED)),
    st.sampled_from(["parquet", "parquet", "csv", "json"]),
    st.integers(0, 10_000),
    st.integers(1, 3),
    st.booleans(),
)
@settings(max_examples=tries(16), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_files_give_what_is_fed(
    folders: Path,
    rows: pl.DataFrame,
    asked: tuple[str, ...],
    declared: str,
    connector: str,
    seed: int,
    shards: int,
    cached: bool,
) -> None:
    expected, counts = fed(asked, DECLARED[declared], rows)
    chance = random.Random(seed)
    folder = folders / str(len(list(folders.iterdir())))
    folder.mkdir()
    host, found = LocalHost(cached=cached), Found()
    options = f"WITH (connector = '{connector}', path = '{folder}', max_rows_per_trigger = {chance.choice([5, 1000])})"
    splits = chance.randint(1, 4)
    with patch.object(file_source, "how_many", lambda total, *_: min(splits, total)):
        mill = host.open(Options(shards=shards))
        begin(mill, asked, DECLARED[declared], options)
        number = 0
        while rows.height:
            size = chance.randint(1, 20)
            written(folder, connector, rows.head(size), number)
            rows, number = rows.slice(size), number + 1
            if chance.random() < 0.6:
                taken(mill, found)
                if chance.random() < 0.4:
                    mill = host.restart(mill)
        taken(mill, found)
        check(found, expected, asked)
        assert counted(mill) == counts


@given(streams(), st.sampled_from(ASKED), st.sampled_from(sorted(DECLARED)), st.integers(0, 10_000), st.integers(1, 3))
@settings(max_examples=tries(8))
def test_dataframes_give_what_is_fed(
    rows: pl.DataFrame, asked: tuple[str, ...], declared: str, seed: int, shards: int
) -> None:
    expected, counts = fed(asked, DECLARED[declared], rows)
    chance = random.Random(seed)
    mill, found = frame_mill(shards), Found()
    begin(mill, asked, DECLARED[declared], "WITH (connector = 'dataframe')")
    jobs = {mill.job(name) for name in asked}
    while rows.height:
        size = chance.randint(1, 20)
        batch, rows = rows.head(size), rows.slice(size)
        with patch.object(frame_packing, "PIECE_ROWS", 7):
            for job in jobs:
                assert isinstance(job, FrameJob)
                job.give(batch, 7)
        taken(mill, found)
    taken(mill, found)
    check(found, expected, asked)
    assert counted(mill) == counts


def test_a_generated_stream_closes_its_numbers() -> None:
    host = LocalHost()
    mill = host.open(Options(shards=2))
    mill.execute(
        "CREATE STREAM auction (id BIGINT, seller BIGINT, ts TIMESTAMP) ORDER BY ts ASCENDING (id) "
        "WITH (connector = 'nexmark', events = 2000)"
    )
    mill.add_query("q", "SELECT id, COUNT(*) AS n FROM auction GROUP BY id")
    mill.drain()
    rows = mill.take_rows("q")
    assert rows.height > 100 and rows["n"].to_list() == [1] * rows.height
    assert mill.state_rows("q") == 0


def test_a_late_tuple_on_another_shard_does_not_count(tmp_path: Path) -> None:
    """The second one is late by `seq`, so that `day` stays where it was."""
    host = LocalHost()
    mill = host.open(Options(shards=3))
    mill.execute(
        "CREATE STREAM s (k BIGINT, seq BIGINT, day BIGINT) ASCENDING (seq) ASCENDING (day) "
        f"WITH (connector = 'parquet', path = '{tmp_path}')"
    )
    mill.add_query("q", "SELECT k, seq, day FROM s")
    mill.add_query("late", "SELECT k FROM s__late")
    for number, row in enumerate([(1, 10, 0), (2, 5, 100), (3, 11, 50)]):
        frame = pl.DataFrame([row], schema=["k", "seq", "day"], orient="row")
        frame.write_parquet(tmp_path / f"{number}.parquet")
        mill.drain()
    assert sorted(mill.take_rows("q")["k"]) == [1, 3] and sorted(mill.take_rows("late")["k"]) == [2]
