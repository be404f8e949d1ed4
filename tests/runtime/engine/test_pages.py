"""Pages of many rows: prefixes, bounds, order of arrival, reordering of unordered inputs."""

from __future__ import annotations

import random

import pytest

from millstream.algebra.element import Page
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.punctuation.restriction import below, equal
from millstream.algebra.schema import NEVER
from millstream.runtime.operator.contract import Input, Operator, Output
from tests.runtime.engine.toys import SCHEMA, After, Each, Join, Rig, Silent, Union, merged, page


def rows_at(*times: int) -> Page:
    return page(*((t, t) for t in times))


class Watcher(Union):
    """A union that remembers the inputs of every step."""

    def __init__(self, arity: int = 2) -> None:
        super().__init__(arity)
        self.steps: list[Input | list[Input]] = []

    def process(self, inputs: list[Input]) -> Output:
        self.steps.append(list(inputs))
        return super().process(inputs)


class Two(Rig):
    def __init__(self, operator: Operator, mode: str = "none", ordered: tuple[bool, bool] = (True, True)) -> None:
        super().__init__(mode)
        self.a, self.b = self.source("A"), self.source("B")
        self.node = self.add("∪", operator, self.a, self.b, ordered=ordered)
        self.out = self.sink(self.node)


def test_whole_prefixes_go_in_one_step() -> None:
    watcher = Watcher()
    rig = Two(watcher)
    rig.graph.push(rig.a, rows_at(1, 2, 5, 9))
    rig.graph.push(rig.b, rows_at(2, 5, 5, 7))
    assert rig.run() == "X(∪) B(∪→B) exit"
    (step,) = watcher.steps
    assert [i.rows["v"].to_list() for i in step] == [[1, 2, 5], [2, 5, 5, 7]]
    assert [i.bound for i in step] == [9, 7]
    assert [t for _, t in rig.out.pairs] == [1, 2, 2, 5, 5, 5, 7]
    assert rig.node.ports[0].offset == 3
    assert rig.graph.ledger.held == 4  # the page stays until its last row is taken
    assert rig.graph.statistics()["∪"].buffered == 1
    rig.graph.push(rig.b, rows_at(9, 10))
    rig.run()
    assert [t for _, t in rig.out.pairs][7:] == [9, 9]


def test_equal_timestamps_wait_for_the_port_that_goes_first() -> None:
    sequence = After(chronicle=True)
    rig = Two(sequence)
    rig.graph.push(rig.a, rows_at(1, 5, 5))
    rig.graph.push(rig.b, rows_at(3, 5))
    rig.run()
    assert rig.out.pairs == [(103, 3)]  # 5 finds nobody: the cases at 5 go after it
    assert sequence.window == []
    rig.promise(rig.b, 6)
    rig.run()
    assert sequence.window == [5, 5]


@pytest.mark.parametrize("strategy", ["dfs", "bfs", "rr", "batch:2"])
def test_results_do_not_depend_on_how_pages_are_cut(strategy: str) -> None:
    rng = random.Random(7)
    streams = [sorted(rng.randint(0, 60) for _ in range(40)) for _ in range(2)]

    def run(rows: int) -> list[tuple[int, int]]:
        rig = Two(Join(3, 5), mode="eqg")
        rig.graph.set_strategy(strategy)
        rig.now = 100
        parts = [(times[i], n, times[i : i + rows]) for n, times in enumerate(streams) for i in range(0, 40, rows)]
        for _, n, times in sorted(parts):
            rig.graph.push((rig.a, rig.b)[n], rows_at(*times))
        rig.run()
        return sorted(rig.out.pairs)

    whole = run(40)
    assert len(whole) > 10
    assert all(run(rows) == whole for rows in (1, 3, 7))


def test_elements_that_need_no_order_are_taken_as_they_came() -> None:
    silent = Silent()
    rig = Two(silent)
    for source, value in [(rig.b, 9), (rig.a, 1), (rig.b, 3), (rig.b, 4), (rig.a, 2)]:
        rig.graph.push(source, page((value, value)))
    rig.run()
    assert silent.seen == [(1, [9]), (0, [1]), (1, [3]), (1, [4]), (0, [2])]


class Bounds(Each):
    def __init__(self) -> None:
        super().__init__()
        self.bounds: list[int] = []

    def process(self, inputs: list[Input]) -> Output:
        self.bounds.append(inputs[0].bound)
        return super().process(inputs)


