"""Open auctions with Millstream: the same files, and the stream of closings, which closes the bids."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from millstream_bench.joins.open.native import ANSWERS
from millstream_bench.spark.throughput.mill import SETTINGS, linked, run_to_end

STREAMS = {
    "auction": "(id BIGINT, category BIGINT, ts TIMESTAMP) ORDER BY ts PRIMARY KEY (id)",
    "bid": "(auction BIGINT REFERENCES auction (id), price BIGINT, ts TIMESTAMP) ORDER BY ts",
    "closed": "(id BIGINT, ts TIMESTAMP) ORDER BY ts CLOSES bid (auction) BY (id)",
}
QUERY = "SELECT b.auction, b.price, a.category FROM auction a JOIN bid b ON a.id = b.auction"


@dataclass(frozen=True, slots=True)
class Task:
    files: dict[str, list[str]]
    files_per_batch: int
    cores: int


def statements(folders: dict[str, Path], files_per_batch: int) -> list[str]:
    options = f"max_files_per_trigger = '{files_per_batch}', max_rows_per_trigger = '100000000', once = 'true'"
    return [
        f"CREATE STREAM {name} {declared} WITH (connector = 'parquet', path = '{folders[name]}', {options})"
        for name, declared in STREAMS.items()
    ]


def perform(task: Task) -> dict[str, Any]:
    from millstream import connect

    folders = {name: linked(name, paths) for name, paths in task.files.items()}
    with connect(master=f"local[{task.cores}]", settings=SETTINGS) as mill:
        for statement in statements(folders, task.files_per_batch):
            mill.sql(statement)
        return run_to_end(mill, QUERY, ANSWERS)


def main(task_file: str, result_file: str) -> None:
    task = Task(**json.loads(Path(task_file).read_text()))
    Path(result_file).write_text(json.dumps(perform(task)))


if __name__ == "__main__":
    main(*sys.argv[1:])
