"""Stream and table definitions: what kind of time a stream has, and what its source promises."""

from __future__ import annotations

import pytest

from millstream.algebra.punctuation.template import Template
from millstream.algebra.schema import TimeKind
from millstream.algebra.types import Type
from millstream.errors import BindError
from millstream.lang import ast, parse_one
from millstream.logical.bind import bind_stream, bind_table
from millstream.logical.catalog import Catalog, StreamDefinition
from tests.logical.sample import bind, catalog_of, sample_catalog


def stream(rest: str) -> StreamDefinition:
    made = parse_one(f"CREATE STREAM s {rest}")
    assert isinstance(made, ast.CreateStream)
    return bind_stream(made, Catalog())


def test_order_by_alone_promises_order() -> None:
    made = stream("(k INT, ts TIMESTAMP) ORDER BY ts")
    assert (made.schema.kind, made.schema.time, made.schema.unit) == (TimeKind.EXTERNAL, "ts", 1_000_000)
    assert made.schema.ordered and made.watermark is None and made.templates == ()


@pytest.mark.parametrize("type_", ["INT", "BIGINT", "INTEGER", "LONG"])
def test_integer_time_counts_units(type_: str) -> None:
    assert stream(f"(ts {type_}) ORDER BY ts").schema.unit == 1


def test_watermark_and_scheme_mean_any_order() -> None:
    made = stream("(ts TIMESTAMP, k INT) ORDER BY ts WATERMARK FOR ts AS ts - INTERVAL '5' SECOND PUNCTUATED ON (k #)")
    assert not made.schema.ordered
    assert made.watermark == 5_000_000
    assert made.templates == (Template((("k", "#"),)), Template((("ts", "+"),)))
    assert made.punctuated == {"k", "ts"}


@pytest.mark.parametrize(
    ("type_", "delay", "units"),
    [("BIGINT", "ts - 5", 5), ("BIGINT", "ts - INTERVAL '2' MINUTE", 120), ("TIMESTAMP", "ts - 5", 5_000_000),
     ("BIGINT", "ts", 0), ("TIMESTAMP", "ts - 250 MILLISECONDS", 250_000)],
)  # fmt: skip
def test_watermark_delays(type_: str, delay: str, units: int) -> None:
    made = stream(f"(ts {type_}) WATERMARK FOR ts AS {delay}")
    assert (made.watermark, made.schema.time, made.schema.kind) == (units, "ts", TimeKind.EXTERNAL)


def test_internal_and_latent() -> None:
    internal = stream("(k INT) ORDER BY current_time").schema
    assert (internal.kind, internal.time, internal.unit, internal.ordered) == (TimeKind.INTERNAL, None, 1_000_000, True)
    latent = stream("(k INT) PUNCTUATED ON (k #)").schema
    assert (latent.kind, latent.time, latent.ordered) == (TimeKind.LATENT, None, False)


def test_max_skew_and_primary_key_and_options() -> None:
    made = stream("(id INT, ts BIGINT) ORDER BY ts MAX SKEW 3 PRIMARY KEY (id) WITH (Path = 'X')")
    assert (made.max_skew, made.primary_key, dict(made.options)) == (3, ("id",), {"path": "X"})


def test_templates_are_in_the_order_of_the_schema() -> None:
    made = stream("(ts BIGINT, k INT, v INT) ORDER BY ts PUNCTUATED ON (k #, v -, ts +)")
    assert made.templates == (Template((("ts", "+"), ("k", "#"))),)


@pytest.mark.parametrize(
    ("written", "type_"),
    [("INTEGER", Type.INT), ("LONG", Type.BIGINT), ("FLOAT", Type.DOUBLE), ("TEXT", Type.VARCHAR),
     ("STRING", Type.VARCHAR), ("CHAR(10)", Type.VARCHAR), ("VARCHAR(5)", Type.VARCHAR), ("BOOL", Type.BOOLEAN),
     ("DECIMAL(10, 2)", Type.DECIMAL), ("TIMESTAMP(6)", Type.TIMESTAMP), ("REAL", Type.REAL), ("DATE", Type.DATE),
     ("INTERVAL", Type.INTERVAL), ("double precision", Type.DOUBLE)],
)  # fmt: skip
def test_type_synonyms(written: str, type_: Type) -> None:
    assert stream(f"(c {written})").schema.type_of("c") is type_


