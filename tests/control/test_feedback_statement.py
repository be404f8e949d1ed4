"""Feedback as a statement, and from the command line to a running process."""

from __future__ import annotations

import stat
import threading
import time
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

import millstream as ms
from millstream.cli import app
from millstream.config import Options
from millstream.control.mailbox import FOLDER, Mailbox, post
from millstream.control.mill import LocalMill
from millstream.control.runner import run_file
from millstream.errors import MillstreamError, OptionError

STREAM = "CREATE STREAM s (k BIGINT, at TIMESTAMP);\nCREATE QUERY q AS SELECT k, at FROM s;\n"


@pytest.mark.parametrize(
    "text", ["FEEDBACK q ~[k = 1]", "feedback Q '~[k = 1]';", "FEEDBACK q ~[at < 2026-01-02 00:00:00, k in {1, 3}]"]
)
def test_the_statement(text: str) -> None:
    mill = LocalMill(Options())
    mill.execute(STREAM + text)
    mill.insert("s", [(1, "2026-01-01 10:00:00"), (2, "2026-01-01 10:00:00")])
    mill.batch()
    assert [k for k, _ in mill.take_rows("q").rows()] == [2]


def test_it_is_sent_once(tmp_path: Path) -> None:
    """A file that is resumed does not send it again."""
    with ms.connect(local=True, checkpoint=tmp_path) as mill:
        for text in [*STREAM.split("\n")[:2], "FEEDBACK q ~[k = 1]"]:
            mill.sql(text)
        assert len(mill.mill.query("q").told) == 1
    text = STREAM + "FEEDBACK q ~[k = 1]; FEEDBACK q ~[k = 7]"
    run_file(text, Console(file=StringIO()), local=True, checkpoint=tmp_path, seconds=0)
    with ms.connect(local=True, checkpoint=tmp_path) as mill:
        assert [str(message) for message in mill.mill.query("q").told] == ["~[k = 1]", "~[k = 7]"]


@pytest.mark.parametrize(
    ("text", "code", "column"),
    [
        ("FEEDBACK q", "M1001", 11),
        ("FEEDBACK q k = 1", "M1001", 12),
        ("FEEDBACK q ~[nothing = 1]", "M4004", 12),
        ("FEEDBACK q '~[k = one]'", "M4007", 12),
        ("FEEDBACK unknown ~[k = 1]", "M2092", 1),
    ],
)
def test_mistakes_have_positions(text: str, code: str, column: int) -> None:
    mill = LocalMill(Options())
    mill.execute(STREAM)
    with pytest.raises(MillstreamError) as caught:
        mill.execute(text)
    assert (caught.value.code, caught.value.line, caught.value.column) == (code, 1, column)


def test_a_file_is_checked_before_it_runs() -> None:
    """On Spark, before the JVM starts."""
    with pytest.raises(MillstreamError, match="M4004"):
        run_file(STREAM + "FEEDBACK q ~[nothing = 1]", Console(file=StringIO()), checkpoint=None)


def test_the_command_reaches_a_running_process(tmp_path: Path) -> None:
    text = """
        CREATE STREAM bids (auction BIGINT, price BIGINT, ts TIMESTAMP) ORDER BY ts
          WITH (connector = 'nexmark', stream = 'bid', rate = 100, speed = 1);
        CREATE QUERY q AS SELECT auction, price FROM bids INTO none;
        CREATE QUERY w AS SELECT window_end, COUNT(*) AS n FROM bids [RANGE 60 SECONDS] EMIT EARLY INTO none;
    """
    arguments = {"local": True, "checkpoint": tmp_path, "seconds": 6.5}
    run = threading.Thread(target=run_file, args=(text, Console(file=StringIO())), kwargs=arguments)
    run.start()
    try:
        deadline = time.monotonic() + 5
        while not (tmp_path / FOLDER).exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert stat.S_IMODE((tmp_path / FOLDER).stat().st_mode) == 0o700
        told = CliRunner().invoke(app, ["feedback", "q", "~[auction < 5]", "--checkpoint", str(tmp_path)])
        assert told.exit_code == 0 and "query q accepted ~[auction < 5]" in told.output
        asked = CliRunner().invoke(app, ["prod", "w", "--checkpoint", str(tmp_path)])
        assert asked.exit_code == 0 and asked.output == "query w accepted {}\n"
        for command, vain in (("prod", "{n = 3}"), ("prod", "{n = 3}"), ("feedback", "![n = 3]")):
            asked = CliRunner().invoke(app, [command, "w", vain, "--checkpoint", str(tmp_path)])
            assert asked.exit_code == 0 and "M4018: a prod of query 'w' has no answer: column 'n'" in asked.output
        with pytest.raises(MillstreamError, match="M4015"):
            post(tmp_path, "q", "{}", 5)
        with pytest.raises(MillstreamError, match="M4004"):
            post(tmp_path, "q", "~[nothing = 1]", 5)
        with pytest.raises(MillstreamError, match="M2092"):
            post(tmp_path, "other", "~[auction = 1]", 5)
        assert not [*(tmp_path / FOLDER).iterdir()]
    finally:
        run.join()
    with pytest.raises(OptionError, match="M6073"):
        post(tmp_path, "q", "~[auction = 1]", 5)
    with ms.connect(local=True, checkpoint=tmp_path, resume=False) as mill:
        assert [str(message) for message in mill.mill.query("q").told] == ["~[auction < 5]"]


def test_requests_that_are_not_answered(tmp_path: Path) -> None:
    with ms.connect(local=True, checkpoint=tmp_path) as mill:
        with pytest.raises(OptionError, match=r"M6073: the process that uses .* takes no requests"):
            post(tmp_path, "q", "~[k = 1]", 0.1)
        box = Mailbox(mill, tmp_path)
        with pytest.raises(OptionError, match="M6074"):
            post(tmp_path, "q", "~[k = 1]", 0.1)
        (tmp_path / FOLDER / "1-1.request").write_text("nonsense")
        box.look()
        assert "M6074" in (tmp_path / FOLDER / "1-1.answer").read_text()
