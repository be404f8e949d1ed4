"""CSV and JSON lines: good rows are kept, bad ones are separated with their line, at once or line by line."""

from __future__ import annotations

import gzip
import json
from datetime import date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.schema import Schema
from millstream.algebra.types import ELEMENTS, Type
from millstream.ingest.paged.base import SplitRows, open_paged
from millstream.ingest.paged.files import csv as csv_files
from millstream.ingest.paged.files import text
from millstream.ingest.paged.files.csv_lines import fields, records
from millstream.ingest.paged.files.json import JsonFormat
from tests.tries import tries

PAIRS = Schema.of(("k", Type.BIGINT), ("note", Type.VARCHAR))
TEXTS = Schema.of(("a", Type.VARCHAR), ("b", Type.VARCHAR))
ALL = Schema.of(*((type_.value.lower(), type_) for type_ in ELEMENTS))


def read(data: bytes, connector: str, schema: Schema = PAIRS, required: Any = (), **options: str) -> SplitRows:
    with TemporaryDirectory() as folder:
        Path(folder, "data").write_bytes(data)
        source = open_paged("s", schema, {"connector": connector, "path": folder} | options, required)
        start = source.start()
        [split] = source.splits(start, source.latest(start, 0), 1)
        return split.read()


def rows(made: SplitRows) -> list[tuple[Any, ...]]:
    assert isinstance(made.rows, pl.DataFrame)
    return made.rows.rows()


def test_bad_lines_of_csv_have_a_reason() -> None:
    data = b'k,note\n1,a\nx,b\n2\n3,c,d\n\n4,"e\nf"\n5,"g"h\n6,\xff\n7,"open\n8,\n9,""\n'
    made = read(data, "csv", required=["k"])
    assert rows(made) == [(1, "a"), (4, "e\nf"), (8, None), (9, "")]
    assert made.bad.rows() == [
        ("x,b", "column 'k': 'x' is not a value of type BIGINT (line 3 of data)"),
        ("2", "expected 2 values, found 1 (line 4 of data)"),
        ("3,c,d", "expected 2 values, found 3 (line 5 of data)"),
        ('5,"g"h', "text follows a closing quote (line 9 of data)"),
        ("6,\ufffd", "the line is not UTF-8 (line 10 of data)"),
        ('7,"open', "a quote is not closed (line 11 of data)"),
    ]


def test_csv_with_other_conventions() -> None:
    made = read(
        b"\xef\xbb\xbf1;NA\r\n;b;\r\n3;'c'\r\n", "csv", header="false", delimiter=";", null="NA", required=["k"]
    )
    assert rows(made) == [(1, None), (3, "'c'")]
    assert made.bad.rows() == [(";b;", "expected 2 values, found 3 (line 2 of data)")]
    assert rows(read(b"Note\tmore\tK\nx\t?\t1\n", "csv", delimiter="tab")) == [(1, "x")]
    assert rows(read(b"k,note\n", "csv")) == rows(read(b"\n", "json")) == rows(read(b"\n", "csv", header="false")) == []


def test_bad_lines_of_json_have_a_reason() -> None:
    lines = [
        '{"k": 1, "note": "a"}',
        '{"k": 1.5}',
        '{"k": 2',
        "[3]",
        '{"K": "4", "other": [{}]}',
        '{"note": "\\ud800"}',
    ]
    made = read("\n".join(lines).encode() + b'\n \n{"note": "\xff"}\n{"note": {"x": 1}}', "json")
    assert rows(made) == [(1, "a"), (4, None)]
    assert made.bad.rows() == [
        ('{"k": 1.5}', "column 'k': 1.5 is not a value of type BIGINT (line 2 of data)"),
        ('{"k": 2', "malformed JSON: Expecting ',' delimiter (line 3 of data)"),
        ("[3]", "not a JSON object (line 4 of data)"),
        (
            '{"note": "\\ud800"}',
            "text is not valid Unicode: \\ud800 is half of a surrogate pair (line 6 of data)",
        ),
        ('{"note": "\ufffd"}', "the line is not UTF-8 (line 8 of data)"),
        ('{"note": {"x": 1}}', "column 'note': {'x': 1} is not a value of type VARCHAR (line 9 of data)"),
    ]


