"""Results as plain lines, where there is no terminal."""

from __future__ import annotations

import io
from datetime import datetime, timedelta

import polars as pl
import pytest
from rich.console import Console

from millstream.algebra.schema import Schema
from millstream.algebra.types import ELEMENTS, Type
from millstream.sinks import make_sink
from millstream.sinks.terminal.console import ConsoleSink
from millstream.sinks.terminal.plain_screen import PlainScreen
from millstream.sinks.terminal.screen import screen_on
from tests.sinks.sample import BEFORE_NOON, COUNTS, HOT, NOON, frame, hot

MIXED = frame(HOT, (1, None, 2.0, NOON), (1234567, "a lamp", None, datetime(2024, 1, 2, 12, 0, 0, 5)))
MIXED_LINES = """\
auction | item    |  price | ts
 BIGINT | VARCHAR | DOUBLE | TIMESTAMP
--------+---------+--------+---------------------------
      1 | NULL    |    2.0 | 2024-01-02 12:00:00
1234567 | a lamp  |   NULL | 2024-01-02 12:00:00.000005
"""


def screen(**options: int) -> tuple[PlainScreen, io.StringIO]:
    file = io.StringIO()
    made = screen_on(Console(file=file, **options))
    assert isinstance(made, PlainScreen)
    return made, file


def test_aligned_lines_with_one_header() -> None:
    shown, file = screen()
    sink = ConsoleSink(screen=shown)
    sink.open("hot", HOT)
    sink.write(0, hot(), [])
    assert file.getvalue() == ""
    sink.write(1, MIXED, [BEFORE_NOON])
    sink.write(1, MIXED, [BEFORE_NOON])
    sink.write(2, hot(7), [])
    sink.close()
    sink.close()
    assert file.getvalue() == MIXED_LINES + "      7 | lamp    |    2.5 | 2024-01-02 12:00:00\n"
    assert not shown.in_use


def test_standard_output_that_is_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    sink = make_sink("console")
    sink.open("hot", HOT)
    sink.write(0, MIXED, [])
    sink.close()
    assert capsys.readouterr().out == MIXED_LINES


def test_several_queries_say_whose_line_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    one, two = make_sink("console"), make_sink("console")
    one.open("n", COUNTS)
    two.open("squares", COUNTS)
    one.write(0, frame(COUNTS, (1,)), [])
    two.write(0, frame(COUNTS, (100,)), [])
    one.close()
    two.write(1, frame(COUNTS, (121,)), [])
    two.close()
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line[-1].isdigit()] == ["n       |      1", "squares |    100", "   121"]


def test_values_cannot_steer_the_terminal() -> None:
    shown, file = screen()
    schema = Schema.of(('a\x1b[2J"', Type.VARCHAR))
    sink = ConsoleSink(screen=shown)
    sink.open("q\x1b[31m", schema)
    ConsoleSink(screen=shown).open("other", schema)
    sink.write(0, frame(schema, ("\x1b[31mred\r\n\x9b1m\u202e",), ("日本語",)), [])
    assert all(line.isprintable() for line in file.getvalue().splitlines())
    assert r"\x1b[31mred\r\n\x9b1m\u202e" in file.getvalue()


def test_long_cells_end_at_the_width_of_the_console() -> None:
    shown, file = screen(width=40)
    schema = Schema.of(("text", Type.VARCHAR), ("n", Type.BIGINT))
    sink = ConsoleSink(screen=shown)
    sink.open("q", schema)
    sink.write(0, frame(schema, ("x" * 2000, 1), ("語" * 30, 2), ("short", 3)), [])
    long, wide, short = file.getvalue().splitlines()[-3:]
    assert long == "x" * 39 + "… |      1" and wide.startswith("語" * 19 + " … |")
    assert short == "short".ljust(32) + " |      3"


def test_only_the_last_rows_if_asked() -> None:
    shown, file = screen()
    sink = ConsoleSink(rows=2, screen=shown)
    sink.open("n", COUNTS)
    sink.write(0, frame(COUNTS, *((n,) for n in range(5))), [])
    assert file.getvalue().splitlines()[3:] == ["(3 rows before these)", "     3", "     4"]


def test_an_encoding_without_the_characters() -> None:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii")
    sink = ConsoleSink(screen=PlainScreen(Console(file=file)))
    sink.open("hot", HOT)
    sink.write(0, frame(HOT, (1, "né", 1.0, NOON)), [])
    assert rb"n\xe9" in raw.getvalue()


def test_every_type() -> None:
    schema = Schema.of(*((type_.value.lower(), type_) for type_ in (*ELEMENTS, Type.NULL)))
    values = {
        Type.BOOLEAN: True,
        Type.REAL: 0.1,
        Type.VARCHAR: "x",
        Type.TIMESTAMP: NOON,
        Type.DATE: NOON.date(),
        Type.INTERVAL: timedelta(seconds=90),
        Type.NULL: None,
    }
    shown, file = screen()
    sink = ConsoleSink(screen=shown)
    sink.open("q", schema)
    sink.write(0, frame(schema, tuple(values.get(type_, 7) for type_ in (*ELEMENTS, Type.NULL))), [])
    last = [cell.strip() for cell in file.getvalue().splitlines()[-1].split("|")]
    assert last == ["true", "7", "7", "0.1", "7.0", "7.0", "x", "2024-01-02 12:00:00", "2024-01-02", "90", "NULL"]


def test_arrays() -> None:
    schema = Schema.of(*((type_.value.lower(), type_.array) for type_ in (Type.REAL, Type.VARCHAR, Type.TIMESTAMP)))
    shown, file = screen()
    sink = ConsoleSink(screen=shown)
    sink.open("q", schema)
    sink.write(0, frame(schema, ([0.1, None], ["x", "y, z", "NULL"], [NOON])), [])
    last = [cell.strip() for cell in file.getvalue().splitlines()[-1].split("|")]
    assert last == ["[0.1, NULL]", "[x, 'y, z', 'NULL']", "[2024-01-02 12:00:00]"]
    sink.write(
        1,
        frame(schema, ([], None, [NOON])).with_columns(
            pl.Series("timestamp", [[10**18]]).cast(Type.TIMESTAMP_ARRAY.polars)
        ),
        [],
    )
    assert "33658-09-27" in file.getvalue().splitlines()[-1]


def test_a_time_that_python_cannot_hold() -> None:
    shown, file = screen()
    schema = Schema.of(("ts", Type.TIMESTAMP))
    sink = ConsoleSink(screen=shown)
    sink.open("q", schema)
    sink.write(0, pl.DataFrame({"ts": [10**18]}).cast(pl.Datetime("us")), [])
    assert "33658-09-27 01:46:40" in file.getvalue()
