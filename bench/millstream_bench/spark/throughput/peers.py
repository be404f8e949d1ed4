"""Other stream engines on the same files: each in an environment of its own, started by `scripts/bench_peers.sh`.

`python -m millstream_bench.spark.throughput.peers RESULTS NAME=PYTHON…` runs `bench/peers/NAME_runner.py` with that
interpreter for w1 and w2 and checks the answers against DuckDB's. RESULTS is the file that `millstream bench w1 w2`
wrote: the peers are added to it, to the table and to the bars. A peer is measured over its whole run, start of its
workers and warm-up included, and over the first two million events, which take some of them minutes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from millstream_bench.spark.processes import Sampler
from millstream_bench.spark.throughput.contest import WrongAnswer, check
from millstream_bench.spark.throughput.data import EventFiles, prepare
from millstream_bench.spark.throughput.golden import golden
from millstream_bench.spark.throughput.plot import throughput_plot
from millstream_bench.spark.throughput.workloads import WORKLOADS, Workload

RUNNERS = Path("bench/peers")
CORES = 2
EVENTS, ROUNDS = 2_000_000, 3


def measure(python: str, runner: Path, workload: Workload, data: EventFiles) -> dict[str, Any] | None:
    """Measure a runner; None if it cannot run the workload."""
    files = {stream: [str(path) for path in data.paths(stream)] for stream in workload.streams}
    with tempfile.TemporaryDirectory(prefix="millstream-peer-", ignore_cleanup_errors=True) as name:
        task, result = Path(name) / "task.json", Path(name) / "result.json"
        task.write_text(json.dumps({"workload": workload.name, "files": files, "cores": CORES}))
        with (Path(name) / "log").open("w") as log:
            child = subprocess.Popen([python, runner, task, result], stdout=log, stderr=log)
            with Sampler(child.pid) as sampler:
                status = child.wait()
        if status != 0:
            end = (Path(name) / "log").read_text(errors="replace").strip()[-500:]
            print(f"{runner.stem} {workload.name}: {end}")
            return None
        found: dict[str, Any] = json.loads(result.read_text())
        wall, cpu = found["ended"] - found["began"], sampler.record.between(found["began"], found["ended"])
        return found | {"rows_per_s": found["rows"] / wall, "rows_per_cpu_s": found["rows"] / sum(cpu.values())}


def typical(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The run of median speed, with the range of all.

    >>> typical([{"rows_per_cpu_s": speed, "rows_per_s": 2 * speed} for speed in (7, 5, 9)])
    {'rows_per_cpu_s': 7, 'rows_per_s': 14, 'range': {'rows_per_s': [10, 18], 'rows_per_cpu_s': [5, 9]}}
    """
    speeds = ("rows_per_s", "rows_per_cpu_s")
    middle = sorted(runs, key=lambda run: run["rows_per_cpu_s"])[len(runs) // 2]
    ranges = {name: [min(run[name] for run in runs), max(run[name] for run in runs)] for name in speeds}
    return middle | {"range": ranges}


def lines(results: list[dict[str, Any]]) -> list[str]:
    """Format the measurements as a table.

    >>> print("\\n".join(lines([{"name": "w1", "spark_rows_per_s": 2e6, "spark_rows_per_cpu_s": 1e6, "peers": {}}])))
    w1  engine            rows/s    rows/CPU-s
        spark          2,000,000     1,000,000
    """
    made = []
    for result in results:
        made.append(f"{result['name']:4}{'engine':12}{'rows/s':>12}{'rows/CPU-s':>14}")
        speeds = {
            name: (result[f"{name}_rows_per_s"], result[f"{name}_rows_per_cpu_s"])
            for name in ("millstream", "spark", "duckdb")
            if result.get(f"{name}_rows_per_s")
        }
        peers = {name: (peer["rows_per_s"], peer["rows_per_cpu_s"]) for name, peer in result["peers"].items()}
        for name, (wall, cpu) in (speeds | peers).items():
            made.append(f"    {name:12}{wall:12,.0f}{cpu:14,.0f}")
    return made


def main(target: str, *peers: str) -> None:
    path = Path(target)
    results: list[dict[str, Any]] = json.loads(path.read_text())
    for result in results:
        workload, data = WORKLOADS[result["name"]], prepare(events=result["events"])
        data = data.first(max(1, EVENTS // data.shape.events_per_file))
        right = golden(workload, data, threads=CORES)
        result.setdefault("peers", {})
        for peer in peers:
            name, _, python = peer.partition("=")
            runs = [measure(python, RUNNERS / f"{name}_runner.py", workload, data) for _ in range(ROUNDS)]
            made = [run for run in runs if run is not None]
            try:
                for run in made:
                    check(workload, name, right.answers, run["answers"])
            except WrongAnswer as error:
                print(error)
                continue
            if made:
                result["peers"][name] = typical(made)
    path.write_text(json.dumps(results, indent=1))
    throughput_plot(results, path.with_name("spark_throughput.png"))
    print("\n".join(lines(results)))


if __name__ == "__main__":
    main(*sys.argv[1:])
