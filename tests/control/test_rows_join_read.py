"""Windows that count rows over streams that jobs read themselves: late tuples, other queries, numbers."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.control.observe.progress import progress_of
from millstream.ingest.paged import SplitRows
from millstream.ingest.rows import NO_BAD
from millstream.physical.plan.placeholders import counted
from millstream.physical.spark.frame_packing import GivenSplit
from millstream.physical.wire.own_rows import OWN
from millstream.physical.wire.packing import pack
from millstream.physical.wire.shard_split import Target
from millstream.testing.runner import LocalHost
from tests.tries import tries

Row = tuple[int | None, int, int]
DECLARED = """
    CREATE STREAM {name} (k BIGINT, v BIGINT, ts BIGINT) {time}
        WITH (connector = 'csv', path = '{path}', max_files_per_trigger = 1, once = true)
"""
TIMES = ["ORDER BY ts", "ORDER BY ts PRIMARY KEY (v)", "ORDER BY ts WATERMARK FOR ts AS ts - 2"]
"""If a key closes together with the end of the stream, shards may emit its punctuation or not."""
QUERIES = [
    "SELECT x.v, y.v AS w FROM s1 x [ROWS 3], s2 y WHERE x.k = y.k",
    "SELECT x.v, y.v AS w FROM s1 x [ROWS 2], s2 y [ROWS 4] WHERE x.k = y.k AND x.v > y.v",
    "SELECT x.v, y.v AS w FROM s1 x [RANGE 9], (SELECT * FROM s2 WHERE v > 3) y [ROWS 3] WHERE x.k = y.k",
    "SELECT x.v, y.v AS w, z.v AS u FROM s1 x [ROWS 2], s2 y [RANGE 9], s1 z [ROWS 3] WHERE x.k = y.k AND y.k = z.k",
    "SELECT x.v, y.v AS w FROM (SELECT k + 1 AS k, v FROM s1 WHERE v < 9) x [ROWS 3], s2 y [RANGE 9] WHERE x.k = y.k",
    "SELECT x.v, y.v AS w FROM (SELECT v, k AS q FROM s1 WHERE k < 2) x [ROWS 3] LEFT JOIN s2 y [ROWS 2] ON x.q = y.k",
]
OTHERS = [
    "SELECT k, v FROM s1",
    "SELECT x.v, y.k FROM s1 x [ROWS 2], s2 y [ROWS 3] WHERE x.v = y.v",
    "SELECT k, COUNT(*) AS n FROM s2 [RANGE 5] GROUP BY k",
]


@st.composite
def files(draw: st.DrawFn) -> tuple[tuple[Row, ...], ...]:
    """Rows of files, some of them late."""
    made, now, number = [], 0, 0
    for _ in range(draw(st.integers(1, 3))):
        rows: list[Row] = []
        for _ in range(draw(st.integers(1, 8))):
            now += draw(st.integers(0, 2))
            number += 1
            rows.append((draw(st.sampled_from([0, 1, 2, None])), number, now - draw(st.sampled_from([0, 0, 0, 4]))))
        made.append(tuple(rows))
    return tuple(made)


def write(folder: Path, parts: tuple[tuple[Row, ...], ...]) -> None:
    folder.mkdir()
    for number, rows in enumerate(parts):
        lines = [f"{'' if k is None else k},{v},{ts}" for k, v, ts in rows]
        (folder / f"{number}.csv").write_text("\n".join(["k,v,ts", *lines]) + "\n")


def outcome(
    folder: Path, queries: tuple[str, str], times: tuple[str, str], shards: int, cached: bool
) -> dict[str, Any]:
    mill = LocalHost(cached=cached).open(Options(shards=shards))
    for name, time in zip(("s1", "s2"), times, strict=True):
        mill.execute(DECLARED.format(name=name, path=folder / name, time=time))
    for name, query in zip(("q", "other"), queries, strict=True):
        mill.add_query(name, query)
    mill.drain()
    rows = {name: Counter(mill.take_rows(name).rows()) for name in ("q", "other")}
    emitted = Counter(map(str, mill.take_punctuations("q"))) if times == (TIMES[0], TIMES[0]) else None
    progress = progress_of(mill, "q")
    streams = [(stream.name, stream.accepted, stream.late) for stream in progress.streams]
    return {**rows, "emitted": emitted, "streams": streams, "rows in": progress.rows_in, "state": progress.state_rows}


@given(
    st.tuples(files(), files()),
    st.tuples(st.sampled_from(QUERIES), st.sampled_from(OTHERS)),
    st.tuples(st.sampled_from(TIMES), st.sampled_from(TIMES)),
    st.integers(2, 3),
    st.booleans(),
)
@settings(max_examples=tries(20))
def test_shards_do_not_change_what_is_read(
    given_files: Any, queries: tuple[str, str], times: tuple[str, str], shards: int, cached: bool
) -> None:
    with tempfile.TemporaryDirectory() as made:
        for name, parts in zip(("s1", "s2"), given_files, strict=True):
            write(Path(made) / name, parts)
        one, many = (outcome(Path(made), queries, times, count, cached) for count in (1, shards))
    assert many == one
    assert one["rows in"] == sum(len(rows) for parts in given_files for rows in parts)


def test_shards_get_only_the_time_of_tuples_of_other_shards() -> None:
    mill, sent = LocalMill(Options(shards=2)), 0
    mill.execute("CREATE STREAM s1 (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts")
    mill.execute("CREATE STREAM s2 (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts")
    mill.add_query("q", QUERIES[2])
    (whole,) = mill.prepare("q", mill.query("q").plan)
    assert counted([whole.plan], "s1") is None, "it is hashed"
    needed = counted([whole.plan], "s2")
    assert needed is not None and (needed.keys, needed.columns) == ((("k",),), {"v"})
    rows = pl.DataFrame({"k": [1, 2, 3, 4], "v": [5, 6, 7, 8], "ts": [1, 2, 3, 4], "text": ["a", "b", "c", "d"]})
    split = GivenSplit(SplitRows(rows, NO_BAD))
    target = Target((0, 1), None, counted=needed)
    for _, part in pack(mill.catalog.stream("s2"), split, tuple(rows.columns), (target,), now=1):
        assert part.common is not None and part.common.columns == ["v", "ts", OWN] and part.common.height == 4
        sent += part.rows.height
        filled = part.unfolded().rows
        assert filled.columns == rows.columns and filled["v"].equals(rows["v"])
        assert filled["text"].null_count() == 4 - part.rows.height
    assert sent == 4
