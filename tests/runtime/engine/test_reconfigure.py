"""Changes while data is under way: breaks, branches, queries added and removed; snapshots."""

from __future__ import annotations

import pytest

from millstream.algebra.values import decode, encode
from millstream.errors import InputError, OptionError
from tests.runtime.engine.toys import Each, Join, Rig, TimeCount, Union, cut_into_paths, page, running_sum


class Path(Rig):
    def __init__(self, strategy: str = "dfs") -> None:
        super().__init__(strategy=strategy)
        self.s = self.source("s")
        self.a = self.add("a", Each(), self.s)
        self.b = self.add("b", Each(), self.a)
        self.out = self.sink(self.b)


def test_a_break_ends_one_fragment_and_begins_another() -> None:
    rig = Path()
    rig.graph.set_break("a")
    rig.push(rig.s, (1, 1), (2, 2))
    assert rig.run() == "X(a) X(a) B(a→s) exit X(b) X(b) exit"
    rig.graph.set_break("a", broken=False)
    rig.push(rig.s, (3, 3))
    assert rig.run() == "X(a) X(b) B(b→a) B(a→s) exit"
    assert rig.out.values == [1, 2, 3]


def test_time_does_not_overtake_data_in_a_break() -> None:
    rig = Rig()
    s1, s2 = rig.source("S1"), rig.source("S2")
    select = rig.add("σ", Each(), s1)
    union = rig.add("∪", Union(), rig.add("π", Each(), select), s2)
    out = rig.sink(union)
    rig.graph.set_break(select)
    rig.push(s1, (1, 5))
    rig.push(s2, (2, 7))
    rig.graph.run(1)  # σ has put 1@5 into the break buffer, nobody has read it
    rig.now = 9
    arc = union.ports[0].arc
    assert arc is not None
    assert not arc.write(9)
    rig.run()
    assert out.pairs == [(1, 5), (2, 7)]
    assert arc.write(11)


@pytest.mark.parametrize("mode", ["eqg", "punctuation"])
@pytest.mark.parametrize("strategy", ["dfs", "rr"])
def test_time_is_asked_across_breaks(mode: str, strategy: str) -> None:
    rig = Rig(mode=mode, strategy=strategy)
    sources = [rig.source(f"S{i}") for i in range(3)]
    inner = rig.add("U1", Union(), rig.add("σ1", Each(), sources[0]), rig.add("σ2", Each(), sources[1]))
    out = rig.sink(rig.add("U2", Union(), rig.add("π", Each(), inner), sources[2]))
    cut_into_paths(rig.graph)
    rig.now = 10
    rig.push(sources[2], (1, 5))
    rig.run()
    assert out.pairs == [(1, 5)]


def test_the_canonical_cut() -> None:
    rig = Rig(strategy="rr")
    s = rig.source("s")
    a = rig.add("a", Each(), s)
    b, c = rig.add("b", Each(), a), rig.add("c", Each(), a)
    rig.add("d", Each(), rig.add("U", Union(), b, c))
    cut_into_paths(rig.graph)
    assert [tuple(row) for row in rig.graph.table()] == [
        ("a", "–", "–", "RR-Source-Sink"),
        ("b", "–", "–", "RR-Source-Sink"),
        ("c", "–", "–", "RR-Source-Sink"),
        ("U", "–", "d", "RR-Source"),
        ("d", "U", "–", "RR-Sink"),
    ]


def test_a_branch_added_later_sees_only_what_comes() -> None:
    rig = Path()
    rig.push(rig.s, (1, 1), (2, 2))
    rig.graph.run(1)
    assert rig.a.buffer.tail == 1
    late = rig.sink(rig.add("late", running_sum(), rig.a))
    assert [row.state for row in rig.graph.table()] == ["a", "fork", "fork", "b", "late"]
    rig.run()
    assert rig.out.values == [1, 2]
    assert late.values == [2]
    rig.graph.remove(late.sink)
    assert [row.state for row in rig.graph.table()] == ["a", "b"]
    assert "late" not in rig.graph.operators
    rig.push(rig.s, (3, 3))
    rig.run()
    assert rig.out.values == [1, 2, 3]
    assert late.values == [2]


def test_an_operator_added_while_running_gets_its_timestamps_in_the_same_run() -> None:
    rig = Path()
    silent = rig.source("silent")
    late = []

    def add(_: object, __: int) -> None:
        if not late:
            late.append(rig.sink(rig.add("∪", Union(), rig.s, silent)))
            rig.push(rig.s, (2, 2))

    rig.graph.on_step = add
    rig.push(rig.s, (1, 1))
    rig.now = 5
    rig.run()
    assert late[0].values == [2]
    assert rig.out.values == [1, 2]


