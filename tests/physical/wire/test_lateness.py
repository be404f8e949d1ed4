"""Shards judge a stream that tasks read in splits as one source judges the whole stream.

Whatever the stream declares, and however it is cut into batches, splits and shards: the same tuples are late, the same
ones are counted, and every shard makes the same promises at the end of every split. A batch that is replayed on the
state before it is the same batch.
"""

from __future__ import annotations

import pickle
import random
from collections import Counter
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.clock import VirtualClock
from millstream.algebra.element import Page
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations, PunctuationSet
from millstream.algebra.punctuation.restriction import below, equal
from millstream.algebra.schema import NEVER, TS, TimeKind
from millstream.algebra.values import value
from millstream.control.mill import LocalMill
from millstream.ingest.arrivals import PunctuatedRows
from millstream.ingest.paged import SplitRows
from millstream.ingest.rows import NO_BAD
from millstream.ingest.source import StreamSource, Taken
from millstream.logical.catalog import StreamDefinition
from millstream.physical.plan.partial import split_aggregate
from millstream.physical.plan.placeholders import Counted
from millstream.physical.wire.own_rows import take_own_rows
from millstream.physical.wire.packing import pack
from millstream.physical.wire.shard_split import PartialStream, ShardSplit, Target
from tests.tries import tries

DECLARED = (
    "", "ORDER BY current_time", "ORDER BY current_time PRIMARY KEY (id)", "PUNCTUATED ON (k #)",
    "ORDER BY ts", "ORDER BY ts MAX SKEW 2", "ORDER BY ts PUNCTUATED ON (k #)", "ORDER BY ts PUNCTUATED ON (ts +)",
    "ORDER BY ts WATERMARK FOR ts AS ts - 3", "ORDER BY ts WATERMARK FOR ts AS ts - 3 PUNCTUATED ON (k #)",
    "PRIMARY KEY (id)", "ORDER BY ts PRIMARY KEY (id)", "ORDER BY ts MAX SKEW 1 PRIMARY KEY (id, k)",
    "ORDER BY ts WATERMARK FOR ts AS ts - 3 PRIMARY KEY (id)",
    "ASCENDING (seq)", "ASCENDING (seq) ASCENDING (id)", "ORDER BY ts ASCENDING (seq)",
    "ORDER BY ts MAX SKEW 2 ASCENDING (seq)",
    "ORDER BY ts WATERMARK FOR ts AS ts - 2 ASCENDING (seq)", "ORDER BY ts PRIMARY KEY (id, k) ASCENDING (seq)",
    "ORDER BY ts PUNCTUATED ON (k #) ASCENDING (seq)",
)  # fmt: skip
FOLDED = ("ORDER BY ts", "ORDER BY ts PUNCTUATED ON (ts +)", "ORDER BY ts WATERMARK FOR ts AS ts - 3")
"""Streams of which partial groups can be sent."""
NAMES = ["id", "k", "seq", "v", "ts"]
PROBES = pl.DataFrame(
    list(product(range(20), range(4), range(-6, 50), range(3), range(-6, 50))), schema=NAMES, orient="row"
).sample(2000, seed=1)
WINDOW = 10


@value("given_in_tests")
@dataclass(frozen=True)
class Given:
    """A split; every read returns the same."""

    frame: pl.DataFrame
    placed: tuple[tuple[int, Pattern], ...] = ()
    rows: int | None = None

    def read(self, columns: Any = None) -> SplitRows:
        rows = self.frame.select(columns or self.frame.columns)
        if not self.placed:
            return SplitRows(rows, NO_BAD)
        places, patterns = zip(*self.placed, strict=True)
        return SplitRows(PunctuatedRows(rows, Punctuations.of(patterns), np.array(places)), NO_BAD)


@dataclass(frozen=True)
class Case:
    declared: str
    batches: tuple[tuple[Given, ...], ...]
    reader: str
    shards: int
    seed: int


@st.composite
def cases(draw: st.DrawFn) -> Case:
    chance = random.Random(draw(st.integers(0, 1 << 30)))
    reader = draw(
        st.sampled_from(["hashed", "hashed", "by two columns", "everywhere", "counted", "folded", "folded", "frames"])
    )
    falls = draw(st.sampled_from([0.0, 0.1, 0.1, 0.3]))
    told = 0.0 if reader == "frames" else draw(st.sampled_from([0.0, 0.0, 0.1, 0.4]))
    timed, ts, seq = draw(st.booleans()), 0, 0
    batches = []
    for _ in range(draw(st.integers(1, 4))):
        splits = []
        for _ in range(draw(st.integers(1, 3))):
            rows, placed = list[tuple[int, ...]](), list[tuple[int, Pattern]]()
            for place in range(draw(st.integers(0, 8))):
                if chance.random() < told:
                    placed.append((place, _pattern(chance, ts, timed)))
                ts, seq = ts + chance.randrange(3), seq + chance.randrange(2)
                old, back = ((chance.random() < falls) * chance.randrange(6) for _ in range(2))
                rows.append((chance.randrange(20), chance.randrange(4), seq - back, chance.randrange(3), ts - old))
            frame = pl.DataFrame(rows, schema=dict.fromkeys(NAMES, pl.Int64), orient="row")
            splits.append(Given(frame, tuple(placed)))
        batches.append(tuple(splits))
    return Case(
        draw(st.sampled_from(FOLDED if reader == "folded" else DECLARED + 3 * FOLDED)),
        tuple(batches),
        reader,
        draw(st.integers(1, 3)),
        chance.randrange(1000),
    )


