"""Python functions from SQL: registration, types, errors, SHOW and DROP."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from typing import Annotated, Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import millstream as ms
from millstream.algebra.python import library
from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.errors import BindError, MillstreamError, OperatorError, OptionError, PlanError

STREAM = "CREATE STREAM s (k BIGINT, v DOUBLE, name VARCHAR, at TIMESTAMP, ts BIGINT) ORDER BY ts"
ROW = (3, 2.0, "x", datetime(2024, 5, 6, 7), 1)


@pytest.fixture
def mill() -> Iterator[LocalMill]:
    made = LocalMill()
    made.execute(STREAM)
    yield made
    made.close()


def result(mill: LocalMill, item: str, *rows: Any) -> list[Any]:
    mill.add_query("q", f"SELECT {item} AS x FROM s")
    mill.insert("s", rows or [ROW])
    mill.batch()
    found = mill.take_rows("q").get_column("x").to_list()
    mill.execute("DROP QUERY q")
    return found


# --- styles and types -------------------------------------------------------------------------------------------------


def test_types_follow_annotations(mill: LocalMill) -> None:
    @mill.function
    def shift(at: datetime, by: timedelta) -> datetime:
        return at + by

    @mill.function
    def day(at: datetime) -> date:
        return at.date()

    @mill.function
    def longer(name: str | None, than: int = 0) -> bool:
        return name is not None and len(name) > than

    @mill.function
    def short(x: Annotated[float, "REAL"]) -> Annotated[int, "INT"]:
        return int(x)

    assert result(mill, "shift(at, INTERVAL '1' HOUR)") == [datetime(2024, 5, 6, 8)]
    assert result(mill, "day(at)") == [date(2024, 5, 6)]
    assert result(mill, "longer(name)") == [True]
    assert result(mill, "longer(name, k)") == [False]
    assert result(mill, "longer(NULL)") == [False]
    assert result(mill, "short(v)") == [2]
    assert mill.execute("EXPLAIN SELECT short(v) AS x FROM s").startswith(
        "#2 Project short(CAST(v AS REAL)) AS x  (x INT)"
    )


def test_whole_columns(mill: LocalMill) -> None:
    @mill.function
    def polars(x: Annotated[pl.Series, "DOUBLE"], k: Annotated[pl.Series, "BIGINT"]) -> Annotated[pl.Series, "DOUBLE"]:
        assert isinstance(x, pl.Series)
        return x * k

    @mill.function(arguments=["VARCHAR"], returns="VARCHAR")
    def arrow(x: pa.Array) -> pa.Array:
        return pc.utf8_upper(x)

    @mill.function(vectorized="polars", arguments=[float], returns=float, name="numpy_too")
    def other(x: Any) -> Any:
        return np.sqrt(x.to_numpy())

    assert result(mill, "polars(v, k)") == [6.0]
    assert result(mill, "arrow(name)") == ["X"]
    assert result(mill, "numpy_too(v * 2)") == [2.0]


def test_null_is_none(mill: LocalMill) -> None:
    mill.function(lambda x: -1 if x is None else x, name="known", arguments=["BIGINT"], returns="BIGINT")
    assert result(mill, "known(k)", (None, None, None, None, 1)) == [-1]


def test_functions_group_and_window(mill: LocalMill) -> None:
    @mill.function
    def parity(k: int) -> str:
        return "odd" if k % 2 else "even"

    mill.add_query(
        "q", "SELECT parity(k) AS p, COUNT(*) AS n FROM s [RANGE 10] GROUP BY parity(k) HAVING parity(k) <> 'x'"
    )
    mill.insert("s", [(k, 0.0, "", None, k) for k in range(1, 6)])
    mill.insert("s", [(0, 0.0, "", None, 20)])
    mill.batch()
    assert sorted(mill.take_rows("q").rows()) == [("even", 2), ("odd", 3)]


@pytest.mark.parametrize("returned", [1.5, "a", True, 2**70, datetime(2024, 1, 1)])
def test_a_result_of_another_type(mill: LocalMill, returned: Any) -> None:
    mill.function(lambda _: returned, name="odd", arguments=["BIGINT"], returns="BIGINT")
    with pytest.raises(OperatorError, match=r"function odd\(3\) returned .*, which is not a BIGINT"):
        result(mill, "odd(k)")


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda x: x.head(0), "returned 0 values for 2 rows"),
        (lambda _: 7, "returned a int, not a column"),
        (lambda x: x.cast(pl.String), "returned a column of String, which is not a DOUBLE"),
    ],
)
def test_a_column_that_does_not_fit(mill: LocalMill, returned: Callable[..., Any], message: str) -> None:
    mill.function(returned, name="odd", arguments=["DOUBLE"], returns="DOUBLE", vectorized="polars")
    with pytest.raises(OperatorError, match=f"function odd {message}"):
        result(mill, "odd(v)", ROW, (*ROW[:4], 2))


# --- errors -----------------------------------------------------------------------------------------------------------


def test_an_exception_names_function_arguments_and_line(mill: LocalMill) -> None:
    @mill.function
    def inverse(x: float) -> float:
        return 1 / x

    with pytest.raises(OperatorError) as caught:
        result(mill, "inverse(v)", ROW, (1, 0.0, "", None, 2))
    assert (
        "function inverse(0.0) raised ZeroDivisionError: float division by zero (test_python_functions.py, line "
        in (caught.value.message)
    )


def test_code_that_ends_the_program_fails_its_query_alone(mill: LocalMill) -> None:
    @mill.function(name="leaves")
    def leaves(x: int | None) -> int:
        sys.exit(3)

    with pytest.raises(OperatorError, match=r"function leaves\(2\) raised SystemExit: 3"):
        result(mill, "leaves(2)", ROW)


def test_an_exception_of_a_vectorized_function_names_the_row(mill: LocalMill) -> None:
    @mill.function(arguments=["BIGINT", "VARCHAR"], returns="BIGINT")
    def picky(x: pl.Series, name: pl.Series) -> pl.Series:
        if (x > 3).any():
            raise ValueError("too much")
        return x

    rows = [(k, 0.0, f"n{k}", None, k) for k in range(1, 9)]
    place = r"\(test_python_functions.py, line \d+\)"
    with pytest.raises(OperatorError, match=rf"function picky\(4, 'n4'\) raised ValueError: too much {place}"):
        result(mill, "picky(k, name)", *rows)


def test_an_exception_outside_of_python_code_names_no_line(mill: LocalMill) -> None:
    mill.function(math.sqrt, arguments=["DOUBLE"], returns="DOUBLE")
    with pytest.raises(OperatorError) as caught:
        result(mill, "sqrt(v)", (1, -1.0, "", None, 2))
    assert "raised ValueError" in caught.value.message and ", line" not in caught.value.message


@pytest.mark.parametrize(
    ("item", "code", "message"),
    [
        ("half()", "M2009", "half takes 1 to 2 arguments, found 0"),
        ("half(1, 2, 3)", "M2009", "half takes 1 to 2 arguments, found 3"),
        ("half(name)", "M2006", "argument 'x' of half is a DOUBLE, not VARCHAR"),
        ("half(v, v)", "M2006", "argument 'n' of half is a BIGINT, not DOUBLE"),
        ("half(DISTINCT v)", "M2009", "HALF is not an aggregate"),
        ("halv(v)", "M2008", "unknown function 'halv'"),
    ],
)
def test_mistakes_in_a_call(mill: LocalMill, item: str, code: str, message: str) -> None:
    @mill.function
    def half(x: float, n: int = 1) -> float:
        return x / 2

    with pytest.raises(MillstreamError) as caught:
        mill.execute(f"SELECT {item} AS x FROM s")
    assert (caught.value.code, caught.value.message, caught.value.column) == (code, message, 8)


def test_mistakes_in_a_registration(mill: LocalMill) -> None:
    def unknown(x, y: int) -> int:  # type: ignore[no-untyped-def]
        return y

    def many(*x: int) -> int:
        return 1

    def silent(x: int):  # type: ignore[no-untyped-def]
        return x

    async def later(x: int) -> int:
        return x

    def several(x: int) -> int:  # type: ignore[misc]
        yield x

    async def stream(x: int) -> int:  # type: ignore[misc]
        yield x

    for function, options, message in (
        (unknown, {}, "the type of parameter 'x' of function 'unknown' is not known"),
        (unknown, {"arguments": ["INT"]}, "has 2 parameters, and 1 argument type is given"),
        (many, {}, r"has the parameter '\*x'"),
        (silent, {}, "the type that function 'silent' returns is not known"),
        (lambda: 1, {"returns": "INT"}, "'<lambda>' cannot be the name of a function"),
        (int, {}, "is not a function"),
        (later, {}, "function 'later' is a coroutine"),
        (several, {}, "function 'several' is a generator"),
        (stream, {}, "function 'stream' is a coroutine"),
        (silent, {"returns": "INTT"}, "unknown type INTT"),
    ):
        with pytest.raises(BindError, match=message):
            mill.function(function, **options)
    with pytest.raises(OptionError, match="cannot be 'numpy'"):
        mill.function(silent, vectorized="numpy", returns="INT")


def test_a_function_is_no_aggregate(mill: LocalMill) -> None:
    @mill.function
    def plain(x: int) -> int:
        return x

    with pytest.raises(PlanError, match="M3054: PLAIN is not an aggregate: OVER has no meaning"):
        mill.execute("SELECT plain(v) OVER (ROWS 1 PRECEDING) AS x FROM s")


# --- names ------------------------------------------------------------------------------------------------------------


def test_show_and_drop(mill: LocalMill) -> None:
    @ms.function
    def shared(x: int) -> int:
        return x

    @mill.function
    def upper(x: str) -> str:
        return "mine"

    place = f"{__name__}.test_show_and_drop.<locals>"
    assert mill.execute("SHOW FUNCTIONS").splitlines() == [
        f"shared(x BIGINT) RETURNS BIGINT: Python function {place}.shared, a value at a time",
        f"upper(x VARCHAR) RETURNS VARCHAR: Python function {place}.upper, a value at a time",
    ]
    assert result(mill, "upper(name)") == ["mine"]
    mill.execute("DROP FUNCTION upper")
    assert result(mill, "upper(name)", (*ROW[:4], 5)) == ["X"]
    mill.execute("DROP FUNCTION shared; DROP FUNCTION IF EXISTS shared")
    with pytest.raises(BindError, match="unknown function 'shared'"):
        mill.execute("SELECT shared(k) AS x FROM s")
    other = LocalMill()
    other.execute(STREAM)
    assert result(other, "shared(k)") == [3]


def test_a_function_registered_again_replaces_the_first_one_for_later_queries(mill: LocalMill) -> None:
    mill.function(lambda: 1, name="n", returns="INT")
    mill.add_query("first", "SELECT n() AS x FROM s")
    mill.function(lambda: 2, name="n", returns="INT")
    mill.add_query("second", "SELECT n() AS x FROM s")
    mill.insert("s", [ROW])
    mill.batch()
    assert (mill.take_rows("first").item(), mill.take_rows("second").item()) == (1, 2)


def test_a_package_provides_functions_by_entry_points(
    mill: LocalMill,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def plain(x: float) -> float:
        return x + 1

    monkeypatch.setattr(library.ENTRY_POINTS, "known", {"provided": plain})
    assert result(mill, "provided(v)") == [3.0]


# --- several rows in a grouped window ---------------------------------------------------------------------------------


class Top:
    """The two largest values."""

    def initialize(self, x: float):  # type: ignore[no-untyped-def]
        self.held = [x]

    def iterate(self, x: float):  # type: ignore[no-untyped-def]
        self.held = sorted([*self.held, x])[-2:]

    def terminate(self) -> list[float]:
        return self.held


class Each:
    def initialize(self, x: float):  # type: ignore[no-untyped-def]
        return [x, x]

    def iterate(self, x: float) -> float:
        return x


TOP_SQL = """CREATE AGGREGATE top_sql (x DOUBLE) : (x DOUBLE) { TABLE held (x DOUBLE);
    INITIALIZE: ITERATE: { INSERT INTO held VALUES (x); } TERMINATE: { INSERT INTO RETURN SELECT x FROM held; } }"""


@pytest.mark.parametrize("shards", [1, 2])
def test_a_grouped_window_drops_no_rows_of_an_aggregate(shards: int) -> None:
    mill = LocalMill(Options.read(shards=shards))
    mill.execute(f"{STREAM}; {TOP_SQL}")
    mill.aggregate(Top, name="top")
    mill.aggregate(Top, name="bare_top", returns="DOUBLE")
    mill.aggregate(Each, name="each")
    window = "FROM s [RANGE 10] GROUP BY k"
    with pytest.raises(PlanError, match="M6077: aggregate 'top' returns a list of rows") as caught:
        mill.add_query("q", f"SELECT k, top(v) AS x {window}")
    assert (caught.value.line, caught.value.column) == (1, 11) and "OVER" in caught.value.hint
    mill.add_query("all", "SELECT top(v) OVER (PARTITION BY k ROWS UNBOUNDED PRECEDING) AS x FROM s")
    for name in ("bare_top", "each", "top_sql"):
        mill.add_query(name, f"SELECT k, {name}(v) AS x {window}")
    rows = [(3, 2.0, "x", None, 1), (4, 3.0, "x", None, 11), (4, 5.0, "x", None, 12)]
    mill.insert("s", rows[:1])
    mill.batch()
    mill.insert("s", rows[1:])
    mill.batch()
    mill.insert("s", [(5, 0.0, "x", None, 31)])
    mill.batch()
    assert sorted(mill.take_rows("all")["x"]) == [0.0, 2.0, 3.0, 3.0, 5.0]
    failed = mill.failures.of()
    assert failed.keys() == {"bare_top", "each", "top_sql"}
    assert all(f"aggregate '{name}' returned 2 rows" in each.error.message for name, each in failed.items())
    mill.close()
