"""`millstream bench joins`: joins that purge, against joins that do not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from millstream.errors import OptionError, did_you_mean
from millstream_bench.joins.growth import by_rate, growth, output_rate
from millstream_bench.joins.intervals import intervals
from millstream_bench.joins.on_disk import on_disk
from millstream_bench.joins.open.run import open_auctions
from millstream_bench.joins.plots import draw_all
from millstream_bench.joins.purging import asymmetric, propagation, thresholds, unpunctuated
from millstream_bench.joins.report import Finding, show
from millstream_bench.joins.several import several
from millstream_bench.joins.sizes import FULL, QUICK, Sizes
from millstream_bench.joins.windowed import early, useless, windows

EXPERIMENTS: dict[str, Callable[[Sizes], Finding]] = {
    "growth": growth,
    "state_by_rate": by_rate,
    "output_rate": output_rate,
    "thresholds": thresholds,
    "asymmetric": asymmetric,
    "propagation": propagation,
    "unpunctuated": unpunctuated,
    "windows": windows,
    "useless": useless,
    "early_punctuation": early,
    "intervals": intervals,
    "several": several,
    "on_disk": on_disk,
}
ON_SPARK = "open_auctions"


def run(
    *,
    out: Path,
    json_file: Path | None = None,
    names: Sequence[str] = (),
    quick: bool = False,
    spark: bool = True,
) -> dict[str, Any]:
    """Run the named experiments, or all; print tables, write JSON and plots, return the JSON."""
    for name in names:
        if name not in (*EXPERIMENTS, ON_SPARK):
            hint = did_you_mean(name, [*EXPERIMENTS, ON_SPARK])
            raise OptionError("M6002", f"unknown experiment '{name}'", hint=hint)
    if pl.thread_pool_size() != 1:
        return _on_one_thread(out, json_file, names, quick=quick, spark=spark)
    from rich.console import Console

    console = Console(highlight=False)
    sizes = QUICK if quick else FULL
    chosen = [name for name in EXPERIMENTS if not names or name in names]
    findings: dict[str, Finding] = {}
    with console.status("", refresh_per_second=2) as status:
        for name in chosen:
            status.update(f"joins: {name}")
            began = time.perf_counter()
            findings[name] = EXPERIMENTS[name](sizes)
            findings[name].wall_s = time.perf_counter() - began
            show(findings[name], console)
        if spark and (not names or ON_SPARK in names):
            findings[ON_SPARK] = open_auctions(sizes, status.update)
            show(findings[ON_SPARK], console)
    target = json_file or out / "joins.json"
    for folder in (out, target.parent):
        folder.mkdir(parents=True, exist_ok=True)
    made = _known(target) if names else {}
    made |= {name: asdict(finding) | {"sizes": asdict(sizes)} for name, finding in findings.items()}
    text = json.dumps(made, indent=1)
    target.write_text(text)
    pictures = draw_all(findings, out)
    console.print(f"written to {', '.join(str(path) for path in (target, *pictures))}", markup=False)
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def _known(target: Path) -> dict[str, Any]:
    """Earlier findings: experiments may run one at a time."""
    try:
        loaded: dict[str, Any] = json.loads(target.read_text())
    except (OSError, ValueError):
        return {}
    return loaded


def _on_one_thread(
    out: Path, json_file: Path | None, names: Sequence[str], *, quick: bool, spark: bool
) -> dict[str, Any]:
    """Polars fixes its thread count when it is imported, so measure in a process of its own."""
    target = json_file or out / "joins.json"
    places = f"out=Path({str(out)!r}), json_file=Path({str(target)!r})"
    call = f"run({places}, names={list(names)!r}, quick={quick}, spark={spark})"
    code = f"from pathlib import Path; from millstream_bench.joins.run import run; {call}"
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"POLARS_MAX_THREADS": "1"})
    loaded: dict[str, Any] = json.loads(target.read_text())
    return loaded
