"""Sequence operators on the engine: what is released when, and ties (W9-W12)."""

from __future__ import annotations

import pytest

from tests.runtime.engine.toys import After, Rig

CASES = ((1, 1), (2, 4), (3, 5))
PRODUCTS = ((11, 2), (12, 3), (13, 6), (14, 7), (15, 8))


class Warehouse(Rig):
    def __init__(self, *, chronicle: bool) -> None:
        super().__init__(mode="none")
        self.cases, self.products = self.source("A"), self.source("B")
        self.sequence = After(chronicle=chronicle)
        self.out = self.sink(self.add("→", self.sequence, self.cases, self.products))


def test_recent() -> None:
    rig = Warehouse(chronicle=False)
    rig.push(rig.cases, *CASES)
    rig.push(rig.products, *PRODUCTS)
    rig.run()
    assert rig.out.pairs == [(111, 2), (112, 3)]
    rig.promise(rig.cases, 100)
    rig.run()
    assert rig.out.pairs == [(111, 2), (112, 3), (313, 6), (314, 7), (315, 8)]
    assert rig.sequence.window == [3]


def test_chronicle() -> None:
    rig = Warehouse(chronicle=True)
    rig.push(rig.cases, *CASES)
    rig.push(rig.products, *PRODUCTS)
    rig.run()
    assert rig.out.pairs == [(111, 2)]
    rig.promise(rig.cases, 100)
    rig.run()
    assert rig.out.pairs == [(111, 2), (213, 6), (314, 7)]
    assert rig.sequence.window == []


def test_a_case_delivered_late_is_still_found() -> None:
    rig = Warehouse(chronicle=False)
    rig.push(rig.cases, (1, 1))
    rig.push(rig.products, (11, 12))
    rig.run()
    assert rig.out.pairs == []
    rig.push(rig.cases, (2, 10))
    rig.run()
    assert rig.out.pairs == []
    rig.promise(rig.cases, 13)
    rig.run()
    assert rig.out.pairs == [(211, 12)]


@pytest.mark.parametrize("product_first", [True, False])
def test_on_a_tie_the_product_goes_first(product_first: bool) -> None:
    rig = Warehouse(chronicle=False)
    rig.push(rig.cases, (1, 1))
    if product_first:
        rig.push(rig.products, (11, 5))
    rig.run()
    rig.push(rig.cases, (2, 5))
    rig.run()
    if not product_first:
        rig.push(rig.products, (11, 5))
        rig.run()
    assert rig.out.pairs == [(111, 5)]
    assert rig.sequence.window == [1]  # another product may still come at 5
    rig.promise(rig.products, 6)
    rig.run()
    assert rig.sequence.window == [2]


def test_a_tie_asks_the_stream_that_goes_first() -> None:
    rig = Warehouse(chronicle=False)
    rig.graph.set_ets("eqg")
    rig.push(rig.cases, (1, 5))
    rig.promise(rig.products, 5)
    rig.now = 6
    assert rig.run() == "X(→) B(→→B) ETS(B=6) X(→) B(→→A) exit"
    assert rig.sequence.window == [1]
