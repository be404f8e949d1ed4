"""Aggregates that hold panes equal those that hold windows, row for row and in their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.early import Prod, query_prod, stream_prod
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.restriction import below, equal
from millstream.algebra.schema import FOREVER
from millstream.algebra.types import Type
from millstream.algebra.values import decode, encode
from millstream.algebra.windower import Hopping
from millstream.control.mill.local import LocalMill
from millstream.errors import OperatorError
from millstream.logical import two_levels
from millstream.logical.nodes import window_aggregate
from millstream.logical.nodes.scan import Scan
from millstream.runtime.aggregate import paned_state, state
from millstream.runtime.aggregate.window_aggregate import WindowAggregate
from millstream.runtime.operator.contract import Input
from tests.runtime.aggregate.test_window_aggregate import CALLS, IN_ORDER, READINGS
from tests.runtime.driving import Element, cuts, elements, steps
from tests.tries import tries

EVERY = (*CALLS, ("m", "MEDIAN", "v", Type.DOUBLE))
ORDERED = (
    ("f", "FIRST", "v", Type.BIGINT),
    ("l", "LAST", "w", Type.BIGINT),
    ("all", "ARRAY_AGG", "v", Type.BIGINT_ARRAY),
)
DISCLAIMED = -5
Made = tuple[list[Any], list[Pattern], list[Any]]


def made(
    inputs: Sequence[Input], node: window_aggregate.WindowAggregate, in_panes: bool, prods: Sequence[Prod], fold: int
) -> Made:
    """Rows, punctuations and early rows of an operator that is restored after every step."""
    rows: list[Any] = []
    punctuations: list[Pattern] = []
    early: list[Any] = []
    stored: Any = None
    with (
        patch.object(two_levels, "MOST_SPREAD", 0 if in_panes else 1 << 40),
        patch.object(state, "FOLD_ROWS", fold),
        patch.object(paned_state, "PAIRS", 1 + fold),
        patch.object(paned_state, "CHUNK", 1 + 5 * fold),
    ):
        for number, step in enumerate(inputs):
            one = WindowAggregate(**node.parameters())
            assert one._state.in_panes == in_panes
            if stored is not None:
                one.tables()["groups"].append(stored[0])
                one.restore_scalars(decode(stored[1]))
            if number == len(inputs) // 2:
                one.disclaim(Pattern.of(window_end=below(DISCLAIMED)), [None])
            output = one.process([step])
            rows += [] if output.rows is None else output.rows.rows()
            punctuations += [] if output.punctuations is None else output.punctuations.patterns()
            if prods:
                found = one.early([step.rows], prods[number % len(prods)])
                early.append([] if found is None else _wanted(found.rows()))
            stored = one.tables()["groups"].frame(), encode(one.scalars())
    return rows, punctuations, early


def _wanted(rows: list[Any]) -> list[Any]:
    """Those that feedback does not disclaim."""
    return [row for row in rows if row[1] >= DISCLAIMED]


@pytest.mark.parametrize("attribute", [None, "w"])
@settings(max_examples=tries(40))
@given(
    items=elements(),
    cut=cuts,
    range_=st.sampled_from([9, 10, 12, 30]),
    slide=st.sampled_from([1, 2, 3, 5, 8]),
    group=st.sampled_from([(), ("g",), ("g", "v")]),
    fold=st.integers(0, 9),
    ordered=st.booleans(),
)
def test_panes_equal_windows(
    attribute: str | None,
    items: list[Element],
    cut: list[bool],
    range_: int,
    slide: int,
    group: tuple[str, ...],
    fold: int,
    ordered: bool,
) -> None:
    schema = IN_ORDER if ordered and attribute is None else READINGS
    inputs = [*steps(items, cut, schema, "ts"), Input(bound=FOREVER)]
    # Over another attribute the order of equal timestamps is not defined. Without lists, blocks are made.
    calls = tuple(AggregateCall(*call) for call in (CALLS if fold % 2 else EVERY if attribute else EVERY + ORDERED))
    windows = Hopping(range_, slide)
    node = window_aggregate.WindowAggregate(Scan("s", schema), windows, group, calls, attribute, early="top")
    asked = [
        Pattern(),
        Pattern.of(window_end=equal(slide)),
        Pattern.of(window_end=below(9), **dict.fromkeys(group[:1], equal(1))),
    ]
    prods = [*(query_prod(pattern, "q") for pattern in asked), stream_prod(Pattern.of(ts=below(8)), schema)]
    rows, punctuations, early = made(inputs, node, True, prods, fold)
    others = made(inputs, node, False, prods, fold)
    assert _wanted(rows) == _wanted(others[0])
    assert (punctuations, early) == others[1:]


def test_too_many_results_end_the_query_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paned_state, "MOST_ROWS", 150)
    monkeypatch.setattr(paned_state, "CHUNK", 60)
    mill = LocalMill()
    mill.execute("CREATE STREAM s (k BIGINT, ts BIGINT) ORDER BY ts")
    mill.add_query("q", "SELECT k, window_end, COUNT(*) AS n, finality FROM s [RANGE 110 SLIDE 1] GROUP BY k")
    mill.add_query("p", "SELECT k FROM s")
    for key in (1, 2):
        mill.feed_line("s", f"{key} | 5")
    mill.batch()
    mill.prod("q")
    mill.batch()
    early = mill.take_rows("q")
    assert early.height == 150
    assert early["window_end"].max() == 5 + 75
    mill.feed_line("s", "[*, 80]")
    mill.batch()
    with pytest.raises(OperatorError, match="more than 150 windows and groups close at once"):
        mill.feed_line("s", "[*, *]")
        mill.batch()
        mill.take_rows("q")
    assert mill.take_rows("p").height == 2
