"""CREATE AGGREGATE: what a body may do, and the errors of what it may not, with their positions."""

from __future__ import annotations

import pytest

from millstream.algebra.types import Type
from millstream.errors import MillstreamError
from millstream.lang import parse_one
from millstream.lang.aggregate.ast import CreateAggregate
from millstream.logical.bind import bind_aggregate
from tests.logical.sample import bind, catalog_of

SCHEMA = """
CREATE STREAM s (ts BIGINT, k BIGINT, x REAL) ORDER BY ts;
CREATE AGGREGATE total(v INT) : INT
{ TABLE t(s INT);
  INITIALIZE: { INSERT INTO t VALUES (v); } ITERATE: { UPDATE t SET s = s + v; }
  TERMINATE: { INSERT INTO RETURN SELECT s FROM t; } }
CREATE AGGREGATE pair(v INT) : (low INT, high INT) { INITIALIZE: ITERATE: { INSERT INTO RETURN VALUES (v, v + 1); } }
CREATE WINDOW AGGREGATE only(v INT) : INT
{ TABLE inwindow(w INT);
  INITIALIZE: ITERATE: { INSERT INTO RETURN VALUES (oldest()); } EXPIRE: { DELETE FROM inwindow; } }
"""
HEAD = "CREATE AGGREGATE f(v INT) : INT { TABLE t(a INT, b VARCHAR); "
WINDOW = "CREATE WINDOW AGGREGATE f(v INT) : INT { TABLE inwindow(w INT); "


