"""Programs that signals stop: in order, at any moment, in time, with their exit status."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from millstream import scratch
from millstream.control.stopping import Stopped, kill_tree, stopping
from tests.tries import chosen, rotated

ENDLESS = """
CREATE STREAM bids (auction BIGINT, price BIGINT, ts TIMESTAMP) ORDER BY ts
  WITH (connector = 'nexmark', stream = 'bid', {});
CREATE QUERY dear AS SELECT auction, price, ts FROM bids WHERE price > 100 INTO parquet WITH (path = '{}');
"""
LIMITED = "events = 400000, max_rows_per_trigger = 4000"


def started(folder: Path, *words: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "millstream", "run", str(folder / "run.sql"), "--local", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def stopped(process: "subprocess.Popen[str]", number: signal.Signals) -> tuple[int, str]:
    """Send a signal; return the exit status and what was printed."""
    begun = time.monotonic()
    process.send_signal(number)
    said, _ = process.communicate(timeout=30)
    assert time.monotonic() - begun < 10
    return process.returncode, said


def wait_for(folder: Path, pattern: str) -> None:
    deadline = time.monotonic() + 60
    while not any(folder.glob(pattern)):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(("number", "status"), chosen([(signal.SIGTERM, 143), (signal.SIGINT, 130)], 2))
def test_a_running_query_is_stopped_and_resumes(tmp_path: Path, number: signal.Signals, status: int) -> None:
    for out in ("whole", "cut"):
        (tmp_path / "run.sql").write_text(ENDLESS.format(LIMITED, tmp_path / out))
        process = started(tmp_path, "--checkpoint", str(tmp_path / f"checkpoint-{out}"))
        if out == "cut":
            for pattern in (out, f"{out}/*.parquet"):
                wait_for(tmp_path, pattern)
                code, said = stopped(process, number)
                assert code == status and "stopped" in said and "Traceback" not in said, said
                process = started(tmp_path, "--checkpoint", str(tmp_path / f"checkpoint-{out}"))
        said, _ = process.communicate(timeout=120)
        assert process.returncode == 0 and "all streams have ended" in said
    whole, cut = (
        pl.read_parquet(tmp_path / out / "*.parquet").sort("ts", "auction", "price") for out in ("whole", "cut")
    )
    assert whole.equals(cut)


@pytest.mark.parametrize(("seconds", "number"), rotated([0.25, 0.6, 1.0, 1.5], [signal.SIGTERM, signal.SIGINT], keep=1))
def test_a_start_is_stopped(tmp_path: Path, number: signal.Signals, seconds: float) -> None:
    (tmp_path / "run.sql").write_text(ENDLESS.format("rate = 1000", tmp_path / "out"))
    process = started(tmp_path)
    time.sleep(seconds)
    code, said = stopped(process, number)
    early = "init_import_site" in said  # Python itself had not started the command
    assert early or (code in (128 + number, -number) and "Traceback" not in said), said


PROGRAM = """
import sys, time
from millstream import scratch
from millstream.control import stopping

class Late:
    def __del__(self):
        print(scratch.of_process(), flush=True)
        time.sleep(1)  # an exception that is raised here is lost

def close():
    time.sleep(60)

stopping.SECONDS, stopping.AGAIN = 3, 0.2
with stopping.stopping() as stop:
    try:
        Late()
        time.sleep(60)
    finally:
        {}
"""


TOLD = """
import os, signal, time
from millstream.control import stopping

stopping.AGAIN = 0.1
with stopping.stopping() as stop:
    try:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)
        except stopping.Stopped as stopped:
            stopped.told = True
            raise
        finally:
            time.sleep(1)
            os.kill(os.getpid(), signal.SIGINT)
            print("a summary", flush=True)
    except stopping.Stopped as stopped:
        print(stopped.name, stopped.told)
