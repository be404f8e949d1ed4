"""The log of a program."""

import json
import logging
import os
import pty
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from millstream.control.observe.log_file import LOG, check_format, logging_to, wrapped
from millstream.errors import OptionError


@pytest.mark.parametrize("kind", ["text", "json"])
def test_messages_warnings_and_libraries(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log"
    with logging_to(log, kind):
        LOG.info("started with %d shards", 3)
        LOG.warning("a row is late")
        LOG.error("M6053: failed")
        logging.getLogger("py4j").error("reset by peer")
    LOG.warning("after the end")
    lines = log.read_text().splitlines()
    assert len(lines) == 4 and capsys.readouterr().err == "warning: a row is late\n"
    if kind == "json":
        found = [tuple(json.loads(line)[key] for key in ("level", "logger", "message")) for line in lines]
        assert found[0] == ("INFO", "millstream", "started with 3 shards")
        assert found[3] == ("ERROR", "py4j", "reset by peer")
    else:
        assert lines[0].endswith("Z INFO millstream: started with 3 shards")


def test_what_processes_print_is_wrapped_in_json(tmp_path: Path) -> None:
    log = tmp_path / "log"
    write = wrapped(log)
    os.write(write, b'{"message": "of Spark"}\n\nTraceback "of a worker"\n')
    os.close(write)
    while not log.exists() or log.read_text().count("\n") < 2:
        time.sleep(0.01)
    assert [json.loads(line)["message"] for line in log.read_text().splitlines()] == [
        "of Spark",
        'Traceback "of a worker"',
    ]


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="cannot write the log"), logging_to(tmp_path / "none" / "log"):
        pass
    with pytest.raises(OptionError, match="one of text, json"):
        check_format("xml")


LIVE = """
import time
from rich.console import Console
from millstream.control.observe.log_file import LOG, logging_to
with logging_to(None), Console().status("waiting for the first batch"):
    time.sleep(0.3)
    LOG.warning("5 rows are late")
    time.sleep(0.3)
"""


@pytest.mark.parametrize("errors", ["terminal", "file"])
def test_a_warning_has_a_line_of_its_own_beside_the_progress_line(tmp_path: Path, errors: str) -> None:
    read, terminal = pty.openpty()
    said = (tmp_path / "errors").open("w+")
    standard_error = terminal if errors == "terminal" else said.fileno()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "80"}
    done = subprocess.run([sys.executable, "-c", LIVE], stdout=terminal, stderr=standard_error, env=environment)
    os.close(terminal)
    shown = ""
    with suppress(OSError):
        while part := os.read(read, 4096):
            shown += part.decode()
    os.close(read)
    assert done.returncode == 0 and "waiting for the first batch" in shown
    if errors == "file":
        said.seek(0)
        assert said.read() == "warning: 5 rows are late\n" and "warning" not in shown
    else:
        (line,) = [line for line in shown.split("\n") if "warning" in line]
        seen = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", line).strip("\r").rpartition("\r")[2]
        assert seen == "warning: 5 rows are late"
    said.close()
