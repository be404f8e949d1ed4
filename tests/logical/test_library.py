"""The aggregates of the library on long streams."""

from __future__ import annotations

import random
from collections import Counter
from math import ceil

import pytest

import millstream as ms
from millstream.algebra.frame import Frame
from millstream.algebra.program.call import ProgramCall
from millstream.algebra.python.library import LIBRARY
from millstream.logical import library
from millstream.logical.bind.aggregate.library import _bound, find
from millstream.logical.catalog import Catalog
from millstream.runtime.over.evaluation import Evaluation, evaluation
from millstream.runtime.over.row_aggregate import versions_of
from tests.paths import DOCS


def evaluated(name: str, frame: Frame) -> Evaluation:
    found = find(name, Catalog(), over=True)
    assert found is not None
    return evaluation(versions_of(ProgramCall(name, (), found.base, found.window)), frame)


@pytest.mark.parametrize("name", sorted(library.names()))
def test_every_name_is_declared_and_documented(name: str) -> None:
    found = find(name, Catalog(), over=True)
    assert found is not None and {program.name for program in found.versions} == {name}
    assert f"`{name}(" in (DOCS / "aggregates.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(library.names()))
def test_what_a_program_registers_does_not_change_the_library(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = find(name, Catalog(), over=True)
    monkeypatch.setattr(LIBRARY, "_own", {})
    for hidden in ("abs", "ln", "power", "sign", "ceil", "floor", "round", "greatest", "least", "coalesce"):
        ms.function(lambda x: x, name=hidden, arguments=["VARCHAR"], returns="VARCHAR")
    for hidden in ("min", "max", "sum", "count"):
        ms.aggregate(Texts, name=hidden)
    _bound.cache_clear()
    assert find(name, Catalog(), over=True) == before


class Texts:
    def iterate(self, x: str) -> str:
        return x


def test_a_sample_has_each_tuple_of_the_window_alike_often() -> None:
    sample, chosen = evaluated("priority_sample", Frame("ROWS", 9)), Counter[int]()
    for number in range(600):
        rows = sample.take(number, number, number, (float(number), 20))
        assert [place for place, _ in rows] == list(range(1, 21))
        assert all(number - 9 <= value <= number for _, value in rows)
        if number >= 9:
            chosen.update(number - int(value) for _, value in rows)
    assert max(chosen.values()) < 1.6 * min(chosen.values())


def test_frequencies_are_never_too_low() -> None:
    draw, often = random.Random(3), evaluated("approx_frequency", Frame("ROWS", 99))
    items = [int(draw.expovariate(0.2)) for _ in range(800)]
    exact = 0
    for number, item in enumerate(items):
        ((estimate,),) = often.take(number, number, number, (item,))
        true = items[max(0, number - 99) : number + 1].count(item)
        assert estimate >= true
        exact += estimate == true
    assert exact > 0.95 * len(items)


@pytest.mark.parametrize("apart", [1009, 1013, 1019, 1021, 1000003, 1009 * 1013 * 1019, (1 << 61) - 1])
def test_items_that_share_a_counter_are_told_apart(apart: int) -> None:
    often = evaluated("approx_frequency", Frame("ROWS", 99))
    items = [5, 5, 5, 5 + apart, 5 + 2 * apart, -5, 5 - apart, -5 - apart, -5, 0, apart, 5]
    seen = Counter[int]()
    for number, item in enumerate(items):
        seen[item] += 1
        assert often.take(number, number, number, (item,)) == [(seen[item],)], (number, item)


def test_negative_frequencies_are_never_too_low() -> None:
    draw, often = random.Random(4), evaluated("approx_frequency", Frame("ROWS", 49))
    items = [draw.choice([-1, 1]) * int(draw.expovariate(0.001)) for _ in range(800)]
    exact = 0
    for number, item in enumerate(items):
        ((estimate,),) = often.take(number, number, number, (item,))
        true = items[max(0, number - 49) : number + 1].count(item)
        assert estimate >= true
        exact += estimate == true
    assert exact > 0.95 * len(items)


def test_the_number_of_ones_is_off_by_half_at_most() -> None:
    draw, ones = random.Random(5), evaluated("approx_ones", Frame("BASE"))
    bits = [int(draw.random() < 0.4) for _ in range(1500)]
    for number, bit in enumerate(bits):
        ((estimate,),) = ones.take(number, number, number, (bit, 200))
        true = sum(bits[max(0, number - 199) : number + 1])
        assert abs(estimate - true) <= max(0.5 * true, 1), (number, estimate, true)


@pytest.mark.parametrize("frame", [Frame("ROWS", 299), Frame("RANGE", None)], ids=str)
def test_the_number_of_items_is_off_by_some_per_cent(frame: Frame) -> None:
    draw, distinct = random.Random(7), evaluated("approx_distinct", frame)
    items = [draw.randint(-400, 400) for _ in range(1200)]
    for number, item in enumerate(items):
        ((estimate,),) = distinct.take(number, number, number, (item,))
        first = 0 if frame.size is None else max(0, number - frame.size)
        true = len({*items[first : number + 1]})
        assert abs(estimate - true) <= max(2, 0.05 * true), (number, estimate, true)


@pytest.mark.parametrize("frame", [Frame("ROWS", 59), Frame("RANGE", None)], ids=str)
@pytest.mark.parametrize("share", [0.0, 0.5, 0.9, 1.0])
def test_a_quantile_is_off_by_two_per_cent(frame: Frame, share: float) -> None:
    draw, quantile = random.Random(9), evaluated("approx_quantile", frame)
    values = [0.0 if draw.random() < 0.1 else draw.gauss(20, 100) for _ in range(250)]
    for number, value in enumerate(values):
        ((estimate,),) = quantile.take(number, number, number, (value, share))
        first = 0 if frame.size is None else max(0, number - frame.size)
        inside = sorted(values[first : number + 1])
        true = inside[max(0, ceil(share * len(inside)) - 1)]
        assert estimate == pytest.approx(true, rel=0.02, abs=1e-9), number
