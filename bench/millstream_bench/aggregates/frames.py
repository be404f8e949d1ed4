"""Running aggregates by the size of their frames: cost a tuple (E9), and slides with panes or without (E11).

The operator is driven page by page; figures are tuples a second of CPU time, and tuples or partial results held.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import polars as pl

from millstream.algebra.schema import TS
from millstream.control.mill import LocalMill
from millstream.runtime.operator.contract import Input, Operator
from millstream.runtime.operator.registry import operator_for
from millstream_bench.joins.report import Finding

DELTA = """
CREATE WINDOW AGGREGATE delta_avg(next DOUBLE) : DOUBLE
{ TABLE state(total DOUBLE, cnt INT); TABLE inwindow(wnext DOUBLE);
  INITIALIZE: { INSERT INTO state VALUES (next, 1); INSERT INTO RETURN VALUES (next); }
  ITERATE:    { UPDATE state SET total = total + next, cnt = cnt + 1;
                INSERT INTO RETURN SELECT total / cnt FROM state; }
  EXPIRE:     { UPDATE state SET cnt = cnt - 1, total = total - oldest().wnext; } }
"""
NAIVE = """
CREATE WINDOW AGGREGATE naive_avg(next DOUBLE) : DOUBLE
{ TABLE inwindow(wnext DOUBLE);
  INITIALIZE: ITERATE: { INSERT INTO RETURN SELECT AVG(wnext) FROM inwindow; } }
"""
PAGE = 8192


@dataclass(frozen=True, slots=True)
class Sizes:
    tuples: int = 1_000_000
    """Tuples of a built-in aggregate."""
    by_row: int = 50_000
    """Tuples of an aggregate that takes one at a time."""
    naive: int = 3_000
    windows: tuple[int, ...] = (100, 1_000, 10_000)
    slides: tuple[int, ...] = (1, 100, 1_000, 10_000, 40_000)


FULL, QUICK = Sizes(), Sizes(20_000, 2_000, 300, (10, 100), (1, 10))


def operators_of(call: str) -> list[Operator]:
    """Return the operators of a running aggregate over `bids`, from input to output."""
    mill = LocalMill()
    mill.execute("CREATE STREAM bids (ts BIGINT, price DOUBLE) ORDER BY ts")
    for aggregate in (DELTA, NAIVE):
        mill.execute(aggregate)
    mill.add_query("q", f"SELECT {call} FROM bids")
    nodes = [node for node in mill.queries["q"].plan.walk() if node.inputs]
    return [operator_for(node.stem).at(None, node.parameters()) for node in nodes]  # type: ignore[arg-type]


def measured(call: str, tuples: int) -> tuple[float, int]:
    """Return tuples a second of CPU time, and the state at the end."""
    operators = operators_of(call)
    stamps = np.arange(tuples)
    prices = np.random.default_rng(0).random(tuples)
    pages = pl.DataFrame({"ts": stamps, "price": prices, TS: stamps})
    spent = 0.0
    for start in range(0, tuples, PAGE):
        page: pl.DataFrame | None = pages.slice(start, PAGE)
        bound = int(pages.item(min(start + PAGE, tuples) - 1, TS))
        began = time.process_time()
        for operator in operators:
            page = operator.process([Input(page, None, bound)]).rows
        spent += time.process_time() - began
    return tuples / spent, sum(operator.state_rows() for operator in operators)


def delta(sizes: Sizes) -> Finding:
    """Cost of a tuple by the size of the frame."""
    found = Finding("delta", "AVG over the last n tuples, tuples a second", "4.4", ("n", "built-in", "delta", "naive"))
    for size in sizes.windows:
        rates = [
            measured(f"{name}(price) OVER (ROWS {size - 1} PRECEDING)", tuples)[0]
            for name, tuples in (("AVG", sizes.tuples), ("delta_avg", sizes.by_row), ("naive_avg", sizes.naive))
        ]
        found.rows.append((size, *rates))
    return found


def panes(sizes: Sizes) -> Finding:
    """Speed and state of a frame of 40,000 tuples by its slide."""
    columns = ("slide", "tuples/s", "held", "without panes: tuples/s", "held")
    found = Finding("panes", "SUM over 40,000 tuples, by slide", "4.6, 4.7", columns)
    plain = measured("SUM(price) OVER (ROWS 39999 PRECEDING)", sizes.tuples)
    for slide in sizes.slides:
        sliding = measured(f"SUM(price) OVER (ROWS 39999 PRECEDING SLIDE {slide})", sizes.tuples)
        found.rows.append((slide, *sliding, *plain))
    return found


EXPERIMENTS = {"delta": delta, "panes": panes}


def run(*, quick: bool = False) -> dict[str, Finding]:
    """Run all experiments and print their tables."""
    from rich.console import Console

    from millstream_bench.joins.report import show

    console = Console(highlight=False)
    findings = {name: experiment(QUICK if quick else FULL) for name, experiment in EXPERIMENTS.items()}
    for finding in findings.values():
        show(finding, console)
    return findings
