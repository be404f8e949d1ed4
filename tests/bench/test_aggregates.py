"""The benchmark of aggregates on tiny streams: answers are checked, panes hold little, everything is shown."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from millstream_bench.aggregates import drive, run
from millstream_bench.aggregates.denoising import ALGORITHMS, readings, simulated
from millstream_bench.aggregates.sizes import FULL, QUICK
from millstream_bench.aggregates.spark import by_hand, contest, peers
from millstream_bench.aggregates.spark.readings import table, write
from millstream_bench.spark.measurement import Measurement
from millstream_bench.suite.report import Finding
from tests.tries import sometimes


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("aggregates")
    return out, run.run(out=out, quick=True, spark=False)


@sometimes(0, 5)
@pytest.mark.xdist_group("aggregates")  # they share a run
class TestRun:
    def test_everything_is_shown(self, quick: tuple[Path, dict[str, Any]]) -> None:
        out, made = quick
        assert list(made) == list(run.EXPERIMENTS) and made == json.loads((out / "aggregates.json").read_text())
        for finding in made.values():
            assert finding["rows"] and all(len(row) == len(finding["columns"]) for row in finding["rows"])
        for name in ("delta", "slides", "bodies", "denoise"):
            assert (out / f"aggregates_{name}.png").stat().st_size > 1000

    def test_panes_hold_less_than_tuples(self, quick: tuple[Path, dict[str, Any]]) -> None:
        panes, tuples = quick[1]["slides"]["numbers"]["100"]["held"]
        assert panes <= 5 and tuples >= QUICK.slide_window - 1

    def test_noise_delays_eager_readings(self, quick: tuple[Path, dict[str, Any]]) -> None:
        """Delays are event time for the most part."""
        rows = quick[1]["denoise_noise"]["rows"]
        eager, lazy, unordered = ([row[column] for row in rows] for column in (3, 4, 5))
        assert all(a < b for a, b in zip(eager, lazy, strict=True)) and max(unordered) < min(eager)
        assert eager == sorted(eager)


def test_wrong_results_are_refused() -> None:
    with pytest.raises(drive.WrongAnswer, match="x: the results are not those of DuckDB"):
        drive.check("x", pl.Series([1.0, 2.0]), pl.Series([1.0, 2.1, 3.0]))


def test_the_fill_is_not_timed() -> None:
    rows = drive.bids(1_000, 10)
    trace = drive.run(drive.running("SUM(price)", "ROWS 9 PRECEDING"), rows, skip=900)
    assert trace.tuples == 100 and len(trace.results) == 1_000
    assert trace.results.to_list() == pytest.approx(rows["price"].rolling_sum(10, min_samples=1).to_list())


@pytest.mark.parametrize("name", ALGORITHMS)
def test_denoising_keeps_tags_and_drops_noise(name: str) -> None:
    times, tags = readings(5, 6, 0.2)
    found = simulated(ALGORITHMS[name](), times, tags)
    assert 0 < len(found.emitted) < len(times) and all(tag < 1 << 40 for _, tag in found.emitted)


class Stored:
    """A list in a state store, by key."""

    def __init__(self, held: list[Any]) -> None:
        self.held = held

    def get(self) -> list[Any]:
        return list(self.held)

    def put(self, values: list[Any]) -> None:
        self.held[:] = values


def _processed(processor: Any, groups: dict[Any, pl.DataFrame], held: dict[Any, list[Any]]) -> pl.DataFrame:
    """The rows that a processor emits for a batch, as Spark calls it."""
    found = []
    for key, rows in groups.items():
        made = processor()
        made.window = Stored(held.setdefault(key, []))
        found += [pl.from_pandas(part) for part in made.handleInputRows(key, iter([rows.to_pandas()]), None)]
    return pl.concat(found)


class TestOnSpark:
    def test_the_answers_of_duckdb_are_those_by_hand(self, tmp_path: Path) -> None:
        data = write(tmp_path, 3_000, 1_000)
        parts = [pl.read_parquet(path) for path in data.paths()]
        assert sum(part.height for part in parts) == 3_000
        for what, processor in (("mean", by_hand.WindowMean), ("top", by_hand.WindowTop)):
            held: dict[Any, list[Any]] = {}
            batches = [part.partition_by("sensor", as_dict=True) for part in parts]
            found = pl.concat(_processed(processor, groups, held) for groups in batches)
            found = found.with_columns(pl.col(what).floor().cast(pl.Int64))
            assert contest.golden(data, what) == {"rows": found.height, what: found[what].sum()}

    def test_readings_are_a_tenth_of_a_second_apart(self) -> None:
        rows = table(5_000)
        assert rows["ts"].is_sorted() and rows.select("sensor", "ts").is_unique().all()
        assert rows.filter(sensor=7).height == 5

    def test_peers_are_compared_with_flink(self) -> None:
        made = Finding("x", "x", "", tuple("abcdef"))
        peers._add(made, peers.FLINK, 100, 10.0, 20.0)
        peers._add(made, "Millstream", 100, 5.0, 60.0)
        assert made.rows[1] == ("Millstream", 20, 5.0, 60, 2.0, 3.0)

    def test_what_is_reported(self) -> None:
        made = Finding("x", "x", "", tuple("abcdefg"))
        slow, fast = (Measurement(20, 2.0, {"jvm": cpu}, {"rows": 3, "mean": 4}) for cpu in (10.0, 1.0))
        contest._add(made, "mean", {contest.BY_HAND: slow, "built-in": fast})
        assert made.numbers["mean, built-in"]["ratio"] == pytest.approx(10)
        assert len(made.rows[0]) == len(made.columns)


def test_quick_is_small() -> None:
    assert QUICK.columns * 10 < FULL.columns and QUICK.readings * 10 < FULL.readings
