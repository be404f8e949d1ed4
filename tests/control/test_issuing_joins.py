"""THRIFTY JOIN and IMPATIENT JOIN: the rows of a plain join, with feedback to the operators before them."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.config import Options
from millstream.control.job.jobs import LocalJobs
from millstream.control.mill import LocalMill
from millstream.control.observe.progress import progress_of
from millstream.errors import MillstreamError
from tests.control.test_feedback import guards
from tests.tries import tries

STREAMS = """
CREATE STREAM a (wid BIGINT, k BIGINT, v BIGINT) ORDER BY wid;
CREATE STREAM b (wid BIGINT, k BIGINT, w BIGINT) ORDER BY wid;
CREATE STREAM c (k BIGINT, v BIGINT) PUNCTUATED ON (k #) PUNCTUATED ON (k +);
CREATE STREAM d (k BIGINT, w BIGINT) PUNCTUATED ON (k #) PUNCTUATED ON (k +);
"""
BY_TIME = "SELECT x.wid, x.k, v, w FROM (SELECT wid, k, v FROM a WHERE v > 0) x {} JOIN "
BY_TIME += "(SELECT wid, k, w FROM b WHERE w > 0) y ON x.wid = y.wid AND x.k = y.k"
BY_KEY = "SELECT x.k, v, w FROM (SELECT k, v FROM c WHERE v > 0) x {} JOIN "
BY_KEY += "(SELECT k, w FROM d WHERE w > 0) y ON x.k = y.k"
WINDOWED = "SELECT x.wid, x.k, v, w FROM (SELECT wid, k, v FROM a WHERE v > 0) [RANGE 3] x {} JOIN "
WINDOWED += "(SELECT wid, k, w FROM b WHERE w > 0) [RANGE 2] y ON x.k = y.k"
QUERIES = (BY_TIME, BY_KEY, WINDOWED)


def mill_with(*queries: str, shards: int = 1) -> LocalMill:
    mill = LocalMill(Options.read(shards=shards, contracts="off"), jobs=LocalJobs(shards=shards))
    mill.execute(STREAMS)
    for number, query in enumerate(queries):
        mill.add_query(f"q{number}", query)
    return mill


def lines(data: st.DataObject) -> list[tuple[str, str]]:
    """Tuples of all streams, in order of time where they have one, and punctuation."""
    chance = random.Random(data.draw(st.integers(0, 10_000)))
    times, closed = {"a": 0, "b": 0}, dict[str, set[int]](c=set(), d=set())
    made: list[tuple[str, str]] = []
    for _ in range(data.draw(st.integers(5, 60))):
        stream = chance.choice("aabbcdcd")
        k, v = chance.randint(0, 4), chance.randint(0, 2)
        if stream in times:
            times[stream] += chance.choice([0, 0, 1, 2, 5])
            made.append((stream, f"{times[stream]} | {k} | {v}"))
        elif chance.random() < 0.4:
            closed[stream].add(k)
            made.append((stream, f"[{k}, *]"))
        elif k not in closed[stream]:
            made.append((stream, f"{k} | {v}"))
    return made


@settings(max_examples=tries(60))
@given(st.data(), st.sampled_from(QUERIES), st.sampled_from(["THRIFTY", "IMPATIENT"]), st.sampled_from([1, 1, 3]))
def test_the_rows_of_a_plain_join(data: st.DataObject, query: str, word: str, shards: int) -> None:
    """Also across restarts. The plain join has selections of its own: it is told nothing."""
    mill = mill_with(query.format(word), query.format("").replace("> 0", ">= 1"), shards=shards)
    got: list[Counter[Any]] = [Counter(), Counter()]
    restarts = data.draw(st.booleans())

    def take() -> None:
        mill.batch()
        for number, rows in enumerate(got):
            rows.update(mill.take_rows(f"q{number}").rows())

    for stream, line in lines(data):
        mill.feed_line(stream, line)
        if data.draw(st.booleans()):
            take()
            mill = mill.restarted() if restarts else mill
    for stream in "abcd":
        mill.feed_line(stream, "[*, *, *]" if stream in "ab" else "[*, *]")
    take()
    assert got[0] == got[1]
    assert not guards(mill)


def test_an_empty_window_is_told_to_the_other_side() -> None:
    mill = mill_with(BY_TIME.format("THRIFTY"))
    mill.insert("b", [(1, 1, 1), (4, 1, 1), (9, 1, 1)])
    mill.batch()
    assert {g.partition(": ")[2] for g in guards(mill)} == {"[wid < 1]", "[wid (1, 4)]", "[wid (4, 9)]"}
    mill.insert("a", [(0, 1, 1), (1, 1, 1), (2, 1, 1), (3, 1, 1), (4, 2, 1), (5, 1, 1), (9, 1, 1)])
    mill.batch()
    assert mill.take_rows("q0").rows() == [(1, 1, 1, 1), (9, 1, 1, 1)]
    progress = progress_of(mill, "q0")
    readings = [operator.reading for operator in progress.operators if operator.reading.kind in ("Select", "Pipeline")]
    skipped = sum(stream.skipped.rows for stream in progress.streams)
    assert sum(reading.disclaimed for reading in readings) + skipped == 4
    assert not guards(mill)  # time has passed them


def test_runs_of_empty_windows_are_one_range() -> None:
    mill = mill_with(BY_TIME.format("THRIFTY"))
    mill.insert("b", [(1, 1, 1)])
    for wid in (5, 6, 7):
        mill.batch()
        mill.insert("b", [(wid, 7, 0)])  # the selection drops it, but time goes on
    mill.batch()
    assert {g.partition(": ")[2] for g in guards(mill)} == {"[wid < 1]", "[wid (1, 7)]"}


def test_closed_keys_are_told_as_sets() -> None:
    mill = mill_with(BY_KEY.format("THRIFTY"))
    mill.insert("d", [(1, 1)])
    mill.punctuate("d", "[1, *]", "[2, *]", "[3, *]")
    mill.batch()
    assert {g.partition(": ")[2] for g in guards(mill)} == {"[k {2, 3}]"}
    mill.insert("c", [(1, 5), (2, 5), (3, 5), (4, 5)])
    mill.batch()
    assert mill.take_rows("q0").rows() == [(1, 5, 1)] and mill.state_rows("q0") == 2
    mill.punctuate("c", "[2, *]")
    mill.batch()
    assert {g.partition(": ")[2] for g in guards(mill)} == {"[k = 3]"}
    mill.punctuate("c", "[< 9, *]")
    mill.batch()
    assert not guards(mill)


def test_an_impatient_join_asks_for_the_keys_it_holds() -> None:
    mill = mill_with(BY_KEY.format("IMPATIENT"))
    mill.insert("c", [(1, 1), (2, 1), (1, 2)])
    mill.batch()
    assert wanted(mill) == {"?[k {1, 2}]"}
    mill.insert("c", [(2, 5), (3, 1)])
    mill.batch()
    assert wanted(mill) == {"?[k {1, 2}]", "?[k = 3]"}
    mill.punctuate("d", "[2, *]", "[3, *]")
    mill.batch()
    assert wanted(mill) == {"?[k = 1]", "~[k {2, 3}]"}  # the other side has closed these


def wanted(mill: LocalMill) -> set[str]:
    """The messages that readers of the selections have sent."""
    shards = [shard for job in mill.placements.jobs() for shard in job._shards.values()]  # type: ignore[attr-defined]
    buffers = [buffer for shard in shards for buffer in shard.host.graph.buffers()]
    return {str(message) for buffer in buffers for sent in buffer.remembered.values() for message in sent}


@pytest.mark.parametrize(
    ("joined", "column"),
    [
        ("a THRIFTY LEFT JOIN b ON a.k = b.k", 19),
        ("a [ROWS 5] IMPATIENT JOIN b ON a.k = b.k", 28),
        ("a THRIFTY JOIN t ON a.k = t.k", 19),
        ("a THRIFTY JOIN b ON a.v < b.w", 19),
        ("a [RANGE 5] IMPATIENT JOIN b [RANGE 5] ON a.v < b.w", 29),
    ],
)
def test_mistakes(joined: str, column: int) -> None:
    mill = mill_with()
    mill.execute("CREATE TABLE t (k BIGINT, z BIGINT)")
    with pytest.raises(MillstreamError, match="M3034") as caught:
        mill.add_query("q", f"SELECT a.v FROM {joined}")
    assert caught.value.column == column


@pytest.mark.parametrize(
    ("query", "operator", "told"),
    [
        (BY_KEY.format("THRIFTY"), "thriftyjoin", "~[k = 3]"),
        (BY_KEY.format("IMPATIENT"), "impatientjoin", "?[k = 2]"),
        ("SELECT k, COUNT(*) AS n FROM c WHERE v > 0 GROUP BY k HAVING COUNT(*) < 2", "windowaggregate", "~[k = 2]"),
        ("SELECT k, COUNT(*) AS n FROM c WHERE v > 0 GROUP BY k HAVING COUNT(*) < 2", "project", "~[k = 2]"),
    ],
)
def test_an_operator_that_passes_nothing_on_keeps_what_it_finds_to_itself(query: str, operator: str, told: str) -> None:
    """It drops the tuples itself."""
    for propagate, passed_on in ((f"on; {operator}: off", False), ("on", True)):
        mill = mill_with()
        mill.set_option("propagate", propagate)
        mill.add_query("q0", query)
        mill.insert("c", [(2, 1), (2, 1)])
        mill.punctuate("d", "[3, *]")
        mill.batch()
        assert any(operator not in name.lower() for name in senders(mill, told)) is passed_on


def test_an_operator_that_is_switched_on_tells_what_it_has_found() -> None:
    mill = mill_with(BY_KEY.format("THRIFTY"))
    mill.set_option("propagate", "on; thriftyjoin: off")
    mill.punctuate("d", "[2, *]")
    mill.batch()
    assert len(senders(mill, "~[k = 2]")) == 1
    mill = mill.restarted()
    mill.insert("c", [(2, 1), (3, 1)])
    mill.batch()
    assert mill.state_rows("q0") == 1
    mill.execute("SET propagate = 'on'")
    mill.batch()
    assert len(senders(mill, "~[k = 2]")) > 1


def senders(mill: LocalMill, text: str) -> set[str]:
    """The readers that have sent a message."""
    shards = [shard for job in mill.placements.jobs() for shard in job._shards.values()]  # type: ignore[attr-defined]
    buffers = [buffer for shard in shards for buffer in shard.host.graph.buffers()]
    found = [(name, str(message)) for buffer in buffers for name, sent in buffer.remembered.items() for message in sent]
    return {name for name, message in found if message == text}
