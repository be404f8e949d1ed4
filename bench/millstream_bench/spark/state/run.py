"""`millstream bench state`: cost of a batch as the state grows and the input stays the same.

A join holds ten thousand, a hundred thousand or a million tuples. Every batch adds 2,000 rows on each side, and as
many leave the window. If the cost depends on the change alone, a batch writes the same number of bytes and takes the
same time for all three sizes. Measured on the shards alone (reader, operators and state in this process, with a
dictionary as the store) and on Spark with its own store.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from millstream_bench.spark.state import rig as state_rig
from millstream_bench.spark.state.input import ROWS, Batch, write
from millstream_bench.spark.subject import SubjectFailed, environment

SIZES = (10_000, 100_000, 1_000_000)
_SPARK, _ALONE = "#2b6cb0", "#2f855a"


def run(
    *,
    out: Path,
    json_file: Path | None = None,
    sizes: Sequence[int] = SIZES,
    batches: int = 60,
    warm_up: int = 20,
    spark: bool = True,
) -> list[dict[str, Any]]:
    """Measure, print a table, write JSON and a plot. The first `warm_up` batches do not count."""
    from rich.console import Console

    console = Console(highlight=False)
    made: list[dict[str, Any]] = []
    with (
        console.status("", refresh_per_second=2) as status,
        tempfile.TemporaryDirectory(prefix="millstream-state-", ignore_cleanup_errors=True) as name,
    ):
        folders = {size: Path(name) / str(size) for size in sizes}
        for size, folder in folders.items():
            status.update(f"state: {size:,} rows, shards alone")
            write(folder, size, batches)
            made.append(typical("shards alone", size, state_rig.without_spark(folder, size), warm_up))
        if spark:
            status.update("state: Spark")
            found = _on_spark(Path(name), folders)
            made += [typical("on Spark", size, found[size], warm_up) for size in sizes]
    _print(made, console)
    target = json_file or out / "state.json"
    for folder in (target.parent, out):
        folder.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(made, indent=1))
    plot(made, out / "state.png")
    console.print(f"written to {target} and {out / 'state.png'}")
    return made


def typical(host: str, size: int, batches: Sequence[Batch], warm_up: int) -> dict[str, Any]:
    """Medians over the batches after the warm-up; the last one or two, which only end the streams, are left out.

    >>> batches = [Batch(9, 100, 1.0, 2.0)] + [Batch(9, 5, 0.1, 0.2)] * 3 + [Batch(0, 1, 0.0, 0.0)]
    >>> typical("x", 9, batches, 1)["written"]
    5
    """
    kept = [batch for batch in batches[warm_up:] if batch.state_rows > size // 2]
    return {
        "host": host,
        "size": size,
        "batches": len(kept),
        "state_rows": round(median(batch.state_rows for batch in kept)),
        "written": round(median(batch.written for batch in kept)),
        "written_most": max(batch.written for batch in kept),
        "shard_ms": median(batch.shard_s for batch in kept) * 1e3,
        "batch_ms": median(batch.batch_s for batch in kept) * 1e3,
    }


def plot(made: list[dict[str, Any]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.6), layout="constrained")
    panels = (
        ("written", "bytes of state written per batch, median"),
        ("shard_ms", "time in the slowest shard, ms, median"),
        ("batch_ms", "time of the whole batch, ms, median"),
    )
    for axes, (key, title) in zip(figure.subplots(1, len(panels)), panels, strict=True):
        for host, label, style in (
            ("on Spark", "on Spark", {"color": _SPARK, "marker": "o", "markersize": 9}),
            ("shards alone", "the shards alone, without Spark", {"color": _ALONE, "marker": "s", "linestyle": "--"}),
        ):
            points = [(case["state_rows"], case[key]) for case in made if case["host"] == host]
            if points:
                axes.plot(*zip(*points, strict=True), label=label, **style)
        axes.set_xscale("log")
        axes.set_ylim(0, 1.3 * axes.get_ylim()[1])
        axes.yaxis.set_major_formatter("{x:,.0f}")
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("tuples held by the join (log scale)")
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].legend(frameon=False, fontsize=8)
    figure.suptitle(f"{ROWS:,} rows a batch on either side", fontsize=10)
    figure.savefig(path, dpi=130)


def _on_spark(place: Path, folders: dict[int, Path]) -> dict[int, list[Batch]]:
    (place / "task.json").write_text(json.dumps({str(folder): size for size, folder in folders.items()}))
    command = [sys.executable, "-m", state_rig.__name__, "task.json", "result.json"]
    with (place / "log").open("w") as log:
        child = subprocess.run(command, cwd=place, env=environment(), stdout=log, stderr=log, check=False)
    if child.returncode != 0:
        said = (place / "log").read_text(errors="replace")[-3000:]
        raise SubjectFailed(f"the run on Spark has ended with status {child.returncode}\n{said}")
    found: dict[str, list[list[Any]]] = json.loads((place / "result.json").read_text())
    return {int(size): [Batch(*values) for values in batches] for size, batches in found.items()}


def _print(made: list[dict[str, Any]], console: Any) -> None:
    from rich.box import SIMPLE
    from rich.table import Table

    from millstream_bench.suite.whole_table import print_whole

    title = f"a batch of {ROWS:,} rows on either side of a join, by the size of its state; medians"
    table = Table(title=title, box=SIMPLE, title_justify="left", padding=(0, 1), pad_edge=False)
    for heading in ("", "state rows", "written", "most", "shard", "batch", "batches"):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for case in made:
        written = [f"{case[key] / 1e3:,.1f} kB" for key in ("written", "written_most")]
        times = [f"{case[key]:,.1f} ms" for key in ("shard_ms", "batch_ms")]
        table.add_row(case["host"], f"{case['state_rows']:,}", *written, *times, str(case["batches"]))
    print_whole(table, console)
