"""Rows that all readers of a stream disclaim are left out at its source, and nothing else changes by that.

Two mills read the same files; one of them receives feedback. With SR the rows of the other one, S those of the first
and M the rows that match the feedback: SR − M ⊆ S ⊆ SR, and nothing of M is emitted after the feedback. Accepted, late
and bad rows are counted alike, although the source of the first mill has not read all of them.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.feedback import parse_feedback
from millstream.algebra.punctuation.pattern import Pattern
from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.control.observe.progress import progress_of
from millstream.control.observe.stream_progress import StreamProgress, stream_progress
from tests.control.test_feedback import guards
from tests.tries import tries

KINDS = {
    "plain": "",
    "ordered": "ORDER BY ts",
    "watermarked": "ORDER BY ts WATERMARK FOR ts AS ts - 3",
    "keyed": "ORDER BY ts PRIMARY KEY (v)",
    "ascending": "ORDER BY ts WATERMARK FOR ts AS ts - 20 ASCENDING (v)",
    "punctuated": "ORDER BY ts PUNCTUATED ON (k #)",
}
SUMS = "SELECT window_end, k, SUM(v) AS total FROM s [RANGE 10] GROUP BY k"
QUERIES = {
    "select": "SELECT ts, k, v FROM s",
    "renamed": "SELECT k AS a, v + 1 AS b, ts FROM s WHERE v > 1",
    "sums": SUMS,
    "groups": "SELECT window_end, k, COUNT(*) AS n, MAX(v) AS m FROM s [RANGE 8 SLIDE 4] WHERE v > 0 GROUP BY k",
    "most": f"SELECT window_end, MAX(total) AS most FROM ({SUMS}) sums GROUP BY window_end",
    "pairs": "SELECT a.k, a.v, b.v AS w, b.ts FROM s a [RANGE 4], s b [RANGE 4] WHERE a.k = b.k AND a.v < b.v",
    "by another key": (
        "SELECT p.w, window_end, COUNT(*) AS n FROM (SELECT a.k, b.v AS w, b.ts FROM s a [RANGE 4], s b [RANGE 4] "
        "WHERE a.k = b.k) AS p [RANGE 10] GROUP BY p.w"
    ),
}
FORMS = ("= {0}", "< {0}", "<= {0}", "> {0}", "in [{0}, {1}]", "in {{{0}, {1}}}")
Row = tuple[int | None, int | None, int | None]


class Run:
    def __init__(self, folder: Path, shards: int, kind: str, connector: str, query: str, second: str | None) -> None:
        self.folder, self.connector, self.files = folder, connector, 0
        self.told, self.silent = (LocalMill(Options.read(shards=shards, contracts="off")) for _ in range(2))
        for mill in (self.told, self.silent):
            options = f"connector = '{connector}', path = '{folder}', max_rows_per_trigger = 5"
            mill.execute(f"CREATE STREAM s (ts BIGINT, k BIGINT, v BIGINT) {KINDS[kind]} WITH ({options})")
            mill.add_query("q", QUERIES[query])
            if second is not None:
                mill.add_query("other", QUERIES[second])
        self.names = ["q"] if second is None else ["q", "other"]
        self.got: dict[str, Counter] = {name: Counter() for name in self.names}
        self.all: dict[str, Counter] = {name: Counter() for name in self.names}
        self.patterns: dict[str, list[Pattern]] = {name: [] for name in self.names}

    def write(self, rows: list[Row], bad: int) -> None:
        """Add a file. One column in three files has text, of which some rows are bad."""
        self.files += 1
        path = self.folder / f"{self.files:04}.{self.connector}"
        frame = pl.DataFrame(rows, schema={"ts": pl.Int64, "k": pl.Int64, "v": pl.Int64}, orient="row")
        if bad < 3:
            text = pl.col("v").cast(pl.String)
            frame = frame.with_columns(
                pl.when(pl.int_range(pl.len()) % 4 == bad).then(pl.lit("x")).otherwise(text).alias("v")
            )
        draft = self.folder / f"_{path.name}"
        if self.connector == "parquet":
            frame.write_parquet(draft, row_group_size=2)
        elif self.connector == "csv":
            frame.write_csv(draft)
        else:
            frame.write_ndjson(draft)
        draft.rename(path)

    def matching(self, name: str, row: tuple[Any, ...]) -> bool:
        values = dict(zip(self.told.schema(name).names, row, strict=True))
        return any(pattern.matches(values) for pattern in self.patterns[name])

    def read(self) -> None:
        self.told.drain()
        self.silent.drain()
        for name in self.names:
            rows = self.told.take_rows(name).rows()
            assert not [row for row in rows if self.matching(name, row)]
            self.got[name].update(rows)
            self.all[name].update(self.silent.take_rows(name).rows())

    def tell(self, name: str, which: int, form: str, values: tuple[int, int]) -> None:
        schema = self.told.schema(name)
        usual = [column for column in schema.names if column in ("k", "a", "w", "window_end", "ts")]
        column = usual[0] if which < 6 else schema.names[which % len(schema.names)]
        low, high = (value * 6 if column in ("ts", "window_end") else value for value in sorted(values))
        text = f"~[{column} {form.format(low, high)}]"
        self.told.feedback(name, text)
        self.patterns[name].append(parse_feedback(text, schema).pattern)

    def check(self) -> None:
        for name in self.names:
            assert not self.got[name] - self.all[name]
            assert all(self.matching(name, row) for row in self.all[name] - self.got[name])
        assert self.told.counts("s") == self.silent.counts("s")


values = st.one_of(st.integers(0, 4), st.integers(0, 4), st.none())
late = st.tuples(st.one_of(st.integers(0, 40), st.none()), values, values)
on_time = st.tuples(st.integers(0, 3), values, values)
"""The time since the row before, and the other columns."""
told = st.tuples(st.integers(0, 9), st.sampled_from(FORMS), st.tuples(st.integers(0, 5), st.integers(0, 5)))
phases = st.tuples(
    st.lists(told, max_size=2),
    st.lists(on_time, min_size=1, max_size=12),
    st.lists(late, max_size=3),
    st.integers(0, 8),
    st.booleans(),
)
"""Feedback, a file with rows in order, rows at its end that may be late, bad rows or not, a restart or not."""


@settings(max_examples=tries(100), deadline=None)
@given(
    st.sampled_from(sorted(KINDS)),
    st.sampled_from([1, 3]),
    st.sampled_from(["parquet", "parquet", "csv", "json"]),
    st.sampled_from(sorted(QUERIES)),
    st.sampled_from([None, None, *sorted(QUERIES)]),
    st.lists(phases, min_size=2, max_size=4),
)
def test_nothing_else_changes(
    kind: str, shards: int, connector: str, query: str, second: str | None, script: list[tuple[Any, ...]]
) -> None:
    if kind == "plain":
        query, second = "select", None if second is None else "renamed"
    with TemporaryDirectory() as folder:
        run, time = Run(Path(folder), shards, kind, connector, query, second), 0
        for said, rows, more, bad, restart in script:
            for each in said:
                for name in run.names:
                    run.tell(name, *each)
            found: list[Row] = []
            for since, k, v in rows:
                time += since
                found.append((time, k, v))
            run.write([*found, *more], bad)
            run.read()
            if restart:
                run.told = run.told.restarted()
        run.check()
        run.told.close()
        run.silent.close()


def progress(mill: LocalMill) -> StreamProgress:
    return stream_progress(mill)["s"]


def mill_on(folder: Path, clause: str, query: str, frame: pl.DataFrame, **options: Any) -> LocalMill:
    """A mill that reads a frame as files of 1000 rows with row groups of 100 rows, one file a batch."""
    for number in range(0, frame.height, 1000):
        frame.slice(number, 1000).write_parquet(folder / f"{number:06}.parquet", row_group_size=100)
    mill = LocalMill(Options.read(**options))
    columns = "ts BIGINT, k BIGINT, v BIGINT, name VARCHAR"
    given = f"connector = 'parquet', path = '{folder}', max_files_per_trigger = 1"
    mill.execute(f"CREATE STREAM s ({columns}) {clause} WITH ({given})")
    mill.add_query("q", query)
    return mill


def numbers(height: int = 4000) -> pl.DataFrame:
    """Rows whose key changes every 500 rows."""
    at = pl.int_range(height, eager=True)
    return pl.DataFrame({"ts": at, "k": at // 500, "v": at % 7, "name": at.cast(pl.String)})


def test_row_groups_are_skipped_by_their_statistics(tmp_path: Path) -> None:
    mill = mill_on(tmp_path, "", "SELECT k, v, name FROM s", numbers())
    mill.feedback("q", "~[k < 7]")
    mill.drain()
    assert mill.take_rows("q").height == 500
    skipped = progress(mill).skipped
    assert (skipped.tested, skipped.rows) == (4000, 3500)
    assert (skipped.groups, skipped.groups_read) == (35, 5)
    assert skipped.chunks_read == 5 * 3  # nothing is read of the other row groups
    assert mill.counts("s") == {"accepted": 4000, "late": 0, "bad": 0}
    assert "source s: leaves out [k < 7]: 3,500 of 4,000 rows, 35 of 40 row groups" in str(progress_of(mill, "q"))


def test_only_the_time_is_read_of_skipped_row_groups(tmp_path: Path) -> None:
    query = "SELECT window_end, k, SUM(v) AS total, MAX(name) AS m FROM s [RANGE 100] GROUP BY k"
    mill = mill_on(tmp_path, "ORDER BY ts", query, numbers())
    mill.feedback("q", "~[k < 7]")
    mill.drain()
    assert [row[:2] for row in mill.take_rows("q").rows()] == [(end, 7) for end in (3600, 3700, 3800, 3900)]
    skipped = progress(mill).skipped
    assert (skipped.groups, skipped.groups_read) == (35, 5)
    assert skipped.chunks_read == 35 + 5 * 4


def test_a_later_query_gets_all_rows(tmp_path: Path) -> None:
    mill = mill_on(tmp_path, "ORDER BY ts", "SELECT k, v FROM s", numbers(), shards=2)
    mill.feedback("q", "~[k >= 0]")
    job = next(iter(mill.placements.jobs()))
    assert job.step()  # type: ignore[attr-defined]
    assert progress(mill).skipped.rows == 1000
    mill.add_query("later", "SELECT k, v FROM s")
    mill.drain()
    assert mill.take_rows("later").height == 3000
    assert mill.take_rows("q").height == 0
    mill.execute("DROP QUERY later")
    numbers(1000).with_columns(pl.col("ts") + 4000).write_parquet(tmp_path / "9.parquet", row_group_size=100)
    mill.drain()
    assert progress(mill).skipped.rows == 2000
    assert mill.counts("s")["accepted"] == 5000


def test_a_reader_of_late_rows_gets_all_of_them(tmp_path: Path) -> None:
    frame = numbers(2000).with_columns(pl.when(pl.col("v") == 3).then(0).otherwise(pl.col("ts")).alias("ts"))
    mill = mill_on(tmp_path, "ORDER BY ts", "SELECT k, v FROM s", frame)
    mill.add_query("late", "SELECT k, v FROM s__late")
    mill.feedback("q", "~[k >= 0]")
    mill.drain()
    assert mill.take_rows("late").height == mill.counts("s")["late"] == frame.filter(v=3).height
    assert mill.take_rows("q").height == 0


@pytest.mark.parametrize("query", ["SELECT ts, k, v FROM s", SUMS])
def test_punctuation_ends_the_skipping(tmp_path: Path, query: str) -> None:
    mill = mill_on(tmp_path, "ORDER BY ts", query, numbers(2000))
    column = "ts" if "ts, k" in query else "window_end"
    mill.feedback("q", f"~[{column} < 900]")
    job = next(iter(mill.placements.jobs()))
    assert job.step()  # type: ignore[attr-defined]
    assert progress(mill).skipped.rows >= 890
    mill.drain()
    assert not guards(mill)
    assert not progress(mill).unwanted
    assert not next(iter(mill.placements.jobs()))._reader._latest.unwanted  # type: ignore[attr-defined]


def test_fed_rows_are_dropped_before_they_reach_a_shard() -> None:
    mill = LocalMill(Options.read(shards=2))
    mill.execute("CREATE STREAM s (k BIGINT, v BIGINT)")
    mill.add_query("q", "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 10 SECONDS] GROUP BY k")
    mill.feedback("q", "~[k = 1]")
    mill.insert("s", [(1, 1), (2, 2), (1, None), (None, 3)])
    mill.batch()
    assert progress(mill).skipped.rows == 2
    assert mill.counts("s")["accepted"] == 4
    mill = mill.restarted()
    assert progress(mill).unwanted == ("[k = 1]",)
    mill.insert("s", [(1, 1), (2, 2)])
    mill.batch()
    assert progress(mill).skipped.rows == 3
