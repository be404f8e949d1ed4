"""A suite of experiments: run some or all of them, print tables, write JSON and plots."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from millstream.errors import OptionError, did_you_mean
from millstream_bench.suite.report import Finding, show

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Suite:
    """`module` is the one that has it as `SUITE`. Sizes are a dataclass each."""

    name: str
    module: str
    experiments: Mapping[str, Callable[[Any], Finding]]
    on_spark: Mapping[str, Callable[[Any, Tell], Finding]]
    draw_all: Callable[[Mapping[str, Finding], Path], list[Path]]
    full: Any
    quick: Any

    def run(
        self,
        *,
        out: Path,
        json_file: Path | None = None,
        names: Sequence[str] = (),
        quick: bool = False,
        spark: bool = True,
    ) -> dict[str, Any]:
        """Run the named experiments, or all; print tables, write JSON and plots, return the JSON."""
        for name in names:
            if name not in (*self.experiments, *self.on_spark):
                hint = did_you_mean(name, [*self.experiments, *self.on_spark])
                raise OptionError("M6002", f"unknown experiment '{name}'", hint=hint)
        target = json_file or out / f"{self.name}.json"
        if pl.thread_pool_size() != 1:
            return self._on_one_thread(out, target, names, quick=quick, spark=spark)
        from rich.console import Console

        console = Console(highlight=False, soft_wrap=True)
        sizes = self.quick if quick else self.full
        findings: dict[str, Finding] = {}
        made = _known(target) if names else {}
        for folder in (out, target.parent):
            folder.mkdir(parents=True, exist_ok=True)
        with console.status("", refresh_per_second=2) as status:
            tell: Tell = lambda said: status.update(f"{self.name}: {said}")  # noqa: E731
            for name in [*self.experiments, *(self.on_spark if spark else ())]:
                if names and name not in names:
                    continue
                tell(name)
                began = time.perf_counter()
                here = self.experiments.get(name)
                findings[name] = here(sizes) if here is not None else self.on_spark[name](sizes, tell)
                findings[name].wall_s = time.perf_counter() - began
                show(findings[name], console)
                made[name] = asdict(findings[name]) | {"sizes": asdict(sizes)}
                target.write_text(json.dumps(made, indent=1))  # an interruption loses one experiment
        pictures = self.draw_all(findings, out)
        console.print(f"written to {', '.join(str(path) for path in (target, *pictures))}", markup=False)
        loaded: dict[str, Any] = json.loads(target.read_text())
        return loaded

    def _on_one_thread(
        self, out: Path, target: Path, names: Sequence[str], *, quick: bool, spark: bool
    ) -> dict[str, Any]:
        """Polars fixes its thread count when it is imported, so measure in a process of its own."""
        places = f"out=Path({str(out)!r}), json_file=Path({str(target)!r})"
        call = f"SUITE.run({places}, names={list(names)!r}, quick={quick}, spark={spark})"
        code = f"from pathlib import Path; from {self.module} import SUITE; {call}"
        subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"POLARS_MAX_THREADS": "1"})
        loaded: dict[str, Any] = json.loads(target.read_text())
        return loaded


def _known(target: Path) -> dict[str, Any]:
    """Earlier findings: experiments may run one at a time."""
    try:
        loaded: dict[str, Any] = json.loads(target.read_text())
    except (OSError, ValueError):
        return {}
    return loaded
