"""A join with more state than its memory limit, against one without a limit: equal answers, CPU time of both.

Each runs in a process of its own, which generates its input. Values are closed, or the window ends, so late that the
join holds the requested number of tuples; a tuple has ten numbers beside its value.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl

from millstream.algebra.schema import TS, Schema
from millstream.algebra.types import Type
from millstream.algebra.window import Window
from millstream.runtime.join.outer_join import OuterJoin
from millstream.runtime.join.settings import JoinSettings
from millstream.runtime.join.window_join import WindowJoin
from millstream.runtime.operator.contract import Input
from millstream_bench.joins.drive import STEP_ROWS, WrongAnswer, product_sum
from millstream_bench.joins.sizes import Sizes
from millstream_bench.joins.streams import GAP, Step, in_step, steps
from millstream_bench.suite.report import Finding

KINDS = ("no window", "window", "left outer")
EVERY, MORE = 10, 10
_MORE = [f"p{number}" for number in range(MORE)]
_MB = 1 << 20


def on_disk(sizes: Sizes) -> Finding:
    made = Finding(
        "on_disk",
        f"{sizes.held:,} tuples held, {sizes.limit / _MB:.0f} MB allowed",
        "",
        ("join", "held", "MB", "resident", "results", "CPU s"),
    )
    for kind in KINDS:
        found = {label: _apart(kind, sizes.held, limit) for label, limit in (("limited", sizes.limit), ("no limit", 0))}
        if found["limited"]["answer"] != found["no limit"]["answer"]:
            raise WrongAnswer(f"{kind}, on disk: {found['limited']['answer']}, not {found['no limit']['answer']}")
        for label, one in found.items():
            sizes_mb = one["memory"] / 1e6, one["resident"] / 1e6
            name = f"{kind}, {label}"
            made.rows.append((name, one["held"], *sizes_mb, one["answer"][0], one["cpu_s"]))
        ratio = found["limited"]["cpu_s"] / found["no limit"]["cpu_s"]
        made.numbers[kind] = {**found, "time_ratio": ratio}
        made.notes.append(f"{kind}: the same answers; the limited one takes {ratio:.2f} × the CPU time")
    return made


def _apart(kind: str, held: int, limit: int) -> dict[str, Any]:
    command = [sys.executable, "-m", __name__, kind, str(held), str(limit)]
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | {"POLARS_MAX_THREADS": "1"}
    )
    loaded: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return loaded


def perform(kind: str, held: int, limit: int) -> dict[str, Any]:
    """Run a join over three times as many tuples as it holds."""
    side = Schema.of(("k", Type.BIGINT), ("v", Type.BIGINT), *((name, Type.BIGINT) for name in _MORE))
    pair = Schema.of(*((f"{own}.{name}", Type.BIGINT) for own in ("a", "b") for name in side.names))
    windowed, keys = kind == "window", (("k", "k"),)
    kept = Window(held // 2 * GAP if windowed else None)
    if kind == "left outer":
        join: WindowJoin = OuterJoin((True, False), side, side, pair, keys)
    else:
        join = WindowJoin(side, side, pair, keys, None, kept, kept, merges=windowed)
    join.configure(JoinSettings(memory_limit=limit))
    streams = in_step(held * 3 // 2, EVERY, width=held // EVERY)
    cut = steps(streams, min(STEP_ROWS, held // 8) // 2 * GAP, punctuated=not windowed, timed=windowed)
    rows, check, most, memory, resident, spent = 0, 0, 0, 0, 0, 0.0
    gc.collect()
    before = _anonymous()
    began = time.perf_counter()
    for place in range(len(cut) + 1):
        step = _wide(cut[place]) if place < len(cut) else (Input(), Input())
        start = time.process_time()
        out = join.process(step)
        spent += time.process_time() - start
        if out.rows is not None:
            rows += out.rows.height
            check += product_sum(out.rows.fill_null(0))
        del step, out
        tables = [table for name, table in join.tables().items() if not name.endswith("unmatched")]
        most = max(most, sum(map(len, tables)))
        memory = max(memory, sum(table.size() for table in tables))
        resident = max(resident, _anonymous() - before)
    return {
        "held": most,
        "memory": memory,
        "resident": resident,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "answer": [rows, check],
        "cpu_s": spent,
        "wall_s": time.perf_counter() - began,
    }


def _wide(step: Step) -> Step:
    """Rows with the ten further numbers of each tuple."""
    made = []
    for port in step:
        rows = port.rows
        if rows is not None:
            numbers = rows.get_column("v").to_numpy()
            more = pl.DataFrame({name: numbers + place for place, name in enumerate(_MORE)})
            rows = pl.DataFrame([*rows.get_columns()[:2], *more.get_columns(), rows.get_column(TS)])
        made.append(Input(rows, port.punctuations, port.bound))
    return tuple(made)


def _anonymous() -> int:
    """Bytes of this process's memory that are not backed by a file."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) * 1024
    return 0


if __name__ == "__main__":
    print(json.dumps(perform(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
