from __future__ import annotations

import math
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from millstream.algebra.punctuation.pattern import Pattern, parse_pattern
from millstream.algebra.punctuation.restriction import ANY, NOTHING, Restriction, above, below, between, equal, one_of
from millstream.algebra.schema import Schema
from millstream.algebra.types import Type
from millstream.errors import MillstreamError, PatternError
from tests.tries import tries

THREE = Schema.of(("ts", Type.BIGINT), ("auction", Type.BIGINT), ("Name", Type.VARCHAR))
STAMPED = Schema.of(("ts", Type.TIMESTAMP), ("k", Type.INT))

FIVE_AFTER = datetime(2024, 1, 2, 3, 4, 5)


@pytest.mark.parametrize(
    ("text", "restrictions"),
    [
        ("[<= 10, *, *]", {"ts": below(10, closed=True)}),
        ("[<= 10, 5, *]", {"ts": below(10, closed=True), "auction": equal(5)}),
        ("  [ ≤10 ,= 5,*]  ", {"ts": below(10, closed=True), "auction": equal(5)}),
        ("[>10, ≥ -5, = *]", {"ts": above(10), "auction": above(-5, closed=True)}),
        ("[[2, 5), (2,5], *]", {"ts": between(2, 5, True, False), "auction": between(2, 5, False, True)}),
        ("[(2, 5), [2,5], *]", {"ts": between(2, 5, False, False), "auction": between(2, 5)}),
        ("[*, *, {b, a}]", {"Name": one_of("ab")}),
        ("[(-∞, 5), [2, ∞), *]", {"ts": below(5), "auction": above(2, closed=True)}),
        ("[{1, 2, 3}, {}, ∅]", {"ts": one_of([1, 2, 3]), "auction": NOTHING, "Name": NOTHING}),
        ("[ts <= 10, auction = 5]", {"ts": below(10, closed=True), "auction": equal(5)}),
        ("[TS<10,name=x]", {"ts": below(10), "Name": equal("x")}),
        ("[ts > 2, ts <= 5]", {"ts": between(2, 5, lo_closed=False)}),
        ("[ts {1,2}, auction IN {3, 4}]", {"ts": one_of([1, 2]), "auction": one_of([3, 4])}),
        ("[name in ['a', b)]", {"Name": between("a", "b", hi_closed=False)}),
        ("[auction ∅]", {"auction": NOTHING}),
        ("[auction *]", {}),
        ("[*, *, New York]", {"Name": equal("New York")}),
        ("[*, *, O'Brien]", {"Name": equal("O'Brien")}),
        ("[*, *, 'it''s, [well]']", {"Name": equal("it's, [well]")}),
        ('[*, *, "say ""hi"""]', {"Name": equal('say "hi"')}),
        ("[*, *, '']", {"Name": equal("")}),
        ("[*, *, ' x ']", {"Name": equal(" x ")}),
        ("[*, *, 'NULL']", {"Name": equal("NULL")}),
        ("[*, *, '*']", {"Name": equal("*")}),
        ("[*, *, < 'b']", {"Name": below("b")}),
        ('["ts" = 3]', {"ts": equal(3)}),
        ("[*, *, name in words]", {"Name": equal("name in words")}),
    ],
)
def test_what_parses(text: str, restrictions: dict[str, Any]) -> None:
    pattern = parse_pattern(text, THREE)
    assert pattern == Pattern.of(restrictions)
    assert parse_pattern(pattern.format(THREE), THREE) == pattern


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2024-01-02 03:04:05", FIVE_AFTER),
        ("'2024-01-02 03:04:05'", FIVE_AFTER),
        ("2024-01-02T03:04:05.000001", FIVE_AFTER + timedelta(microseconds=1)),
        ("2024-01-02", datetime(2024, 1, 2)),
        ("12.5", datetime(1970, 1, 1, 0, 0, 12, 500000)),
        ("-1", datetime(1969, 12, 31, 23, 59, 59)),
    ],
)
def test_timestamps(text: str, value: datetime) -> None:
    assert parse_pattern(f"[< {text}, *]", STAMPED) == Pattern.of(ts=below(value))
    assert parse_pattern(f"[ts in [{text}, ∞)]", STAMPED) == Pattern.of(ts=above(value, closed=True))


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("", "M4001", "starts with"),
        ("<= 10, *, *", "M4001", "starts with"),
        ("{<= 10, *, *}", "M4001", "starts with"),
        ("[<= 10, *, *", "M4001", "not closed"),
        ("[*, *, 'x]", "M4001", "quote is not closed"),
        ("[<= 10, *, *)", "M4001", "Close it with ']'"),
        ("[{1, 2], *, *]", "M4001", "brackets"),
        ("[<= 10, *]", "M4002", "2 restrictions for 3 attributes"),
        ("[]", "M4002", "0 restrictions"),
        ("[*, *, *, *]", "M4002", "name them"),
        ("[*, *, *] x", "M4003", "character 10"),
        ("[*, *, *]]", "M4003", "unexpected text"),
        ("[acution = 5]", "M4004", "did you mean 'auction'?"),
        ("[<= 10, auction = 5, *]", "M4005", "mixed"),
        ("[, *, *]", "M4006", "column 'ts'"),
        ("[<, *, *]", "M4006", "no value after '<'"),
        ("[auction =]", "M4006", "column 'auction'"),
        ("[auction [1, 2, 3]]", "M4006", "two ends"),
        ("[auction [5, 2]]", "M4006", "empty"),
        ("[auction (2, 2]]", "M4006", "empty"),
        ("[auction {1,,2}]", "M4006", "missing"),
        ("[auction {1} 2]", "M4006", "unexpected text"),
        ("[auction [1, 2] [3, 4]]", "M4006", "unexpected text"),
        ("[auction = five]", "M4007", "column 'auction': 'five' is not a value of type BIGINT"),
        ("[auction = 5.5]", "M4007", "BIGINT"),
        ("[auction = 9223372036854775808]", "M4007", "out of range"),
        ("[auction = NULL]", "M4007", "only * matches NULL"),
        ("[name = NULL]", "M4007", "only * matches NULL"),
        ("[name = 'a' b]", "M4007", "do not match"),
        ("[auction in (1, 2)]", "M4006", "in (…) could be a set or a range"),
        ("[auction in (1, 2, 3)]", "M4006", "in {1, 2}"),
        ("[Auction in 1]", "M4006", "a set or a range"),
        ("[auction <> 5]", "M4006", "column 'auction': a pattern has no <>"),
        ('["name"!=x]', "M4006", "column 'name': a pattern has no !="),
        ("[*, <> 5, *]", "M4006", "no <>"),
        ("[*, *, != a]", "M4006", "no !="),
        ("[auction between 1 and 3]", "M4006", "in [1, 5]"),
        ("[ts = 1, auction BETWEEN 1 AND 3]", "M4006", "no BETWEEN"),
        ("[auction not in {1}]", "M4006", "no NOT"),
        ("[auction is null]", "M4006", "only * matches NULL"),
        ("[name like 'a%']", "M4006", "no LIKE"),
        ("[auction = {1, 2}]", "M4006", "auction in {1, 2}"),
        ("[name = {a, b}]", "M4006", "a set after '='"),
        ("[auction = 1 or auction = 2]", "M4006", "no OR"),
        ("[name = a and ts < 3]", "M4006", "Separate columns by commas"),
    ],
)
def test_what_does_not_parse(text: str, code: str, words: str) -> None:
    with pytest.raises(PatternError) as caught:
        parse_pattern(text, THREE)
    assert caught.value.code == code
    assert words in str(caught.value)
    assert caught.value.hint


