"""For any text the parser returns statements or raises an error with a position."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.errors import MillstreamError, SqlSyntaxError
from millstream.lang import ast, parse
from millstream.logical.bind import bind_select, bind_stream, bind_table
from millstream.logical.explain import explain
from millstream.logical.plan import Plan
from millstream.optimizer import optimize
from tests.logical.sample import QUERIES, SCHEMA, sample_catalog
from tests.tries import tries

VALID = [*QUERIES, *(part.strip() for part in SCHEMA.split(";") if part.strip())]
WORDS = {word for text in VALID for word in text.replace("(", " ( ").replace(")", " ) ").split()}
ODD = r"""
( ) [ ] , ; . * + - / % < > = ' " # : | { } ! @ $ ? ~ ^ & \ || <= <> :: -- /* */ '' 0 1 -5 1e9 99999999999999999999
1.5 NULL INTERVAL '5' OVER EVENT SEQ MODE LIMIT ORDER CAST EXTRACT EXISTS UNION ALL é 名 __ts current_time window_end
TUMBLE DESCRIPTOR CREATE DROP SET
"""
PIECES = [*sorted(WORDS), *ODD.split(), "\n", "\x00"]
CATALOG = sample_catalog()


def check(text: str) -> None:
    try:
        statements = parse(text)
    except SqlSyntaxError as error:
        assert error.line is not None and error.line >= 1
        assert error.column is not None and error.column >= 1
        return
    for statement in statements:
        assert statement.text in text
        bound(statement)


def bound(statement: ast.Statement) -> None:
    try:
        match statement:
            case ast.CreateStream():
                bind_stream(statement, CATALOG)
            case ast.CreateTable():
                bind_table(statement, CATALOG)
            case ast.Explain():
                bound(statement.statement)
            case ast.SelectStatement() | ast.CreateQuery() | ast.CreateDerivedStream():
                plan = bind_select(statement.select, CATALOG)
                assert isinstance(plan, Plan)
                made = optimize(plan, CATALOG)
                assert made.schema.attributes == plan.schema.attributes
                assert explain(made)
    except MillstreamError as error:
        assert error.line is not None and error.column is not None, str(error)


@settings(max_examples=tries(150))
@given(st.text(max_size=80))
def test_random_text(text: str) -> None:
    check(text)


@settings(max_examples=tries(150))
@given(st.lists(st.sampled_from(PIECES), max_size=30))
def test_random_words(words: list[str]) -> None:
    check(" ".join(words))


@settings(max_examples=tries(200))
@given(st.sampled_from(VALID), st.integers(0, 2**32), st.integers(1, 4))
def test_mutations_of_valid_statements(text: str, seed: int, changes: int) -> None:
    draw = random.Random(seed)
    words = text.replace("(", " ( ").replace(")", " ) ").replace(",", " , ").split()
    for _ in range(changes):
        position = draw.randrange(len(words) + 1)
        match draw.randrange(4):
            case 0:
                words[position : position + 1] = []
            case 1:
                words.insert(position, draw.choice(PIECES))
            case 2:
                words[position : position + 1] = [draw.choice(PIECES)]
            case _:
                start = draw.randrange(len(words) + 1)
                words[position:position] = words[start : start + draw.randrange(4)]
    check(" ".join(words))


@settings(max_examples=tries(150))
@given(st.sampled_from(VALID), st.integers(0, 400), st.text(max_size=2))
def test_characters_changed(text: str, position: int, change: str) -> None:
    check(text[:position] + change + text[position + 1 :])


def test_deep_nesting_is_an_error_with_a_position() -> None:
    for text in (
        "SELECT " + "(" * 5000 + "1" + ")" * 5000 + " FROM s",
        "SELECT " + "-" * 1 + "- " * 3000 + "1 FROM s",
        "SELECT " + "NOT " * 3000 + "TRUE FROM s",
        "SELECT " + "1 + " * 3000 + "1 FROM s",
        "SELECT 1 FROM " + "(SELECT 1 FROM " * 500 + "s" + ")" * 500,
        "SELECT ts FROM s" + " UNION ALL SELECT ts FROM s" * 500,
        "SELECT " + "CASE WHEN TRUE THEN " * 500 + "1" + " END" * 500 + " FROM s",
        "SELECT ts FROM s WHERE " + "ts = 1 AND " * 90 + "ts = 1",
        "SELECT ts FROM s WHERE " + "(" * 90 + "ts" + ")" * 90 + " = 1",
        "SELECT ts FROM s WHERE " + "abs(" * 90 + "ts" + ")" * 90 + " = 1",
    ):
        check(text)
