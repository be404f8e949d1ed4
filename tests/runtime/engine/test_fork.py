"""Shared buffers: turns, cursors, deferred delete, termination (W13; T15; table 3)."""

from __future__ import annotations

import pytest

from millstream.runtime.engine import format_table
from tests.runtime.engine.toys import Each, Rig, Union, running_count, running_sum


class Forked(Rig):
    """σ feeding a running count and a running sum."""

    def __init__(self, strategy: str = "dfs") -> None:
        super().__init__(strategy=strategy)
        self.s = self.source("Source")
        self.select = self.add("σ", Each(), self.s)
        self.most = 0
        """Largest number of tuples in front of the branches."""
        self.graph.on_step = lambda node, _: self._look()
        self.count = self.sink(self.add("Σ1", running_count(), self.select))
        self.sum = self.sink(self.add("Σ2", running_sum(), self.select))

    def _look(self) -> None:
        self.most = max(self.most, len(self.select.buffer))


def test_depth_first_serves_each_tuple_to_all_branches() -> None:
    rig = Forked()
    held: list[int] = []
    rig.graph.on_step = lambda node, _: held.append(len(rig.select.buffer))
    rig.push(rig.s, (5, 1), (7, 2))
    assert rig.run() == (
        "X(σ) fork X(Σ1) B(Σ1→fork) fork X(Σ2) B(Σ2→fork) fork B(fork→σ) "
        "X(σ) fork X(Σ1) B(Σ1→fork) fork X(Σ2) B(Σ2→fork) fork B(fork→σ) B(σ→Source) exit"
    )
    assert rig.count.pairs == [(1, 1), (2, 2)]
    assert rig.sum.pairs == [(5, 1), (12, 2)]
    # Read before each output: still there while Σ1 reads it, gone when Σ2 has taken it.
    assert held == [0, 1, 0, 0, 1, 0]


def test_breadth_first_serves_branch_by_branch() -> None:
    rig = Forked("bfs")
    rig.push(rig.s, (5, 1), (7, 2))
    words = [word for word in rig.run().split() if word.startswith("X")]
    assert words == ["X(σ)", "X(σ)", "X(Σ1)", "X(Σ1)", "X(Σ2)", "X(Σ2)"]
    deep = Forked()
    deep.push(deep.s, (5, 1), (7, 2))
    deep.run()
    assert (rig.most, deep.most) == (2, 1)  # breadth first holds both tuples before the branches, depth first one
    assert rig.count.pairs == [(1, 1), (2, 2)]
    assert rig.sum.pairs == [(5, 1), (12, 2)]


def test_table_3() -> None:
    assert (
        format_table(Forked().graph.table())
        == """
state  pred  succ  transition
σ      –     fork  DFS-Source
fork   σ     Σ1    DFS-Fork
fork   σ     Σ2    DFS-Fork
Σ1     fork  –     DFS-Sink
Σ2     fork  –     DFS-Sink
""".strip()
    )


def test_a_break_at_a_fork_makes_every_branch_a_fragment() -> None:
    rig = Forked()
    rig.graph.set_break("σ")
    assert {tuple(row) for row in rig.graph.table()} == {
        ("σ", "–", "–", "DFS-Source-Sink"),
        ("Σ1", "–", "–", "DFS-Source-Sink"),
        ("Σ2", "–", "–", "DFS-Source-Sink"),
    }
    rig.push(rig.s, (5, 1), (7, 2))
    rig.run()
    assert rig.sum.pairs == [(5, 1), (12, 2)]


def test_elements_go_when_the_last_reader_has_passed_them() -> None:
    rig = Rig()
    source = rig.source("s")
    one = rig.add("c1", Each(), source).ports[0]
    two = rig.add("c2", Each(), source).ports[0]
    rig.push(source, (1, 1), (2, 2), (3, 3))
    buffer = source.buffer

    def physical() -> list[int]:
        return [entry.first for entry in buffer.entries.values()]

    one.advance()
    one.advance()
    assert physical() == [1, 2, 3]
    two.advance()
    assert physical() == [2, 3]
    assert one.head() is buffer.entries[2]
    assert two.head() is buffer.entries[1]


@pytest.mark.parametrize("strategy", ["dfs", "bfs", "rr", "batch:2"])
@pytest.mark.parametrize("mode", ["none", "heartbeat", "punctuation", "eqg"])
def test_a_stream_forked_into_both_inputs_of_a_union_terminates(strategy: str, mode: str) -> None:
    rig = Rig(strategy=strategy, mode=mode)
    source = rig.source("s")
    select = rig.add("σ", Each(lambda v: v if v % 2 else None), source)
    out = rig.sink(rig.add("∪", Union(), select, source))
    rig.push(source, *((v, v) for v in range(1, 8)))
    rig.now = 20
    rig.graph.run(1000)
    rig.promise(source, 20)
    rig.graph.run(1000)
    assert sorted(out.values) == sorted([*range(1, 8), 1, 3, 5, 7])
    assert [t for _, t in out.pairs] == sorted(t for _, t in out.pairs)


def test_one_reader_on_two_ports() -> None:
    rig = Rig()
    source = rig.source("s")
    out = rig.sink(rig.add("∪", Union(), source, source))
    rig.push(source, (1, 1), (2, 2))
    rig.run()
    assert out.values == [1, 1, 2, 2]
    assert [str(arc) for arc in rig.graph.arcs()] == ["s ⇢ ∪.1", "s ⇢ ∪.2"]


def test_names_of_several_forks() -> None:
    rig = Forked()
    rig.add("d", Each(), rig.graph.operators["Σ1"])
    rig.add("e", Each(), rig.graph.operators["Σ1"])
    assert {row.state for row in rig.graph.table()} >= {"fork", "fork Σ1"}
