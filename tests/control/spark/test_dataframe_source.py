"""The declaration of a DataFrame as a stream, and what does not fit. No session is needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pyspark.sql.types import (
    BinaryType,
    ByteType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from millstream.control.mill import LocalMill
from millstream.control.spark.dataframe_source import check_fits, declaration, routes_of
from millstream.control.spark.query_dataframe import SPARK_TYPES, spark_schema
from millstream.errors import MillstreamError
from millstream.lang import parse
from millstream.logical.catalog import References
from tests.physical.wire.frame_jobs import frame_mill


@dataclass
class Frame:
    """A streaming DataFrame, as far as its declaration is concerned."""

    columns_: dict[str, DataType]
    isStreaming: bool = True

    @property
    def schema(self) -> StructType:
        return StructType([StructField(name, type_) for name, type_ in self.columns_.items()])

    @property
    def columns(self) -> list[str]:
        return list(self.columns_)


def declared(frame: Frame, **options: Any) -> LocalMill:
    mill = LocalMill()
    mill.execute("CREATE STREAM keyed (id BIGINT) PRIMARY KEY (id); CREATE STREAM unkeyed (id BIGINT)")
    mill.execute(declaration("s", frame, **options))
    return mill


PLAIN = Frame({"k": LongType(), "ts": TimestampType()})


def test_types() -> None:
    given: dict[str, DataType] = {
        "a": ByteType(), "b": IntegerType(), "c": LongType(), "d": StringType(), "e": TimestampType(),
        "f": TimestampNTZType(), "g": DateType(), "h": DayTimeIntervalType(),
    }  # fmt: skip
    schema = declared(Frame(given)).catalog.stream("s").schema
    types = ["INT", "INT", "BIGINT", "VARCHAR", "TIMESTAMP", "TIMESTAMP", "DATE", "INTERVAL"]
    assert [a.type.value for a in schema] == types


def test_names_of_any_case_and_form() -> None:
    frame = Frame({'Odd "name"': LongType(), "Ts": TimestampType()})
    stream = declared(frame, order_by="TS", watermark="1 minute 30 seconds").catalog.stream("s")
    assert stream.schema.names == ('odd "name"', "ts") and stream.watermark == 90_000_000
    check_fits(stream, frame, order_by="ts", watermark="90s")


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (Frame({"k": LongType()}, isStreaming=False), {}, "M2100: 's' is not a streaming DataFrame"),
        (Frame({"k": BinaryType()}), {}, "M2101: column 'k' has the type binary"),
        (Frame({"k": DecimalType(10, 2)}), {}, r"M2101: column 'k' has the type decimal\(10,2\)"),
        (PLAIN, {"order_by": "tss"}, "M2001: unknown column 'tss'\n  hint: did you mean 'ts'?"),
        (PLAIN, {"watermark": "5 seconds"}, "M2021: the watermark of 's' needs a time column"),
        (PLAIN, {"order_by": "ts", "watermark": "5 parsecs"}, "M1006: unknown unit 'parsecs'"),
        (PLAIN, {"order_by": "ts", "watermark": "it's"}, "M1006: 'it's' is not an interval"),
        (PLAIN, {"order_by": 5}, "M2001: order_by of 's' is the name of a column, not int"),
        (PLAIN, {"primary_key": [5]}, "M2001: primary_key has names of columns, not int"),
        (PLAIN, {"references": ["keyed"]}, "M2032: the references of 's' are a dict, not list"),
        (PLAIN, {"references": {"k": 5}}, "M2032: 's' cannot refer from 'k' to 5"),
        (PLAIN, {"references": {5: "keyed"}}, "M2032: 's' cannot refer from 5 to 'keyed'"),
        (PLAIN, {"references": {"id": "keyed"}}, "M2001: unknown column 'id'"),
        (PLAIN, {"references": {"k": "keyd"}}, "M2002: unknown stream 'keyd'"),
        (PLAIN, {"references": {"k": "unkeyed"}}, "M2032: stream 'unkeyed' has no PRIMARY KEY to refer to"),
        (PLAIN, {"references": {"ts": "keyed"}}, "M2032: "),
        (PLAIN, {"references": {("k", "ts"): "keyed"}}, "M2032: the PRIMARY KEY of 'keyed' has 1 column"),
    ],
)
def test_mistakes(frame: Frame, options: dict[str, Any], message: str) -> None:
    with pytest.raises(MillstreamError, match=message):
        declared(frame, **options)


@pytest.mark.parametrize(
    ("frame", "options", "message"),
    [
        (Frame({"k": LongType()}), {}, "M2103: the DataFrame of stream 's' has no column 'ts'"),
        (Frame({"k": StringType(), "ts": TimestampType()}), {}, "M2103: column 'k' of stream 's' is BIGINT.* string"),
        (Frame({"k": BinaryType(), "ts": TimestampType()}), {}, "M2103: column 'k' of stream 's' is BIGINT.* binary"),
        (Frame(PLAIN.columns_, isStreaming=False), {}, "M2100"),
        (PLAIN, {"order_by": "ts"}, "M2103: stream 's' has been declared with other options"),
        (PLAIN, {"order_by": "ts", "watermark": "6 seconds"}, "M2103: stream 's' has been declared with other options"),
    ],
)
def test_a_dataframe_that_does_not_fit_its_stream(frame: Frame, options: dict[str, Any], message: str) -> None:
    stream = declared(PLAIN, order_by="ts", watermark="5 seconds").catalog.stream("s")
    with pytest.raises(MillstreamError, match=message):
        check_fits(stream, frame, **options)


def test_a_dataframe_that_fits_its_stream() -> None:
    stream = declared(PLAIN, order_by="ts", watermark="5 seconds").catalog.stream("s")
    check_fits(stream, PLAIN)
    check_fits(stream, PLAIN, order_by="ts", watermark="5 seconds")
    more = Frame({"TS": TimestampType(), "unread": BinaryType(), "K": LongType()})
    check_fits(stream, more)


def test_foreign_keys() -> None:
    stream = declared(PLAIN, references={"K": "Keyed"}).catalog.stream("s")
    assert stream.references == (References(("k",), "keyed", ("id",)),)
    check_fits(stream, PLAIN)
    check_fits(stream, PLAIN, references={"k": "keyed"})
    for other in ({"ascending": "k"}, {"references": {"k": "unkeyed"}}):
        with pytest.raises(MillstreamError, match="M2103: stream 's' has been declared with other options"):
            check_fits(stream, PLAIN, **other)


def test_a_stream_that_is_no_dataframe() -> None:
    mill = LocalMill()
    mill.execute("CREATE STREAM s (k BIGINT, ts TIMESTAMP)")
    with pytest.raises(MillstreamError, match="M2010: stream 's' exists already and is no DataFrame"):
        check_fits(mill.catalog.stream("s"), PLAIN)


def test_the_types_of_results() -> None:
    mill = declared(Frame({"a": TimestampType(), "b": ByteType(), "c": DayTimeIntervalType()}))
    (statement,) = parse("SELECT a, b, c, b / 2.5 AS d, NULL AS e, 'x' AS \"odd`name\" FROM s")
    schema = mill.plan(statement.select).schema
    types = "`a` timestamp, `b` int, `c` interval day to second, `d` double, `e` string, `odd``name` string"
    assert spark_schema(schema) == types
    assert {a.type for a in schema} <= SPARK_TYPES.keys()


def test_spark_finds_its_sources_at_their_places() -> None:
    """Spark knows a source by its place in the plan, whichever query reads it first."""
    for order in (("q", "r"), ("r", "q")):
        mill = frame_mill(1)
        texts = {"q": "SELECT b.k FROM b JOIN s ON b.k = s.k", "r": "SELECT s.k FROM s JOIN b ON b.k = s.k"}
        mill.adopt("b", object())
        for name in ("s", "b"):
            mill.execute(f"CREATE STREAM {name} (k BIGINT) WITH (connector = 'dataframe')")
        for name in order:
            mill.add_query(name, texts[name])
        assert list(routes_of(mill.job("q").log)) == ["b", "s"]
