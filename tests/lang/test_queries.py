"""SELECT, windows and expressions, as in the language reference and the specifications."""

from __future__ import annotations

from fractions import Fraction

import pytest

from millstream.lang import ast, parse_one


def select(text: str) -> ast.Select:
    made = parse_one(text)
    assert isinstance(made, ast.SelectStatement) and isinstance(made.select, ast.Select)
    return made.select


def window(text: str) -> ast.WindowClause:
    found = select(f"SELECT * FROM s {text}").sources[0].source.window
    assert found is not None
    return found


def where(text: str) -> ast.Expr:
    found = select(f"SELECT * FROM s WHERE {text}").where
    assert found is not None
    return found


def shape(node: object) -> object:
    """An expression as nested lists."""
    match node:
        case ast.Name():
            return str(node)
        case ast.Constant():
            return node.value
        case ast.Duration():
            return f"{node}"
        case ast.Unary():
            return [node.op, shape(node.operand)]
        case ast.Binary():
            return [shape(node.left), node.op, shape(node.right)]
        case ast.Between():
            return ["between", shape(node.operand), shape(node.low), shape(node.high)]
        case ast.InList():
            return ["in", shape(node.operand), *map(shape, node.options)]
        case ast.Function():
            return [node.name, *map(shape, node.arguments)]
        case ast.Cast():
            return ["cast", shape(node.operand), node.type_name.name]
    return node


@pytest.mark.parametrize(
    ("text", "range_", "slide"),
    [
        ("[RANGE 60 SECONDS SLIDE 20 SECONDS]", 60, 20),
        ("[RANGE 60 SLIDE 20]", 60, 20),
        ("[RANGE=60s, SLIDE=20s]", 60, 20),
        ("[Range = 60 , Slide = 20]", 60, 20),
        ("[range 10min, slide 2 min]", 600, 120),
        ("[RANGE 30 Second, SLIDE=10 Second]", 30, 10),
        ("[RANGE INTERVAL '1' HOUR SLIDE INTERVAL '90' SECONDS]", 3600, 90),
        ("[RANGE 1 DAY]", 86_400, None),
        ("[SLIDE 500 ms RANGE 1.5 hours]", 5400, Fraction(1, 2)),
        ("[RANGE 10 SECONDS PRECEDING]", 10, None),
    ],
)
def test_range_windows(text: str, range_: int, slide: Fraction | None) -> None:
    made = window(text)
    assert made.range is not None and made.range.total == range_
    assert (made.slide.total if made.slide else None) == slide


def test_other_windows() -> None:
    assert window("[ROWS 10]") == ast.WindowClause(rows=10)
    assert window("[ROWS 0]") == ast.WindowClause(rows=0)
    assert window("[NOW]") == ast.WindowClause(now=True)
    assert window("[UNBOUNDED]") == ast.WindowClause()
    assert window("[RANGE UNBOUNDED]") == ast.WindowClause()
    assert window("[RANGE 5 ON ts]").attribute == "ts"
    assert window("[RANGE=5, SLIDE=5, WATTR=ts]").attribute == "ts"


@pytest.mark.parametrize("text", ["s AS x [ROWS 1]", "s x [ROWS 1]", "s [ROWS 1] x", "s [ROWS 1] AS x"])
def test_alias_before_or_after_the_window(text: str) -> None:
    source = select(f"SELECT * FROM {text}").sources[0].source
    assert (source.relation, source.alias, source.window) == ("s", "x", ast.WindowClause(rows=1))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT k, SUM(v) FROM s WHERE v > 1 WINDOW [RANGE 60, SLIDE 20] GROUP BY k",
        "SELECT k, SUM(v) FROM s WINDOW [RANGE 60, SLIDE 20] WHERE v > 1 GROUP BY k",
        "SELECT k, SUM(v) FROM s GROUP BY k WHERE v > 1 WINDOW [RANGE 60, SLIDE 20]",
        "Select k, Sum(v) From s Window[Range=60, Slide=20] Group By k Where v > 1",
    ],
)
def test_clauses_in_any_order(text: str) -> None:
    assert select(text) == select("SELECT k, SUM(v) FROM s WHERE v > 1 WINDOW [RANGE 60, SLIDE 20] GROUP BY k")