@pytest.mark.parametrize(
    ("body", "code", "column", "message"),
    [
        (HEAD + "ITERATE: { } }", "M2040", 1, "aggregate 'f' has no INITIALIZE"),
        (HEAD + "INITIALIZE: ITERATE: { } EXPIRE: { } }", "M2040", 87, "a base aggregate has TERMINATE, not EXPIRE"),
        (WINDOW + "INITIALIZE: ITERATE: { } TERMINATE: { } }", "M2040", 90, "has EXPIRE, not TERMINATE"),
        (HEAD + "TABLE t(c INT); INITIALIZE: ITERATE: { } }", "M2041", 62, "table 't' is declared twice"),
        (HEAD + "TABLE return(c INT); INITIALIZE: ITERATE: { } }", "M2041", 62, "RETURN is the table of the results"),
        (HEAD + "TABLE inwindow(c INT); INITIALIZE: ITERATE: { } }", "M2041", 62, "inwindow belongs to window"),
        (HEAD + "INITIALIZE: ITERATE: { INSERT INTO u VALUES (1); } }", "M2002", 85, "unknown table 'u'"),
        (HEAD + "INITIALIZE: ITERATE: { INSERT INTO t VALUES (1); } }", "M2045", 85, "'t' takes 2 values, found 1"),
        (HEAD + "INITIALIZE: ITERATE: { INSERT INTO t VALUES (v, v); } }", "M2006", 110, "column 'b' is VARCHAR"),
        (HEAD + "INITIALIZE: ITERATE: { INSERT INTO t (c) VALUES (v); } }", "M2001", 85, "unknown column 'c' of table"),
        (HEAD + "INITIALIZE: ITERATE: { UPDATE t SET c = 1; } }", "M2001", 98, "unknown column 'c' of table"),
        (HEAD + "INITIALIZE: ITERATE: { UPDATE t SET a = 1, a = 2; } }", "M2015", 105, "'a' is assigned twice"),
        (
            HEAD + "INITIALIZE: ITERATE: { UPDATE t SET a = 1.5; } }",
            "M2006",
            98,
            "column 'a' is BIGINT, the value is DOUBLE",
        ),
        (HEAD + "INITIALIZE: ITERATE: { UPDATE return SET a = 1; } }", "M2042", 85, "RETURN cannot be updated"),
        (HEAD + "INITIALIZE: ITERATE: { DELETE FROM t WHERE z = 1; } }", "M2001", 105, "unknown column 'z'"),
        (HEAD + "INITIALIZE: ITERATE: { INSERT INTO RETURN SELECT a FROM return; } }", "M2042", 118, "cannot be read"),
        (HEAD + "INITIALIZE: ITERATE: { INSERT INTO RETURN SELECT f(a) FROM t; } }", "M2044", 111, "'f' calls itself"),
        (
            HEAD + "INITIALIZE: ITERATE: { INSERT INTO RETURN SELECT total(a, 1) FROM t; } }",
            "M2009",
            111,
            "takes 1 argument",
        ),
        (
            HEAD + "INITIALIZE: ITERATE: { INSERT INTO RETURN SELECT total(b) FROM t; } }",
            "M2006",
            111,
            "argument 'v' is BIGINT",
        ),
        (
            HEAD + "INITIALIZE: ITERATE: { INSERT INTO RETURN SELECT pair(a) FROM t; } }",
            "M2009",
            111,
            "returns 2 columns",
        ),
        (
            HEAD + "INITIALIZE: ITERATE: { INSERT INTO RETURN SELECT only(a) FROM t; } }",
            "M2008",
            111,
            "only a window version",
        ),
        (
            HEAD + "INITIALIZE: ITERATE: { INSERT INTO RETURN SELECT a, COUNT(*) FROM t; } }",
            "M3016",
            111,
            "neither in GROUP",
        ),
        (
            HEAD + "INITIALIZE: ITERATE: { INSERT INTO RETURN VALUES (oldest()); } }",
            "M2047",
            112,
            "needs a window aggregate",
        ),
        (
            HEAD + "INITIALIZE: ITERATE: { INSERT INTO RETURN VALUES ((SELECT a, b FROM t)); } }",
            "M2045",
            112,
            "one column",
        ),
        (
            WINDOW + "INITIALIZE: ITERATE: { INSERT INTO inwindow VALUES (v); } }",
            "M2042",
            88,
            "inwindow cannot be written",
        ),
        (WINDOW + "INITIALIZE: ITERATE: { UPDATE inwindow SET w = v; } }", "M2042", 88, "inwindow cannot be updated"),
        (WINDOW.replace("w INT", "w REAL") + "INITIALIZE: ITERATE: { } }", "M2043", 42, "the arguments are (BIGINT)"),
        (
            WINDOW.replace("WINDOW", "ALGEBRAIC WINDOW").replace(": INT {", ": REAL {") + "INITIALIZE: ITERATE: { } }",
            "M2048",
            1,
            "",
        ),
        (
            "CREATE AGGREGATE total(v INT) : INT { INITIALIZE: ITERATE: { INSERT INTO RETURN VALUES (v); } }",
            "M2010",
            1,
            "aggregate 'total' exists already",
        ),
        (
            "CREATE AGGREGATE only(v REAL) : INT { INITIALIZE: ITERATE: { INSERT INTO RETURN VALUES (1); } }",
            "M2049",
            1,
            "different arguments or results",
        ),
        (HEAD + "INITIALIZE: ITERATE: { DELETE FROM t; } }", "M2040", 1, "aggregate 'f' returns nothing"),
        (
            HEAD + "INITIALIZE: ITERATE: { INSERT INTO RETURN SELECT SUM(a) OVER (ROWS 1 PRECEDING) FROM t; } }",
            "M3054",
            118,
            "OVER is not possible over tables",
        ),
        (
            HEAD + "INITIALIZE: ITERATE: { INSERT INTO RETURN SELECT total(a) FILTER (WHERE a > 1) FROM t; } }",
            "M2009",
            111,
            "FILTER of total",
        ),
        (
            HEAD + "INITIALIZE: ITERATE: { INSERT INTO RETURN SELECT SUM(a) WITHIN GROUP (ORDER BY a) FROM t; } }",
            "M2009",
            111,
            "has no WITHIN GROUP",
        ),
        (
            HEAD + "INITIALIZE: ITERATE: { INSERT INTO RETURN SELECT a FROM t LIMIT -1; } }",
            "M2009",
            120,
            "LIMIT must not be negative",
        ),
        (
            HEAD + "INITIALIZE: ITERATE: { INSERT INTO RETURN SELECT a FROM t EXCEPT SELECT a FROM t; } }",
            "M3019",
            120,
            "EXCEPT is not available over tables",
        ),
        (
            WINDOW + "INITIALIZE: ITERATE: { INSERT INTO RETURN SELECT f(w) FROM inwindow; } }",
            "M2044",
            114,
            "'f' calls itself",
        ),
        (
            WINDOW.replace("inwindow", "t") + "INITIALIZE: ITERATE: { DELETE FROM inwindow; } }",
            "M2002",
            81,
            "unknown table 'inwindow'",
        ),
        ("CREATE AGGREGATE f(v WORD) : INT { INITIALIZE: ITERATE: { } }", "M2003", 22, "unknown type WORD"),
        (
            "CREATE AGGREGATE f(v INT, v INT) : INT { INITIALIZE: ITERATE: { } }",
            "M2015",
            27,
            "argument 'v' appears twice",
        ),
    ],
)
def test_mistakes_in_a_body(body: str, code: str, column: int, message: str) -> None:
    catalog = catalog_of(SCHEMA)
    statement = parse_one(body)
    assert isinstance(statement, CreateAggregate)
    with pytest.raises(MillstreamError) as caught, statement.placing():
        catalog.add_aggregate(bind_aggregate(statement, catalog))
    assert (caught.value.code, caught.value.column) == (code, column), caught.value
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ("SELECT total(k) FROM s", "M3060", "aggregate 'total' is blocking"),
        ("SELECT only(k) FROM s", "M3062", "has only a window version"),
        ("SELECT total(k, 1) OVER (ROWS 1 PRECEDING) FROM s", "M2009", "total takes 1 argument, found 2"),
        ("SELECT total(x) OVER (ROWS 1 PRECEDING) FROM s", "M2006", "argument 'v' is BIGINT, the value is REAL"),
        ("SELECT only(k) OVER (RANGE 5 PRECEDING ACTIVE EXPIRATION) FROM s", "M3061", "returns nothing"),
        ("SELECT k FROM s WHERE total(k) > 1", "M3013", "not allowed in WHERE"),
        ("SELECT pair(k) + 1 FROM s", "M2009", "cannot be part of an expression"),
        ("SELECT pair(k), COUNT(*) FROM s", "M3050", "together with another aggregate"),
        ("SELECT only(k) FROM s [RANGE 10]", "M3062", "has only a window version"),
        (
            "SELECT only(k) OVER (ROWS 1 PRECEDING), only(k) OVER (ROWS 2 PRECEDING) FROM s",
            "M3053",
            "different windows",
        ),
        ("SELECT total(*) OVER (ROWS 1 PRECEDING) FROM s", "M2009", "means nothing"),
    ],
)
def test_mistakes_in_a_call(query: str, code: str, message: str) -> None:
    with pytest.raises(MillstreamError) as caught:
        bind(query, catalog_of(SCHEMA))
    assert caught.value.code == code, caught.value
    assert message in caught.value.message