def _pattern(chance: random.Random, ts: int, timed: bool) -> Pattern:
    bound, key = below(ts + chance.randrange(-3, 5), closed=chance.random() < 0.3), equal(chance.randrange(4))
    others = [Pattern.of(k=key), Pattern.of(k=key, ts=bound), Pattern.of(v=key), Pattern()]
    return Pattern.of(ts=bound) if timed or chance.random() < 0.4 else chance.choices(others, (6, 6, 6, 1))[0]


def target(case: Case, mill: LocalMill) -> Target:
    labels = tuple(range(case.shards))
    match case.reader:
        case "hashed" | "frames":
            return Target(labels, ("k",))
        case "by two columns":
            return Target(labels, ("v", "k"))
        case "everywhere":
            return Target(labels, None)
        case "counted":
            return Target(labels, None, counted=Counted((("k",), ("v",)), frozenset({"v"})))
    mill.add_query("q", f"SELECT k, COUNT(*) AS n FROM s [RANGE {WINDOW}] GROUP BY k")
    made = split_aggregate(mill.query("q").plan)
    assert made is not None
    return Target(labels, None, raw=False, partials=(PartialStream("s~", made.partial, ("k",)),))


class Shard:
    """A source, and its output."""

    def __init__(self, stream: StreamDefinition, columns: list[str]) -> None:
        self.stream, self.columns = stream, columns
        self.clock = VirtualClock()
        self.source = self._fresh()
        self.said, self.progress = PunctuationSet(), NEVER

    def _fresh(self) -> StreamSource:
        return StreamSource(self.stream, self.clock)

    def restart(self, held: bytes) -> None:
        self.source = self._fresh()
        self.source.restore(pickle.loads(held))

    def held(self) -> bytes:
        return pickle.dumps(self.source.snapshot())

    def note(self, taken: Taken) -> list[pl.DataFrame]:
        """The pages, none of which breaks a promise."""
        for element in taken.elements:
            if isinstance(element, Punctuations):
                self.said.add(element)
                self.progress = max(self.progress, element.progress)
        order = self.source.order()
        self.progress = self.progress if order is None else max(self.progress, order.progress)
        return [element.frame for element in taken.elements if isinstance(element, Page)]

    def take(self, part: ShardSplit) -> tuple[Counter[Any], Counter[Any]]:
        """Rows, or groups as (key, window, number), and late rows."""
        part = part.judged_by(self.source)
        taken = take_own_rows(self.source, part)
        pages = self.note(taken)
        if not part.own.partials:
            return self.rows(pages), self.rows([taken.late])
        groups = [
            *part.partials.values(),
            *(part.own.groups(each, page) for page in pages for each in part.own.partials),
        ]
        return windows(groups, "count"), self.rows([taken.late])

    def rows(self, pages: list[pl.DataFrame]) -> Counter[Any]:
        return Counter(row for page in pages for row in page.select(self.columns).rows())


def windows(pages: list[pl.DataFrame], number: str | None = None) -> Counter[Any]:
    made = Counter[Any]()
    for page in pages:
        for row in page.to_dicts():
            made[row["k"], row[TS] // WINDOW] += 1 if number is None else row[number]
    return made


@given(cases())
@settings(max_examples=tries(200))
def test_shards_judge_as_one_source(case: Case) -> None:
    mill, chance = LocalMill(), random.Random(case.seed)
    mill.execute(f"CREATE STREAM s ({', '.join(f'{name} BIGINT' for name in NAMES)}) {case.declared}")
    stream = mill.catalog.stream("s")
    alike = stream.schema.kind is TimeKind.EXTERNAL
    # of rows that are only counted the other columns stay where they belong
    columns = [*(("v",) if case.reader == "counted" else NAMES), TS]
    wanted, whole = target(case, mill), Shard(stream, columns)
    shards = [Shard(stream, columns) for _ in wanted.labels]
    every = case.reader in ("everywhere", "counted")
    for splits in case.batches:
        step = chance.randrange(4) * 1_000_000
        for shard in (whole, *shards):
            shard.clock.advance(step)
        if chance.random() < 0.4:
            assert len({shard.source.ets() for shard in (whole, *shards)}) == 1
        before = [shard.held() for shard in shards]
        for replayed in (False, True):
            if replayed or chance.random() < 0.5:
                for shard, held in zip(shards, before, strict=True):
                    shard.restart(held)
            found, late = Counter[Any](), Counter[Any]()
            for split in splits:
                now = 1 if case.reader == "frames" else 0
                for label, part in pack(stream, split, tuple(NAMES), (wanted,), now):
                    taken, aside = shards[label].take(ShardSplit.from_bytes("s", *part.to_bytes()))
                    if not every or label == 0:
                        found, late = found + taken, late + aside
        taken_whole = whole.source.take([split.read().rows for split in splits])
        pages = whole.note(taken_whole)
        if case.reader == "folded":
            assert found == windows(pages)
        else:
            assert found == whole.rows(pages)
            assert late == whole.rows([taken_whole.late])
        for shard in shards:
            assert shard.said.match(PROBES).equals(whole.said.match(PROBES))
            assert not alike or shard.progress == whole.progress
            assert stream.schema.ordered is False or not alike or shard.source.newest == whole.source.newest
        assert sum(shard.source.accepted for shard in shards) == whole.source.accepted
        assert sum(shard.source.late for shard in shards) == whole.source.late
