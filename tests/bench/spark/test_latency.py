"""Latency of windows: the producer's account, what counts as late, and a whole run with a process that only counts."""

import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from millstream_bench.spark.arrivals import WINDOW, Drops, produce
from millstream_bench.spark.latency import run as latency
from millstream_bench.spark.throughput.contest import WrongAnswer


def test_from_the_completing_arrival() -> None:
    drops = Drops([99, 199, 299, 399], [105_000, 205_000, 305_000, 405_000], Counter({100: 5, 200: 5, 300: 5}))
    outputs = [
        {"at": 0.3, "rows": [[100, 105_000, 5], [200, 205_000, 2]]},
        {"at": 0.4, "rows": [[200, 204_000, 3]]},
    ]
    found = latency.percentiles(outputs, drops, 0, 1, stopped=0.505)
    assert found["windows"] == 3 and found["missing"] == 1
    # 100 was complete at 205 ms and came at 300; 200 at 305 and 400; 300 at 405 and never, so at the end
    assert found["latency_ms"] == pytest.approx(95) and found["latency_p95_ms"] == pytest.approx(99.5)
    assert found["age_ms"] == pytest.approx(195)


def test_more_rows_than_there_are() -> None:
    drops = Drops([99, 199], [105_000, 205_000], Counter({100: 5}))
    with pytest.raises(WrongAnswer):
        latency.percentiles([{"at": 0.3, "rows": [[100, 105_000, 6]]}], drops, 0, 1, 1)


def test_nothing_to_report() -> None:
    assert latency.percentiles([], Drops(), 0, 1, 1)["latency_ms"] is None


def test_producer(tmp_path: Path) -> None:
    for folder in ("in", "making"):
        (tmp_path / folder).mkdir()
    drops = Drops()
    start, end = produce(tmp_path, 1000, 0.5, drops)
    rows = pl.read_parquet(sorted((tmp_path / "in").glob("*.parquet")))
    assert rows.height == 500 == drops.windows.total()
    assert rows["ts"].is_sorted() and end - start >= 0.5
    ends = rows["ts"].to_physical() // WINDOW * WINDOW + WINDOW
    assert dict(drops.windows) == Counter(ends.to_list())
    assert (rows["arrived"] > rows["ts"].to_physical()).all()


def test_a_process_that_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "counting_in_test.py").write_text(COUNTING)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(latency, "_TAIL", 0.8)
    contestant = latency.SparkLatency("fake", "counting_in_test")
    target = tmp_path / "latency.json"
    latency.run(out=tmp_path, contestants=[contestant], rates=(500,), seconds=1.2, settle=0.3, rounds=1)
    (made,) = json.loads(target.read_text())
    assert made["name"] == "fake" and made["rows_per_s"] == 500
    assert made["windows"] >= 2 and made["missing"] == 0
    assert 0 <= made["latency_ms"] <= made["latency_p95_ms"]


COUNTING = f"""
import json, sys, time
from collections import Counter
from pathlib import Path
import polars as pl
folder, output, stop = map(Path, sys.argv[1:])
seen, open_windows, newest = set(), Counter(), 0
with output.open("w", buffering=1) as sink:
    while not stop.exists():
        for path in sorted(set(folder.glob("*.parquet")) - seen):
            seen.add(path)
            rows = pl.read_parquet(path)
            open_windows.update((rows["ts"].to_physical() // {WINDOW} * {WINDOW} + {WINDOW}).to_list())
            newest = rows["ts"].to_physical()[-1]
            done = [end for end in open_windows if end <= newest]
            made = [[end, rows["arrived"][0], open_windows.pop(end)] for end in done]
            sink.write(json.dumps({{"at": time.time(), "rows": made}}) + "\\n")
        time.sleep(0.02)
"""
