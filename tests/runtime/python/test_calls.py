"""Python functions in expressions: the same results as built-in ones, and no call for a row that does not use it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.control.mill import LocalMill
from millstream.errors import OperatorError
from tests.tries import tries

STREAM = "CREATE STREAM s (a BIGINT, b BIGINT, ts BIGINT) ORDER BY ts"


def add(x: int | None, y: int | None) -> int | None:
    return None if x is None or y is None else x + y


def less(x: int | None, y: int | None) -> bool | None:
    return None if x is None or y is None else x < y


def positive(x: int) -> int:
    if x is None or x <= 0:
        raise ValueError("not positive")
    return x


def add_columns(x: pl.Series, y: pl.Series) -> pl.Series:
    return x + y


def mill() -> LocalMill:
    made = LocalMill()
    for function in (add, less, positive):
        made.function(function)
    made.function(add_columns, arguments=["BIGINT", "BIGINT"], returns="BIGINT")
    made.execute(STREAM)
    return made


# --- random expressions: a Python spelling and a built-in one ---------------------------------------------------------

Pair = tuple[str, str]


def numbers(depth: int) -> st.SearchStrategy[Pair]:
    plain = st.sampled_from([("a", "a"), ("b", "b"), ("3", "3"), ("NULLIF(a, 2)", "NULLIF(a, 2)")])
    if not depth:
        return plain
    inner, tested = numbers(depth - 1), conditions(depth - 1)
    names = st.sampled_from(["add", "add_columns"])
    return st.one_of(
        plain,
        st.tuples(names, inner, inner).map(lambda t: (f"{t[0]}({t[1][0]}, {t[2][0]})", f"({t[1][1]} + {t[2][1]})")),
        st.tuples(inner, inner).map(lambda t: _each(t, "COALESCE({}, {})")),
        st.tuples(tested, inner, inner).map(lambda t: _each(t, "CASE WHEN {} THEN {} ELSE {} END")),
    )


def conditions(depth: int) -> st.SearchStrategy[Pair]:
    two = st.tuples(numbers(depth), numbers(depth))
    compared = two.map(lambda t: (f"less({t[0][0]}, {t[1][0]})", f"({t[0][1]} < {t[1][1]})"))
    if not depth:
        return compared
    inner = conditions(depth - 1)
    return st.one_of(
        compared,
        st.tuples(inner, inner).map(lambda t: _each(t, "({} AND {})")),
        st.tuples(inner, inner).map(lambda t: _each(t, "({} OR {})")),
        inner.map(lambda pair: _each((pair,), "(NOT {})")),
        numbers(depth).map(lambda pair: _each((pair,), "({} IS NULL)")),
    )


def _each(pairs: tuple[Pair, ...], form: str) -> Pair:
    return form.format(*(pair[0] for pair in pairs)), form.format(*(pair[1] for pair in pairs))


values = st.none() | st.integers(-3, 5)


@settings(max_examples=tries(40), deadline=None)
@given(
    item=numbers(3),
    condition=conditions(2),
    rows=st.lists(st.tuples(values, values), min_size=1, max_size=8),
)
def test_python_functions_equal_built_in_ones(item: Pair, condition: Pair, rows: list[tuple[Any, Any]]) -> None:
    made = mill()
    for name, place in (("python", 0), ("built_in", 1)):
        made.add_query(name, f"SELECT a, b, {item[place]} AS x FROM s WHERE {condition[place]}")
        made.add_query(f"{name}_all", f"SELECT {item[place]} AS x, {condition[place]} AS c FROM s")
    made.insert("s", [(a, b, at) for at, (a, b) in enumerate(rows)])
    made.batch()
    for name in ("", "_all"):
        assert made.take_rows(f"python{name}").rows() == made.take_rows(f"built_in{name}").rows()


# --- the rows that a function is called for ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT positive(a) AS x FROM s WHERE a > 0", [1, 2]),
        ("SELECT a AS x FROM s WHERE positive(a) > 1 AND a > 0", [2]),
        ("SELECT CASE WHEN a > 0 THEN positive(a) ELSE 0 END AS x FROM s", [1, 0, 2, 0]),
        ("SELECT IF(a > 0, positive(a)) AS x FROM s", [1, None, 2, None]),
        ("SELECT COALESCE(NULLIF(a, 2), positive(a)) AS x FROM s WHERE a IS NOT NULL", [1, -1, 2]),
        ("SELECT (a > 0 AND positive(a) > 1) AS x FROM s WHERE a IS NOT NULL", [False, False, True]),
        ("SELECT (positive(a) > 1 AND a > 0) AS x FROM s WHERE a IS NOT NULL", [False, False, True]),
        ("SELECT (a <= 0 OR positive(a) > 1) AS x FROM s WHERE a IS NOT NULL", [False, True, True]),
        ("SELECT add(positive(a), 1) AS x FROM s WHERE a > 0", [2, 3]),
        ("SELECT x FROM (SELECT positive(a) AS x, a FROM s) WHERE a > 1", [2]),
        ("SELECT positive(a) AS x FROM s WHERE a > 0 AND positive(a) > 1", [2]),
        (
            "SELECT CASE WHEN a IS NULL THEN 0 WHEN positive(a * a) > 1 THEN positive(a) ELSE -a END AS x FROM s",
            [-1, 1, 2, 0],
        ),
        ("SELECT positive(7) AS x FROM s WHERE a = 1", [7]),
    ],
)
def test_a_function_is_called_only_for_rows_that_use_it(query: str, expected: list[Any]) -> None:
    made = mill()
    made.add_query("q", query)
    made.insert("s", [(1, 0, 1), (-1, 0, 2), (2, 0, 3), (None, 0, 4)])
    made.batch()
    assert made.take_rows("q").get_column("x").to_list() == expected


def test_the_same_call_is_computed_once() -> None:
    called: list[int] = []

    def noted(x: int) -> int:
        called.append(x)
        return x

    made = mill()
    made.function(noted)
    made.add_query("q", "SELECT noted(a) AS x, noted(a) + 1 AS y FROM s WHERE noted(a) > 0 AND b = 0")
    made.insert("s", [(1, 0, 1), (2, 1, 2), (-1, 0, 3)])
    made.batch()
    assert made.take_rows("q").rows() == [(1, 2)]
    assert called == [1, -1]


@pytest.fixture
def joined() -> Iterator[LocalMill]:
    made = mill()
    made.execute("CREATE STREAM t (c BIGINT, ts BIGINT) ORDER BY ts")
    yield made
    made.close()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT s.a, t.c FROM s [RANGE 10], t [RANGE 10] WHERE add(s.a, 1) = t.c",
        "SELECT s.a, t.c FROM s [RANGE 10] JOIN t [RANGE 10] ON s.a = t.c - 1 AND less(s.a, t.c)",
        "SELECT s.a, t.c FROM s [RANGE 10] JOIN t [RANGE 10] ON s.a = t.c - 1 WHERE less(s.a, 100) AND less(0, t.c)",
        "SELECT s.a, t.c FROM s [RANGE 10] JOIN t [RANGE 10] ON s.a + 1 = t.c WHERE less(s.a * 2, add(t.c, t.c))",
    ],
)
def test_functions_in_joins(joined: LocalMill, query: str) -> None:
    joined.add_query("q", query)
    joined.insert("s", [(1, 0, 1), (2, 0, 2), (50, 0, 9)])
    joined.insert("t", [(2, 3), (7, 4), (99, 9)])
    joined.batch()
    assert joined.take_rows("q").rows() == [(1, 2)]


def test_a_value_that_does_not_fit_names_the_call() -> None:
    made = mill()
    made.add_query("q", "SELECT add(a, 1) * 2 AS x FROM s")
    made.insert("s", [(2**62, 0, 1)])
    with pytest.raises(OperatorError, match=r"\(add\(a, 1\) \* 2\) does not fit BIGINT with add\(a, 1\) = 46116860"):
        made.batch()
        made.sync()
