"""Elements that keep their position among the tuples.

A flag goes after all tuples of its input before it and before all tuples after it, whatever the strategy, the cuts and
the way of promising time.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from millstream.algebra.element import Element, Page
from millstream.algebra.expression import Column, Literal
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.schema import Schema
from millstream.algebra.types import Type
from millstream.errors import PlanError
from millstream.runtime.engine import OperatorNode, Source
from millstream.runtime.operator.capabilities import KeepsPosition
from millstream.runtime.operator.contract import Input, Operator, Output
from millstream.runtime.pipeline.pipeline import Pipeline
from millstream.runtime.pipeline.project import Project
from millstream.runtime.pipeline.select import Select
from tests.runtime.engine.toys import (
    SCHEMA,
    Each,
    Join,
    Pair,
    Recorder,
    Rig,
    TimeCount,
    Union,
    cut_into_paths,
    frame,
    page,
    pairs_of,
)

STRATEGIES = ("dfs", "bfs", "rr", "batch:2", "batch:7")
MODES = ("none", "heartbeat", "punctuation", "eqg")


@dataclass(frozen=True, slots=True)
class Flag(Element):
    name: str
    column: str = "v"

    def __bool__(self) -> bool:
        return True

    def select(self, names: Mapping[str, str]) -> Flag:
        return Flag(self.name, names.get(self.column, "gone"))


class Noting(KeepsPosition):
    """Notes which tuples and flags it has taken, port by port, and passes flags on."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.taken: list[tuple[int, Pair | str]] = []

    def process(self, inputs: Sequence[Input]) -> Output:
        self.taken += [(port, pair) for port, i in enumerate(inputs) for pair in pairs_of(i.rows)]
        return super().process(inputs)  # type: ignore[misc,no-any-return]

    def meet(self, port: int, element: Element) -> Output:
        assert isinstance(element, Flag)
        self.taken.append((port, element.name))
        return Output(elements=(element,))

    def of(self, port: int) -> list[Pair | str]:
        return [what for at, what in self.taken if at == port]


class NotedEach(Noting, Each):
    pass


class NotedUnion(Noting, Union):
    pass


class NotedArrival(Noting, Union):
    merges = False


class NotedJoin(Noting, Join):
    pass


class Answering(TimeCount, KeepsPosition):
    """Answers a flag with the counts of the windows that are open."""

    def meet(self, port: int, element: Element) -> Output:
        rows = frame(*((count, end) for end, count in sorted(self.counts.items()))) if self.counts else None
        return Output(rows, elements=(element,))


def story(recorder: Recorder) -> list[Pair | str]:
    """Tuples and flags in order."""
    made: list[Pair | str] = []
    for element in recorder.elements:
        if isinstance(element, Page):
            made += element.frame.rows()
        elif isinstance(element, Flag):
            made.append(element.name)
    return made


