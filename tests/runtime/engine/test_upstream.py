"""The router: messages against the data, translated, stopped, answered, and what reaches the sources."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pytest

from millstream.algebra.upstream import Answer, PunctuationRequest, TimeRequest, Upstream
from millstream.runtime.engine import OperatorNode, Sink, Source
from millstream.runtime.exchange import Exchange
from millstream.runtime.operator.capabilities import AnswersMessages
from millstream.runtime.operator.contract import Input, Output
from tests.runtime.engine.toys import SCHEMA, Each, Join, Rig, Union, page


@dataclass(frozen=True, slots=True)
class Unwanted(Upstream):
    """A reader has no use for tuples with this value in a column; what all readers say goes on."""

    column: str
    remembered: ClassVar[bool] = True

    def unanswered(self, arity: int) -> Answer:
        return Answer()

    def at_fork(self, others: Sequence[Sequence[Upstream]]) -> Upstream | None:
        return self if all(self in said for said in others) else None


class Heeding(Each, AnswersMessages):
    """A selection: notes the message and passes it on."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[Upstream] = []

    def answer(self, message: Upstream) -> Answer:
        self.heard.append(message)
        return message.to_all(1)


class Renaming(Heeding):
    """A projection of `old` as `new`: what it puts out otherwise says nothing of its input."""

    def __init__(self, new: str, old: str) -> None:
        super().__init__()
        self.new, self.old = new, old

    def answer(self, message: Upstream) -> Answer:
        if not isinstance(message, Unwanted):
            return super().answer(message)
        self.heard.append(message)
        return Answer(((0, Unwanted(self.old)),)) if message.column == self.new else Answer()


class Sided(Join, AnswersMessages):
    """A join whose left columns begin with `l`."""

    def answer(self, message: Upstream) -> Answer:
        if not isinstance(message, Unwanted):
            return message.unanswered(self.arity)
        return Answer(((0 if message.column.startswith("l") else 1, message),))


class Late(Heeding):
    """Does what the message asks when nothing moves: it emits what it has been keeping, with its name."""

    done: ClassVar[list[str]] = []

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def answer(self, message: Upstream) -> Answer:
        return Answer(message.to_all(1).passed, then=lambda: self.done.append(self.name))


class Net(Rig):
    """A graph whose sources keep the messages that reach them."""

    def __init__(self, mode: str = "eqg") -> None:
        super().__init__(mode)
        self.reached: list[tuple[str, Upstream]] = []

    def source(self, name: str, clock: int | None = None) -> Source:
        def hear(message: Upstream) -> int | None:
            self.reached.append((name, message))
            return clock if isinstance(message, TimeRequest) else None

        return self.graph.source(name, SCHEMA, hear)

    def top(self, node: Source | OperatorNode, name: str = "top") -> Sink:
        return self.graph.sink(node, lambda _: None, name=name)


def test_a_message_is_translated_on_its_way_to_the_source_it_speaks_of() -> None:
    net = Net()
    select = Heeding()
    left = net.add("π", Renaming("left", "a"), net.add("σ", select, net.source("A")))
    join = net.add("⋈", Sided(1, 1), left, net.add("ρ", Renaming("right", "b"), net.source("B")))
    top = net.top(net.add("top π", Renaming("x", "left"), join), "q")
    net.graph.send(top, Unwanted("x"))
    assert net.reached == [("A", Unwanted("a"))] and select.heard == [Unwanted("a")]
    net.graph.send(top, Unwanted("y"))
    net.graph.send(join.ports[1], Unwanted("right"))
    assert net.reached == [("A", Unwanted("a")), ("B", Unwanted("b"))], "y is computed, and the message stops there"


def test_the_kind_says_what_an_operator_does_that_does_not_care() -> None:
    net = Net()
    union = net.add("∪", Union(2), net.source("A"), net.add("σ", Each(), net.source("B")))
    top = net.top(union)
    net.graph.send(top, Unwanted("v"))
    assert net.reached == []
    net.graph.send(top, PunctuationRequest())
    assert net.reached == [("A", PunctuationRequest()), ("B", PunctuationRequest())]