@pytest.mark.parametrize(
    "text",
    ["TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '10' SECOND)", "TABLE(tumble(TABLE s, descriptor(ts), 10 SECONDS)) t"],
)
def test_tumble(text: str) -> None:
    made = select(f"SELECT COUNT(*) FROM {text} GROUP BY window_start").sources[0].source
    assert made.relation == "s" and made.window is not None
    assert made.window.range is not None and made.window.range.total == 10
    assert (made.window.slide, made.window.attribute, made.window.function) == (None, "ts", "TUMBLE")


def test_hop_gives_slide_then_size() -> None:
    made = select("SELECT COUNT(*) FROM HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '10' SECOND) h")
    window = made.sources[0].source.window
    assert window is not None and window.range is not None and window.slide is not None
    assert (window.slide.total, window.range.total) == (2, 10)


@pytest.mark.parametrize(
    "text",
    [
        "Select Sum(volume) from S Window [RANGE=60s, SLIDE=20s] Group By sensor_id",
        "Select Sum(volume) from S Window [Range=60s, Slide=20s]",
        "Select Sum(volume) from S Window [RANGE=50, SLIDE=50] Group by sensor_id",
        "Select Sum(volume) from S Window[Range 10min, Slide 2min]",
        "Select Max(speed) from S Window[Range=30 Second, Slide=10 Second]",
        "Select Average(value) from S Window [Range 30 Second, Slide 10 Second]",
        "Select count(word) from WordStream where word foundIn(SomeText) Window[Range=5 min, Slide=1 min]",
        "SELECT * FROM s1 WHERE p1(s1) UNION SELECT * FROM s2 WHERE p2(s2);",
        "SELECT c.tagid, p.tagid, p.ts FROM case AS c, product AS p WHERE SEQ(c, p) MODE RECENT;",
        "SELECT c.tagid FROM case AS c OVER (ROWS 1 PRECEDING), product AS p",
        "SELECT c.tagid, p.tagid FROM case AS c OVER (UNLIMITED PRECEDING) KEY JOIN, product AS p "
        "WHERE SEQ(c, p) MODE CHRONICLE;",
        "SELECT itemID, sellerID, price, start_time FROM OpenAuction WHERE price > 1000",
    ],
)
def test_queries_of_the_specifications_parse(text: str) -> None:
    parse_one(text)


def test_joins() -> None:
    made = select(
        "SELECT * FROM a, b CROSS JOIN c JOIN d ON a.k = d.k INNER JOIN e USING (k, l) LEFT OUTER JOIN f ON TRUE"
    )
    assert [j.kind for j in made.sources] == ["", "CROSS", "CROSS", "INNER", "INNER", "LEFT"]
    assert shape(made.sources[3].on) == ["a.k", "=", "d.k"]
    assert made.sources[4].using == ("k", "l")


def test_subqueries_and_unions() -> None:
    made = parse_one("SELECT a FROM (SELECT b AS a FROM s) x UNION ALL (SELECT a FROM t) UNION ALL SELECT a FROM u")
    assert isinstance(made, ast.SelectStatement) and isinstance(made.select, ast.SetOperation)
    assert made.select.op == "UNION ALL" and isinstance(made.select.left, ast.SetOperation)


