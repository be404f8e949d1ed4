"""The log of a program."""

import json
import logging
import os
import time
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
