"""A tuple that an operator drops or holds, or that came before a query was added, still says what time it is.

Windows over operators that drop tuples, of queries that start at any time: the rows of a window have come out once all
streams have reached its end, and not before, whatever the kinds of time, cuts, shards and strategies. The time of a
stream is that of its newest tuple, of its newest punctuation, or of its watermark.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.config import Options
from millstream.control.mill import LocalMill
from tests.tries import tries

STREAMS = ("a", "b", "c")
KINDS = {
    "ordered": "ORDER BY ts",
    "punctuated": "ORDER BY ts PUNCTUATED ON (ts +)",
    "watermarked": "ORDER BY ts WATERMARK FOR ts AS ts - 2",
}
DELAY = 2
NEVER = -(10**9)
SHAPES = {
    "selections": "SELECT k FROM a WHERE v < 2 UNION ALL SELECT k FROM b WHERE v > 0",
    "duplicates": "SELECT DISTINCT k FROM a UNION ALL SELECT k FROM b",
    "join": "SELECT a.k FROM a [RANGE 3], b [RANGE 3] WHERE a.k = b.k AND a.v < b.v",
    "join without a window": "SELECT a.k FROM a [RANGE 3], b WHERE a.k = b.k AND a.v = 0",
    "join in a union": "SELECT a.k FROM a [RANGE 2], b [RANGE 2] WHERE a.k = b.k AND a.v = 0 UNION ALL SELECT k FROM c",
    "table": "SELECT a.k FROM a JOIN t ON a.k = t.k UNION ALL SELECT k FROM b WHERE v = 0",
    "windows": "SELECT k FROM (SELECT k, SUM(v) AS s FROM a [RANGE 5] GROUP BY k) AS w UNION ALL SELECT k FROM b",
    "having": "SELECT k FROM a [RANGE 5] GROUP BY k HAVING SUM(v) > 9 UNION ALL SELECT k FROM b WHERE v > 1",
    "by time": "SELECT k FROM a WHERE v > 0 GROUP BY ts, k UNION ALL SELECT k FROM b",
    "sequence": "SELECT a.k FROM a, b WHERE SEQ(a, b) MODE RECENT AND a.k = b.k",
    "chronicle": "SELECT x.k FROM (SELECT k, ts FROM a WHERE v = 0) AS x, b WHERE SEQ(x, b) MODE CHRONICLE",
    "three": "SELECT a.k FROM a [RANGE 2], b [RANGE 2], c [RANGE 2] WHERE a.k = b.k AND b.k = c.k AND a.v = 0",
    "nested": "SELECT k FROM (SELECT * FROM a UNION ALL SELECT * FROM b) AS u WHERE v = 1 UNION ALL SELECT k FROM c",
}
OF_THREE = ("join in a union", "three", "nested")
WAYS = [("dfs", 1), ("bfs", 3), ("batch:16", 8192), ("rr", 2)]
"""Strategies, each with a number of rows a page."""


class Run:
    """Random tuples and punctuations of streams, in random batches. `time`: of each stream that is read; `rows`: what
    the query has emitted."""

    def __init__(self, seed: int, shards: int, way: tuple[str, int], query: str, read: str) -> None:
        draw = self.draw = random.Random(seed)
        strategy, page_rows = way
        ets = draw.choice(["demand", "none"])
        self.mill = LocalMill(Options(shards=shards, strategy=strategy, page_rows=page_rows, ets=ets))
        kinds = ["ordered", "punctuated", draw.choice(sorted(KINDS))]
        draw.shuffle(kinds)
        self.kinds = dict(zip(STREAMS, kinds, strict=True))
        for name, kind in self.kinds.items():
            self.mill.execute(f"CREATE STREAM {name} (ts BIGINT, k BIGINT, v BIGINT) {KINDS[kind]}")
        self.mill.execute("CREATE TABLE t (k BIGINT, w BIGINT)")
        self.mill.insert("t", [(1, 1)])
        self.time = dict.fromkeys(read, NEVER)
        self.newest = dict.fromkeys(read, 0)
        self.rows: Counter[tuple[int, ...]] = Counter()
        self.log: list[object] = [self.kinds]
        if draw.random() < 0.5:
            self.mill.add_query("other", draw.choice([query, "SELECT k FROM a WHERE v < 2"]))
        for _ in range(draw.choice([0, 0, 3, 8])):
            self.feed()
            if draw.random() < 0.3:
                self.mill.batch()
        if draw.random() < 0.2:
            self.mill = self.mill.restarted()
        self.mill.add_query("q", query)
        self.log.append("added")

    def feed(self) -> None:
        name = self.draw.choice(sorted(self.time))
        kind, newest = self.kinds[name], self.newest[name]
        if kind == "punctuated" and self.draw.random() < 0.5:
            newest = max(0, newest + self.draw.choice([-2, 0, 3, 9]))
            self.time[name] = max(self.time[name], newest)
            self._feed(name, f"[ts < {newest}]")
        else:
            newest = max(newest + self.draw.choice([0, 1, 5, 9]), self.time[name])
            self._feed(name, f"{newest} | {self.draw.randrange(2)} | {self.draw.randrange(3)}")
            if kind != "punctuated":
                self.time[name] = max(self.time[name], newest - (DELAY if kind == "watermarked" else 0))
        self.newest[name] = max(self.newest[name], newest)

    def _feed(self, name: str, line: str) -> None:
        self.mill.feed_line(name, line)
        self.log.append((name, line))

    def batch(self) -> Counter[tuple[int, ...]]:
        self.mill.batch()
        self.rows.update(self.mill.take_rows("q").rows())
        self.log.append("batch")
        if self.draw.random() < 0.1:
            self.mill = self.mill.restarted()
        return self.rows.copy()

    def end(self) -> Counter[tuple[int, ...]]:
        for name in STREAMS:
            self.mill.feed_line(name, "[*, *, *]")
        return self.batch()


@pytest.mark.parametrize("shape", SHAPES)
@given(st.integers(0, 2**40), st.sampled_from([1, 3]), st.sampled_from(WAYS))
@settings(max_examples=tries(25), deadline=None)
def test_windows_close_with_the_time_of_all_streams(shape: str, seed: int, shards: int, way: tuple[str, int]) -> None:
    query = f"SELECT window_end, COUNT(*) AS n FROM ({SHAPES[shape]}) AS u [RANGE 4]"
    run = Run(seed, shards, way, query, "abc" if shape in OF_THREE else "ab")
    found = []
    for _ in range(run.draw.randrange(1, 20)):
        run.feed()
        if run.draw.random() < 0.8:
            found.append((min(run.time.values()), run.batch()))
    final = run.end()
    for time, rows in found:
        assert rows == Counter({row: n for row, n in final.items() if row[0] <= time}), (time, run.log)
