"""One hypothesis profile for all tests: no deadlines (machines differ), and on CI the same examples every time."""

import atexit
import gc
import os

import pytest
from hypothesis import HealthCheck, settings

from millstream.algebra.python.library import LIBRARY
from tests.tries import TURN

settings.register_profile("here", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("here"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")

# DuckDB's bindings tell at exit what they have not freed: nothing that a reader of test results needs.
atexit.register(lambda: os.dup2(os.open(os.devnull, os.O_WRONLY), 2))

# What is written outlives a process also without it, and no test ends the machine.
os.fsync = lambda _: None


def pytest_collection_finish() -> None:
    """Modules and tests stay to the end: the collector need not look at them again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _own_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test has only the functions that it registers itself, and no later test has them."""
    monkeypatch.setattr(LIBRARY, "_own", {})


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if TURN:
        terminalreporter.write_line(f"turn {TURN}: MILLSTREAM_TURN={TURN} repeats its choice of cases")
