"""The same aggregate built in, as a body of SQL and as a Python class, over several frames."""

from __future__ import annotations

from millstream_bench.aggregates.drive import abreast, best, bids, check, golden, ratio, running
from millstream_bench.aggregates.sizes import Sizes
from millstream_bench.suite.report import Finding

CALLS = {
    "mean": {"built-in": "AVG(price)", "SQL, on columns": "sql_mean(price)", "SQL, a loop": "loop_mean(price)",
             "Python class": "python_mean(price)"},
    "sum": {"built-in": "SUM(price)", "SQL, on columns": "sql_sum(price)", "SQL, a loop": "loop_sum(price)",
            "Python class": "python_sum(price)"},
    "max": {"built-in": "MAX(price)", "SQL, on columns": "sql_max(price)", "SQL, a loop": "window_max(price)",
            "Python class": "python_max(price)"},
}  # fmt: skip
FUNCTIONS = {"mean": "AVG", "sum": "SUM", "max": "MAX"}
WAYS = tuple(CALLS["mean"])
ON_COLUMNS = WAYS[:2]


def bodies(sizes: Sizes) -> Finding:
    """Speed of each way to write an aggregate."""
    found = Finding(
        "bodies",
        "ways to write an aggregate, tuples per CPU-second",
        "",
        ("aggregate", "frame", *WAYS, "SQL : built-in"),
    )
    rows = bids(sizes.columns, sizes.partitions)
    few = rows.head(sizes.rows)
    frames = {
        "the last 1,000": "ROWS 999 PRECEDING",
        "1,000 of time": "RANGE 1000 PRECEDING",
        "the last 100 of each item": "PARTITION BY item ROWS 99 PRECEDING",
    }
    for what, calls in CALLS.items():
        for name, window in frames.items():
            right = golden(_duckdb(FUNCTIONS[what], window), rows)
            fast = abreast({way: running(calls[way], window) for way in ON_COLUMNS}, rows, sizes.rounds)
            slow = abreast({way: running(calls[way], window) for way in WAYS[2:]}, few, sizes.rounds)
            for way, traces in (fast | slow).items():
                check(f"{what}, {name}, {way}", traces[0].results, right)
            rates = [round(best(traces)) for traces in (fast | slow).values()]
            times = ratio(fast, "SQL, on columns", "built-in")
            found.rows.append((what, name, *rates, times))
            found.numbers[f"{what}, {name}"] = dict(zip(WAYS, rates, strict=True)) | {"ratio": times}
    worst = max(row[-1] for row in found.rows)
    least = min(min(row[4:6]) for row in found.rows)
    found.numbers["worst_ratio"], found.numbers["least_loop"] = worst, least
    found.notes.append(
        f"a body on columns takes at most {worst:.2f} × the time of the built-in function; "
        f"one tuple at a time, at least {least:,.0f} tuples per CPU-second"
    )
    return found


def _duckdb(function: str, window: str) -> str:
    partition, _, frame = window.rpartition("PRECEDING")[0].rpartition("ROWS " if "ROWS" in window else "RANGE ")
    kind = "ROWS" if "ROWS" in window else "RANGE"
    between = f"{kind} BETWEEN {frame}PRECEDING AND CURRENT ROW"
    return f"SELECT {function}(price) OVER ({partition} ORDER BY ts {between}) AS x FROM bids ORDER BY ts"
