"""Queries share equal operators that read from the same point; those that read from another run side by side."""

from __future__ import annotations

from typing import Any

import polars as pl

from millstream.algebra.element import Page
from millstream.algebra.schema import TS
from millstream.physical.plan.compile import Compiler, in_common, operator_name
from millstream.physical.shard.host import ShardHost
from millstream.physical.wire.records import Feed, OpenGroup, Settings, StartQuery
from millstream.runtime.engine import Graph
from tests.logical.sample import bind

PLAN = bind("SELECT DISTINCT k, v FROM a WHERE v > 1")


class Rig:
    def __init__(self) -> None:
        self.graph = Graph()
        self.compiler = Compiler(self.graph, lambda _: lambda _: None, {})
        self.out: dict[str, list[Any]] = {}

    def start(self, name: str, since: int) -> None:
        self.compiler.add(name, PLAN, self.out.setdefault(name, []).append, since)

    def feed(self, *values: int) -> None:
        one = pl.lit(1, dtype=pl.Int64)
        page = pl.DataFrame({"v": [*values]}).select(one.alias("ts"), one.alias("k"), "v", pl.lit("n").alias("note"))
        self.compiler.push("a", Page(page.with_columns(one.alias(TS))))
        self.graph.run()

    def rows(self, name: str) -> list[int]:
        pages = [page for page in self.out[name] if isinstance(page, Page)]
        return [v for page in pages for v in page.frame.get_column("v").to_list()]


def test_names_depend_on_the_point() -> None:
    assert operator_name(PLAN) == operator_name(PLAN, 0) != operator_name(PLAN, 7) != operator_name(PLAN, 8)


def test_queries_from_the_same_point_share() -> None:
    rig = Rig()
    rig.start("one", 7)
    rig.start("two", 7)
    assert rig.compiler.nodes("one")[:-1] == rig.compiler.nodes("two")[:-1]
    assert len(rig.graph.operators) == len(rig.compiler.operators("one"))


def test_queries_from_different_points_run_side_by_side() -> None:
    rig = Rig()
    rig.start("old", 0)
    rig.feed(2, 3)
    rig.start("new", 7)
    rig.start("joined", 0)
    rig.feed(3, 4)
    assert (rig.rows("old"), rig.rows("new"), rig.rows("joined")) == ([2, 3, 4], [3, 4], [4])
    source, projection, old = rig.compiler.nodes("old")[:-1]
    assert rig.compiler.nodes("new")[:-1] == (source, projection, operator_name(PLAN, 7)) != (source, projection, old)
    rig.compiler.remove("new")
    assert set(rig.graph.operators) == {projection, old}
    rig.feed(5)
    assert rig.rows("old") == [2, 3, 4, 5]
    rig.compiler.remove("old")
    rig.compiler.remove("joined")
    assert not rig.graph.operators and not rig.graph.sources


def test_operators_without_history_are_shared_from_any_point() -> None:
    rows, history = PLAN.inputs[0], (PLAN, 0)
    assert in_common(history, (PLAN, 0)) == [PLAN]
    assert in_common(history, (PLAN, 7)) == [rows]
    assert in_common((rows, 3), (PLAN, 7)) == [rows]


def test_a_shard_starts_a_query_at_the_point_it_has_reached() -> None:
    host = ShardHost()
    host.apply(OpenGroup(1, "m", (1,), None, Settings("dfs", "demand", 100)))
    host.apply(StartQuery(1, "old", PLAN))
    host.apply(StartQuery(1, "twin", PLAN, since=7))
    host.apply(Feed("m", 0, ()))
    host.apply(StartQuery(1, "new", PLAN))
    host.apply(StartQuery(1, "heir", PLAN, shared="old"))
    assert host.points() == {"old": 0, "twin": 0, "new": 1, "heir": 0, "": 1}
    old, twin, new, heir = (host.nodes()[name][:-1] for name in ("old", "twin", "new", "heir"))
    assert old == twin == heir != new
    again = ShardHost(host.setup)
    again.restore(host.snapshot())
    assert again.points() == host.points() and again.nodes() == host.nodes()
