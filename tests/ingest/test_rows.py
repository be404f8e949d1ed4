"""Rows from outside: each becomes a typed row or a bad row, and nothing raises."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Literal

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.schema import Schema, TimeKind
from millstream.algebra.types import Type
from millstream.ingest.coerce import coerce, coerce_values
from millstream.ingest.lines import parse_line, split_line, write_line
from millstream.ingest.rows import Rows, read_frame, read_lines, read_rows, read_values
from tests.tries import tries

EVERYTHING = Schema.of(
    ("b", Type.BOOLEAN), ("i", Type.INT), ("n", Type.BIGINT), ("r", Type.REAL), ("d", Type.DOUBLE), ("m", Type.DECIMAL),
    ("s", Type.VARCHAR), ("t", Type.TIMESTAMP), ("y", Type.DATE), ("v", Type.INTERVAL),
)  # fmt: skip
PAIR = Schema.of(("ts", Type.BIGINT), ("name", Type.VARCHAR), kind=TimeKind.EXTERNAL, time="ts")

stamps = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30))
good_rows = st.tuples(
    *(
        st.one_of(st.none(), values)
        for values in (
            st.booleans(), st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1),
            st.floats(width=32, allow_nan=False), st.floats(allow_nan=False), st.floats(allow_nan=False), st.text(),
            stamps, st.dates(), st.timedeltas(timedelta(days=-9999), timedelta(days=9999)),
        )
    )
)  # fmt: skip


def check_complete(rows: Rows) -> None:
    """Every input row is either good, with its position, or bad, with a reason."""
    assert rows.frame.height + rows.bad.height == rows.given
    assert rows.bad.height == 0 if rows.index is None else len(rows.index) == rows.frame.height
    assert rows.bad.null_count().row(0) == (0, 0)
    assert all(rows.bad["reason"].str.len_chars() > 0)


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        ("a | b", ["a", "b"]), ("", [""]), ("|", ["", ""]), ("a|b", ["a", "b"]), ("'a | b' | c", ["a | b", "c"]),
        ('"it\'s" | \'say ""\'', ["it's", 'say ""']), ("'it''s'", ["it's"]), ("O'Brien | 5\"", ["O'Brien", '5"']),
        ("''", [""]), ("  ' x '  ", [" x "]), ("'a'|'|'", ["a", "|"]),
    ],
)  # fmt: skip
def test_split_line(line: str, fields: list[str]) -> None:
    assert [field.text for field in split_line(line)] == fields


@pytest.mark.parametrize("line", ["'a", "'a' b | c", "'a''", '"'])
def test_quotes_must_match(line: str) -> None:
    with pytest.raises(ValueError):
        split_line(line)
    assert read_lines([line], PAIR).bad.height == 1


def test_null_is_null_only_without_quotes() -> None:
    assert parse_line("NULL | NULL", PAIR) == (None, None)
    assert parse_line("null | 'NULL'", PAIR) == (None, "NULL")
    assert parse_line("1 | null", PAIR) == (1, "null")


@settings(max_examples=tries(100))
@given(good_rows)
def test_a_written_row_is_read_back(row: tuple[Any, ...]) -> None:
    assert parse_line(write_line(row), EVERYTHING) == row
    by_value, by_line = read_values([row], EVERYTHING), read_lines([write_line(row)], EVERYTHING)
    assert by_value.bad.is_empty() and by_line.bad.is_empty(), (by_value.bad, by_line.bad)
    assert by_value.frame.rows() == [row] == by_line.frame.rows()
    by_name = read_values([dict(zip(EVERYTHING.names, row, strict=True))], EVERYTHING)
    assert by_name.frame.equals(by_value.frame)
    assert read_frame(by_value.frame, EVERYTHING).frame.equals(by_value.frame)
    assert read_rows(by_value.frame.to_arrow(), EVERYTHING).frame.equals(by_value.frame)


@settings(max_examples=tries(150))
@given(st.lists(st.one_of(st.text(), st.text("0123456789.-+e|' \"NULnul:TZ"), good_rows.map(write_line)), max_size=8))
def test_no_text_raises(lines: list[str]) -> None:
    for schema in (EVERYTHING, PAIR):
        check_complete(read_lines(lines, schema, required=("ts",) if schema is PAIR else ()))


anything = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.decimals(), stamps, st.dates(),
    st.timedeltas(), st.datetimes(timezones=st.just(timezone(timedelta(hours=5)))), st.binary(max_size=3),
    st.lists(st.integers(), max_size=2), st.just(object()), st.complex_numbers(),
)  # fmt: skip


@settings(max_examples=tries(150))
@given(st.lists(st.one_of(st.tuples(*[anything] * 10), st.tuples(*[anything] * 2), anything), max_size=6))
def test_no_value_raises(values: list[Any]) -> None:
    for schema in (EVERYTHING, PAIR):
        check_complete(read_values(values, schema))
        check_complete(read_rows(values, schema))


DTYPES = [
    pl.Boolean, pl.Int8, pl.Int32, pl.Int64, pl.UInt64, pl.Int128, pl.Float32, pl.Float64, pl.String, pl.Date,
    pl.Datetime("ms"), pl.Datetime("ns"), pl.Datetime("us", "Europe/Paris"), pl.Duration("ms"), pl.Time, pl.Binary,
    pl.Categorical, pl.Decimal(20, 2), pl.List(pl.Int64), pl.Null,
]  # fmt: skip
SAMPLES = [0, 1, -5, 2**40, 10**12]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("type_", [a.type for a in EVERYTHING], ids=str)
def test_no_column_raises_and_none_is_lost(dtype: pl.DataType, type_: Type) -> None:
    values = pl.Series(SAMPLES)
    if dtype == pl.Categorical:
        column = values.cast(pl.String).cast(dtype)
    elif dtype == pl.List(pl.Int64):
        column = pl.Series([[value] for value in SAMPLES])
    elif dtype == pl.Binary:
        column = pl.Series([str(value).encode() for value in SAMPLES])
    elif dtype == pl.Date:
        column = pl.Series([0, 1, -5, 2**10, 2**14]).cast(pl.Int32).cast(dtype)
    else:
        column = values.cast(dtype, strict=False)
    made = coerce(column.extend_constant(None, 1) if dtype != pl.List(pl.Int64) else column, type_)
    assert made.values.dtype == type_.polars
    for at, value in enumerate(column):
        assert (made.values[at] is None) == (value is None or at in made.wrong), (at, value, made)


@pytest.mark.parametrize(
    ("value", "type_", "wanted"),
    [
        (5, Type.DOUBLE, 5.0), (5.0, Type.BIGINT, 5), (Decimal("2.50"), Type.DOUBLE, 2.5), (" 7 ", Type.INT, 7),
        (1.5, Type.TIMESTAMP, datetime(1970, 1, 1, 0, 0, 1, 500000)), (3, Type.INTERVAL, timedelta(seconds=3)),
        (datetime(2020, 1, 1, 5, tzinfo=UTC), Type.TIMESTAMP, datetime(2020, 1, 1, 5)), (True, Type.VARCHAR, "true"),
        (date(2020, 1, 1), Type.TIMESTAMP, datetime(2020, 1, 1)), ("null", Type.INT, None), ("t", Type.BOOLEAN, True),
    ],
)  # fmt: skip
def test_values_that_fit(value: Any, type_: Type, wanted: Any) -> None:
    for made in (coerce_values([value, None], type_), coerce(pl.Series([value, None]), type_)):
        assert made.wrong == {} and made.values.to_list() == [wanted, None]


@pytest.mark.parametrize(
    ("value", "type_", "reason"),
    [
        (2**31, Type.INT, "2147483648 is out of range for INT"),
        (2**63, Type.BIGINT, "9223372036854775808 is out of range for BIGINT"),
        ("99999999999", Type.INT, "99999999999 is out of range for INT"),
        (1.5, Type.INT, "1.5 is not a value of type INT"),
        (float("nan"), Type.BIGINT, "nan is not a value of type BIGINT"),
        (1e39, Type.REAL, "1e+39 is out of range for REAL"),
        (True, Type.BIGINT, "true is not a value of type BIGINT"),
        ("x", Type.DATE, "'x' is not a value of type DATE"),
        (1e300, Type.TIMESTAMP, "1e+300 is out of range for TIMESTAMP"),
        ("inf", Type.INTERVAL, "inf is out of range for INTERVAL"),
        ([1], Type.VARCHAR, "[1] is not a value of type VARCHAR"),
        (5, Type.BOOLEAN, "5 is not a value of type BOOLEAN"),
    ],
)
def test_values_that_do_not_fit(value: Any, type_: Type, reason: str) -> None:
    for made in (coerce_values([value, None], type_), coerce(pl.Series([value, None], strict=False), type_)):
        assert made.values.to_list() == [None, None] and made.wrong == {0: reason}


def test_bad_rows_have_their_text_and_a_reason() -> None:
    given_rows = [(1, "a"), (1,), {"ts": 2, "nam": "b"}, {"TS": "3"}, (None, "c"), (2**61, "d"), 7, (4, None)]
    rows = read_values(given_rows, PAIR, required=("ts",))
    assert rows.frame.rows() == [(1, "a"), (3, None), (4, None)] and rows.index.tolist() == [0, 3, 7]
    assert rows.bad.rows() == [
        ("1", "expected 2 values, found 1"),
        ("ts = 2, nam = b", "unknown column 'nam' (did you mean 'name'?)"),
        ("NULL | c", "column 'ts' must not be NULL"),
        (f"{2**61} | d", f"column 'ts': {2**61} is out of range for a time"),
        ("7", "expected 2 values, found int"),
    ]


def test_a_frame_by_name() -> None:
    frame = pl.DataFrame({"NAME": ["a", None, "c"], "ts": ["1", "x", "3"]})
    rows = read_frame(frame, PAIR, required=("ts",))
    assert rows.frame.rows() == [(1, "a"), (3, "c")] and rows.frame.columns == ["ts", "name"]
    assert rows.bad.rows() == [("NULL | x", "column 'ts': 'x' is not a value of type BIGINT")]
    unknown = read_frame(frame.with_columns(z=1), PAIR)
    assert unknown.frame.is_empty() and unknown.bad.height == 3
    assert "unknown column 'z'" in unknown.bad["reason"][0]
    assert read_frame(pl.DataFrame({"ts": [5]}), PAIR).frame.rows() == [(5, None)]


@pytest.mark.parametrize("unit", ["ms", "us"])
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_times_that_python_does_not_have(unit: Literal["ms", "us"], zone: str | None) -> None:
    """Spark has them, and formatting them fails."""
    counts = [1 << 60, 5, (1 << 63) - 1, None, -(1 << 62)]
    times = pl.Series(counts, dtype=pl.Int64).cast(pl.Datetime(unit, zone))
    schema = Schema.of(("ts", Type.TIMESTAMP), ("k", Type.INT))
    rows = read_frame(pl.DataFrame({"ts": times, "k": range(5)}), schema)
    assert rows.frame["k"].to_list() == [1, 3] and rows.frame["ts"].null_count() == 1
    reason = f"column 'ts': {{}} ({unit}) is out of range for TIMESTAMP"
    assert rows.bad.rows() == [(f"{n} | {k}", reason.format(n)) for k, n in enumerate(counts) if k in (0, 2, 4)]


def test_one_row_needs_no_list() -> None:
    for one in (
        (1, "a"),
        [1, "a"],
        {"ts": 1, "name": "a"},
        "1 | a",
        [(1, "a")],
        ["1 | a"],
        pl.LazyFrame({"ts": 1, "name": "a"}),
    ):
        assert read_rows(one, PAIR).frame.rows() == [(1, "a")]
    assert read_rows([], PAIR).given == 0
