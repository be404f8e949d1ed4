"""w1 with Bytewax: rows one by one through Python, keyed by auction. It has no join over a time interval, so no w2."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import bytewax.operators as op
import bytewax.operators.windowing as w
import pyarrow.parquet as pq
from bytewax.dataflow import Dataflow
from bytewax.operators.windowing import EventClock, TumblingWindower
from bytewax.testing import TestingSink, TestingSource, run_main
from common import COLUMNS, WINDOW, Task, main

Row = tuple[str, tuple[datetime, int]]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rows(files: list[str]) -> Iterator[Row]:
    for file in files:
        table = pq.read_table(file, columns=list(COLUMNS["bid"]))
        for auction, price, ts in zip(*(table[name].to_pylist() for name in COLUMNS["bid"]), strict=True):
            yield str(auction), (ts.replace(tzinfo=UTC), price)


def perform(task: Task) -> dict[str, int]:
    if task["workload"] != "w1":
        raise SystemExit("bytewax has no join over a time interval")
    made: list[tuple[str, tuple[int, tuple[int, int, int]]]] = []
    flow = Dataflow("w1")
    stream = op.input("rows", flow, TestingSource(rows(task["files"]["bid"]), batch_size=10_000))
    # Its clock goes on with the machine's between two rows, and what it has passed is late: hence the wait.
    clock = EventClock(lambda row: row[0], wait_for_system_duration=timedelta(seconds=10))
    windower = TumblingWindower(length=timedelta(microseconds=WINDOW), align_to=EPOCH)
    folded = w.fold_window(
        "fold",
        stream,
        clock,
        windower,
        lambda: (0, 0, 0),
        lambda held, row: (held[0] + 1, max(held[1], row[1]), held[2] + row[1]),
        lambda one, two: (one[0] + two[0], max(one[1], two[1]), one[2] + two[2]),
    )
    op.output("out", folded.down, TestingSink(made))
    run_main(flow)
    values = [value for _, (_, value) in made]
    totals = [sum(value[place] for value in values) for place in range(3)]
    return {"rows": len(values), "count": totals[0], "max": totals[1], "sum": totals[2]}


if __name__ == "__main__":
    main(perform)
