"""Aggregates over the last ten seconds of each sensor, on Spark: Millstream against `transformWithStateInPandas`.

The same files, CPU time of all processes, answers checked by DuckDB.
"""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path

from millstream_bench.aggregates.drive import WrongAnswer
from millstream_bench.aggregates.sizes import Sizes
from millstream_bench.aggregates.spark import mill, native
from millstream_bench.aggregates.spark.readings import ReadingFiles, write
from millstream_bench.spark.measurement import Measurement
from millstream_bench.spark.subject import measure
from millstream_bench.suite.report import Finding
from millstream_bench.suite.run import Tell

CORES = 2
CALLS = {
    "mean": {
        "built-in": "AVG",
        "SQL, on columns": "sql_mean",
        "SQL, a loop": "loop_mean",
        "Python class": "python_mean",
    },
    "top": {"SQL, a loop": "sql_top", "Python class": "python_top"},
}
BY_HAND = "by hand"
TITLES = {"mean": "mean", "top": "three greatest values"}
_OVER = "OVER (PARTITION BY sensor ORDER BY ts RANGE BETWEEN INTERVAL 10 SECONDS PRECEDING AND CURRENT ROW)"
GOLDEN = {
    "mean": f"SELECT count(*), sum(floor(x)) FROM (SELECT avg(value) {_OVER} AS x FROM readings)",
    "top": "SELECT sum(len(x)), sum(list_sum(x)) FROM "
    f"(SELECT list_slice(list_reverse_sort(list(value) {_OVER}), 1, 3) AS x FROM readings)",
}


def on_spark(sizes: Sizes, tell: Tell = lambda _: None) -> Finding:
    found = Finding(
        "on_spark",
        "the last 10 s of each of 1,000 sensors, on Spark",
        "",
        ("aggregate", "written", "rows/s", "rows/CPU s", "CPU s", "JVM", "ratio"),
    )
    with tempfile.TemporaryDirectory(prefix="millstream-readings-", ignore_cleanup_errors=True) as name:
        tell("writing readings")
        data = write(Path(name), sizes.readings, sizes.readings_per_file)
        for what, calls in CALLS.items():
            wanted = golden(data, what)
            measured: dict[str, Measurement] = {}
            tell(f"{TITLES[what]}, {BY_HAND}")
            measured[BY_HAND] = by_hand(data, what, sizes)
            for way, call in calls.items():
                tell(f"{TITLES[what]}, {way}")
                measured[way] = millstream(data, what, call, sizes)
            for way, one in measured.items():
                if one.answers != wanted:
                    raise WrongAnswer(f"{TITLES[what]}, {way}: {one.answers}, DuckDB {wanted}")
            _add(found, what, measured)
    return found


def millstream(data: ReadingFiles, what: str, call: str, sizes: Sizes) -> Measurement:
    task = mill.Task(call, what, [str(path) for path in data.paths()], sizes.files_per_batch, CORES)
    return measure(mill.__name__, asdict(task), warm_up=sizes.warm_up)


def by_hand(data: ReadingFiles, what: str, sizes: Sizes) -> Measurement:
    task = native.Task(what, str(data.folder), sizes.files_per_batch, CORES)
    return measure(native.__name__, asdict(task), warm_up=sizes.warm_up)


def golden(data: ReadingFiles, what: str) -> dict[str, int]:
    """The answers of DuckDB, over all files at once."""
    import duckdb

    names = ", ".join(f"'{path}'" for path in data.paths())
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW readings AS FROM read_parquet([{names}])")
        row = connection.execute(GOLDEN[what]).fetchone()
    assert row is not None
    return {"rows": int(row[0]), what: int(row[1])}


def _add(found: Finding, what: str, measured: dict[str, Measurement]) -> None:
    slow = measured[BY_HAND].rows_per_cpu_s
    for way, one in measured.items():
        total = sum(one.cpu_s.values())
        times = one.rows_per_cpu_s / slow
        jvm = f"{one.cpu_s.get('jvm', 0.0) / total:.0%}"
        found.rows.append((TITLES[what], way, round(one.rows_per_s), round(one.rows_per_cpu_s), total, jvm, times))
        found.numbers[f"{what}, {way}"] = {
            "rows_per_cpu_s": one.rows_per_cpu_s, "rows_per_s": one.rows_per_s, "cpu_s": one.cpu_s, "ratio": times
        }  # fmt: skip
    rows, total_of = measured[BY_HAND].answers.values()
    found.notes.append(f"{TITLES[what]}: answers equal DuckDB's, {rows:,} rows with a sum of {total_of:,}")
