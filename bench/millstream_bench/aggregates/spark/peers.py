"""Flink SQL's `OVER` on the same readings, started by `scripts/bench_peers.sh`.

`python -m millstream_bench.aggregates.spark.peers RESULTS PYTHON` runs `bench/peers/flink_over_runner.py` with that
interpreter, and Millstream's built-in `AVG` and body of SQL on the same files, and adds a finding `peers` to RESULTS,
the file that `millstream bench aggregates` wrote. Answers are checked against DuckDB's.

Both are measured twice: over the whole run, the start of the engine and the warm-up included, and by what each row more
costs. For the latter Flink runs on the first third of the files too, and the difference counts; Millstream's batches
after the warm-up count.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from millstream_bench.aggregates.drive import WrongAnswer
from millstream_bench.aggregates.sizes import FULL, Sizes
from millstream_bench.aggregates.spark.contest import CORES, golden, millstream
from millstream_bench.aggregates.spark.readings import ReadingFiles, write
from millstream_bench.spark.processes import Sampler
from millstream_bench.suite.report import Finding, show

RUNNER = Path("bench/peers/flink_over_runner.py")
MILLSTREAM = {"Millstream, built-in": "AVG", "Millstream, SQL": "sql_mean"}
FLINK = "Flink SQL, from CSV"


def peers(python: str, sizes: Sizes = FULL) -> Finding:
    """The mean of the last ten seconds of each sensor."""
    found = Finding(
        "peers",
        "mean of the last 10 s of each of 1,000 sensors",
        "",
        ("", "rows/CPU s", "CPU s, whole run", "rows/CPU s, each row more", "ratio", "ratio"),
    )
    with tempfile.TemporaryDirectory(prefix="millstream-readings-", ignore_cleanup_errors=True) as name:
        data = write(Path(name), sizes.peer_readings, sizes.readings_per_file)
        wanted = golden(data, "mean")
        whole = of_flink(python, data, wanted)
        third = replace(data, files=data.files // 3, rows=data.files // 3 * sizes.readings_per_file)
        part = of_flink(python, third, golden(third, "mean"))
        _add(found, FLINK, data.rows, whole, (data.rows - third.rows) / max(1e-9, whole - part))
        for way, call in MILLSTREAM.items():
            one = millstream(data, "mean", call, sizes)
            _check(way, one.answers, wanted)
            _add(found, way, data.rows, one.whole_cpu_s, one.rows_per_cpu_s)
    return found


def of_flink(python: str, data: ReadingFiles, wanted: dict[str, int]) -> float:
    """CPU seconds of a run, after the input has been converted."""
    with tempfile.TemporaryDirectory(prefix="millstream-peer-", ignore_cleanup_errors=True) as name:
        task, result = Path(name) / "task.json", Path(name) / "result.json"
        files = {"readings": [str(path) for path in data.paths()]}
        task.write_text(json.dumps({"workload": "over", "files": files, "cores": CORES}))
        with (Path(name) / "log").open("w") as log:
            child = subprocess.Popen([python, RUNNER, task, result], stdout=log, stderr=log)
            with Sampler(child.pid) as sampler:
                status = child.wait()
        if status != 0:
            raise SystemExit(f"{RUNNER.stem}: {(Path(name) / 'log').read_text(errors='replace').strip()[-500:]}")
        made: dict[str, Any] = json.loads(result.read_text())
        _check(FLINK, made["answers"], wanted)
        return sum(sampler.record.between(made["began"], made["ended"]).values())


def _check(who: str, answers: dict[str, int], wanted: dict[str, int]) -> None:
    if answers != wanted:
        raise WrongAnswer(f"{who}: {answers}, DuckDB {wanted}")


def _add(found: Finding, who: str, rows: int, cpu_s: float, steady: float) -> None:
    whole = rows / cpu_s
    first = found.numbers.get(FLINK, {"whole": whole, "steady": steady})
    ratios = whole / first["whole"], steady / first["steady"]
    found.rows.append((who, round(whole), cpu_s, round(steady), *ratios))
    found.numbers[who] = {"whole": whole, "steady": steady, "ratio_whole": ratios[0], "ratio": ratios[1]}


def main(target: str, python: str) -> None:
    from rich.console import Console

    path = Path(target)
    findings: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    found = peers(python)
    path.write_text(json.dumps(findings | {found.name: asdict(found)}, indent=1))
    show(found, Console(highlight=False))


if __name__ == "__main__":
    main(*sys.argv[1:])