def test_types_are_checked() -> None:
    schema = Schema.of(("flag", Type.BOOLEAN), ("small", Type.INT), ("real", Type.REAL), ("day", Type.DATE))
    assert parse_pattern("[flag = true, day < 2024-01-02]", schema) == Pattern.of(
        flag=equal(True), day=below(date(2024, 1, 2))
    )
    for text, code in [("[flag < true]", "M4008"), ("[flag [false, true]]", "M4008"), ("[flag = 2]", "M4007"),
                       ("[small = 2147483648]", "M4007"), ("[real = 1e39]", "M4007"), ("[real = nan]", "M4007"),
                       ("[day = 2024-13-01]", "M4007")]:  # fmt: skip
        with pytest.raises(PatternError) as caught:
            parse_pattern(text, schema)
        assert caught.value.code == code, text


def test_a_real_is_read_as_the_column_holds_it() -> None:
    schema = Schema.of(("x", Type.REAL))
    pattern = parse_pattern("[0.1]", schema)
    assert pattern.get("x").values == (float(np.float32(0.1)),)
    assert pattern.format(schema) == "[0.1]"


def test_format_loses_no_attribute() -> None:
    assert Pattern.of(ts=below(10, closed=True), Name=equal("a b")).format(THREE) == "[<= 10, *, a b]"
    assert Pattern.of(ts=below(FIVE_AFTER)).format(STAMPED) == "[< 2024-01-02 03:04:05, *]"
    with pytest.raises(PatternError, match="unknown column 'gone'"):
        Pattern.of(gone=equal(1)).format(THREE)