"""


def test_a_summary_that_takes_long_is_not_interrupted() -> None:
    said = subprocess.run([sys.executable, "-c", TOLD], capture_output=True, text=True, timeout=60, check=True).stdout
    assert said.splitlines() == ["a summary", "SIGTERM True"]


@pytest.mark.parametrize("close", ["stop.close(close, aside=True)", "stop.close(close, aside=False)", "pass"])
def test_an_end_that_takes_too_long_and_an_exception_that_is_lost(close: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(close)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    folder, begun = Path(process.stdout.readline().strip()), time.monotonic()
    assert folder.is_dir() and folder.parent == Path(tempfile.gettempdir())
    time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert time.monotonic() - begun < 8
    assert process.returncode == (1 if close == "pass" else 143)  # without `close` it ends with a stack trace, at once
    assert not folder.exists()


def test_a_query_that_fails_and_a_mistake_have_different_statuses(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("v,ts\n9000000000000000000,1\n")
    options = f"connector = 'csv', path = '{tmp_path}/in.csv', once = true"
    declared = f"CREATE STREAM s (v BIGINT, ts BIGINT) ORDER BY ts WITH ({options});"
    for query, status in (("SELECT v * 2 AS w FROM s INTO none;", 1), ("SELECT w FROM s INTO none;", 2)):
        (tmp_path / "run.sql").write_text(declared + query)
        process = started(tmp_path, "--log", str(tmp_path / "log"), "--log-format", "json")
        said, _ = process.communicate(timeout=60)
        assert process.returncode == status and "Traceback" not in said, said
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    errors = [line["message"] for line in lines if line["level"] == "ERROR"]
    assert errors[0].startswith("M6053") and errors[1].startswith("M2") and len(errors) == 2
    assert any("statement 2: SELECT v * 2 AS w FROM s INTO none" in line["message"] for line in lines)
    assert {"time", "level", "logger", "message"} <= lines[0].keys() and lines[0]["logger"] == "millstream"


def test_the_children_of_a_process() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert child.pid in scratch.children(os.getpid())
    child.communicate(b"\n")
    assert child.pid not in scratch.children(os.getpid())


def test_a_process_is_killed_with_its_descendants(tmp_path: Path) -> None:
    script = f"sleep 60 & echo $! > {tmp_path}/first; (sleep 60 & echo $! > {tmp_path}/second; wait); wait"
    process = subprocess.Popen(["sh", "-c", script])
    pids = []
    for name in ("first", "second"):
        wait_for(tmp_path, name)
        while not (text := (tmp_path / name).read_text()).endswith("\n"):
            time.sleep(0.01)
        pids.append(int(text))
    kill_tree(process.pid)
    assert process.wait(10) == -signal.SIGKILL
    deadline = time.monotonic() + 10
    while running := [pid for pid in pids if scratch._start(pid)]:
        assert time.monotonic() < deadline, running


def test_an_exception_that_python_drops_is_not_reported_if_it_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[type[BaseException]] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda dropped: reported.append(dropped.exc_type))
    with stopping():
        for error in (Stopped, ValueError):
            sys.unraisablehook(SimpleNamespace(exc_type=error))  # type: ignore[arg-type]
    assert reported == [ValueError]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_while_the_command_line_is_imported(tmp_path: Path, number: int, status: int) -> None:
    (tmp_path / "typer.py").write_text("import time\nprint('importing', flush=True)\ntime.sleep(60)\n")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = subprocess.Popen(
        [sys.executable, "-m", "millstream", "--version"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert process.stdout is not None and process.stdout.readline() == "importing\n"
    process.send_signal(number)
    said, _ = process.communicate(timeout=60)
    assert (process.returncode, said) == (status, "")


def test_a_select_over_tables_that_a_signal_prevents_is_named(tmp_path: Path) -> None:
    (tmp_path / "run.sql").write_text(
        ENDLESS.format("rate = 10", tmp_path / "out") + "CREATE TABLE t (k BIGINT); SELECT k FROM t;"
    )
    process = started(tmp_path)
    wait_for(tmp_path, "out/*.parquet")
    code, said = stopped(process, signal.SIGTERM)
    assert code == 143 and "not run after a signal: SELECT k FROM t" in said, said
