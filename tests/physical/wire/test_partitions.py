"""Rows of several partitions of a DataFrame are judged by the time before their batch.

Whatever the stream declares, and however many shards read it: the rows are late that a reference finds late, tuple by
tuple, and every shard makes the same promises at the end of the batch. Rows of one partition are judged in their order.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.punctuation.punctuations import Punctuations, PunctuationSet
from millstream.algebra.schema import TS, TimeKind
from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.errors import OperatorError
from millstream.logical.catalog import StreamDefinition
from millstream.physical.wire.own_rows import take_own_rows
from millstream.physical.wire.packing import pack
from millstream.physical.wire.partitions import united
from millstream.physical.wire.shard_split import ShardSplit
from tests.physical.wire.frame_jobs import FrameJob, FrameJobs, frame_mill
from tests.physical.wire.test_lateness import DECLARED, FOLDED, NAMES, PROBES, Case, Given, Shard, target, windows
from tests.reference.source import Row, SourceReference
from tests.tries import tries

READERS = ("hashed", "hashed", "by two columns", "everywhere", "counted", "folded")
Partitions = dict[int, list[Given]]
"""The splits of each partition in a batch."""


class BatchReference(SourceReference):
    def take_batch(self, partitions: list[list[Row]]) -> None:
        if len(partitions) == 1:
            for row in partitions[0]:
                self.take(row)
            return
        accepted, keys = list[Row](), set[tuple[Any, ...]]()
        rows = [row for rows in partitions for row in rows]
        for row in rows if self.time is None else sorted(rows, key=lambda row: row["ts"]):
            key = tuple(row[name] for name in self.primary_key)
            if self.is_late(row) or key in keys:
                self.late.append(row)
            else:
                accepted.append(row)
                keys |= {key} if key else set()
        for row in accepted:
            self.accept(row)


@dataclass(frozen=True)
class Run:
    case: Case
    batches: tuple[Partitions, ...]


@st.composite
def runs(draw: st.DrawFn) -> Run:
    chance = random.Random(draw(st.integers(0, 1 << 30)))
    reader = draw(st.sampled_from(READERS))
    declared = draw(st.sampled_from([d for d in (FOLDED if reader == "folded" else DECLARED) if "SKEW" not in d]))
    falls, ts, batches = draw(st.sampled_from([0.0, 0.1, 0.3])), 0, list[Partitions]()
    for _ in range(draw(st.integers(1, 4))):
        dealt, count = defaultdict[int, list[tuple[int, ...]]](list), draw(st.integers(1, 3))
        for _ in range(draw(st.integers(1, 15))):
            ts += chance.randrange(3)
            old, back = ((chance.random() < falls) * chance.randrange(6) for _ in range(2))
            row = (chance.randrange(20), chance.randrange(4), ts - back, chance.randrange(3), ts - old)
            dealt[chance.randrange(count)].append(row)
        batches.append({partition: _pieces(chance, dealt[partition]) for partition in sorted(dealt)})
    return Run(Case(declared, (), reader, draw(st.integers(1, 3)), 0), tuple(batches))


def _pieces(chance: random.Random, rows: list[tuple[int, ...]]) -> list[Given]:
    at = chance.randrange(len(rows))
    parts = [part for part in (rows[:at], rows[at:]) if part]
    return [Given(pl.DataFrame(part, dict.fromkeys(NAMES, pl.Int64), orient="row")) for part in parts]


def _reference(stream: StreamDefinition) -> BatchReference:
    time = stream.schema.time if stream.schema.kind is TimeKind.EXTERNAL else None
    in_order = time is not None and stream.schema.ordered
    return BatchReference(time, in_order, stream.watermark, stream.primary_key, stream.ascending)


def _in_order(pages: list[pl.DataFrame], newest: int | None) -> bool:
    times = pl.concat([pl.Series([newest], dtype=pl.Int64).drop_nulls(), *(page.get_column(TS) for page in pages)])
    return times.is_sorted()


@given(runs())
@settings(max_examples=tries(200))
def test_shards_judge_several_partitions_as_the_reference_does(run: Run) -> None:
    case, mill = run.case, LocalMill()
    mill.execute(f"CREATE STREAM s ({', '.join(f'{name} BIGINT' for name in NAMES)}) {case.declared}")
    stream = mill.catalog.stream("s")
    columns = ["v"] if case.reader == "counted" else NAMES  # the others stay where they belong
    wanted, whole = target(case, mill), _reference(stream)
    shards = [Shard(stream, columns) for _ in wanted.labels]
    every = case.reader in ("everywhere", "counted")
    accepted, late = list[Row](), list[Row]()
    found, aside = Counter[Any](), Counter[Any]()
    for partitions in run.batches:
        whole.take_batch([[row for piece in held for row in piece.frame.to_dicts()] for held in partitions.values()])
        accepted, late = [row for row in whole.out if isinstance(row, dict)], whole.late
        received = defaultdict[int, list[ShardSplit]](list)
        for number, held in partitions.items():
            for piece in held:
                for label, part in pack(stream, piece, tuple(NAMES), (wanted,), 1, number):
                    received[label].append(ShardSplit.from_bytes("s", *part.to_bytes()))
        for label, shard in enumerate(shards):
            before, pages = shard.source.newest, list[pl.DataFrame]()
            for part in united(received[label], {"s": shard.source}):
                assert part.unordered == (len(partitions) > 1)
                judged = part.judged_by(shard.source)
                taken = take_own_rows(shard.source, judged)
                pages += shard.note(taken)
                if every and label:
                    continue
                aside += shard.rows([taken.late])
            assert not whole.in_order or _in_order(pages, before)
            if case.reader == "folded":
                found += windows(
                    [judged.own.groups(each, page) for page in pages for each in judged.own.partials], "count"
                )
            elif not every or label == 0:
                found += shard.rows(pages)
        for shard in shards:
            assert shard.said.match(PROBES).equals(_said(whole).match(PROBES))
            if whole.in_order or whole.watermark is not None:
                assert shard.source.newest == whole.newest
    if case.reader == "folded":
        assert found == windows([pl.DataFrame([{**row, TS: row["ts"]} for row in accepted])])
    else:
        assert found == Counter(tuple(row[name] for name in columns) for row in accepted)
        assert aside == Counter(tuple(row[name] for name in columns) for row in late)
    assert sum(shard.source.accepted for shard in shards) == len(accepted)
    assert sum(shard.source.late for shard in shards) == len(late)


def _said(whole: SourceReference) -> PunctuationSet:
    said = PunctuationSet()
    said.add(Punctuations.of(whole.promises))
    return said


ROWS = pl.DataFrame({"k": [n % 7 for n in range(4000)], "ts": range(4000)})


@pytest.mark.parametrize("declared", ["", "WATERMARK FOR ts AS ts - 5"])
@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize(
    "query", ["SELECT k, ts FROM s", "SELECT window_end, k, COUNT(*) AS n FROM s [RANGE 10] GROUP BY k"]
)
def test_four_partitions(declared: str, shards: int, query: str) -> None:
    """Row n is in partition n mod 4, so that partition by partition three of four would be late."""
    mill = frame_mill(shards)
    mill.execute(f"CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts {declared} WITH (connector = 'dataframe')")
    mill.add_query("q", query)
    mill.add_query("late", "SELECT ts FROM s__late")
    found, expected = Counter[Any](), LocalMill()
    expected.execute("CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts")
    expected.add_query("q", query)
    for start in (0, 2000):
        for partition in range(4):
            _give(mill, ROWS.slice(start, 2000).gather_every(4, partition), partition)
        mill.sync()
        found += Counter(mill.take_rows("q").rows())
    # The time before the next batch is 3999: rows of both partitions are late, whatever comes with them.
    for partition in range(2):
        _give(mill, pl.DataFrame({"k": [0, 0, 0], "ts": [5000, 3980 + partition, 4980]}), partition)
    mill.sync()
    found += Counter(mill.take_rows("q").rows())
    later = pl.DataFrame({"k": [0] * 4, "ts": [4980, 4980, 5000, 5000]})
    expected.insert("s", pl.concat([ROWS, later]))
    expected.batch()
    wanted = Counter(expected.take_rows("q").rows())
    if declared and "window" in query:  # a watermark closes later than an order
        assert found <= wanted and sum(wanted.values()) - sum(found.values()) <= 7
    else:
        assert found == wanted
    assert sorted(mill.take_rows("late")["ts"]) == [3980, 3981]
    assert mill.counts("s") == {"accepted": 4004, "late": 2, "bad": 0}


def test_one_partition_is_exact() -> None:
    mill = frame_mill(2)
    mill.execute("CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts WITH (connector = 'dataframe')")
    mill.add_query("q", "SELECT ts FROM s")
    _give(mill, pl.DataFrame({"k": range(4), "ts": [1, 5, 3, 6]}), 2)
    mill.sync()
    assert sorted(mill.take_rows("q")["ts"]) == [1, 5, 6]
    assert mill.counts("s") == {"accepted": 3, "late": 1, "bad": 0}


def test_rows_without_time_are_bad() -> None:
    mill = frame_mill(2)
    mill.execute("CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts WITH (connector = 'dataframe')")
    mill.add_query("q", "SELECT k, ts FROM s")
    mill.add_query("bad", "SELECT reason FROM s__bad")
    for partition in range(3):
        _give(mill, pl.DataFrame({"k": [1, 2], "ts": [None, partition]}), partition)
    mill.sync()
    assert sorted(mill.take_rows("q")["ts"]) == [0, 1, 2]
    assert mill.take_rows("bad")["reason"].to_list() == ["column 'ts' must not be NULL"] * 3
    assert mill.counts("s") == {"accepted": 3, "late": 0, "bad": 3}


def _give(mill: LocalMill, rows: pl.DataFrame, partition: int) -> None:
    for job in {mill.job(name) for name in mill.queries}:
        assert isinstance(job, FrameJob)
        job.give(rows, 1000, partition)


def test_a_row_on_which_an_operator_fails() -> None:
    """It is found among the rows of all partitions."""
    mill = LocalMill(Options(shards=2), jobs=FrameJobs(shards=2, cached=False))
    mill.adopt("s", object())
    mill.execute("CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts WITH (connector = 'dataframe')")
    mill.add_query("q", "SELECT k * 10000000 AS p FROM s")
    for partition in range(3):
        rows = pl.DataFrame({"k": range(100), "ts": [3 * n + partition for n in range(100)]})
        _give(mill, rows.with_columns(k=pl.when(pl.col("ts") == 151).then(9_000_000_000_000).otherwise("k")), partition)
    with pytest.raises(OperatorError) as caught:
        mill.sync()
    assert (caught.value.stream, caught.value.row) == ("s", "(k = 9000000000000, ts = 151)")
