"""A registered aggregate function runs like one that is built in: from SQL, in windows, panes, sources and shards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import polars as pl
import pytest

from millstream.algebra.aggregate.call import AggregateCall
from millstream.algebra.aggregate.function import AggregateFunction, Part
from millstream.algebra.aggregate.functions import register, unregister
from millstream.algebra.aggregate.reduction import COUNT, TOTAL, Operation
from millstream.algebra.schema import Schema, TimeKind
from millstream.algebra.types import Type
from millstream.algebra.windower import Hopping
from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.errors import MillstreamError
from millstream.logical.explain import explain
from millstream.logical.nodes.scan import Scan
from millstream.logical.nodes.window_aggregate import WindowAggregate
from millstream.optimizer import optimize
from millstream.physical.plan.partial import split_aggregate
from tests.physical.plan.partial_run import SplitRun

Row = tuple[int | None, float | None, int]


class GeometricMean(AggregateFunction):
    name, spellings, numeric, type = "GEOMETRIC_MEAN", ("GEOMEAN",), True, Type.DOUBLE

    def parts(self, type_: Type) -> tuple[Part, ...]:
        product = Operation(lambda column, type_: column.cast(type_).product())
        return Part(type_, product, product, "__product"), Part(Type.BIGINT, COUNT, TOTAL, "__count")

    def result(self, *parts: pl.Expr) -> pl.Expr:
        product, count = parts
        return pl.when(count > 0).then(product ** (1 / count))


class Middle(AggregateFunction):
    name, numeric, mergeable = "MIDDLE", True, False

    def parts(self, type_: Type) -> tuple[Part, ...]:
        median = Operation(lambda column, type_: column.median().cast(type_))
        return (Part(type_, median, median),)


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    functions = GeometricMean(), Middle()
    for function in functions:
        register(function)
    yield
    for function in functions:
        unregister(function)


def started(window: str, *, paned: bool = True) -> LocalMill:
    mill = LocalMill(Options(paned=paned))
    mill.execute("CREATE STREAM s (k BIGINT, v DOUBLE, ts BIGINT) ORDER BY ts")
    items = "window_end, k, geometric_mean(v) AS g, COUNT(*) AS n"
    mill.add_query("q", f"SELECT {items} FROM s [{window}] GROUP BY k HAVING GeoMean(v) > 1")
    return mill


def tuples(random: Random) -> list[Row]:
    """In order of time. Products of powers of two are exact, whatever the order."""
    times = sorted(random.randint(0, 60) for _ in range(random.choice([20, 400])))
    return [(random.choice([0, 1, 2, None]), random.choice([0.5, 2.0, 4.0, None]), ts) for ts in times]


def expected(rows: list[Row], length: int, slide: int) -> Counter[Any]:
    members: dict[tuple[int, int | None], list[float | None]] = {}
    for k, v, ts in rows:
        for end in range((ts // slide + 1) * slide, ts + length + 1, slide):
            members.setdefault((end, k), []).append(v)
    found: Counter[Any] = Counter()
    for (end, k), values in members.items():
        product, present = 1.0, [value for value in values if value is not None]
        for value in present:
            product *= value
        mean = product ** (1 / len(present)) if present else None
        if mean is not None and mean > 1:
            found[end, k, round(mean, 9), len(values)] += 1
    return found


def bag(rows: Counter[Any]) -> Counter[Any]:
    return Counter({(end, k, round(g, 9), n): count for (end, k, g, n), count in rows.items()})


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("paned", [True, False])
@pytest.mark.parametrize(("window", "length", "slide"), [("RANGE 5", 5, 5), ("RANGE 6 SLIDE 2", 6, 2)])
def test_it_runs_wherever_aggregates_run(
    window: str, length: int, slide: int, paned: bool, shards: int, seed: int
) -> None:
    random = Random(seed)
    rows = tuples(random)
    mill = started(window, paned=paned)
    parted = SplitRun(mill, shards, random)
    assert ("over panes" in explain(mill.query("q").plan)) == (paned and length > slide)
    assert "geometric_mean_v__product" in parted.split.partial.schema.names
    lines = ["NULL".join(f"{k} | {v} | {ts}".split("None")) for k, v, ts in rows] + ["9 | NULL | 1000"]
    for start in range(0, len(lines), 30):
        for line in lines[start : start + 30]:
            mill.feed_line("s", line)
        mill.batch()
        parted.feed(lines[start : start + 30])
    local, apart = Counter(mill.take_rows("q").rows()), parted.outcome()[0]
    assert bag(local) == bag(apart) == expected(rows, length, slide)


@pytest.mark.parametrize(
    ("call", "message", "hint"),
    [
        ("GEOMETRIC_MEAN(name)", "GEOMETRIC_MEAN needs a number, not VARCHAR", ""),
        ("GEOMEAN(*)", "GEOMETRIC_MEAN(*) means nothing", "GEOMETRIC_MEAN(x)"),
        ("GEOMEAN(v, v)", "GEOMETRIC_MEAN takes 1 argument, found 2", ""),
        ("GEOMETRIC_MAEN(v)", "unknown function 'geometric_maen'", "did you mean 'geometric_mean'?"),
        ("MIDDLE(v)", "MIDDLE cannot run: its partial results do not merge", ""),
    ],
)
def test_mistakes(call: str, message: str, hint: str) -> None:
    mill = LocalMill()
    mill.execute("CREATE STREAM s (v DOUBLE, name VARCHAR, ts BIGINT) ORDER BY ts")
    with pytest.raises(MillstreamError) as caught:
        mill.add_query("q", f"SELECT {call} FROM s [RANGE 5]")
    assert caught.value.message == message and hint in caught.value.hint
    assert (caught.value.line, caught.value.column) == (1, 8)


def test_of_distinct_values() -> None:
    mill = LocalMill()
    mill.execute("CREATE STREAM s (v DOUBLE, ts BIGINT) ORDER BY ts")
    mill.add_query("q", "SELECT GEOMEAN(DISTINCT v) AS g, GEOMEAN(v) FILTER (WHERE v > 2) AS f FROM s [RANGE 5]")
    mill.insert("s", [(2.0, 1), (8.0, 1), (2.0, 2), (None, 3), (1.0, 9)])
    mill.batch()
    assert mill.take_rows("q").rows() == [(4.0, 8.0)]


@pytest.mark.parametrize("function", ["MEDIAN", "FIRST", "MIDDLE", "MAX"])
def test_only_mergeable_functions_are_split_into_panes_and_partials(function: str) -> None:
    schema = Schema.of(("v", Type.DOUBLE), ("ts", Type.BIGINT), kind=TimeKind.EXTERNAL, time="ts")
    call = AggregateCall("m", function, "v", Type.DOUBLE)
    plan = WindowAggregate(Scan("s", schema), Hopping(6, 2), (), (call,))
    mergeable = function == "MAX"
    assert (optimize(plan) != plan) is mergeable
    assert (split_aggregate(plan) is not None) is mergeable