def test_removing_a_slow_branch_frees_what_only_it_held_back() -> None:
    rig = Rig(mode="none")
    s, silent = rig.source("s"), rig.source("silent")
    quick = rig.sink(rig.add("quick", Each(), s))
    slow = rig.sink(rig.add("slow", Union(), s, silent))
    rig.push(s, (1, 1), (2, 2), (3, 3))
    rig.run()
    assert rig.graph.ledger.held == 3
    rig.graph.remove(slow.sink)
    assert rig.graph.ledger.held == 0
    assert quick.values == [1, 2, 3]


def test_removing_a_sink_takes_along_what_fed_only_it() -> None:
    rig = Path()
    other = rig.sink(rig.add("c", Each(), rig.a))
    rig.graph.remove(rig.out.sink)
    assert set(rig.graph.operators) == {"a", "c"}
    rig.graph.remove(other.sink)
    assert rig.graph.operators == {}
    assert set(rig.graph.sources) == {"s"}
    rig.push(rig.s, (1, 1))
    assert rig.graph.ledger.held == 0
    rig.graph.remove(rig.s)
    assert rig.graph.sources == {}


def test_what_is_read_on_two_ways_is_removed_once() -> None:
    rig = Rig()
    shared = rig.add("a", Each(), rig.source("s"))
    sink = rig.sink(rig.add("∪", Union(), rig.add("b", Each(), shared), shared))
    rig.graph.remove(sink.sink)
    assert not rig.graph.operators


def test_what_is_read_cannot_be_removed() -> None:
    rig = Path()
    with pytest.raises(OptionError, match="'a' is still read"):
        rig.graph.remove(rig.a)


def test_an_operator_that_removes_itself_in_a_callback() -> None:
    rig = Path()
    extra = rig.sink(rig.add("extra", Each(), rig.s))
    rig.graph.on_step = lambda node, _: rig.graph.remove(extra.sink) if node.name == "extra" else None
    rig.push(rig.s, (1, 1), (2, 2))
    rig.run()
    assert rig.out.values == [1, 2]
    assert extra.values == []


def test_names_are_made_unique() -> None:
    rig = Path()
    assert rig.graph.add(Each(), [rig.s]).name == "each"
    assert rig.graph.add(Each(), [rig.s]).name == "each_2"


class Everything(Rig):
    """Sources into a join (one input unordered), a timed count and a fork."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = self.source("S1"), self.source("S2")
        select = self.add("σ", Each(lambda v: v if v % 5 else None), self.one)
        join = self.add("⋈", Join(6, 6), select, self.two, ordered=(False, True))
        self.results = [self.sink(join), self.sink(self.add("Σ", TimeCount(10), select))]
        self.feed = [
            (self.one, page((1, 3), (2, 1), (5, 2))),
            (self.two, page((4, 2), (7, 6), (8, 9))),
            (self.one, page((3, 6), (6, 12))),
            (self.two, page((9, 12), (1, 14))),
            (self.one, page((4, 14))),
        ]

    def step(self, number: int) -> None:
        source, element = self.feed[number]
        self.graph.push(source, element)
        self.graph.run(2)

    def end(self) -> list[list[tuple[int, int]]]:
        for source in (self.one, self.two):
            self.promise(source, 100)
        self.graph.run()
        return [sorted(result.pairs) for result in self.results]


@pytest.mark.parametrize("cut", range(6))
def test_a_restored_graph_goes_on_where_it_was(cut: int) -> None:
    straight = Everything()
    for number in range(5):
        straight.step(number)
    expected = straight.end()
    assert all(expected)

    first, second = Everything(), Everything()
    for number in range(cut):
        first.step(number)
    held = first.graph.ledger.held
    value = decode(encode(first.graph.snapshot()))
    for name, node in second.graph.operators.items():
        kept = first.graph.operators[name].operator.tables()
        for key, table in node.operator.tables().items():
            table.restore(kept[key].changes().put, {})
    second.graph.restore(value)
    assert second.graph.ledger.held == held
    for number in range(cut, 5):
        second.step(number)
    after = second.end()
    assert [sorted(a.pairs + b) for a, b in zip(first.results, after, strict=True)] == expected


def test_a_snapshot_of_another_graph_is_refused() -> None:
    with pytest.raises(InputError, match="another graph: operators differ in"):
        Path().graph.restore(Rig().graph.snapshot() | {"sources": Path().graph.snapshot()["sources"]})
    with pytest.raises(InputError, match="format"):
        Path().graph.restore({"format": 0})
