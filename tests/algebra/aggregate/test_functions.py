"""Aggregate functions: the laws of their partial results, and the registry."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.algebra.aggregate import functions as aggregates
from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.aggregate.function import AggregateFunction, Part
from millstream.algebra.aggregate.functions import find, known, lookup, register, unregister
from millstream.algebra.aggregate.reduction import LEAST, Operation
from millstream.algebra.types import Type
from millstream.errors import BindError, PlanError

NAMES = ("COUNT", "SUM", "AVG", "MIN", "MAX")
values = st.lists(st.sampled_from([None, 0, 1, -1, 5, 7]), max_size=6)


def page(tuples: list[Any], type_: Type) -> pl.DataFrame:
    return pl.DataFrame({"x": pl.Series(tuples, dtype=type_.polars)})


def call_of(name: str, type_: Type) -> AggregateCall:
    return AggregateCall("a", name, "x", lookup(name).result_type(type_))


def brute(name: str, tuples: list[Any]) -> Any:
    known_ones = [value for value in tuples if value is not None]
    if name == "COUNT":
        return len(known_ones)
    if not known_ones:
        return None
    return (
        sum(known_ones) / len(known_ones) if name == "AVG" else {"SUM": sum, "MIN": min, "MAX": max}[name](known_ones)
    )


@given(st.sampled_from(NAMES), st.sampled_from([Type.INT, Type.BIGINT, Type.DOUBLE]), values, values)
def test_partial_results_of_parts_merge_into_that_of_the_whole(
    name: str, type_: Type, some: list[Any], others: list[Any]
) -> None:
    call = call_of(name, type_)
    reductions, merges = ([made.expression() for made in found] for found in (call.reductions(), call.merges()))
    whole = page(some + others, type_).select(reductions)
    assert dict(whole.schema) == {partial.name: partial.type.polars for partial in call.partials}
    parts = pl.concat([page(others, type_).select(reductions), page(some, type_).select(reductions)])
    assert parts.select(merges).equals(whole)
    found = whole.select(call.result())
    assert found.item() == brute(name, some + others) and found.schema["a"] == call.type.polars


class Product(AggregateFunction):
    name, spellings, numeric, type = "PRODUCT", ("PROD",), True, Type.DOUBLE

    def parts(self, type_: Type) -> tuple[Part, ...]:
        product = Operation(lambda column, type_: column.cast(type_).product())
        return (Part(type_, product, product),)


def test_a_registered_function_is_known_in_any_case_until_it_is_unregistered() -> None:
    product = Product()
    register(product)
    try:
        assert find("product") is find("Prod") is lookup("PRODUCT") is product
        assert {"product", "prod"} <= set(known())
        call = AggregateCall("p", "PRODUCT", "x", Type.DOUBLE)
        made = page([2, 3, 7], Type.BIGINT).select([made.expression() for made in call.reductions()])
        assert made.select(call.result()).rows() == [(42.0,)] and call.mergeable
    finally:
        unregister(product)
    assert find("product") is None and find("prod") is None
    with pytest.raises(BindError, match="unknown aggregate function 'PRODUCT'"):
        lookup("PRODUCT")


@pytest.mark.parametrize("names", [("SUM",), ("Avg",), ("TOTAL", "average"), ("ABSENT", "mAx")])
def test_a_name_that_is_taken(names: tuple[str, ...]) -> None:
    class Taken(Product):
        name, spellings = names[0], names[1:]

    before = known()
    with pytest.raises(BindError, match=f"an aggregate function '{names[-1].lower()}' exists already"):
        register(Taken())
    assert known() == before


def test_what_depends_on_order_is_not_merged_in_any_order() -> None:
    class First(AggregateFunction):
        name, ordered = "EARLIEST", True

        def parts(self, type_: Type) -> tuple[Part, ...]:
            return (Part(type_, LEAST, LEAST),)

    with pytest.raises(PlanError, match="depends on the order of tuples"):
        register(First())
    assert aggregates.find("earliest") is None