def test_a_fork_passes_what_all_readers_have_said() -> None:
    net = Net()
    select = net.add("σ", Heeding(), net.source("A"))
    one, two = net.top(select, "one"), net.top(net.add("π", Renaming("x", "v"), select), "two")
    net.graph.send(one, PunctuationRequest())
    assert net.reached == [("A", PunctuationRequest())], "a request passes"
    net.graph.send(two, Unwanted("x"))
    assert len(net.reached) == 1
    held = pickle.loads(pickle.dumps(net.graph.snapshot()))
    net.graph.send(one, Unwanted("v"))
    assert net.reached[1:] == [("A", Unwanted("v"))]
    net.graph.restore(held)
    net.graph.send(one, Unwanted("w"))
    assert len(net.reached) == 2
    net.graph.send(one, Unwanted("v"))
    assert net.reached[2:] == [("A", Unwanted("v"))], "what readers said outlives a restart"


def test_a_reader_that_is_gone_has_said_nothing() -> None:
    net = Net()
    select = net.add("σ", Heeding(), net.source("A"))
    one, two, three = (net.top(select, name) for name in ("one", "two", "three"))
    net.graph.send(one, Unwanted("v"))
    net.graph.remove(one)
    net.graph.send(two, Unwanted("v"))
    assert net.reached == []
    net.graph.remove(three)
    net.graph.send(two, Unwanted("v"))
    assert net.reached == [("A", Unwanted("v"))]


def test_an_operator_hears_equal_messages_once_and_acts_after_those_it_reads() -> None:
    net, Late.done = Net(), []
    first = net.add("first", Late("first"), net.source("A"))
    second = net.add("second", Late("second"), first)
    top = net.top(net.add("third", Late("third"), net.add("∪", Union(2), first, second)))
    net.graph.send(top, PunctuationRequest())
    assert net.reached == [("A", PunctuationRequest())] and Late.done == [], "nothing is done before the graph runs"
    net.run()
    assert Late.done == ["first", "second", "third"]


class Complaining(Each):
    """Has no use for a value that it has seen, and says so."""

    def process(self, inputs: Sequence[Input]) -> Output:
        return Output(inputs[0].rows, upstream=((0, Unwanted("v")),))


def test_an_operator_raises_messages_in_its_step() -> None:
    net = Net()
    select, source = Heeding(), net.source("A")
    out = net.sink(net.add("complaining", Complaining(), net.add("σ", select, source)))
    net.graph.push(source, page((1, 1), (2, 2)))
    net.run()
    assert net.reached == [("A", Unwanted("v"))] == [("A", select.heard[0])] and out.pairs == [(1, 1), (2, 2)]


@pytest.mark.parametrize("mode", ["eqg", "punctuation"])
def test_a_request_for_time_is_answered(mode: str) -> None:
    net = Net(mode)
    a, b = net.source("A", clock=9), net.source("B", clock=7)
    union = net.add("∪", Union(2), a, b)
    net.graph.send(net.top(union), TimeRequest())
    net.run()
    assert {name for name, _ in net.reached} == {"A", "B"} and [port.register for port in union.ports] == [9, 7]


@pytest.mark.parametrize("mode", ["eqg", "punctuation"])
def test_an_exchange_requests_time_when_its_reader_does(mode: str) -> None:
    net = Net(mode)
    a, b = net.source("A", clock=9), net.source("B", clock=7)
    sent = net.add("exchange", Exchange(SCHEMA), net.add("∪", Union(2), a, net.add("σ", Each(), b)))
    out = net.sink(sent)
    net.run()
    assert net.reached == [] and out.elements == []
    net.graph.send(out.sink, TimeRequest())
    net.run()
    assert max(element.progress for element in out.elements) == 7
    asked = len(net.reached)
    net.run()
    assert len(net.reached) == asked, "it requests no more when nothing moves"


def test_the_walk_says_the_same_to_a_source() -> None:
    net = Net()
    a, b = net.source("A", clock=3), net.source("B", clock=9)
    out = net.sink(net.add("∪", Union(2), a, b))
    net.push(a, (1, 5))
    net.run()
    assert net.reached == [("B", TimeRequest())] and out.pairs == [(1, 5)]
