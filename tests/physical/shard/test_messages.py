"""Upstream messages through a shard: to its queries, and out through its streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pytest

from millstream.algebra.upstream import Answer, PunctuationRequest, TimeRequest, Upstream
from millstream.control.mill import LocalMill
from millstream.lang import ast, parse
from millstream.logical.plan import Plan
from millstream.physical.shard.host import ShardHost
from millstream.physical.shard.topology import Topology
from millstream.physical.wire.records import OpenGroup, Send, Settings, StartQuery


@dataclass(frozen=True, slots=True)
class Word(Upstream):
    text: str
    everywhere: ClassVar[bool] = False

    def unanswered(self, arity: int) -> Answer:
        return self.to_all(arity)

    def at_fork(self, others: Sequence[Sequence[Upstream]]) -> Upstream | None:
        return self


@dataclass(frozen=True, slots=True)
class Cry(Word):
    everywhere: ClassVar[bool] = True


def plan(text: str) -> Plan:
    mill = LocalMill()
    mill.execute("CREATE STREAM a (k BIGINT, ts BIGINT) ORDER BY ts; CREATE STREAM b (k BIGINT, ts BIGINT) ORDER BY ts")
    (statement,) = parse(text)
    assert isinstance(statement, ast.SelectStatement)
    return mill.plan(statement.select)


OPEN = OpenGroup(1, "m", (4,), None, Settings("dfs", "demand", 8192))
TOP = StartQuery(1, "q", plan("SELECT a.k FROM a [RANGE 5], b [RANGE 5] WHERE a.k = b.k"))
BELOW = StartQuery(1, "q/0", plan("SELECT k + 1 AS k FROM b"), query="q")
OTHER = StartQuery(1, "r", plan("SELECT k FROM a"))


def started() -> ShardHost:
    host = ShardHost()
    for record in (OPEN, TOP, BELOW, OTHER):
        host.apply(record)
    return host


@pytest.mark.parametrize(
    ("message", "query", "reached"),
    [
        (PunctuationRequest(), "q", {"a", "b"}),
        (Word("w"), "q", {"a", "b"}),
        (Word("w"), "r", {"a"}),
        (Word("w"), "q/0", {"b"}),
        (Cry("w"), "q", {"a", "b"}),
    ],
)
def test_a_message_to_a_query_leaves_through_its_streams(message: Upstream, query: str, reached: set[str]) -> None:
    host = started()
    host.apply(Send("m", message, query))
    assert sorted(host.promises.take_messages()) == [(stream, message) for stream in sorted(reached)]
    assert host.promises.take_messages() == ()


def test_a_message_goes_to_all_parts_of_a_query_if_its_kind_says_so() -> None:
    host = ShardHost()
    for record in (OPEN, OTHER, BELOW):
        host.apply(record)
    host.apply(Send("m", Word("w"), "q"))
    assert host.promises.take_messages() == ()
    host.apply(Send("m", Cry("w"), "q"))
    assert host.promises.take_messages() == (("b", Cry("w")),)


def test_a_request_for_time_names_the_stream_once() -> None:
    host = started()
    host.apply(Send("m", TimeRequest(), "q"))
    host.apply(Send("m", TimeRequest(), "q"))
    assert sorted(stream for stream, message in host.promises.take_messages() if message == TimeRequest()) == ["a", "b"]


def test_messages_reach_the_shards_that_run_the_query() -> None:
    topology = Topology()
    for record in (OPEN, OpenGroup(2, "m", (5, 6), None, OPEN.settings), TOP):
        topology.apply(record)
    to_query, to_streams = Send("m", PunctuationRequest(), "q"), Send("m", TimeRequest(), streams=("a",))
    assert topology.apply(to_query) == [(4, to_query)]
    assert topology.apply(to_streams) == [(label, to_streams) for label in (4, 5, 6)]
    assert topology.apply(Send("n", TimeRequest())) == []
