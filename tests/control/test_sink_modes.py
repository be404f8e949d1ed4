"""What sinks get of a query with early answers, and a consumer that upserts by key and revision."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.errors import OptionError
from millstream.sinks import MemorySink
from tests.tries import tries

STREAM = "CREATE STREAM s (ts BIGINT, k BIGINT, v BIGINT) ORDER BY ts"
FULL = "SELECT window_end AS w, k, SUM(v) AS total, finality AS f, revision AS r FROM s [RANGE 10] GROUP BY k"
PLAIN = "SELECT window_end, k, SUM(v) AS total FROM s [RANGE 10] GROUP BY k EMIT EARLY"


def fed(query: str, sink: Any, **options: Any) -> None:
    with ms.connect(local=True) as mill:
        mill.sql(STREAM)
        mill.sql(query).start(sink, name="q", **options)
        mill.insert("s", [(1, 1, 1), (2, 2, 2)])
        mill.prod("s")
        mill.insert("s", [(3, 1, 4), (11, 1, 8)])
        mill.prod("s", "{k = 1}")


EARLY = [(10, 1, 1, "early", 1), (10, 2, 2, "early", 1), (20, 1, 8, "early", 1)]
FINAL = [(10, 1, 5, "final", 2), (10, 2, 2, "final", 2)]


@pytest.mark.parametrize(("mode", "expected"), [(None, FINAL), ("final", FINAL), ("all", sorted(EARLY + FINAL))])
def test_files(mode: str | None, expected: list[Any], tmp_path: Path) -> None:
    """By default files have what a reader who knows nothing of early rows takes them for."""
    fed(FULL, "parquet", path=tmp_path / "out", **({} if mode is None else {"mode": mode}))
    assert sorted(pl.read_parquet(tmp_path / "out" / "*.parquet").rows()) == expected


@pytest.mark.parametrize(("mode", "expected"), [("all", EARLY + FINAL), ("upsert", EARLY + FINAL), ("final", FINAL)])
def test_memory(mode: str, expected: list[Any]) -> None:
    for options in ({"mode": mode}, {}) if mode == "all" else ({"mode": mode},):
        sink = MemorySink()
        fed(FULL, sink, **options)
        assert sorted(sink.take_rows().rows()) == sorted(expected)


def test_rows_that_lack_tuples_are_final() -> None:
    query = FULL.replace("FROM s", "FROM EXPENSIVE(TABLE s, v + 0 AS w, budget => 9, shed => TRUE)")
    expected = [(10, 1, 1, "final-shed", 2), (10, 2, 2, "final", 2)]
    for mode in ("final", "upsert"):
        sink = MemorySink()
        with ms.connect(local=True) as mill:
            mill.sql(STREAM)
            mill.sql(query).start(sink, name="q", mode=mode)
            mill.insert("s", [(1, 1, 1), (2, 2, 2)])
            mill.prod("s", "{ts = 10}")
            mill.insert("s", [(3, 1, 4), (11, 1, 8)])
        rows = sorted(sink.take_rows().rows())
        assert [row for row in rows if mode == "final" or (row[0] == 10 and row[3] != "early")] == expected


def test_one_row_for_each_key_and_batch() -> None:
    batches: list[list[Any]] = []
    with ms.connect(local=True) as mill:
        mill.sql(STREAM)
        mill.sql(FULL).start(lambda _, rows: batches.append(rows.rows()), name="q", mode="upsert")
        mill.mill.insert("s", [(1, 1, 1)])
        mill.mill.prod("s")
        mill.mill.insert("s", [(2, 1, 2), (3, 2, 4)])
        mill.mill.prod("s")
        mill.mill.batch()
        mill.mill.sync()
    assert [sorted(rows) for rows in batches if rows] == [[(10, 1, 3, "early", 2), (10, 2, 4, "early", 1)]]


def test_rows_that_do_not_say_what_they_are(tmp_path: Path) -> None:
    for options in ({"path": tmp_path / "a"}, {"path": tmp_path / "b", "mode": "final"}):
        with pytest.raises(OptionError, match=r"(?s)M6046.*finality"):
            fed(PLAIN, "parquet", **options)
    with pytest.raises(OptionError, match=r"M6046.*does not return k"):
        fed(FULL.replace("k, SUM", "SUM"), lambda *_: None, mode="upsert")
    with pytest.raises(OptionError, match=r"M6002.*upsert"):
        fed(FULL, "parquet", path=tmp_path / "c", mode="upsert")
    with pytest.raises(OptionError, match="M6002"):
        fed(FULL, "parquet", path=tmp_path / "d", mode="some")
    fed(PLAIN, "parquet", path=tmp_path / "e", mode="all")
    assert pl.read_parquet(tmp_path / "e" / "*.parquet").height == 5


def test_a_query_without_early_answers_needs_no_mode(tmp_path: Path) -> None:
    fed(PLAIN.removesuffix(" EMIT EARLY"), "parquet", path=tmp_path / "out", mode="final")
    assert pl.read_parquet(tmp_path / "out" / "*.parquet").height == 2


def test_a_sink_says_what_it_takes() -> None:
    class Finals(MemorySink):
        modes = ("final",)

    sink = Finals()
    fed(FULL, sink)
    assert sorted(sink.take_rows().rows()) == FINAL


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(-9, 9)), max_size=25),
    st.sampled_from(["all", "upsert"]),
    st.integers(1, 1000),
)
@settings(max_examples=tries(30))
def test_an_upserted_table_is_right(steps: list[tuple[int, int, int]], mode: str, seed: int) -> None:
    """After each prod of everything the table has the sums of all rows so far, whatever came before; so it has in the
    end. Batches that are repeated change nothing."""
    chance, ts = random.Random(seed), 0
    table: dict[tuple[int, int], tuple[int, int]] = {}
    sums: dict[tuple[int, int], int] = {}

    def upsert(_: int, rows: pl.DataFrame) -> None:
        for end, k, total, _finality, revision in [*rows.rows(), *rows.rows()]:
            if table.get((end, k), (0, 0))[1] < revision:
                table[end, k] = total, revision

    with ms.connect(local=True, shards=chance.choice([1, 2])) as mill:
        mill.sql(STREAM)
        mill.sql(FULL).start(upsert, name="q", mode=mode)
        for step, k, v in steps:
            ts += step
            mill.insert("s", [(ts, k, v)])
            key = (ts // 10 + 1) * 10, k
            sums[key] = sums.get(key, 0) + v
            if chance.random() < 0.4:
                mill.prod("s", chance.choice(["{}", "{k = 1}"]))
        mill.prod("s")
        assert {key: total for key, (total, _) in table.items()} == sums
