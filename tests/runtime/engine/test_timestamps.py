"""Registers, relaxed `more`, the enhanced query graph and enabling timestamps (W3-W8, W15; T16-T22)."""

from __future__ import annotations

import pytest

from millstream.algebra.schema import NEVER
from millstream.errors import OptionError
from millstream.runtime.engine import EtsMode, OperatorNode, Source
from tests.runtime.engine.toys import CountSlide, Each, Join, Rig, TimeCount, Union


def registers(node: OperatorNode) -> tuple[int, ...]:
    return tuple(port.bound() for port in node.ports)


class TwoStreams(Rig):
    """S1 → σ1 → ∪ ← σ2 ← S2"""

    def __init__(self, mode: str = "eqg", strategy: str = "dfs") -> None:
        super().__init__(mode, strategy)
        self.one, self.two = self.source("S1"), self.source("S2")
        self.union = self.add("∪", Union(), self.add("σ1", Each(), self.one), self.add("σ2", Each(), self.two))
        self.out = self.sink(self.union)
        self.now = 20


def test_simultaneous_tuples_all_flow() -> None:
    rig = Rig(mode="none")
    a, b = rig.source("A"), rig.source("B")
    union = rig.add("∪", Union(), a, b)
    out = rig.sink(union)
    rig.push(a, (1, 5), (2, 5))
    rig.push(b, (3, 5), (4, 5))
    rig.run()
    assert out.pairs == [(1, 5), (2, 5), (3, 5), (4, 5)]
    assert registers(union) == (5, 5)
    rig.push(a, (6, 5))
    rig.run()
    assert out.pairs[-1] == (6, 5)


TUPLES = ((10, 10), (11, 11), (12, 12))


def test_without_timestamps_the_union_idles() -> None:
    rig = TwoStreams(mode="none")
    rig.push(rig.one, *TUPLES[:1])
    assert rig.run() == "X(σ1) B(∪→σ2) B(σ2→S2) exit"
    assert rig.out.pairs == []
    assert rig.union.idle()


def test_one_timestamp_on_demand_frees_all() -> None:
    rig = TwoStreams()
    rig.push(rig.one, *TUPLES)
    assert rig.run() == (
        "X(σ1) B(∪→σ2) B(σ2→S2) ETS(S2=20) X(∪) B(∪→σ1) X(σ1) X(∪) B(∪→σ1) X(σ1) X(∪) B(∪→σ1) B(σ1→S1) exit"
    )
    assert rig.out.pairs == list(TUPLES)
    assert registers(rig.union) == (12, 20)
    statistics = rig.graph.statistics()
    assert (statistics["S1"].ets, statistics["S2"].ets, statistics["∪"].ets) == (0, 1, 1)


def test_breadth_first_with_a_timestamp_on_demand() -> None:
    rig = TwoStreams(strategy="bfs")
    rig.push(rig.one, *TUPLES)
    assert rig.run() == ("X(σ1) X(σ1) X(σ1) B(∪→σ2) B(σ2→S2) ETS(S2=20) X(∪) X(∪) X(∪) B(∪→σ1) B(σ1→S1) exit")


def test_nobody_idles_nobody_asks() -> None:
    rig = TwoStreams()
    rig.push(rig.one, (10, 10))
    rig.push(rig.two, (10, 10))
    assert "ETS" not in rig.run()


def test_on_demand_as_punctuation_goes_operator_by_operator() -> None:
    rig = TwoStreams(mode="punctuation")
    rig.push(rig.one, *TUPLES)
    assert rig.run() == (
        "X(σ1) B(∪→σ2) B(σ2→S2) ETS(S2=20) X(σ2) X(∪) X(∪) B(∪→σ1) X(σ1) X(∪) B(∪→σ1) X(σ1) X(∪) B(∪→σ1) B(σ1→S1) exit"
    )
    assert rig.out.pairs == list(TUPLES)


def test_window_join_releases_by_time_and_checks_liveness_at_the_probe() -> None:
    rig = Rig(mode="none")
    a, b = rig.source("A"), rig.source("B")
    keys = {1: "x", 2: "y", 3: "x", 11: "x", 12: "y", 13: "x"}
    join = Join(5, 5, on=lambda left, right: keys[left] == keys[right], into=lambda left, right: 100 * left + right)
    out = rig.sink(rig.add("⋈", join, a, b))
    rig.push(a, (1, 1), (2, 4), (3, 9))
    rig.push(b, (11, 2), (12, 4), (13, 8))
    rig.run()
    assert out.pairs == [(111, 2), (212, 4)]
    rig.promise(b, 10)
    rig.run()
    assert out.pairs == [(111, 2), (212, 4), (313, 9)]


def arcs(rig: Rig) -> list[str]:
    return sorted(str(arc) for arc in rig.graph.arcs())