def test_bounds_of_one_input() -> None:
    for ordered, expected in ((True, [7, 7, 9, 9, 12]), (False, [NEVER, NEVER, 9, 9, 12])):
        bounds = Bounds()
        rig = Rig(mode="none")
        source = rig.source("s")
        rig.add("q", bounds, source, ordered=[ordered])
        for element in (rows_at(3, 7), rows_at(7), 9, rows_at(9), 12):
            if isinstance(element, int):
                rig.promise(source, element)
            else:
                rig.graph.push(source, element)
            rig.run()
        assert bounds.bounds == expected


def test_an_unordered_input_waits_for_promises_and_leaves_in_order() -> None:
    rig = Two(Union(), ordered=(False, True))
    rig.graph.push(rig.a, page((1, 8), (2, 3), (3, 5)))
    rig.graph.push(rig.a, page((4, 5), (5, 20)))
    rig.graph.push(rig.b, page((6, 4), (7, 30)))
    rig.run()
    assert rig.out.pairs == []
    assert rig.node.idle()
    assert rig.node.ports[0].bound() == NEVER
    rig.promise(rig.a, 6)
    rig.run()
    assert rig.out.pairs == [(2, 3), (6, 4), (3, 5), (4, 5)]
    assert rig.graph.statistics()["∪"].buffered == 3
    rig.promise(rig.a, 25)
    rig.run()
    assert rig.out.pairs[4:] == [(1, 8), (5, 20)]
    assert rig.node.ports[0].bound() == 25


@pytest.mark.parametrize("mode", ["punctuation", "eqg"])
def test_an_unordered_input_is_freed_on_demand(mode: str) -> None:
    rig = Two(Union(), mode=mode, ordered=(False, False))
    rig.graph.push(rig.a, page((1, 8), (2, 3)))
    rig.graph.push(rig.b, page((3, 5)))
    rig.now = 6
    rig.run()
    assert rig.out.pairs == [(2, 3), (3, 5)]
    rig.now = 8
    rig.run()
    assert rig.out.pairs == [(2, 3), (3, 5), (1, 8)]


class Listener(Union):
    """Notes rows and patterns in the order in which they are handed over."""

    def __init__(self) -> None:
        super().__init__(2)
        self.heard: list[object] = []

    def process(self, inputs: list[Input]) -> Output:
        self.heard += [v for _, _, v in merged(inputs)]
        for i in inputs:
            self.heard += i.punctuations.patterns() if i.punctuations is not None else []
        return Output()


def test_punctuations_stay_behind_the_rows_they_speak_of() -> None:
    listener = Listener()
    rig = Two(listener, ordered=(False, True))
    about_one, about_two = Pattern.of(v=equal(1)), Pattern.of(v=equal(2))
    rig.graph.push(rig.a, page((1, 8), (2, 3)))
    rig.graph.push(rig.a, Punctuations.of([about_two], progress=4))
    rig.graph.push(rig.a, Punctuations.of([about_one], progress=9))
    rig.run()
    assert listener.heard == []
    rig.graph.push(rig.b, page((6, 5)))
    rig.run()
    assert listener.heard == [2, 6, about_two]
    rig.graph.push(rig.b, page((7, 9)))
    rig.run()
    assert listener.heard == [2, 6, about_two, 1, 7, about_one]


def test_patterns_are_handed_over_at_once() -> None:
    listener = Listener()
    rig = Two(listener)
    pattern = Pattern.of(v=below(3))
    rig.graph.push(rig.a, page((5, 5)))
    rig.graph.push(rig.b, Punctuations.of([pattern, pattern], progress=2))
    rig.run()
    assert listener.heard == [pattern, pattern]
    assert rig.graph.statistics()["∪"].punctuations_in == 2


def test_empty_elements_are_dropped() -> None:
    rig = Two(Union())
    rig.graph.push(rig.a, Page(SCHEMA.empty()))
    rig.graph.push(rig.b, Punctuations.of(()))
    assert rig.graph.ledger.held == 0
    assert rig.graph.run() == 0


def test_statistics() -> None:
    rig = Rig()
    source = rig.source("s")
    rig.sink(rig.add("even", Each(lambda v: None if v % 2 else v), source))
    rig.graph.push(source, rows_at(1, 2, 3, 4))
    rig.graph.push(source, rows_at(5))
    rig.run()
    read = rig.graph.statistics()
    assert (read["s"].kind, read["s"].tuples_out) == ("source", 5)
    even = read["even"]
    assert (even.kind, even.steps, even.tuples_in, even.tuples_out, even.selectivity) == ("Each", 2, 5, 2, 0.4)
    assert even.cost > 0
    assert read["sink_even"].tuples_in == 2
    assert rig.graph.ledger.peak == 5
    assert read["s"].selectivity is None
