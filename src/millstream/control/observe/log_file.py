"""The log of a program: what the logger `millstream` is told, and what Spark's JVM and its Python workers write.

| format | a line |
|---|---|
| text | time in UTC, level, logger, message |
| json | an object with `time`, `level`, `logger`, `message`, and with `exception` where there is one |

Millstream's own messages have the logger `millstream`, Spark's the name of a class. What a process prints by itself has
the logger `stderr`; in a text it is printed as it is. Secret values in statements are left out (`redacted`), also where
a program has handlers of its own.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from millstream.errors import OptionError, redacted

LOG = logging.getLogger("millstream")
FORMATS = ("text", "json")


def _redact(record: logging.LogRecord) -> bool:
    record.msg, record.args = redacted(record.getMessage()), None
    if record.exc_info:
        record.exc_text = redacted(logging.Formatter().formatException(record.exc_info))
    return True


LOG.addFilter(_redact)


def check_format(name: str) -> str:
    """Return the name of a format; raise OptionError if there is none."""
    if name not in FORMATS:
        raise OptionError("M6002", f"the format of a log cannot be '{name}'", hint=f"one of {', '.join(FORMATS)}")
    return name


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def _line(seconds: float, level: str, logger: str, message: str, exception: str = "") -> str:
    held = {"time": _time(seconds), "level": level, "logger": logger, "message": message}
    return json.dumps(held | ({"exception": exception} if exception else {}), ensure_ascii=False)


def _exception(record: logging.LogRecord) -> str:
    """The trace of a record, redacted if it is Millstream's own."""
    return record.exc_text or (logging.Formatter().formatException(record.exc_info) if record.exc_info else "")


class TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        lines = [f"{_time(record.created)} {record.levelname} {record.name}: {record.getMessage()}"]
        return "\n".join(lines + ([_exception(record)] if record.exc_info else []))


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return _line(record.created, record.levelname, record.name, record.getMessage(), _exception(record))


class TerminalHandler(logging.StreamHandler[TextIO]):
    """Writes to the standard error. In a terminal that shows something live, such as the progress line, messages appear
    above it: whatever is live stands in for `sys.stderr` meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self._own = self.stream

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr if self._own.isatty() else self._own
        super().emit(record)


@contextmanager
def logging_to(path: Path | None, kind: str = "text") -> Iterator[None]:
    """For a program: append messages to a file, and write Millstream's warnings to the standard error. Errors are left
    to the caller. What libraries log goes to the file alone."""
    root, propagated, level = logging.getLogger(), LOG.propagate, LOG.level
    with ExitStack() as stack:
        console = TerminalHandler()
        console.setFormatter(logging.Formatter("warning: %(message)s"))
        console.addFilter(lambda record: record.levelno == logging.WARNING)
        _attach(console, LOG, stack)
        _attach(logging.NullHandler(), root, stack)
        if path is not None:
            file = logging.FileHandler(open_log(path), encoding="utf-8")
            file.setFormatter(JsonFormatter() if kind == "json" else TextFormatter())
            _attach(file, LOG, stack)
            _attach(file, root, stack)
            LOG.setLevel(min(level or logging.INFO, logging.INFO))
        LOG.propagate = False
        try:
            yield
        finally:
            LOG.propagate = propagated
            LOG.setLevel(level)


def open_log(path: Path) -> Path:
    """Return the path of a log that can be written; raise OptionError if it cannot."""
    try:
        with path.open("ab"):
            return path
    except OSError as error:
        hint = "name a file in a folder that exists"
        raise OptionError("M6063", f"cannot write the log {path}: {error.strerror}", hint=hint) from error


def _attach(handler: logging.Handler, logger: logging.Logger, stack: ExitStack) -> None:
    logger.addHandler(handler)
    stack.callback(handler.close)
    stack.callback(logger.removeHandler, handler)


def wrapped(path: Path) -> int:
    """A file descriptor for lines of any kind, which are appended to a log in JSON: objects as they are, other text as
    a message."""
    read, write = os.pipe()

    def copy() -> None:
        with path.open("a", encoding="utf-8") as log, os.fdopen(read, encoding="utf-8", errors="replace") as lines:
            for line in filter(str.strip, lines):
                log.write(line if line.startswith("{") else _line(time.time(), "INFO", "stderr", line.rstrip()) + "\n")
                log.flush()

    threading.Thread(target=copy, name="millstream-log", daemon=True).start()
    return write