def test_names_in_json_may_be_written_differently_on_each_line() -> None:
    data = b'{"k": 1}\n{"K": 2}\n{"\\u006b": 3}\n{"note": "x"}'
    assert rows(read(data, "json")) == [(1, None), (2, None), (3, None), (None, "x")]


VALUES: dict[Type, list[str]] = {
    Type.BOOLEAN: ["true", "False", "1", "yes"],
    Type.INT: ["1", " 2", "+3", "4 ", "5.0", "99999999999", "1_0"],
    Type.BIGINT: ["-1", "9223372036854775807", "9223372036854775808", "x", "007", "null"],
    Type.REAL: ["0.1", "1e39", "nan", "16777217"],
    Type.DOUBLE: ["0.1", "1e400", "-inf", "1e-3", "1,5", " 2.5 "],
    Type.DECIMAL: ["1.10", "five"],
    Type.VARCHAR: ["a", ' "b', "NULL", " c ", "d\ne", "é", "'"],
    Type.TIMESTAMP: [
        "2024-01-02 03:04:05.5",
        "2024-01-02T03:04:05",
        "2024-01-02T03:04:05Z",
        "12.5",
        "7",
        "soon",
        "2024-01-02",
    ],
    Type.DATE: ["2024-01-02", "2024-1-2", "1.1.2024"],
    Type.INTERVAL: ["1.5", "60", "long"],
}


def quoted(value: str, odd: bool) -> str:
    return '"' + value.replace('"', '""') + '"' if odd or any(c in value for c in ',"\n') else value


@st.composite
def csv_lines(draw: st.DrawFn) -> list[str]:
    """Lines that mostly have the same values, as in a file, with some exceptions."""
    usual = {a.name: draw(st.sampled_from(VALUES[a.type])) for a in ALL}
    made = []
    for _ in range(draw(st.integers(1, 12))):
        values = []
        for a in ALL:
            strange = draw(st.integers(0, 14)) == 0
            value = draw(st.sampled_from([*VALUES[a.type], ""])) if strange else usual[a.name]
            values.append(quoted(value, strange and draw(st.booleans())))
        made.append(",".join(values[: -1 if draw(st.integers(0, 20)) == 0 else None]))
    return made


JSON_VALUES = [
    None,
    True,
    0,
    1,
    2.0,
    2.5,
    -(2**63),
    2**63,
    1e300,
    "1",
    "x",
    "",
    "2024-01-02 03:04:05",
    "true",
    [1],
    {"a": 1},
]


@st.composite
def json_lines(draw: st.DrawFn) -> list[str]:
    usual = {a.name: draw(st.sampled_from(JSON_VALUES)) for a in ALL}
    made = []
    for _ in range(draw(st.integers(1, 12))):
        line = {}
        for a in ALL:
            strange = draw(st.integers(0, 14)) == 0
            name = a.name.upper() if strange and draw(st.booleans()) else a.name
            line[name] = draw(st.sampled_from(JSON_VALUES)) if strange else usual[a.name]
        made.append(json.dumps(line))
    return made


def same(data: bytes, connector: str, schema: Schema = ALL, **options: str) -> None:
    """Check that reading many lines at once equals reading one by one."""
    with patch.object(text, "LEAF", 1), patch.object(text, "CHUNK", 5):
        quick = read(data, connector, schema, **options)
    reader = csv_files._Reader if connector == "csv" else JsonFormat
    with patch.object(reader, "at_once", lambda *_: None):
        slow = read(data, connector, schema, **options)
    assert isinstance(quick.rows, pl.DataFrame) and isinstance(slow.rows, pl.DataFrame)
    assert quick.bad.rows() == slow.bad.rows()
    assert quick.rows.equals(slow.rows) and quick.rows.schema == slow.rows.schema


@settings(max_examples=tries(60))
@given(csv_lines())
def test_csv_at_once_equals_line_by_line(lines: list[str]) -> None:
    same("\n".join(lines).encode(), "csv", header="false")


@settings(max_examples=tries(60))
@given(json_lines())
def test_json_at_once_equals_line_by_line(lines: list[str]) -> None:
    same("\n".join(lines).encode(), "json")