def test_a_message_names_a_table_as_it_is_written() -> None:
    statement = parse_one(
        HEAD + "INITIALIZE: ITERATE: { INSERT INTO RETURN SELECT CASE b WHEN b THEN b END FROM t; } }"
    )
    assert isinstance(statement, CreateAggregate)
    with pytest.raises(MillstreamError) as caught:
        bind_aggregate(statement, catalog_of(SCHEMA))
    assert caught.value.hint.startswith("CAST(CASE WHEN (t.b = t.b) THEN t.b END AS BIGINT)")


def test_several_results_are_several_columns() -> None:
    plan = bind("SELECT k, pair(k), pair(k) AS p FROM s", catalog_of(SCHEMA))
    assert plan.schema.names == ("k", "low", "high", "p_low", "p_high")


def test_numbers_have_64_bits() -> None:
    (program,) = catalog_of(SCHEMA).aggregates["total"].versions
    assert [argument.type for argument in program.arguments] == [Type.BIGINT]


def test_a_window_version_alone_hides_the_built_in_function_only_where_it_is_used() -> None:
    body = "CREATE WINDOW AGGREGATE max(v INT) : INT { INITIALIZE: ITERATE: { INSERT INTO RETURN VALUES (0); } }"
    catalog = catalog_of(SCHEMA + body)
    queries = ["SELECT max(k) OVER (ROWS 1 PRECEDING) FROM s", "SELECT max(k) OVER (UNBOUNDED PRECEDING) FROM s"]
    described = [next(node.describe() for node in bind(q, catalog).walk() if node.stem == "over") for q in queries]
    assert ["compiled" in text for text in described] == [True, False]
