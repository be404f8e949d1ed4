"""Feedback that operators issue themselves: across stages, and to the sources of streams.

An aggregate that disclaims tuples of its input stands for any operator that does so.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from millstream.algebra.feedback import Feedback, Intent
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import equal, one_of
from millstream.config import Options
from millstream.control.job.local import LocalJob
from millstream.control.mill import LocalMill
from millstream.control.observe.stream_progress import stream_progress
from millstream.physical.wire.hashing import shard_of
from millstream.physical.wire.records import Send
from millstream.runtime.aggregate.grouped import GroupedAggregate
from millstream.runtime.operator.contract import Input, Output
from tests.control.test_feedback import guards

STREAM = "CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts"
ONE_STAGE = "SELECT k, MEDIAN(v) AS m, window_end FROM s [RANGE 100] GROUP BY k"
PAIRS = "SELECT a.k, a.v AS w, b.v AS x, b.ts FROM s a [RANGE 4], s b [RANGE 4] WHERE a.k = b.k"
TWO_STAGES = f"SELECT w, MEDIAN(x) AS m, window_end FROM ({PAIRS}) AS p [RANGE 100] GROUP BY w"


class Issuer:
    """Makes aggregates send feedback with the first rows that they see: `says` returns what, given the rows."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.says: Any = lambda _: None
        process = GroupedAggregate.process

        def issuing(operator: GroupedAggregate, inputs: Sequence[Input]) -> Output:
            output, rows = process(operator, inputs), inputs[0].rows
            message = None if rows is None or not rows.height else self.says(rows)
            assert not output.upstream
            return output if message is None else Output(output.rows, output.punctuations, upstream=((0, message),))

        monkeypatch.setattr(GroupedAggregate, "process", issuing)


@pytest.fixture
def issuer(monkeypatch: pytest.MonkeyPatch) -> Issuer:
    return Issuer(monkeypatch)


def assumed(**restrictions: Any) -> Feedback:
    return Feedback(Intent.ASSUMED, Pattern.of(restrictions))


def mill_with(query: str, shards: int = 3) -> LocalMill:
    mill = LocalMill(Options.read(shards=shards, contracts="off"))
    mill.execute(STREAM)
    mill.add_query("q", query)
    return mill


def rows(first: int) -> list[tuple[int, int, int]]:
    """A row of each key: three shards have some of them."""
    return [(k, k, first) for k in range(12)]


def unwanted(mill: LocalMill) -> tuple[str, ...]:
    mill.sync()
    return stream_progress(mill)["s"].unwanted


def test_what_all_shards_say_reaches_the_source(issuer: Issuer) -> None:
    mill = mill_with(ONE_STAGE)
    issuer.says = lambda _: assumed(v=equal(4))
    mill.insert("s", rows(0))
    mill.batch()
    assert unwanted(mill) == ("[v = 4]",)
    mill.insert("s", rows(10))
    mill.batch()
    assert stream_progress(mill)["s"].skipped.rows == 1
    mill.insert("s", [(0, 0, 100)])
    mill.batch()
    found = dict(row[:2] for row in mill.take_rows("q").rows())
    assert found == {k: float(k) for k in range(12)}


def test_a_shard_speaks_for_its_own_keys_only(issuer: Issuer) -> None:
    mill = mill_with(ONE_STAGE)
    issuer.says = lambda seen: assumed(k=equal(2)) if 2 in seen["k"] else None
    mill.insert("s", rows(0))
    mill.batch()
    assert unwanted(mill) == ("[k = 2]",)
    issuer.says = lambda seen: assumed(v=equal(5)) if 3 in seen["k"] else None
    mill.insert("s", rows(10))
    mill.batch()
    assert unwanted(mill) == ("[k = 2]",)  # other shards have tuples with v = 5
    shards = shard_of(pl.DataFrame({"k": range(12)}), ("k",), 3).tolist()
    other = next(k for k in range(12) if shards[k] != shards[3])
    issuer.says = lambda seen: assumed(k=one_of([3, other])) if 3 in seen["k"] else None
    mill.insert("s", rows(20))
    mill.batch()
    assert unwanted(mill) == ("[k {2, 3}]",)


def test_another_query_that_has_said_nothing(issuer: Issuer) -> None:
    mill = mill_with(ONE_STAGE)
    mill.add_query("plain", "SELECT k, v FROM s")
    issuer.says = lambda _: assumed(v=equal(4))
    mill.insert("s", rows(0))
    mill.batch()
    assert unwanted(mill) == ()
    mill.feedback("plain", "~[v >= 4]")
    mill.batch()
    assert unwanted(mill) == ("[v = 4]",)
    mill.execute("DROP QUERY q")
    mill.batch()
    assert unwanted(mill) == ("[v >= 4]",)


def lower_guards(mill: LocalMill) -> set[str]:
    """Guards in the stage that joins."""
    mill.sync()
    return {guard for guard in guards(mill) if "sink:q/" in guard or "Join" in guard}


