"""Run queries in this process, page by page, and record CPU time, results and state.

Only the operators' own work is timed. Results are compared, tuple by tuple, with those of DuckDB over all tuples.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import polars as pl

from millstream.algebra.schema import TS
from millstream.control.mill import LocalMill
from millstream.runtime.operator.contract import Input, Operator
from millstream.runtime.operator.registry import operator_for
from millstream_bench.aggregates.programs import CLASSES, STATEMENTS

STREAM = "CREATE STREAM bids (ts BIGINT NOT NULL, item BIGINT NOT NULL, price DOUBLE NOT NULL) ORDER BY ts"
PAGE = 8192
Maker = Callable[[], list[Operator]]


class WrongAnswer(AssertionError):
    """A contestant's results are not those of the query, so its speed means nothing."""


@dataclass(frozen=True, slots=True)
class Trace:
    tuples: int
    """Number of tuples that were timed."""
    cpu_s: float
    results: pl.Series
    held: int
    """Tuples and partial results in state at the end."""

    @property
    def rate(self) -> float:
        return self.tuples / self.cpu_s


def bids(tuples: int, items: int, seed: int = 0) -> pl.DataFrame:
    draw = np.random.default_rng(seed)
    stamps = np.arange(tuples)
    columns = {"ts": stamps, "item": draw.integers(0, items, tuples), "price": draw.random(tuples), TS: stamps}
    return pl.DataFrame(columns)


def maker(select: str) -> Maker:
    """Return a function that creates the operators of a query over `bids`, from input to output."""
    mill = LocalMill()
    mill.execute(f"SET contracts = 'off'; {STREAM}")
    for statement in STATEMENTS:
        mill.execute(statement)
    for name, (code, options) in CLASSES.items():
        mill.aggregate(code, name=name, **options)
    mill.add_query("q", select)
    nodes = [node for node in mill.queries["q"].plan.walk() if node.inputs]
    return lambda: [operator_for(node.stem).at(None, node.parameters()) for node in nodes]  # type: ignore[arg-type]


def running(call: str, window: str) -> Maker:
    return maker(f"SELECT {call} OVER ({window}) AS x FROM bids")


def run(make: Maker, rows: pl.DataFrame, *, skip: int = 0) -> Trace:
    """Run a query over the tuples; the first `skip` ones fill the window and are not timed."""
    (trace,) = abreast({"": make}, rows, rounds=1, skip=skip)[""]
    return trace


def abreast(makers: Mapping[str, Maker], rows: pl.DataFrame, rounds: int, *, skip: int = 0) -> dict[str, list[Trace]]:
    """Run queries side by side, each page through all of them, another one first each time: a disturbance of the
    machine that is longer than a page disturbs all of them alike."""
    names = list(makers)
    made: dict[str, list[Trace]] = {name: [] for name in names}
    pages = [*_pages(rows, 0, skip), *_pages(rows, skip, rows.height)]
    untimed = len(list(_pages(rows, 0, skip)))
    for number in range(rounds):
        operators = {name: make() for name, make in makers.items()}
        results: dict[str, list[pl.Series]] = {name: [] for name in names}
        spent = dict.fromkeys(names, 0.0)
        gc.collect()
        for at, (page, bound) in enumerate(pages):
            first = (at + number) % len(names)
            for name in names[first:] + names[:first]:
                began = time.process_time()
                out = _through(operators[name], page, bound)
                spent[name] += time.process_time() - began if at >= untimed else 0.0
                if out is not None:
                    results[name].append(out.get_column("x"))
        for name in names:
            held = sum(operator.state_rows() for operator in operators[name])
            made[name].append(Trace(rows.height - skip, spent[name], pl.concat(results[name]), held))
    return made


def _pages(rows: pl.DataFrame, first: int, last: int) -> list[tuple[pl.DataFrame, int]]:
    starts = range(first, last, PAGE)
    return [(rows.slice(at, min(PAGE, last - at)), int(rows.item(min(at + PAGE, last) - 1, TS))) for at in starts]


def _through(operators: Sequence[Operator], page: pl.DataFrame | None, bound: int) -> pl.DataFrame | None:
    for operator in operators:
        page = operator.process([Input(page, None, bound)]).rows
    return page


def ratio(traces: Mapping[str, list[Trace]], one: str, other: str) -> float:
    """The median over the rounds of one's CPU time as a multiple of the other's."""
    return median(a.cpu_s / b.cpu_s for a, b in zip(traces[one], traces[other], strict=True))


def best(traces: Sequence[Trace]) -> float:
    return max(trace.rate for trace in traces)


def golden(select: str, rows: pl.DataFrame) -> pl.Series:
    """The column `x` of a query of DuckDB over the table `bids`."""
    import duckdb

    bids = rows.drop(TS).to_arrow()  # noqa: F841 - DuckDB finds it by its name
    with duckdb.connect() as connection:
        return pl.Series(connection.execute(select).fetchnumpy()["x"])


def check(who: str, found: pl.Series, right: pl.Series) -> None:
    """Raise if results differ from the first of the right ones by more than rounding."""
    wanted: Any = right.head(len(found)).to_numpy()
    given: Any = found.to_numpy()
    if len(given) != len(wanted) or not np.allclose(given, wanted, rtol=1e-9, atol=1e-9):
        raise WrongAnswer(f"{who}: the results are not those of DuckDB")
