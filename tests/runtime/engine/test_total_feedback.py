"""Feedback that disclaims everything: it goes as far as no other reader wants anything, and all state goes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from millstream.algebra.element import Element, Page
from millstream.algebra.feedback import Feedback, Intent
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import equal
from millstream.algebra.schema import TS
from millstream.runtime.distinct import Distinct
from millstream.runtime.engine import Graph, OperatorNode
from millstream.runtime.limit import Limit
from millstream.switches import Switch
from tests.runtime.driving import frame
from tests.runtime.test_limit import READINGS

Rows = Callable[[list[int]], None]


def graph_of(limits: int) -> tuple[Graph, OperatorNode, Rows, list[Element]]:
    """Distinct tuples, read by limits, each of one tuple more than the one before."""
    graph, out = Graph(), list[Element]()
    source = graph.source("s", READINGS)
    distinct = graph.add(Distinct(READINGS), [source])
    for count in range(limits):
        graph.sink(graph.add(Limit(READINGS, count + 2), [distinct]), out.append)

    def rows(values: list[int]) -> None:
        made = [{"ts": 0, "g": v, "v": v, "w": v, TS: 0} for v in values]
        graph.push(source, Page(frame(READINGS, made)))
        graph.run()

    return graph, distinct, rows, out


def test_the_operator_before_it_holds_nothing_any_more() -> None:
    _, distinct, rows, out = graph_of(1)
    rows([1])
    assert distinct.operator.state_rows() == 1
    rows([2, 3])
    assert distinct.operator.state_rows() == 0 and distinct.guarded
    rows([4])
    assert distinct.operator.state_rows() == 0
    assert sum(element.tuples for element in out) == 2


def test_a_limit_that_passes_nothing_on() -> None:
    graph, distinct, rows, out = graph_of(1)
    limit = graph.operators["limit"]
    limit.switch = Switch(propagate=False)
    rows([1, 2, 3])
    assert distinct.operator.state_rows() == 3 and not distinct.guarded and limit.guarded
    assert sum(element.tuples for element in out) == 2


def test_another_reader_keeps_it() -> None:
    _, distinct, rows, _ = graph_of(2)
    rows([1, 2])
    assert distinct.operator.state_rows() == 2 and not distinct.guarded
    rows([3])
    assert distinct.operator.state_rows() == 0 and distinct.guarded  # both have said it


@pytest.mark.parametrize(("own", "others"), [("a", "b"), ("a", "a"), ("*", "a"), ("a", "*"), ("*", "*")])
def test_what_all_readers_disclaim(own: str, others: str) -> None:
    patterns = {"a": Pattern.of(k=equal("a")), "b": Pattern.of(k=equal("b")), "*": Pattern()}
    message, other = (Feedback(Intent.ASSUMED, patterns[each]) for each in (own, others))
    found = message.at_fork([[other]])
    common = patterns[own].intersect(patterns[others])
    assert found == (None if common.is_empty else Feedback(Intent.ASSUMED, common))
    assert message.at_fork([[]]) is None