class Nested(Rig):
    """S1, S2 → U1 → π → U2 ← σ3 ← S3"""

    def __init__(self, mode: str = "eqg", clocks: tuple[int, int, int] = (20, 21, 22)) -> None:
        super().__init__(mode)
        self.s1, self.s2, self.s3 = (self.source(f"S{i + 1}", clocks[i]) for i in range(3))
        self.u1 = self.add("U1", Union(), self.add("σ1", Each(), self.s1), self.add("σ2", Each(), self.s2))
        self.u2 = self.add("U2", Union(), self.add("π", Each(), self.u1), self.add("σ3", Each(), self.s3))
        self.out = self.sink(self.u2)


def test_arcs_of_the_enhanced_graph() -> None:
    rig = Rig()
    rig.sink(rig.add("Q2", Union(1), rig.add("Q1", Each(), rig.source("Source"))))
    assert arcs(rig) == ["Source ⇢ Q2.1"]
    assert arcs(TwoStreams()) == ["S1 ⇢ ∪.1", "S2 ⇢ ∪.2"]
    assert arcs(Nested()) == ["S1 ⇢ U1.1", "S2 ⇢ U1.2", "S3 ⇢ U2.2", "U1 ⇢ U2.1"]


def test_arcs_past_a_fork_and_to_a_timed_operator() -> None:
    rig = Rig()
    s = rig.source("S")
    rig.add("U", Union(), rig.add("σ", Each(), s), s)
    assert arcs(rig) == ["S ⇢ U.1", "S ⇢ U.2"]
    rig = TwoStreams()
    rig.add("Σ", TimeCount(10), rig.add("π", Each(), rig.union))
    assert arcs(rig) == ["S1 ⇢ ∪.1", "S2 ⇢ ∪.2", "∪ ⇢ Σ.1"]


def test_a_slide_by_count_is_skipped() -> None:
    rig = Rig()
    s1, s2 = rig.source("S1"), rig.source("S2")
    out = rig.sink(rig.add("∪", Union(), rig.add("Σ", CountSlide(3), s1), s2))
    assert arcs(rig) == ["S1 ⇢ ∪.1", "S2 ⇢ ∪.2"]
    rig.push(s1, (1, 1), (1, 2), (1, 4), (1, 5))
    rig.push(s2, (9, 3), (9, 5))
    rig.now = 5
    rig.run()
    assert out.pairs == [(9, 3), (3, 4), (9, 5)]


def test_hand_over_is_a_minimum_and_happens_once() -> None:
    rig = Nested()
    rig.graph.arcs()
    one, two = rig.u1.ports
    one.register, two.register, two.active = 20, 21, True
    rig.push(rig.s3, (1, 30))
    trace = rig.run()
    assert trace.count("H(U1⇢U2.1=20)") == 1
    assert rig.u2.ports[0].register == 20
    assert rig.u2.ports[0].active
    assert not one.active
    assert not two.active
    assert "H(" not in rig.run()


def test_only_improvements_are_handed_over() -> None:
    rig = Nested(clocks=(0, 0, 0))
    rig.graph.arcs()
    one, two = rig.u1.ports
    one.register, two.register, two.active = 4, 7, True
    rig.u2.ports[0].register = 4
    rig.push(rig.s3, (1, 30))
    assert "H(" not in rig.run()
    rig.u2.ports[0].register = 3
    assert "H(U1⇢U2.1=4)" in rig.run()


def test_nested_unions_free_a_tuple_within_one_activation() -> None:
    rig = Nested()
    rig.push(rig.s3, (10, 10))
    assert rig.run() == (
        "X(σ3) B(U2→π) B(π→U1) B(U1→σ1) B(σ1→S1) ETS(S1=20) B(U1→σ2) B(σ2→S2) ETS(S2=21) "
        "H(U1⇢U2.1=20) X(U2) B(U2→σ3) B(σ3→S3) exit"
    )
    assert rig.out.pairs == [(10, 10)]


def test_nested_unions_with_punctuation() -> None:
    rig = Nested(mode="punctuation")
    rig.push(rig.s3, (10, 10))
    rig.run()
    assert rig.out.pairs == [(10, 10)]


def test_data_that_moved_time_is_handed_over_even_if_dropped_on_the_way() -> None:
    rig = Rig()
    s1, s2, s3 = (rig.source(name, clock=0) for name in ("S1", "S2", "S3"))
    u1 = rig.add("U1", Union(), s1, s2)
    u2 = rig.add("U2", Union(), rig.add("nothing", Each(lambda _: None), u1), s3)
    out = rig.sink(u2)
    rig.push(s3, (1, 5))
    rig.run()
    assert out.pairs == []
    rig.push(s1, (2, 8))
    rig.push(s2, (3, 9))
    rig.run()
    assert out.pairs == [(1, 5)]


def test_a_useless_timestamp_ends_the_walk() -> None:
    rig = Rig()
    a, b = rig.source("A"), rig.source("B")
    out = rig.sink(rig.add("∪", Union(), a, b))
    rig.promise(b, 3)
    rig.push(a, (5, 5))
    rig.now = 3
    assert "ETS" not in rig.run()
    rig.now = 7
    assert rig.run() == "B(∪→B) ETS(B=7) X(∪) B(∪→A) exit"
    assert out.pairs == [(5, 5)]
    assert "ETS" not in rig.run()