def test_it_crosses_stages(issuer: Issuer) -> None:
    mill = mill_with(TWO_STAGES)
    issuer.says = lambda seen: assumed(w=equal(3)) if 3 in seen["w"] else None
    mill.insert("s", rows(0))
    mill.batch()
    assert any(guard == "<sink sink:q/0>: [w = 3]" for guard in lower_guards(mill))
    held = lower_guards(mill)
    mill = mill.restarted()
    assert lower_guards(mill) == held
    mill.insert("s", rows(10))
    mill.batch()
    mill.sync()
    job = next(iter(mill.placements.jobs()))
    sent = [r for r in job.log.read(0, job.log.end()) if isinstance(r, Send) and isinstance(r.message, Feedback)]
    assert len(sent) <= 2  # it is not repeated batch after batch
    issuer.says = lambda _: None
    mill.insert("s", [(0, 0, 200)])
    mill.batch()
    assert {w for w, _, _ in mill.take_rows("q").rows()} == {*range(12)}


def test_desired_feedback_crosses_stages(issuer: Issuer) -> None:
    mill = mill_with(TWO_STAGES)
    issuer.says = lambda seen: Feedback(Intent.DESIRED, Pattern.of(w=equal(3))) if 3 in seen["w"] else None
    mill.insert("s", rows(0))
    mill.batch()
    mill.sync()
    job = next(iter(mill.placements.jobs()))
    sent = [r for r in job.log.read(0, job.log.end()) if isinstance(r, Send) and isinstance(r.message, Feedback)]
    assert [(r.query, str(r.message)) for r in sent] == [("q/0", "?[w = 3]")]


def test_a_new_reader_of_the_operator_does_not_end_it(issuer: Issuer) -> None:
    mill = mill_with(ONE_STAGE, shards=1)
    issuer.says = lambda _: assumed(v=equal(4))
    mill.insert("s", rows(0))
    mill.batch()
    mill.execute(f"CREATE QUERY shares WITH (start = 'shared') AS {ONE_STAGE}")
    mill.batch()
    assert [guard for guard in guards(mill) if "[v = 4]" in guard]
    assert unwanted(mill) == ("[v = 4]",)


def test_it_reaches_a_parquet_source(issuer: Issuer, tmp_path: Path) -> None:
    at = pl.int_range(4000, eager=True)
    frame = pl.DataFrame({"k": at // 500, "v": at % 7, "ts": at})
    for number in range(4):
        frame.slice(number * 1000, 1000).write_parquet(tmp_path / f"{number}.parquet", row_group_size=100)
    mill = LocalMill(Options.read(shards=2, contracts="off"))
    mill.execute(f"{STREAM} WITH (connector = 'parquet', path = '{tmp_path}', max_files_per_trigger = 1)")
    mill.add_query("q", ONE_STAGE)
    issuer.says = lambda _: assumed(k=one_of([3, 4, 5, 6]))
    mill.drain()
    skipped = stream_progress(mill)["s"].skipped
    assert skipped.groups >= 10 and skipped.rows == 100 * skipped.groups
    assert {row[0] for row in mill.take_rows("q").rows()} <= {0, 1, 2, 3, 7}
    assert isinstance(next(iter(mill.placements.jobs())), LocalJob)


def test_pace_keeps_late_rows_from_being_read(tmp_path: Path) -> None:
    at = pl.int_range(4000, eager=True)
    for number in range(4):
        frame = pl.DataFrame({"ts": at % 1000, "name": at.cast(pl.String)}).slice(number * 1000, 1000)
        frame.write_parquet(tmp_path / f"{number}.parquet", row_group_size=100)
    mill = LocalMill(Options.read(shards=2, contracts="off"))
    mill.execute("CREATE STREAM clean (ts BIGINT, name VARCHAR) ORDER BY ts")
    options = f"connector = 'parquet', path = '{tmp_path}', max_files_per_trigger = 1"
    mill.execute(f"CREATE STREAM dirty (ts BIGINT, name VARCHAR) WITH ({options})")
    mill.add_query("q", "SELECT ts, name FROM clean UNION ALL SELECT ts, name FROM dirty WITH PACE ON MAX(ts) 100")
    mill.insert("clean", [(1000, "now")])
    mill.batch()
    mill.drain()
    assert mill.take_rows("q").height == 1 + 4 * 100
    skipped = stream_progress(mill)["dirty"].skipped
    assert skipped.groups == 3 * 9 and skipped.rows == 3 * 900
    assert mill.counts("dirty")["accepted"] == 4000


def test_many_keys_are_one_pattern(issuer: Issuer) -> None:
    mill = mill_with(ONE_STAGE, shards=1)
    left = list(range(2, 202))
    issuer.says = lambda _: assumed(k=equal(left.pop())) if left else None
    for number in range(200):
        mill.insert("s", [(0, 0, number)])
        mill.batch()
    assert len(unwanted(mill)) == 1
    mill.insert("s", [(k, 0, 1000) for k in range(210)])
    mill.batch()
    mill.sync()
    assert stream_progress(mill)["s"].skipped.rows == 200
