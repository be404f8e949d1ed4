"""The fields of every statement of the language."""

from __future__ import annotations

from fractions import Fraction

import pytest

from millstream.errors import SqlSyntaxError
from millstream.lang import ast, parse, parse_one


def created(text: str) -> ast.CreateStream:
    made = parse_one(text)
    assert isinstance(made, ast.CreateStream)
    return made


def test_create_stream_with_everything() -> None:
    made = created(
        """CREATE STREAM Bids (auction BIGINT, bidder BIGINT, price DOUBLE, ts TIMESTAMP)
    ORDER BY ts                                        -- external timestamps: the column ts
    MAX SKEW 2 SECONDS
    WATERMARK FOR ts AS ts - INTERVAL '5' SECOND       -- derive punctuation [ts < max(ts) - 5 s]
    PUNCTUATED ON (auction #)
    PUNCTUATED ON (ts +, auction #)
    PRIMARY KEY (auction, bidder)
    WITH (connector = 'parquet', path = 'data/bids', rows = 100)"""
    )
    assert made.name == "bids"
    assert [(c.name, c.type_name.name) for c in made.columns] == [
        ("auction", "BIGINT"),
        ("bidder", "BIGINT"),
        ("price", "DOUBLE"),
        ("ts", "TIMESTAMP"),
    ]
    assert (made.order_by, made.current_time) == ("ts", False)
    assert made.max_skew is not None and made.max_skew.total == 2
    assert made.watermark == ast.Watermark("ts", ast.Duration(Fraction(5), "SECONDS"))
    assert made.punctuated_on == ((("auction", "#"),), (("ts", "+"), ("auction", "#")))
    assert made.primary_key == ("auction", "bidder")
    assert made.options == (("connector", "parquet"), ("path", "data/bids"), ("rows", "100"))


def test_clauses_come_in_any_order() -> None:
    one = created("CREATE STREAM s (ts BIGINT, k INT) WITH (a = 'b') PRIMARY KEY (k) PUNCTUATED ON (ts +) ORDER BY ts")
    other = created(
        "CREATE STREAM s (ts BIGINT, k INT) ORDER BY ts PUNCTUATED ON (ts +) PRIMARY KEY (k) WITH (a = 'b')"
    )
    assert one == other


@pytest.mark.parametrize(
    "columns", ["id INT PRIMARY KEY, v INT", "id INT, v INT, PRIMARY KEY (id)", "id INT PRIMARY KEY NOT NULL, v INT"]
)
def test_primary_key_among_the_columns(columns: str) -> None:
    assert created(f"CREATE STREAM s ({columns})").primary_key == ("id",)


def test_internal_and_latent_streams() -> None:
    internal = created("CREATE STREAM s (k INT) ORDER BY current_time")
    assert (internal.order_by, internal.current_time) == (None, True)
    latent = created("CREATE STREAM s (k CHAR(10), p DECIMAL(10, 2), t TIMESTAMP(3), d DOUBLE PRECISION)")
    assert (latent.order_by, latent.current_time) == (None, False)
    assert [c.type_name.name for c in latent.columns] == ["CHAR", "DECIMAL", "TIMESTAMP", "DOUBLE"]


@pytest.mark.parametrize(
    ("delay", "total"),
    [("ts - 5", 5), ("ts", None), ("ts - INTERVAL '2' MINUTE", 120), ("ts - 1.5 SECONDS", Fraction(3, 2))],
)
def test_watermark_delays(delay: str, total: Fraction | None) -> None:
    made = created(f"CREATE STREAM s (ts BIGINT) WATERMARK FOR ts AS {delay}").watermark
    assert made is not None
    assert (made.delay.total if made.delay else None) == total


def test_columns_named_like_keywords() -> None:
    made = created('CREATE STREAM case (timestamp BIGINT, date DATE, range INT, "select" INT, mode INT)')
    assert made.name == "case"
    assert [c.name for c in made.columns] == ["timestamp", "date", "range", "select", "mode"]


def test_other_statements() -> None:
    script = """
    CREATE STREAM big AS SELECT * FROM s WHERE v > 5;
    CREATE TABLE sites (k BIGINT, city VARCHAR) WITH (path = 'x.csv');
    CREATE QUERY Hot AS SELECT * FROM s INTO console WITH (mode = 'append');
    SELECT * FROM s INTO memory;
    DROP STREAM s; DROP TABLE IF EXISTS t; drop query hot;
    EXPLAIN SELECT * FROM s; EXPLAIN CONTRACT CREATE QUERY q AS SELECT * FROM s;
    SHOW STREAMS; show queries; SHOW TABLES;
    SET shards = 4; SET engine.strategy = 'bfs'; SET paned = false; SET rate TO -1.5; SET ets = heartbeat
    """
    made = parse(script)
    derived, table, query, select, *rest = made
    assert isinstance(derived, ast.CreateDerivedStream) and derived.name == "big"
    assert isinstance(table, ast.CreateTable) and table.options == (("path", "x.csv"),)
    assert isinstance(query, ast.CreateQuery)
    assert (query.name, query.into, query.into_options) == ("hot", "console", (("mode", "append"),))
    assert isinstance(select, ast.SelectStatement) and select.into == "memory"
    assert rest[:3] == [ast.Drop("STREAM", "s"), ast.Drop("TABLE", "t", True), ast.Drop("QUERY", "hot")]
    explained, contract = rest[3:5]
    assert isinstance(explained, ast.Explain) and explained.stage == "OPTIMIZED"
    assert isinstance(contract, ast.Explain) and contract.stage == "CONTRACT"
    assert isinstance(contract.statement, ast.CreateQuery)
    assert rest[5:8] == [ast.Show("STREAMS"), ast.Show("QUERIES"), ast.Show("TABLES")]
    assert [(s.name, s.value) for s in rest[8:] if isinstance(s, ast.SetOption)] == [
        ("shards", 4),
        ("engine.strategy", "bfs"),
        ("paned", False),
        ("rate", -1.5),
        ("ets", "heartbeat"),
    ]


def test_statements_have_text_and_position() -> None:
    first, second = parse("-- a comment\nSELECT * FROM s ;\n\n  DROP QUERY q")
    assert (first.text, first.line, first.column) == ("SELECT * FROM s", 2, 1)
    assert (second.text, second.line, second.column) == ("DROP QUERY q", 4, 3)


def test_empty_scripts() -> None:
    assert parse("") == parse(" ; ;\n-- nothing\n") == []
    with pytest.raises(SqlSyntaxError, match="expected one statement, found none"):
        parse_one("  ")
    with pytest.raises(SqlSyntaxError, match="expected one statement, found 2"):
        parse_one("SHOW STREAMS; SHOW QUERIES")


def test_equal_texts_at_different_places_are_equal() -> None:
    assert parse_one("SELECT a FROM s") == parse_one("\n\n   select  A\nfrom S")