def test_a_union_passes_punctuation_in_its_place() -> None:
    rig = Rig(mode="heartbeat")
    a, b = rig.source("A"), rig.source("B")
    union = rig.add("∪", Union(), a, b)
    out = rig.sink(union)
    rig.push(a, (1, 5), (2, 9))
    rig.promise(b, 7)
    rig.run()
    assert out.story == [(1, 5), 7]
    assert registers(union) == (9, 7)


def test_a_join_tells_the_time_of_tuples_that_matched_nothing() -> None:
    rig = Rig(mode="punctuation")
    a, b = rig.source("A", clock=NEVER), rig.source("B", clock=NEVER)
    join = Join(10, 10, on=lambda left, right: left == right, into=lambda left, _: left)
    out = rig.sink(rig.add("⋈", join, a, b))
    rig.push(a, (1, 1), (26, 14))
    rig.push(b, (1, 5), (1, 12))
    rig.run()
    assert out.story == [1, (1, 5), 12]
    rig.promise(a, 20)
    rig.promise(b, 20)
    rig.run()
    assert out.story == [1, (1, 5), 12, 14, 20]


def test_time_slide_closes_by_tuple_or_by_timestamp() -> None:
    rig = Rig()
    source = rig.source("S")
    out = rig.sink(rig.add("Σ", TimeCount(10), rig.add("σ", Each(), source)))
    rig.push(source, (1, 1), (1, 3))
    rig.now = 5
    rig.run()
    assert out.pairs == []
    rig.push(source, (1, 12))
    rig.now = 13
    rig.run()
    assert out.pairs == [(2, 10)]
    rig.now = 19
    rig.run()
    assert out.pairs == [(2, 10)]
    rig.now = 20
    assert rig.run() == "B(Σ→σ) B(σ→S) ETS(S=20) X(Σ) B(Σ→σ) B(σ→S) exit"
    assert out.pairs == [(2, 10), (1, 20)]
    assert "ETS" not in rig.run()


@pytest.mark.parametrize("mode", ["punctuation", "eqg"])
def test_time_goes_through_a_timed_operator(mode: str) -> None:
    rig = Rig(mode=mode)
    s1, s2 = rig.source("S1"), rig.source("S2")
    out = rig.sink(rig.add("∪", Union(), rig.add("Σ", TimeCount(10), s1), s2))
    rig.push(s2, (7, 7))
    rig.push(s1, (1, 1))
    rig.now = 8
    rig.run()
    assert out.pairs == [(7, 7)]
    rig.now = 25
    rig.push(s2, (22, 22))
    rig.run()
    assert out.pairs == [(7, 7), (1, 10), (22, 22)]


def test_heartbeats_are_sent_when_the_host_says_so() -> None:
    rig = TwoStreams(mode="heartbeat")
    rig.push(rig.one, *TUPLES)
    rig.run()
    assert rig.out.pairs == []
    rig.now = 11
    rig.graph.heartbeat()
    rig.run()
    assert rig.out.pairs == list(TUPLES[:2])
    rig.graph.heartbeat()
    assert rig.graph.run() == 0


def test_modes_switch_while_running() -> None:
    rig = TwoStreams(mode="none")
    rig.push(rig.one, *TUPLES)
    rig.run()
    rig.graph.set_ets("demand")
    assert rig.graph.ets_mode is EtsMode.EQG
    rig.run()
    assert rig.out.pairs == list(TUPLES)
    rig.graph.set_ets("none")
    rig.push(rig.one, (21, 21))
    rig.run()
    assert rig.out.pairs == list(TUPLES)
    rig.graph.set_ets(EtsMode.PUNCTUATION)
    rig.now = 30
    rig.run()
    assert rig.out.pairs == [*TUPLES, (21, 21)]
    with pytest.raises(OptionError, match="unknown way"):
        rig.graph.set_ets("sometimes")


def test_a_clock_that_always_moves_does_not_keep_a_run_from_ending() -> None:
    rig = Rig()

    def ticking(_: object) -> int:
        rig.now += 1
        return rig.now

    source: Source = rig.graph.source("S", rig.source("other").schema, ticking)
    rig.sink(rig.add("Σ", TimeCount(10**9), source))
    rig.push(source, (1, 1))
    rig.run()
    assert rig.now < 20


def test_a_source_that_cannot_promise_is_left_alone() -> None:
    rig = Rig()
    a = rig.source("A")
    b = rig.graph.source("B", a.schema)
    c = rig.graph.source("C", a.schema, lambda _: None)
    out = rig.sink(rig.add("∪", Union(3), a, b, c))
    rig.push(a, (1, 1))
    rig.run()
    rig.graph.heartbeat()
    rig.run()
    assert out.pairs == []
