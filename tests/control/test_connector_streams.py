"""Streams with a connector against a model that reads row by row: queries come and go, streams are dropped and created
again, files appear, the mill restarts.

The model: a stream that a query reads takes all rows that are there, one by one; one without readers stands still. A
query sees the rows that are taken while it runs. Order, keys and counts belong to the stream.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.config import Options
from millstream.control.mill import LocalMill
from tests.reference.source import SourceReference
from tests.tries import tries

KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "ordered": ("ORDER BY ts", {"in_order": True}),
    "watermarked": ("ORDER BY ts WATERMARK FOR ts AS ts - 3", {"watermark": 3}),
    "keyed": ("ORDER BY ts PRIMARY KEY (v)", {"in_order": True, "primary_key": ("v",)}),
}
RANGE = 10
SUMS = "SELECT window_end, k, SUM(v) AS total FROM s [RANGE 10] GROUP BY k"
QUERIES = {
    "plain": "SELECT ts, k, v FROM s",
    "late": "SELECT ts, k, v FROM s__late",
    "bad": "SELECT input FROM s__bad",
    "one": "SELECT 1 AS one FROM s",
    "sums": SUMS,
    "most": f"SELECT window_end, MAX(total) AS most FROM ({SUMS}) sums GROUP BY window_end",
}
Row = dict[str, int] | str
"""A row, or a line that is none."""


@dataclass
class Model:
    kind: str
    source: SourceReference = field(init=False)
    waiting: list[Row] = field(default_factory=list)
    bad: int = 0
    seen: dict[str, list[Row]] = field(default_factory=dict)
    """The accepted rows that each query has seen."""
    expected: dict[str, Counter[tuple[Any, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.source = SourceReference(**KINDS[self.kind][1])

    def read(self) -> None:
        if not self.seen:
            return
        for row in self.waiting:
            self.take(row)
        self.waiting = []
        for name, rows in self.seen.items():
            if name in ("sums", "most"):
                self.expected[name] = self.windows(rows, most=name == "most")

    def take(self, row: Row) -> None:
        if isinstance(row, str):
            self.bad += 1
            self.add("bad", (row,))
            return
        accepted = len(self.source.out)
        self.source.take(row)
        new = [each for each in self.source.out[accepted:] if isinstance(each, dict)]
        for each in new:
            self.add("plain", (each["ts"], each["k"], each["v"]))
            self.add("one", (1,))
            for rows in self.seen.values():
                rows.append(each)
        if not new:
            self.add("late", (row["ts"], row["k"], row["v"]))

    def add(self, name: str, row: tuple[Any, ...]) -> None:
        if name in self.seen:
            self.expected[name][row] += 1

    def windows(self, rows: list[Row], *, most: bool) -> Counter[tuple[Any, ...]]:
        """The windows that time has closed."""
        if self.source.newest is None:
            return Counter()
        bound = self.source.newest - (self.source.watermark or 0)
        sums: Counter[tuple[int, int]] = Counter()
        for row in rows:
            assert isinstance(row, dict)
            sums[row["ts"] // RANGE * RANGE + RANGE, row["k"]] += row["v"]
        closed = {key: total for key, total in sums.items() if key[0] <= bound}
        if not most:
            return Counter((end, k, total) for (end, k), total in closed.items())
        return Counter((end, max(t for (e, _), t in closed.items() if e == end)) for end in {end for end, _ in closed})


class Run:
    """The model and the mill side by side."""

    def __init__(self, folder: Path, shards: int, kind: str) -> None:
        self.folder, self.files, self.streams = folder, 0, 0
        self.mill = LocalMill(Options.read(shards=shards))
        self.found: dict[str, Counter[tuple[Any, ...]]] = {}
        self.create(kind)

    def create(self, kind: str) -> None:
        self.model = Model(kind)
        self.streams += 1
        self.path = self.folder / str(self.streams)
        self.path.mkdir()
        clause, _ = KINDS[kind]
        columns = "ts BIGINT, k BIGINT, v BIGINT"
        self.mill.execute(f"CREATE STREAM s ({columns}) {clause} WITH (connector = 'csv', path = '{self.path}')")

    def again(self, kind: str) -> None:
        for name in list(self.model.seen):
            self.drop(name)
        self.mill.execute("DROP STREAM s")
        self.create(kind)

    def write(self, rows: list[Row]) -> None:
        lines = [row if isinstance(row, str) else f"{row['ts']},{row['k']},{row['v']}" for row in rows]
        self.files += 1
        (self.path / f"{self.files:04}.csv").write_text("\n".join(["ts,k,v", *lines, ""]))
        self.model.waiting += rows

    def add(self, name: str) -> None:
        if name == "most" and self.model.kind != "watermarked":
            return  # without punctuation the outer groups stay open
        if name not in self.model.seen:
            self.model.seen[name], self.model.expected[name], self.found[name] = [], Counter(), Counter()
            self.mill.add_query(name, QUERIES[name])

    def drop(self, name: str) -> None:
        if name in self.model.seen:
            self.collect()
            self.check()
            self.mill.execute(f"DROP QUERY {name}")
            del self.model.seen[name], self.model.expected[name], self.found[name]

    def read(self) -> None:
        self.mill.drain()
        self.model.read()
        self.collect()
        self.check()

    def collect(self) -> None:
        for name, rows in self.found.items():
            rows.update(self.mill.take_rows(name).rows())

    def restart(self) -> None:
        self.collect()
        self.mill = self.mill.restarted()

    def check(self) -> None:
        assert self.found == {name: +rows for name, rows in self.model.expected.items()}
        source = self.model.source
        accepted = sum(isinstance(each, dict) for each in source.out)
        assert self.mill.counts("s") == {"accepted": accepted, "late": len(source.late), "bad": self.model.bad}


rows = st.one_of(
    st.builds(lambda ts, k, v: {"ts": ts, "k": k, "v": v}, st.integers(0, 40), st.integers(0, 3), st.integers(0, 9)),
    st.sampled_from(["x,1,1", "1,2"]),
)
steps = st.one_of(
    st.tuples(st.just("write"), st.lists(rows, max_size=5)),
    st.tuples(st.just("add"), st.sampled_from(sorted(QUERIES))),
    st.tuples(st.just("drop"), st.sampled_from(sorted(QUERIES))),
    st.tuples(st.just("read")),
    st.tuples(st.just("restart")),
    st.tuples(st.just("again"), st.sampled_from(sorted(KINDS))),
)


@settings(max_examples=tries(60), deadline=None)
@given(st.sampled_from(sorted(KINDS)), st.sampled_from([1, 3]), st.lists(steps, max_size=14))
def test_queries_and_streams_come_and_go(kind: str, shards: int, script: list[tuple[Any, ...]]) -> None:
    with TemporaryDirectory() as folder:
        run = Run(Path(folder), shards, kind)
        for step, *arguments in script:
            getattr(run, step)(*arguments)
        run.read()
        run.mill.close()