@pytest.mark.parametrize(
    ("rest", "code", "column", "message", "hint"),
    [
        ("(a INT, A INT)", "M2015", 25, "'a' appears twice", ""),
        ("(a INTT)", "M2003", 20, "unknown type INTT", "'int'"),
        ("(__x INT)", "M2015", 18, "reserved", ""),
        ("(a INT) ORDER BY b", "M2001", 34, "unknown column 'b' in ORDER BY", "current_time"),
        ("(tsx INT) ORDER BY ts", "M2001", 36, "unknown column 'ts'", "'tsx'"),
        ("(a VARCHAR) ORDER BY a", "M2022", 38, "'a' is VARCHAR", "TIMESTAMP or a BIGINT"),
        ("(a INT, b INT) ORDER BY a WATERMARK FOR b AS b", "M2021", 43, "does not fit ORDER BY 'a'", ""),
        ("(a INT) ORDER BY current_time WATERMARK FOR a", "M2021", 47, "not current_time", ""),
        ("(a INT) PUNCTUATED ON (b +)", "M2001", 40, "unknown column 'b'", ""),
        ("(a INT) PUNCTUATED ON (a +, a #)", "M2015", 40, "appears twice", ""),
        ("(a BOOLEAN) PUNCTUATED ON (a +)", "M2023", 44, "no upper bounds", "(a #)"),
        ("(a INT) PUNCTUATED ON (a -)", "M2023", 1, "restricts no column", ""),
        ("(a INT) PRIMARY KEY (b)", "M2001", 25, "unknown column 'b'", ""),
        ("(a INT) MAX SKEW 5", "M2020", 34, "MAX SKEW needs ORDER BY", ""),
        ("(a BIGINT) WATERMARK FOR a AS a - 0.5", "M2024", 51, "whole number", "unit"),
        ("(a BIGINT) WATERMARK FOR a AS a - -5", "M2024", 51, "must be positive", ""),
    ],
)
def test_errors(rest: str, code: str, column: int, message: str, hint: str) -> None:
    with pytest.raises(BindError) as caught:
        stream(rest)
    error = caught.value
    assert (error.code, error.line, error.column) == (code, 1, column), str(error)
    assert message in error.message and hint in error.hint


def test_names_are_taken_once() -> None:
    catalog = sample_catalog()
    for text, message in (
        ("CREATE STREAM bids (a INT)", "'bids' exists already"),
        ("CREATE STREAM big (a INT)", "'big' exists already"),
        ("CREATE STREAM x__late (a INT)", "reserved name"),
    ):
        statement = parse_one(text)
        assert isinstance(statement, ast.CreateStream)
        with pytest.raises(BindError, match=message):
            bind_stream(statement, catalog)
    table = parse_one("CREATE TABLE sites (a INT)")
    assert isinstance(table, ast.CreateTable)
    with pytest.raises(BindError, match="'sites' exists already"):
        bind_table(table, catalog)


def test_companions_can_be_read() -> None:
    late, bad = bind("SELECT * FROM bids__late").schema, bind("SELECT * FROM bids__bad").schema
    assert late.names == ("auction", "bidder", "price", "ts")
    assert (late.kind, late.time) == (TimeKind.LATENT, None)
    assert bad.names == ("input", "reason") and bad.kind is TimeKind.LATENT


def test_dropping() -> None:
    catalog = sample_catalog()
    with pytest.raises(BindError, match="stream 's' is read by stream 'big'"):
        catalog.drop("STREAM", "s")
    assert catalog.drop("STREAM", "BIG") and catalog.drop("stream", "s")
    assert catalog.drop("TABLE", "sites") and not catalog.drop("TABLE", "sites", if_exists=True)
    with pytest.raises(BindError, match="unknown stream 'bidz'") as caught:
        catalog.drop("STREAM", "bidz")
    assert caught.value.hint == "did you mean 'bids'?"


def test_catalog_lists_what_there_is() -> None:
    catalog = catalog_of("CREATE STREAM s (a INT); CREATE TABLE t (b INT); CREATE STREAM d AS SELECT a FROM s")
    assert [d.name for d in catalog.streams] == ["s"] and [d.name for d in catalog.tables] == ["t"]
    assert list(catalog.derived) == ["d"] and "d" in catalog and "x" not in catalog
    assert catalog.stream("S").name == "s" and catalog.table("T").schema.names == ("b",)
    with pytest.raises(BindError, match="unknown table 's'"):
        catalog.table("s")