def test_select_list() -> None:
    made = select('SELECT *, x.*, a AS b, a c, x.a, COUNT(*), "From" AS "Group", COUNT(DISTINCT a) FROM s x')
    assert made.items[0].expression == ast.Star()
    assert made.items[1].expression == ast.Star("x")
    assert [item.alias for item in made.items[2:]] == ["b", "c", None, None, "group", None]
    assert made.items[5].expression == ast.Function("count", star=True)
    assert made.items[6].expression == ast.Name(("from",))
    assert made.items[7].expression == ast.Function("count", (ast.Name(("a",)),), distinct=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a OR b AND NOT c = d", ["a", "OR", ["b", "AND", ["NOT", ["c", "=", "d"]]]]),
        ("a + b * c - d > 1", [[["a", "+", ["b", "*", "c"]], "-", "d"], ">", 1]),
        ("-a * -2 = +3", [[["-", "a"], "*", -2], "=", 3]),
        ("a || b || 'x' <> c", [[["a", "||", "b"], "||", "x"], "<>", "c"]),
        ("a BETWEEN 1 AND 2 AND b", [["between", "a", 1, 2], "AND", "b"]),
        ("a NOT BETWEEN b - 1 AND b + 1", ["NOT", ["between", "a", ["b", "-", 1], ["b", "+", 1]]]),
        ("a NOT IN (1, 2) OR b IN ('x')", [["NOT", ["in", "a", 1, 2]], "OR", ["in", "b", "x"]]),
        ("a IS NULL AND b IS NOT NULL", [["IS NULL", "a"], "AND", ["IS NOT NULL", "b"]]),
        ("a LIKE 'x%' AND b NOT LIKE c", [["a", "LIKE", "x%"], "AND", ["NOT", ["b", "LIKE", "c"]]]),
        ("(a OR b) AND c", [["a", "OR", "b"], "AND", "c"]),
        ("a != 1 AND a == 2", [["a", "<>", 1], "AND", ["a", "=", 2]]),
        ("a::BIGINT = CAST(b AS VARCHAR(3))", [["cast", "a", "BIGINT"], "=", ["cast", "b", "VARCHAR"]]),
        ("substring(a FROM 1 FOR 2) = upper('x')", [["substring", "a", 1, 2], "=", ["upper", "x"]]),
        ("ts > INTERVAL '5' SECOND", ["ts", ">", "5 SECONDS"]),
        ("ts > INTERVAL '1 minute 30 seconds'", ["ts", ">", "90 SECONDS"]),
        ("ts > INTERVAL -2 HOURS", ["ts", ">", "-2 HOURS"]),
        ("case.a = interval", ["case.a", "=", "interval"]),
        ("a IS TRUE", ["coalesce", ["a", "=", True], False]),
        ("a = 'it''s' /* why */ -- and how", ["a", "=", "it's"]),
        ("a = 1e3 AND b = 0.5", [["a", "=", 1000.0], "AND", ["b", "=", 0.5]]),
    ],
)
def test_expressions(text: str, expected: object) -> None:
    assert shape(where(text)) == expected


def test_case_and_extract_and_sequence() -> None:
    assert where("CASE a WHEN 1 THEN TRUE WHEN 2 THEN FALSE END") == ast.Case(
        ast.Name(("a",)),
        ((ast.Constant(1), ast.Constant(True)), (ast.Constant(2), ast.Constant(False))),
        None,
    )
    assert where("EXTRACT(HOUR FROM ts) = 1") == ast.Binary(
        "=", ast.Extract("HOUR", ast.Name(("ts",))), ast.Constant(1)
    )
    assert where("SEQ(a, b) MODE chronicle") == ast.SequenceTest(("a", "b"), "CHRONICLE")
    assert where("ts > TIMESTAMP '2024-01-01'") == ast.Binary(
        ">", ast.Name(("ts",)), ast.TypedConstant("TIMESTAMP", "2024-01-01")
    )


def test_nodes_have_positions() -> None:
    made = where("a = 1\n  AND b > 'x'")
    assert isinstance(made, ast.Binary)
    assert (made.line, made.column) == (2, 3)
    right = made.right
    assert isinstance(right, ast.Binary)
    assert (right.right.line, right.right.column) == (2, 11)
