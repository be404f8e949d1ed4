"""A written value is read alike on every path: CSV, JSON, parquet, tables, lines, Python rows, frames."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pytest

from millstream.algebra.schema import Schema
from millstream.algebra.types import Type
from millstream.ingest.paged.base import open_paged
from millstream.ingest.rows import read_frame, read_lines, read_values
from millstream.ingest.tables import read_table
from millstream.logical.catalog import TableDefinition

BAD = object()
WRITTEN: list[tuple[Type, str, Any]] = [
    (Type.BIGINT, "5", 5),
    (Type.BIGINT, "-5", -5),
    (Type.BIGINT, "+5", 5),
    (Type.BIGINT, "007", 7),
    (Type.BIGINT, " 5 ", 5),
    (Type.BIGINT, "9223372036854775807", 9_223_372_036_854_775_807),
    *(
        (Type.BIGINT, text, BAD)
        for text in ("1_000", "1 000", "５", "٣", "²", "0x10", "0b1", "1e3", "5.0", "5.", "--5")
    ),
    *((Type.BIGINT, text, BAD) for text in ("+", "x", "1,5", "9223372036854775808", "9" * 5000, "true", "5\u00a0")),
    (Type.INT, "2147483647", 2_147_483_647),
    *((Type.INT, text, BAD) for text in ("2147483648", "-2147483649", "1_0")),
    (Type.DOUBLE, "1e3", 1000.0),
    (Type.DOUBLE, "+.5", 0.5),
    (Type.DOUBLE, "5.", 5.0),
    (Type.DOUBLE, "inf", float("inf")),
    (Type.DOUBLE, "-Infinity", float("-inf")),
    *(
        (Type.DOUBLE, text, BAD)
        for text in ("1_0.5", "１.5", "0x1p3", "1e", "e5", ".", "1e400", "-1e400", "1d", "infin")
    ),
    (Type.REAL, "1e39", BAD),
    (Type.DECIMAL, "12.50", 12.5),
    (Type.DECIMAL, "12.50€", BAD),
    (Type.BOOLEAN, "TRUE", True),
    (Type.BOOLEAN, "f", False),
    (Type.BOOLEAN, "1", True),
    *((Type.BOOLEAN, text, BAD) for text in ("yes", "on", "2", "wahr", "-1", "1.0")),
    (Type.DATE, "2024-02-29", date(2024, 2, 29)),
    *(
        (Type.DATE, text, BAD)
        for text in ("2023-02-29", "20240229", "2024-2-9", "2024-W01-1", "0000-01-01", "10000-01-01")
    ),
    *((Type.DATE, text, BAD) for text in ("2024-01-01 00:00:00", "29.02.2024", "02/29/2024")),
    (Type.TIMESTAMP, "2024-01-02", datetime(2024, 1, 2)),
    (Type.TIMESTAMP, "2024-01-02 03:04", datetime(2024, 1, 2, 3, 4)),
    (Type.TIMESTAMP, "2024-01-02T03:04:05.123456789", datetime(2024, 1, 2, 3, 4, 5, 123_456)),
    (Type.TIMESTAMP, "2024-01-02T03:04:05Z", datetime(2024, 1, 2, 3, 4, 5)),
    (Type.TIMESTAMP, "2024-01-02 03:04:05+02:00", datetime(2024, 1, 2, 1, 4, 5)),
    (Type.TIMESTAMP, "2024-01-02T03:04:05-0530", datetime(2024, 1, 2, 8, 34, 5)),
    (Type.TIMESTAMP, "12.5", datetime(1970, 1, 1, 0, 0, 12, 500_000)),
    (Type.TIMESTAMP, "-1", datetime(1969, 12, 31, 23, 59, 59)),
    *(
        (Type.TIMESTAMP, text, BAD)
        for text in ("2024-1-2 3:4:5", "+2024-01-02 03:04:05", "2024-01-02  03:04:05", "soon")
    ),
    *((Type.TIMESTAMP, text, BAD) for text in ("2024-01-02 24:00:00", "2024-01-02 23:59:60", "2024-02-30 00:00:00")),
    *((Type.TIMESTAMP, text, BAD) for text in ("0000-01-01 00:00:00", "10000-01-01 00:00:00", "253402300800", "1_0")),
    *((Type.TIMESTAMP, text, BAD) for text in ("0001-01-01 00:00:00+02:00", "9999-12-31 23:59:59-01:00", "inf", "nan")),
    *(
        (Type.TIMESTAMP, text, BAD)
        for text in ("2024-01-02x03:04:05", "2024-W01-1", "2024-01-02 03:04:05 CET", "2024-01-02Z")
    ),
    (Type.INTERVAL, "1.5", timedelta(seconds=1.5)),
    *((Type.INTERVAL, text, BAD) for text in ("1_0", "1 day", "inf", "nan", "1e300")),
    (Type.VARCHAR, "1_000", "1_000"),
    (Type.VARCHAR, "a\x00b", "a\x00b"),
]


def schema_of(type_: Type) -> Schema:
    return Schema.of(("n", Type.BIGINT), ("x", type_))


def judged(rows: pl.DataFrame, bad: pl.DataFrame) -> list[Any]:
    """The values of the rows, or BAD, from rows with the numbers 0, 1 and 2 around the value at 1."""
    assert rows.height + bad.height == 3
    found = dict(rows.rows())
    return [found.get(number, BAD) for number in range(3)]


def from_file(connector: str, data: bytes | pl.DataFrame, type_: Type, **options: str) -> list[Any]:
    with TemporaryDirectory() as folder:
        path = Path(folder, "data")
        path.write_bytes(data) if isinstance(data, bytes) else data.write_parquet(path)
        given = {"connector": connector, "path": folder, **options}
        source = open_paged("s", schema_of(type_), given, ())
        [split] = source.splits(source.start(), source.latest(source.start(), 0), 1)
        made = split.read()
        assert isinstance(made.rows, pl.DataFrame)
        held = read_table(TableDefinition("t", schema_of(type_), given))
        assert judged(made.rows, made.bad) == judged(held.rows, made.bad) or made.rows.equals(held.rows)
        assert len(held.bad) == made.bad.height
        return judged(made.rows, made.bad)


def csv(texts: list[str], type_: Type) -> list[Any]:
    lines = (f'{number};"{text}"' if text.strip() != text else f"{number};{text}" for number, text in enumerate(texts))
    return from_file("csv", "\n".join(lines).encode(), type_, header="false", delimiter=";")


def json_lines(texts: list[str], type_: Type) -> list[Any]:
    return from_file("json", "\n".join(json.dumps({"n": n, "x": text}) for n, text in enumerate(texts)).encode(), type_)


def parquet(texts: list[str], type_: Type) -> list[Any]:
    return from_file("parquet", pl.DataFrame({"n": range(3), "x": texts}), type_)


def fed_lines(texts: list[str], type_: Type) -> list[Any]:
    made = read_lines([f"{number} | {text}" for number, text in enumerate(texts)], schema_of(type_))
    return judged(made.frame, made.bad)


def python_rows(texts: list[str], type_: Type) -> list[Any]:
    made = read_values(list(enumerate(texts)), schema_of(type_))
    return judged(made.frame, made.bad)


def frame(texts: list[str], type_: Type) -> list[Any]:
    made = read_frame(pl.DataFrame({"n": range(3), "x": texts}), schema_of(type_))
    return judged(made.frame, made.bad)


PATHS: list[Callable[[list[str], Type], list[Any]]] = [csv, json_lines, parquet, fed_lines, python_rows, frame]
USUAL = {
    Type.BOOLEAN: ("true", True),
    Type.VARCHAR: ("v", "v"),
    Type.DATE: ("2024-01-01", date(2024, 1, 1)),
    Type.TIMESTAMP: ("2024-01-01 00:00:00", datetime(2024, 1, 1)),
    Type.INTERVAL: ("1", timedelta(seconds=1)),
}


def cases() -> Iterator[Any]:
    for type_, text, value in WRITTEN:
        yield pytest.param(type_, text, value, id=f"{type_.value} {text[:30]!r}")


@pytest.mark.parametrize(("type_", "text", "value"), list(cases()))
def test_a_written_value_is_read_alike_on_every_path(type_: Type, text: str, value: Any) -> None:
    usual, same = USUAL.get(type_, ("1", 1))
    for path in PATHS:
        assert path([usual, text, usual], type_) == [same, value, same], path.__name__
        assert path([text, text, text], type_) == [value] * 3, path.__name__