TEXTS = st.one_of(
    st.text(max_size=10),
    st.text("ab '\",[](){}<>=*∅∞-.in", max_size=8),
    st.sampled_from(["NULL", "x in {1}", "c0 = 1"]),
)
VALUES: dict[Type, st.SearchStrategy[Any]] = {
    Type.BOOLEAN: st.booleans(),
    Type.INT: st.integers(-(2**31), 2**31 - 1),
    Type.BIGINT: st.integers(-(2**63), 2**63 - 1),
    Type.REAL: st.floats(allow_nan=False, width=32),
    Type.DOUBLE: st.floats(allow_nan=False),
    Type.DECIMAL: st.floats(allow_nan=False),
    Type.VARCHAR: TEXTS,
    Type.TIMESTAMP: st.datetimes(),
    Type.DATE: st.dates(),
    Type.INTERVAL: st.integers(-(10**15), 10**15).map(lambda micros: timedelta(microseconds=micros)),
}


def of_type(type_: Type) -> st.SearchStrategy[Restriction]:
    value, closed = VALUES[type_], st.booleans()
    forms = [st.just(ANY), st.just(NOTHING), st.builds(equal, value), st.builds(one_of, st.lists(value, max_size=3))]
    if type_ is not Type.BOOLEAN:
        ends = st.tuples(value, value).map(sorted)
        forms += [st.builds(below, value, closed), st.builds(above, value, closed)]
        forms.append(st.builds(lambda e, lo_closed, hi_closed: between(*e, lo_closed, hi_closed), ends, closed, closed))
    return st.one_of(forms)


@st.composite
def typed_patterns(draw: st.DrawFn) -> tuple[Pattern, Schema]:
    types = draw(st.lists(st.sampled_from(sorted(VALUES, key=str)), min_size=1, max_size=3))
    pattern = Pattern.of({f"c{i}": draw(of_type(type_)) for i, type_ in enumerate(types)})
    return pattern, Schema.of(*((f"c{i}", type_) for i, type_ in enumerate(types)))


@given(typed_patterns())
@settings(max_examples=tries(200), suppress_health_check=[HealthCheck.too_slow])
def test_what_is_written_is_read_back(made: tuple[Pattern, Schema]) -> None:
    pattern, schema = made
    text = pattern.format(schema)
    assert parse_pattern(text, schema) == pattern, text


SCHEMAS = [
    THREE,
    STAMPED,
    Schema.of(*((f"c{i}", type_) for i, type_ in enumerate(Type))),
    Schema.of(("x", Type.INTERVAL)),
    Schema.of(("x", Type.VARCHAR)),
    Schema(()),
]
WORDS = ["<=", ">=", "in", "IN", "c0", "c1", "ts", "auction", "name", "NULL", "nan", "inf", "1e999", "5", "-5"]
WORDS += ["2024-01-02", "03:04:05", "true", "x", "''", "٣", "1_0", '"a"']
PIECES = st.sampled_from([*"[](){},<>=≤≥*∅∞'\" -.:\n\0\\", *WORDS, " in ", "9" * 20, "9" * 5000])
BRACKETED = st.lists(PIECES, max_size=12).map(lambda pieces: f"[{''.join(pieces)}]")


@given(st.one_of(st.text(), st.lists(PIECES, max_size=14).map("".join), BRACKETED), st.sampled_from(SCHEMAS))
@settings(max_examples=tries(300), suppress_health_check=[HealthCheck.too_slow])
@example("[0001-01-01T00:00:00+10:00, *]", STAMPED)
@example("[1e300]", Schema.of(("x", Type.INTERVAL)))
def test_any_text_is_a_pattern_or_an_error_of_ours(text: str, schema: Schema) -> None:
    try:
        pattern = parse_pattern(text, schema)
    except PatternError as error:
        assert isinstance(error, MillstreamError)
        assert error.code.startswith("M40")
        assert error.message
    else:
        assert parse_pattern(pattern.format(schema), schema) == pattern
        assert not any(isinstance(r.hi, float) and math.isnan(r.hi) for _, r in pattern.items)


@pytest.mark.parametrize(
    ("text", "rows", "matching"),
    [
        ("[{1001, 2004}, *, *]", [(2004, 1, "x"), (1002, 1, "x"), (1001, 1, "x")], [True, False, True]),
        ("[[10, 20), *, *]", [(10, 1, "x"), (19, 1, "x"), (20, 1, "x"), (None, 1, "x")], [True, True, False, False]),
        ("[∅, *, *]", [(10, 1, "x"), (None, 1, "x")], [False, False]),
    ],
)
def test_what_patterns_match(text: str, rows: list[tuple[Any, ...]], matching: list[bool]) -> None:
    frame = pl.DataFrame(rows, schema={a.name: a.type.polars for a in THREE}, orient="row")
    assert parse_pattern(text, THREE).match(frame).to_list() == matching
