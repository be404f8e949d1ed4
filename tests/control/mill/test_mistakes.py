"""Typical mistakes, and constructs of other dialects: each has an error with a code, a position, and what to write."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from millstream.control.mill import LocalMill
from millstream.errors import MillstreamError

STREAMS = """
CREATE STREAM s (k BIGINT, v DOUBLE, name VARCHAR, ts TIMESTAMP) ORDER BY ts;
CREATE STREAM t (k BIGINT, w DOUBLE, ts TIMESTAMP) ORDER BY ts
"""


class Mistake(NamedTuple):
    statement: str
    code: str
    column: int
    message: str
    hint: str


def mistakes() -> list[Mistake]:
    text = Path(__file__).with_name("mistakes.txt").read_text(encoding="utf-8")
    found = []
    for block in re.split(r"\n\n+", text.partition("\n\n")[2].strip()):
        statement, said, *hint = block.split("\n")
        code, column, message = re.fullmatch(r"  (M\d+) column (\d+): (.*)", said).groups()  # type: ignore[union-attr]
        found.append(Mistake(statement, code, int(column), message, "".join(hint).removeprefix("  hint: ")))
    return found


@pytest.mark.parametrize("mistake", mistakes(), ids=lambda mistake: mistake.statement)
def test_a_mistake_is_named_with_what_to_write(mistake: Mistake) -> None:
    mill = LocalMill()
    mill.execute(STREAMS)
    with pytest.raises(MillstreamError) as caught:
        mill.execute(mistake.statement)
    error = caught.value
    assert (error.code, error.line, error.column) == (mistake.code, 1, mistake.column), str(error)
    assert error.message == mistake.message
    start = mistake.hint.removesuffix("…").strip()
    assert error.hint.startswith(start) if mistake.hint.endswith("…") else error.hint == mistake.hint


def test_the_position_is_that_of_the_construct_in_its_statement() -> None:
    with pytest.raises(MillstreamError) as caught:
        LocalMill().execute("CREATE STREAM s (k BIGINT);\nSELECT k\nFROM s\nEMIT CHANGES;")
    assert (caught.value.line, caught.value.column, caught.value.code) == (4, 1, "M1090")


VALID = [
    "SELECT top, first, session, filter, emit, qualify FROM odd",
    "SELECT top FROM odd emit",
    "SELECT emit.top AS within FROM odd AS emit",
    "SELECT stream FROM odd",
    "SELECT stream, top FROM odd anti",
    "SELECT a.top FROM odd a JOIN odd semi ON a.top = semi.top",
]


@pytest.mark.parametrize("text", VALID)
def test_words_of_other_dialects_stay_names(text: str) -> None:
    mill = LocalMill()
    columns = ("top", "first", "session", "filter", "emit", "qualify", "stream")
    mill.execute(f"CREATE STREAM odd ({', '.join(f'{name} BIGINT' for name in columns)})")
    assert "Scan odd" in mill.execute(f"EXPLAIN {text}")
