"""Punctuation that follows from the tuples, in streams that jobs read: every shard makes the same in the same batch,
whatever the stream is hashed on, and takes a second tuple with a key for late wherever the first one is."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.clock import VirtualClock
from millstream.algebra.element import Page
from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.control.mill.base import Mill
from millstream.control.observe.progress import progress_of
from millstream.ingest.paged import SplitRows
from millstream.ingest.paged.files import source as file_source
from millstream.ingest.rows import NO_BAD
from millstream.ingest.source import StreamSource
from millstream.physical.spark import frame_packing
from millstream.physical.wire.own_rows import OWN, take_own_rows
from millstream.physical.wire.packing import pack
from millstream.physical.wire.shard_split import ShardSplit, Target
from millstream.testing.runner import LocalHost
from tests.physical.wire.frame_jobs import FrameJob, frame_mill
from tests.tries import tries

COLUMNS = "id BIGINT, k BIGINT, name VARCHAR, ts BIGINT"
DECLARED = {
    "alone": "PRIMARY KEY (id)",
    "two columns": "PRIMARY KEY (id, k)",
    "text": "PRIMARY KEY (name)",
    "in order": "ORDER BY ts PRIMARY KEY (id)",
    "with a watermark": "ORDER BY ts WATERMARK FOR ts AS ts - 3 PRIMARY KEY (id)",
    "with an ascending column": "ORDER BY ts PRIMARY KEY (id) ASCENDING (k)",
    "ascending": "ASCENDING (ts)",
    "a watermark": "ORDER BY ts WATERMARK FOR ts AS ts - 3",
}
QUERIES = {
    "read": "SELECT id, k, name, ts FROM s",
    "by another column": "SELECT x.id, x.k, x.name, y.id AS other FROM s AS x JOIN t AS y ON x.k = y.k",
    "by the key": "SELECT x.id, x.k, x.name FROM s AS x JOIN t AS y ON x.id = y.id",
    "left": "SELECT y.id, x.name FROM t AS y LEFT JOIN s AS x ON x.id = y.id",
    "groups": "SELECT id, COUNT(*) AS n FROM s GROUP BY id",
    "two stages": "SELECT id, COUNT(*) AS n FROM (SELECT x.id, x.k FROM s AS x JOIN t AS y ON x.k = y.k) GROUP BY id",
    "late": "SELECT id, k, name, ts FROM s__late",
}
SCHEMA = {"id": pl.Int64(), "k": pl.Int64(), "name": pl.String(), "ts": pl.Int64()}


@st.composite
def batches(draw: st.DrawFn) -> list[pl.DataFrame]:
    """Rows with some keys twice, some too old, some without a name."""
    chance, made, now = random.Random(draw(st.integers(0, 10_000))), list[pl.DataFrame](), 0
    for _ in range(draw(st.integers(1, 4))):
        rows = []
        for _ in range(draw(st.integers(1, 12))):
            now += chance.randrange(3)
            number = chance.randrange(12)
            late = chance.choice([0, 0, 0, 5])
            rows.append((number, chance.randrange(4), f"n{number}" if chance.random() < 0.95 else None, now - late))
        made.append(pl.DataFrame(rows, schema=SCHEMA, orient="row"))
    return made


def begin(mill: Mill, declared: str, asked: tuple[str, ...], options: str) -> None:
    mill.execute(f"CREATE STREAM s ({COLUMNS}) {declared} {options}")
    mill.execute("CREATE STREAM t (id BIGINT, k BIGINT)" + (" ORDER BY current_time" if "ORDER" in declared else ""))
    for name in asked:
        mill.add_query(name, QUERIES[name])


def taken(mill: LocalMill, asked: tuple[str, ...]) -> list[Any]:
    """The output since the last call, and the tuples held. Of bounds only the last counts, which covers the others."""
    mill.drain()
    made: list[Any] = []
    for name in asked:
        lines = [str(mark) for mark in mill.take_punctuations(name)]
        said = Counter(line for line in lines if "<" not in line), {line.split("<")[0]: line for line in lines}
        made.append((name, Counter(mill.take_rows(name).rows()), said, mill.state_rows(name)))
    mill.request_reports()
    mill.sync()
    streams = {stream for name in asked for stream in progress_of(mill, name).streams if stream.name == "s"}
    return [*made, {(stream.accepted, stream.late) for stream in streams}]


def closing(mill: Mill, number: int) -> None:
    mill.insert("t", [(key, key % 4) for key in range(number, 12, 2)])
    mill.feed_line("t", f"[{number}, *]")
    mill.batch()


def from_files(
    folder: Path, given: list[pl.DataFrame], declared: str, asked: tuple[str, ...], shards: int
) -> list[Any]:
    host, found = LocalHost(), list[Any]()
    folder.mkdir()
    with patch.object(file_source, "how_many", lambda total, *_: min(2, total)):
        mill = host.open(Options(shards=shards))
        begin(mill, declared, asked, f"WITH (connector = 'parquet', path = '{folder}')")
        for number, rows in enumerate(given):
            rows.write_parquet(folder / f"{number:03}.parquet")
            closing(mill, number)
            found.append(taken(mill, asked))
            if number % 2:
                mill = host.restart(mill)
    return found


def from_frames(given: list[pl.DataFrame], declared: str, asked: tuple[str, ...], shards: int) -> list[Any]:
    mill, found = frame_mill(shards), list[Any]()
    begin(mill, declared, asked, "WITH (connector = 'dataframe')")
    for number, rows in enumerate(given):
        with patch.object(frame_packing, "PIECE_ROWS", 5):
            for job in {mill.job(name) for name in asked}:
                assert isinstance(job, FrameJob)
                job.give(rows, 5)
        closing(mill, number)
        found.append(taken(mill, asked))
    return found


ASKED = st.lists(st.sampled_from(sorted(QUERIES)), min_size=1, max_size=2, unique=True).map(tuple)


@given(batches(), st.sampled_from(sorted(DECLARED)), ASKED, st.integers(2, 3))
@settings(max_examples=tries(24))
def test_files(
    tmp_path_factory: pytest.TempPathFactory, given: list[pl.DataFrame], declared: str, asked: Any, shards: int
) -> None:
    folder = tmp_path_factory.mktemp("streams")
    one, many = (from_files(folder / str(n), given, DECLARED[declared], asked, n) for n in (1, shards))
    assert many == one


@given(batches(), st.sampled_from(sorted(DECLARED)), ASKED, st.integers(2, 3))
@settings(max_examples=tries(24))
def test_dataframes(given: list[pl.DataFrame], declared: str, asked: Any, shards: int) -> None:
    one, many = (from_frames(given, DECLARED[declared], asked, n) for n in (1, shards))
    assert many == one


def test_a_key_is_closed_on_every_shard(tmp_path: Path) -> None:
    """The stream is hashed on `k`; the second tuple of key 1 goes to another shard and would be the first one there."""
    host = LocalHost()
    mill = host.open(Options(shards=3))
    mill.execute(
        "CREATE STREAM s (id BIGINT, k BIGINT) PRIMARY KEY (id) "
        f"WITH (connector = 'parquet', path = '{tmp_path}', max_files_per_trigger = 1)"
    )
    mill.execute("CREATE STREAM t (k BIGINT)")
    mill.add_query("q", "SELECT id, COUNT(*) AS n FROM (SELECT s.id FROM s JOIN t ON s.k = t.k) GROUP BY id")
    mill.insert("t", [(7,), (8,), (9,)])
    for number, row in enumerate([(1, 7), (1, 8), (2, 9)]):
        frame = pl.DataFrame([row], schema=["id", "k"], orient="row")
        frame.write_parquet(tmp_path / f"{number}.parquet")
    mill.feed_line("t", "[*]")
    mill.batch()
    mill.drain()
    assert Counter(mill.take_rows("q").rows()) == {(1, 1): 1, (2, 1): 1}
    assert sorted(map(str, mill.take_punctuations("q"))) == ["[id = 1]", "[id = 2]"]
    assert mill.state_rows("q") == 3, "nothing but the tuples of t"


def test_rows_of_other_shards_are_not_sent() -> None:
    mill = LocalMill()
    mill.execute(f"CREATE STREAM s ({COLUMNS}) PRIMARY KEY (id)")
    rows = pl.DataFrame({"id": [1, 2, 1, 3], "k": [0, 1, 2, 3], "name": ["a", "b", "c", "d"], "ts": [5, 6, 7, 8]})
    split, stream = frame_packing.GivenSplit(SplitRows(rows, NO_BAD)), mill.catalog.stream("s")
    made: list[Any] = []
    for _, part in pack(stream, split, tuple(rows.columns), (Target((0, 1), ("k",)),), now=1):
        assert part.common is not None and part.common.columns == ["id", "k", OWN] and part.rows.height == part.count
        for sent in (part, part.unfolded()):
            source = StreamSource(stream, VirtualClock())
            taken = take_own_rows(source, ShardSplit.from_bytes("s", *sent.to_bytes()).judged_by(source))
            made += [row[:-1] for page in taken.elements if isinstance(page, Page) for row in page.frame.rows()]
    assert Counter(made) == Counter(row for row in [*rows.rows(), *rows.rows()] if row[2] != "c")
