"""What every runner does: read a task, run a workload over the files, write totals and times.

`python RUNNER.py TASK RESULT` with a JSON task of `workload`, `files` (lists of parquet files by stream, in
order) and `cores`. The result has `answers`, `rows`, and when the run began and ended. The whole run is timed, warm-up
included, once the process has been started and has prepared its input; CPU time is read by the parent.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

WINDOW = 10_000_000
"""Length of w1's windows, and reach of w2's join, in microseconds."""
COLUMNS = {"bid": ("auction", "price", "ts"), "auction": ("id", "category", "ts")}
Task = dict[str, Any]


def main(perform: Callable[[Task], dict[str, int]], prepare: Callable[[Task], None] = lambda _: None) -> None:
    import pyarrow.parquet as pq

    task = json.loads(Path(sys.argv[1]).read_text())
    rows = sum(pq.ParquetFile(file).metadata.num_rows for files in task["files"].values() for file in files)
    prepare(task)
    began = time.time()
    answers = perform(task)
    made = {"answers": answers, "rows": rows, "began": began, "ended": time.time()}
    Path(sys.argv[2]).write_text(json.dumps(made))