class Feed(Rig):
    """Sources with random pages, punctuations and flags."""

    def __init__(self, seed: int, sources: int, *, ordered: bool = True) -> None:
        self.rng = random.Random(seed)
        super().__init__(self.rng.choice(MODES), "dfs")
        self.graph.page_rows = self.rng.choice([1, 2, 8192])
        self.sources = [self.source(f"S{i}") for i in range(sources)]
        self.sent: list[list[Pair | str]] = [[] for _ in self.sources]
        self.ordered = ordered
        self.flags = 0

    def begin(self) -> None:
        strategy = self.rng.choice(STRATEGIES)
        self.graph.set_strategy(strategy)
        if strategy == "rr":
            cut_into_paths(self.graph)

    def play(self, steps: int = 25) -> None:
        self.begin()
        for _ in range(steps):
            self.arrive(self.rng.randrange(len(self.sources)))
            if self.rng.random() < 0.4:
                self.graph.run(self.rng.choice([1, 3, None]))
            if self.rng.random() < 0.2:
                self.graph.restore(pickle.loads(pickle.dumps(self.graph.snapshot())))
        self.now = 10**6
        for source in self.sources:
            self.promise(source, self.now)
        self.graph.run()
        assert self.graph.ledger.held == 0

    def arrive(self, number: int) -> None:
        source, chance = self.sources[number], self.rng.random()
        if chance < 0.3:
            self.flags += 1
            self.sent[number].append(f"f{self.flags}")
            self.graph.push(source, Flag(f"f{self.flags}"))
        elif chance < 0.45:
            self.promise(source, self.now)
        else:
            count = self.rng.randint(1, 4)
            self.now += self.rng.randint(0, 3)
            times = [self.now + (i // 2 if self.ordered else self.rng.randint(0, 6)) for i in range(count)]
            pairs = [(self.rng.randrange(100), t) for t in times]
            self.now = max(times) if self.ordered else self.now
            self.sent[number] += pairs
            self.graph.push(source, page(*pairs))


@pytest.mark.parametrize("seed", range(60))
def test_chains_keep_what_is_before_and_after(seed: int) -> None:
    feed = Feed(seed, 1)
    node: Source | OperatorNode = feed.sources[0]
    for number in range(feed.rng.randint(1, 4)):
        node = feed.add(f"{number}", NotedEach(lambda v: v if v % 5 else None), node)
    out, other = feed.sink(node), feed.sink(feed.add("branch", NotedEach(lambda v: v if v % 3 else None), node))
    feed.play()
    sent = feed.sent[0]
    assert story(out) == [what for what in sent if isinstance(what, str) or what[0] % 5]
    assert story(other) == [what for what in sent if isinstance(what, str) or (what[0] % 5 and what[0] % 3)]


@pytest.mark.parametrize("kind", [NotedUnion, NotedArrival, NotedJoin])
@pytest.mark.parametrize("seed", range(40))
def test_operators_with_several_inputs_keep_it_port_by_port(seed: int, kind: type[Operator]) -> None:
    feed = Feed(seed, 2)
    inputs: list[Source | OperatorNode] = [feed.add("σ", NotedEach(), feed.sources[0]), feed.sources[1]]
    operator: Any = kind(6, 6) if kind is NotedJoin else kind(2)
    out = feed.sink(feed.add("both", operator, *inputs))
    feed.play(40)
    for port, sent in enumerate(feed.sent):
        assert operator.of(port) == sent
    flags = [what for sent in feed.sent for what in sent if isinstance(what, str)]
    assert sorted(flags) == sorted(what for what in story(out) if isinstance(what, str))


@pytest.mark.parametrize("seed", range(60))
def test_where_tuples_are_reordered_time_goes_first(seed: int) -> None:
    """A flag goes after every tuple before it. A tuple after it goes first only if it is older than one before it."""
    feed = Feed(seed, 2, ordered=False)
    operator = NotedUnion(2)
    feed.add("∪", operator, *feed.sources, ordered=(False, False))
    feed.play(40)
    for port, sent in enumerate(feed.sent):
        held: list[tuple[int, int, Pair | str]] = []
        latest = -1
        for number, what in enumerate(sent):
            latest = latest if isinstance(what, str) else max(latest, what[1])
            held.append((latest if isinstance(what, str) else what[1], number, what))
        assert operator.of(port) == [what for _, _, what in sorted(held)]


def test_a_flag_waits_for_no_other_input() -> None:
    rig = Rig(mode="none")
    a, b = rig.source("A"), rig.source("B")
    operator = NotedUnion(2)
    rig.add("∪", operator, a, b)
    rig.graph.push(b, Flag("f"))
    rig.push(a, (1, 5))
    rig.graph.push(a, Flag("g"))
    rig.run()
    assert operator.taken == [(1, "f")], "a tuple waits for the time of B, and so does the flag behind it"
    rig.promise(b, 5)
    rig.run()
    assert operator.taken == [(1, "f"), (0, (1, 5)), (0, "g")]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("cut", [True, False])
def test_the_time_behind_a_flag_is_not_heard_before_it(mode: str, strategy: str, cut: bool) -> None:
    """The answer of a timed operator is over the tuples before the flag, and time told before it has closed windows."""
    rig = Rig(mode, strategy)
    source = rig.source("S", clock=0)
    out = rig.sink(rig.add("σ", NotedEach(), rig.add("Σ", Answering(10), rig.add("π", NotedEach(), source))))
    given = [page((1, 3), (1, 8), (1, 12)), Flag("f"), page((1, 15), (1, 41)), Flag("g"), page((1, 77))]
    for element in given:
        rig.graph.push(source, element)
        if cut:
            rig.run()
    rig.run()
    assert story(out) == [(2, 10), (1, 20), "f", (2, 20), (1, 50), "g", (1, 50)]


def test_the_time_behind_a_flag_is_passed_on_behind_it() -> None:
    rig = Rig("eqg")
    a, b = rig.source("A", clock=0), rig.source("B", clock=0)
    out = rig.sink(rig.add("Σ", Answering(10), rig.add("∪", NotedUnion(2), a, b)))
    rig.promise(b, 6)  # from now on the union tells the time in band
    rig.push(a, (1, 5))
    rig.run()
    rig.graph.promise(b, 20)
    rig.graph.push(a, Flag("f"))
    rig.push(a, (1, 50))
    rig.run()
    assert story(out) == [(1, 10), "f", (1, 10)], "before the flag time stands at 5, and the window is open"


@pytest.mark.parametrize("early", [0, 21])
def test_the_time_before_a_flag_is_heard_before_it(early: int) -> None:
    rig = Rig("eqg")
    source = rig.source("S", clock=0)
    out = rig.sink(rig.add("Σ", Answering(10), source))
    rig.push(source, (1, 12))
    rig.run()
    rig.graph.promise(source, early)
    rig.graph.push(source, Flag("f"))
    rig.run()
    assert story(out) == [(1, 20), "f"]
    rig.promise(source, 100)
    rig.run()
    assert story(out) == ([(1, 20), "f"] if early else [(1, 20), "f", (1, 20)])


def test_punctuation_keeps_its_side_of_a_flag() -> None:
    rig = Rig("none", "batch:5")
    source = rig.source("S")
    out = rig.sink(rig.add("σ", NotedEach(), source))
    for element in (page((1, 1), (2, 2)), Flag("f"), page((3, 3), (4, 4)), Punctuations.of((), progress=5), Flag("g")):
        rig.graph.push(source, element)
    rig.run()
    kinds = [element.name if isinstance(element, Flag) else type(element).__name__ for element in out.elements]
    assert kinds == ["Page", "f", "Page", "Punctuations", "g"]


def test_stateless_operators_forward() -> None:
    other = Schema.of(("w", Type.BIGINT))
    column, flag = Column(Type.BIGINT, "v"), Flag("f")
    select = Select(SCHEMA, Literal(Type.BOOLEAN, True))
    project = Project(SCHEMA, other, (("w", column),))
    blind = Project(SCHEMA, other, (("w", Literal(Type.BIGINT, 1)),))
    assert select.meet(0, flag).elements == (flag,)
    assert project.meet(0, flag).elements == (Flag("f", "w"),)
    assert blind.meet(0, flag).elements == (Flag("f", "gone"),)
    assert Pipeline([select, project], None, [("w", column)]).meet(0, flag).elements == (Flag("f", "w"),)


def test_an_operator_that_does_not_know_it_says_so() -> None:
    rig = Rig()
    source = rig.source("S")
    rig.add("Σ", TimeCount(10), source)
    rig.graph.push(source, Flag("f"))
    with pytest.raises(PlanError, match="M3091: TimeCount does not take a Flag among its tuples"):
        rig.run()


def test_a_restored_graph_holds_any_element() -> None:
    rig, again = Rig("none"), Rig("none")
    for each in (rig, again):
        each.made = NotedUnion(2)  # type: ignore[attr-defined]
        each.add("∪", each.made, each.source("A"), each.source("B"), ordered=(False, True))  # type: ignore[attr-defined]
    a = rig.graph.sources["A"]
    rig.graph.push(a, page((1, 8), (2, 3)))
    rig.graph.push(a, Flag("f"))
    rig.push(a, (3, 5))
    rig.run()
    rig.graph.push(a, Flag("g"))
    again.graph.restore(pickle.loads(pickle.dumps(rig.graph.snapshot())))
    for name in ("A", "B"):
        again.promise(again.graph.sources[name], 100)
    again.run()
    assert again.made.of(0) == [(2, 3), (3, 5), (1, 8), "f", "g"]  # type: ignore[attr-defined]
