"""Python aggregates: their results, state and errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest

from millstream.control.mill import LocalMill
from millstream.errors import BindError, MillstreamError, OperatorError, PlanError
from tests.runtime.python.classes import Sum, registered

STREAM = "CREATE STREAM s (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts"


@pytest.fixture
def mill() -> Iterator[LocalMill]:
    made = LocalMill()
    made.execute(STREAM)
    yield made
    made.close()


def result(mill: LocalMill, item: str, *rows: tuple[int, int | None]) -> list[Any]:
    mill.add_query("q", f"SELECT {item} AS x FROM s")
    mill.insert("s", [(k, v, ts) for ts, (k, v) in enumerate(rows)])
    mill.batch()
    return mill.take_rows("q").rows()


def test_any_number_of_rows(mill: LocalMill) -> None:
    @mill.aggregate
    class Repeated:
        def iterate(self, x: int) -> list[int]:
            return [x] * x

    assert result(mill, "repeated(v)", (1, 2), (1, 0), (1, 1)) == [(2,), (2,), (1,)]


def test_a_generator(mill: LocalMill) -> None:
    @mill.aggregate(returns="BIGINT")
    class Down:
        def iterate(self, x: int) -> Iterator[int]:
            yield from range(x, 0, -1)

    assert result(mill, "down(v)", (1, 2), (1, 0), (1, 1)) == [(2,), (1,), (1,)]


def test_several_columns(mill: LocalMill) -> None:
    @mill.aggregate(returns={"low": int, "high": "BIGINT"})
    class Extent:
        def initialize(self, x: int) -> None:
            self.low = self.high = x

        def iterate(self, x: int) -> None:
            self.low, self.high = min(x, self.low), max(x, self.high)

        def terminate(self) -> tuple[int, int]:
            return self.low, self.high

    mill.add_query("q", "SELECT extent(v) OVER (PARTITION BY k ROWS 1 PRECEDING) FROM s")
    mill.insert("s", [(1, 5, 1), (1, 3, 2), (1, 4, 3)])
    mill.batch()
    found = mill.take_rows("q")
    assert (found.columns, found.rows()) == (["low", "high"], [(5, 5), (3, 5), (3, 4)])


def test_nulls_are_passed_unless_ignored(mill: LocalMill) -> None:
    class Count:
        def __init__(self) -> None:
            self.known = self.unknown = 0

        def iterate(self, x: int | None) -> None:
            self.known, self.unknown = self.known + (x is not None), self.unknown + (x is None)

        def terminate(self) -> int:
            return self.known * 10 + self.unknown

    mill.aggregate(Count, name="counts")
    mill.aggregate(Count, name="known", ignore_nulls=True)
    rows = [(1, None), (1, 5), (1, None)]
    assert result(mill, "counts(v) OVER (RANGE UNBOUNDED PRECEDING)", *rows) == [(1,), (11,), (12,)]
    mill.add_query("r", "SELECT known(v) OVER (RANGE UNBOUNDED PRECEDING) AS x FROM s")
    mill.insert("s", [(k, v, ts) for ts, (k, v) in enumerate(rows, 10)])
    mill.batch()
    assert mill.take_rows("r").rows() == [(None,), (10,), (10,)]


def test_a_blocking_aggregate_needs_a_window(mill: LocalMill) -> None:
    registered(mill)
    with pytest.raises(PlanError, match="M3060: aggregate 'my_sum' is blocking") as caught:
        mill.execute("SELECT my_sum(v) AS x FROM s")
    assert caught.value.column == 8


def test_an_exception_names_aggregate_method_arguments_and_line(mill: LocalMill) -> None:
    @mill.aggregate
    class Inverse:
        def iterate(self, x: int) -> float:
            return 1 / x

    with pytest.raises(OperatorError, match=r"aggregate inverse.iterate\(0\) raised ZeroDivisionError: .* \(test_agg"):
        result(mill, "inverse(v)", (1, 2), (1, 0))


@pytest.mark.parametrize(("returned", "shown"), [("a", "'a'"), (1.5, "1.5"), ((1, 2), r"\(1, 2\)"), (2**80, "12089")])
def test_a_result_of_another_type(mill: LocalMill, returned: Any, shown: str) -> None:
    @mill.aggregate(returns="BIGINT")
    class Odd:
        def iterate(self, x: int) -> Any:
            return returned

    with pytest.raises(OperatorError, match=f"aggregate odd returned {shown}.*, which is not a BIGINT"):
        result(mill, "odd(v)", (1, 2))


def test_an_attribute_that_cannot_be_stored(mill: LocalMill) -> None:
    @mill.aggregate
    class Holding:
        def iterate(self, x: int) -> int:
            self.action = lambda: x
            return x

    with pytest.raises(MillstreamError, match=r"attribute 'action' of aggregate holding cannot be stored: .*function"):
        result(mill, "holding(v)", (1, 2))


def test_mistakes_in_a_registration(mill: LocalMill) -> None:
    class Silent:
        def iterate(self, x: int) -> None: ...

    class Untyped:
        def iterate(self, x) -> int:  # type: ignore[no-untyped-def]
            return 1

    class Empty:
        pass

    class Other:
        def initialize(self, x: int, y: int) -> None: ...
        def iterate(self, x: int) -> int:
            return 1

    class Bare:
        def iterate(self) -> int:
            return 1

    class Narrow:
        def iterate(self, x: int, y: int) -> int:
            return 1

        def expire(self) -> None: ...

    class Later:
        async def iterate(self, x: int) -> int:
            return 1

    for code, message in (
        (
            Narrow,
            "aggregate 'narrow', expire, has 0 parameters, and 2 argument types are .*\n.*: expire\\(self, x, y\\)",
        ),
        (Later, "aggregate 'later', iterate, is a coroutine"),
        (Silent, "the type that aggregate 'silent' returns is not known"),
        (Untyped, "the type of parameter 'x' of aggregate 'untyped', iterate, is not known"),
        (Empty, "aggregate 'empty' has no method iterate"),
        (Other, "aggregate 'other', initialize, has 2 parameters, and 1 argument type is given"),
        (Bare, "aggregate 'bare' has no argument"),
        (lambda x: x, "cannot be the name of a function"),
    ):
        with pytest.raises(BindError, match=message):
            mill.aggregate(code)


def test_show_and_drop(mill: LocalMill) -> None:
    mill.aggregate(Sum, name="avg")
    assert mill.execute("SHOW AGGREGATES") == (
        f"avg(x BIGINT) RETURNS BIGINT: Python aggregate {Sum.__module__}.Sum, initialize, iterate, terminate, expire"
    )
    item = "avg(v) OVER (RANGE UNBOUNDED PRECEDING)"
    assert result(mill, item, (1, 2), (1, 4)) == [(2,), (6,)]
    mill.execute("DROP QUERY q; DROP AGGREGATE avg")
    assert mill.execute("SHOW AGGREGATES") == ""
    mill.add_query("q", f"SELECT {item} AS x FROM s")
    mill.insert("s", [(1, 2, 20), (1, 4, 21)])
    mill.batch()
    assert mill.take_rows("q").rows() == [(2.0,), (3.0,)]
    with pytest.raises(BindError, match="unknown aggregate 'avg'"):
        mill.execute("DROP AGGREGATE avg")


def test_a_vectorized_aggregate_without_over_takes_whole_pages(mill: LocalMill) -> None:
    taken: list[int] = []

    @mill.aggregate(arguments=["BIGINT"], returns={"total": "BIGINT", "low": "BIGINT"})
    class Both:
        def __init__(self) -> None:
            self.total, self.low = 0, 2**60

        def iterate(self, x: pl.Series) -> tuple[pl.Series, pl.Series]:
            taken.append(len(x))
            total, low = x.cum_sum() + self.total, x.cum_min().clip(upper_bound=self.low)
            self.total, self.low = total[-1], low[-1]
            return total, low

    mill.add_query("q", "SELECT k, both(v) FROM s GROUP BY k")
    mill.insert("s", [(k, v, 1) for v in range(100) for k in (1, 2)])
    mill.batch()
    assert mill.take_rows("q").rows()[-2:] == [(1, 4950, 0), (2, 4950, 0)]
    assert taken == [100, 100]


def test_terminate_takes_no_arguments(mill: LocalMill) -> None:
    class Ending:
        def iterate(self, x: int) -> None:
            pass

        def terminate(self, x: int) -> int:
            return x

    with pytest.raises(BindError, match="M2110: aggregate 'ending', terminate, has parameters"):
        mill.aggregate(Ending)


def test_mistakes_of_vectorized_aggregates(mill: LocalMill) -> None:
    class Both:
        def iterate(self, x: pl.Series) -> pl.Series:
            return x.head(1)

        def terminate(self) -> int:
            return 1

    with pytest.raises(BindError, match="aggregate 'both' is vectorized and has more than iterate"):
        mill.aggregate(Both, arguments=["BIGINT"], returns="BIGINT")
    del Both.terminate
    with pytest.raises(BindError, match="aggregate 'both' is vectorized and cannot ignore NULLs"):
        mill.aggregate(Both, arguments=["BIGINT"], returns="BIGINT", ignore_nulls=True)
    mill.aggregate(Both, arguments=["BIGINT"], returns="BIGINT")
    with pytest.raises(OperatorError, match="aggregate both returned 1 value for 2 rows"):
        result(mill, "both(v)", (1, 1), (1, 2))