@settings(max_examples=tries(100))
@given(st.lists(st.text(alphabet='a,"\n', min_size=0, max_size=8), min_size=1, max_size=12))
def test_quotes_anywhere_lose_nothing(values: list[str]) -> None:
    proper = ",".join('"' + value.replace('"', '""') + '"' for value in values)
    assert [value for value, _ in fields(proper, ",")] == values
    assert records(f"{proper}\n{proper}\n".encode()) == [proper.encode()] * 2
    wild = "\n".join(values)
    assert b"".join(records(wild.encode())).replace(b"\n", b"") == wild.replace("\n", "").encode()
    same(wild.encode() + b"\n", "csv", TEXTS, header="false")


@settings(max_examples=tries(50))
@given(st.lists(st.sampled_from(["", "{}", '{"k": 1}', '{"note": "é"}']), max_size=20), st.integers(1, 9))
def test_json_is_cut_anywhere(lines: list[str], parallelism: int) -> None:
    with TemporaryDirectory() as folder:
        Path(folder, "data").write_bytes("\n".join(lines).encode())
        source = open_paged("s", PAIRS, {"connector": "json", "path": folder}, [])
        start = source.start()
        end = source.latest(start, 0)
        with patch.object(type(source._format), "worth", 1, create=True):
            got = [row for split in source.splits(start, end, parallelism) for row in rows(split.read())]
    expected = [json.loads(line) for line in lines if line]
    assert got == [(line.get("k"), line.get("note")) for line in expected]


def test_all_types_are_read_at_once_from_the_usual_forms() -> None:
    line = "true,1,2,0.5,0.25,1.5,text,2024-01-02 03:04:05.25,2024-01-02,90"
    with patch.object(csv_files._Reader, "values", side_effect=AssertionError):
        made = read(f"{line}\n{line}".encode(), "csv", ALL, header="false")
        iso = read(b"ts\n2024-01-02T03:04:05\n", "csv", Schema.of(("ts", Type.TIMESTAMP)))
        seconds = read(b"ts\n1.5\n", "csv", Schema.of(("ts", Type.TIMESTAMP)))
    moment = datetime(2024, 1, 2, 3, 4, 5, 250_000)
    assert rows(made)[1] == (True, 1, 2, 0.5, 0.25, 1.5, "text", moment, date(2024, 1, 2), timedelta(seconds=90))
    assert rows(iso) == [(datetime(2024, 1, 2, 3, 4, 5),)] and rows(seconds) == [
        (datetime(1970, 1, 1, 0, 0, 1, 500_000),)
    ]


@pytest.mark.parametrize("connector", ["csv", "json"])
def test_one_bad_line_among_many_is_found(connector: str) -> None:
    lines = [f"{n},x" if connector == "csv" else json.dumps({"k": n, "note": "x"}) for n in range(3_000)]
    lines[1_234] = "what"
    made = read("\n".join(["k,note"] * (connector == "csv") + lines).encode(), connector)
    assert [k for k, _ in rows(made)] == [n for n in range(3_000) if n != 1_234]
    assert made.bad["input"].to_list() == ["what"]


@settings(max_examples=tries(25), deadline=None)
@given(
    files=st.lists(st.tuples(st.integers(0, 60), st.booleans()), min_size=1, max_size=4),
    connector=st.sampled_from(["csv", "json"]),
    parallelism=st.integers(1, 7),
)
def test_a_compressed_file_is_one_split(files: list[tuple[int, bool]], connector: str, parallelism: int) -> None:
    with TemporaryDirectory() as folder, patch.object(text.TextFormat, "worth", 1):
        expected, number = [], 0
        for at, (height, compressed) in enumerate(files):
            keys = range(number, number := number + height)
            expected += keys
            lines = [f"{k},n{k}" if connector == "csv" else json.dumps({"k": k, "note": f"n{k}"}) for k in keys]
            data = "\n".join(["k,note", *lines] if connector == "csv" else lines or [""]).encode() + b"\n"
            Path(folder, str(at)).write_bytes(gzip.compress(data) if compressed else data)
        source = open_paged("s", PAIRS, {"connector": connector, "path": folder}, ())
        start = source.start()
        splits: list[Any] = source.splits(start, source.latest(start, 0), parallelism)
        assert len(splits) <= parallelism
        assert [k for split in splits for k in split.read().rows["k"]] == expected
        assert not any(split.read().bad.height for split in splits)
