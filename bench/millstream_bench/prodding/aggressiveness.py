"""Accuracy and latency by aggressiveness: how long before its end, in percent of the slide, a window is prodded.

Streams of 20 tuples a second, uniform and normal values, windows of 30 seconds; virtual time, so that the curves are
exact. Worst case: the worst window of a stream, and the mean of it over streams.
"""

from __future__ import annotations

from statistics import mean, stdev
from typing import Any

import polars as pl

from millstream_bench.prodding import measures
from millstream_bench.prodding.reference import CURVES, FUNCTIONS, within
from millstream_bench.prodding.sizes import Sizes
from millstream_bench.prodding.tools.data import Values, normal, numbers, uniform
from millstream_bench.prodding.tools.driving import drive, first_arrivals
from millstream_bench.prodding.tools.prods import prods, punctuations
from millstream_bench.prodding.tools.streamer import Streamer
from millstream_bench.suite.report import Finding

RANGE = 30
LEAST = 5
"""Streams that a comparison needs."""
PERCENT = (50, 40, 30, 20, 10)
SPREADS = {"n100": 100, "n400": 400, "n1000": 1000}
VALUES: dict[str, Values] = {"u": uniform(), **{name: normal(500, spread) for name, spread in SPREADS.items()}}
NAMES = {"u": "uniform", **{name: f"N(500,{spread})" for name, spread in SPREADS.items()}}
SQL = {"average": "AVG({0})", "max": "MAX({0})", "sum": "SUM({0})", "count": "COUNT({0})"}
DECLARED = "CREATE STREAM s (ts BIGINT, " + ", ".join(f"{name} DOUBLE" for name in VALUES) + ") PUNCTUATED ON (ts +)"


def uniform_values(sizes: Sizes) -> Finding:
    return _measured("uniform", "accuracy by aggressiveness, uniform values", "Fig. 4.6", ("u",), 10, sizes)


def normal_values(sizes: Sizes) -> Finding:
    return _measured("normal", "accuracy by aggressiveness, normal values", "Fig. 4.7-4.9", tuple(SPREADS), 10, sizes)


def worst_case(sizes: Sizes) -> Finding:
    return _measured("tumbling", "accuracy by aggressiveness, tumbling windows", "Fig. 4.11", ("n400",), 30, sizes)


def query(columns: tuple[str, ...], slide: int) -> str:
    items = [f"{SQL[function].format(name)} AS {name}_{function}" for name in columns for function in FUNCTIONS]
    return f"SELECT window_end, {', '.join(items)}, finality, revision FROM s [RANGE {RANGE} SLIDE {slide} ON ts]"


def _measured(name: str, title: str, figures: str, columns: tuple[str, ...], slide: int, sizes: Sizes) -> Finding:
    heads = (
        "values, P_Aggr",
        "gain %",
        *(f"{function}: {part}" for function in FUNCTIONS for part in ("average", "worst")),
    )
    found = Finding(name, f"{title}, windows of {RANGE} s every {slide} s", figures, heads)
    runs = [_run(columns, slide, sizes.length, seed) for seed in range(sizes.seeds)]
    agree = checked = 0
    for column in columns:
        curve = found.curves.setdefault(NAMES[column], {"percent": [], "gain": []})
        for percent in sorted(PERCENT):
            gain = mean(run["gain"][percent] for run in runs)
            cells: list[float] = []
            expected = CURVES.get((NAMES[column], slide, percent))
            for place, function in enumerate(FUNCTIONS):
                for part, (label, values) in enumerate(_over_runs(runs, column, function, percent)):
                    cells.append(mean(values))
                    curve.setdefault(f"{function} {label}", []).append(mean(values))
                    if expected is not None and len(values) >= LEAST:
                        error = stdev(values) / len(values) ** 0.5
                        checked += 1
                        fits = within(mean(values), error, expected[place][part])
                        agree += fits
                        key = f"{NAMES[column]}, {percent} %, {function}, {label}"
                        found.numbers[key] = {"mean": mean(values), "error": error,
                                              "expected": expected[place][part], "fits": fits}  # fmt: skip
            curve["percent"].append(percent)
            curve["gain"].append(gain)
            found.rows.append((f"{NAMES[column]}, {percent} %", gain, *cells))
            if expected is not None:
                found.rows.append(("  idealised", None, *(value for pair in expected for value in pair)))
    found.numbers["agree"], found.numbers["checked"] = agree, checked
    if sizes.seeds < LEAST:
        found.notes.append(f"too few streams to compare with the idealised curves: {sizes.seeds} of {sizes.length} s")
        return found
    found.notes.append(f"{agree} of {checked} figures agree with the idealised curves, within three standard errors "
                       f"({sizes.seeds} streams of {sizes.length} s)")  # fmt: skip
    return found


def _run(columns: tuple[str, ...], slide: int, length: int, seed: int) -> dict[str, dict[int, Any]]:
    """Accuracy of each column, by aggressiveness, in all windows inside the stream; and the gain in percent."""
    rows = numbers(length, VALUES, seed=seed)
    streamer = Streamer()
    deliveries = streamer.deliveries(rows, [*prods(length, slide, PERCENT), *punctuations(length, slide)])
    results = measures.inner(drive(DECLARED, query(columns, slide), deliveries), RANGE, length)
    values = [f"{name}_{function}" for name in columns for function in FUNCTIONS]
    joined = measures.pairs(results, values).with_columns(
        percent=((pl.col("window_end") - pl.col("at")) * 100 / slide).round().cast(pl.Int64)
    )
    _check(joined, results, slide, length)
    first = first_arrivals(rows.get_column("ts").to_numpy(), streamer.due(rows), RANGE, slide)
    joined = joined.join(first, on="window_end")
    found: dict[str, dict[int, Any]] = {"gain": {}, "accuracy": {}}
    for (percent,), part in joined.group_by("percent"):
        early, final = (float((part[at] - part["first"]).mean()) for at in ("at", "at_final"))  # type: ignore[arg-type]
        found["gain"][percent] = measures.gain_percent(early, final)
        found["accuracy"][percent] = {value: part.get_column(f"{value}_accuracy") for value in values}
    return found


def _check(joined: pl.DataFrame, results: pl.DataFrame, slide: int, length: int) -> None:
    """Each window has one final row and one early row for each prod."""
    windows = (length - RANGE) // slide + 1
    finals = results.filter(pl.col("finality") == "final")
    if finals.height != windows or finals["window_end"].n_unique() != windows:
        raise AssertionError(f"{finals.height} final rows of {windows} windows")
    if joined.height != windows * len(PERCENT):
        raise AssertionError(f"{joined.height} early rows of {windows} windows")


def _over_runs(
    runs: list[dict[str, dict[int, Any]]], column: str, function: str, percent: int
) -> list[tuple[str, list[float]]]:
    series = [run["accuracy"][percent][f"{column}_{function}"] for run in runs]
    return [("average", [float(each.mean()) for each in series]), ("worst", [float(each.min()) for each in series])]
