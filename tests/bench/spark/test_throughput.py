"""The contest with Spark, without a JVM: its events, what it measures, and how it judges."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from millstream.errors import OptionError
from millstream_bench.spark.measurement import Batch, Measurement, RunOptions
from millstream_bench.spark.subject import SubjectFailed, measure
from millstream_bench.spark.throughput import native
from millstream_bench.spark.throughput.contest import WrongAnswer, compete
from millstream_bench.spark.throughput.data import EventFiles, prepare
from millstream_bench.spark.throughput.golden import Golden, golden
from millstream_bench.spark.throughput.run import run
from millstream_bench.spark.throughput.workloads import W1, W2, Workload, named

EVENTS, PER_FILE = 400_000, 50_000
"""Forty seconds in eight files."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> EventFiles:
    return prepare(tmp_path_factory.mktemp("events"), EVENTS, events_per_file=PER_FILE)


class TestData:
    def test_proportions(self, data: EventFiles) -> None:
        rounds = EVENTS // 50
        assert [data.rows(stream) for stream in ("person", "auction", "bid")] == [rounds, 3 * rounds, 46 * rounds]
        bids = pl.read_parquet(data.paths("bid"))
        hot = bids.filter((pl.col("auction") - 1000) % 100 == 0).height / bids.height
        assert 0.5 < hot < 0.53
        assert bids["price"].is_between(100, 100_000_000).all()
        assert bids.schema["ts"] == pl.Datetime("us")

    def test_files_cover_the_same_events(self, data: EventFiles) -> None:
        seconds = PER_FILE / 10_000
        start = pl.read_parquet(data.paths("person")[0])["ts"][0]
        for index, paths in enumerate(zip(data.paths("bid"), data.paths("auction"), data.paths("person"), strict=True)):
            for path in paths:
                times = pl.read_parquet(path)["ts"]
                assert times.is_sorted()
                since = [(time - start).total_seconds() for time in (times[0], times[-1])]
                assert index * seconds <= since[0] < since[1] < (index + 1) * seconds
            assert len({path.stat().st_mtime for path in paths}) == 1
        ages = [path.stat().st_mtime for path in [*data.paths("bid"), data.closing("bid")]]
        assert ages == sorted(set(ages))

    def test_identifiers_and_references(self, data: EventFiles) -> None:
        auctions = pl.read_parquet(data.paths("auction"))
        assert auctions["id"].to_list() == list(range(1000, 1000 + auctions.height))
        bids = pl.read_parquet(data.paths("bid"))
        assert bids["auction"].is_between(1000, 1000 + auctions.height + 10).all()
        assert (auctions["expires"] > auctions["ts"]).all()

    def test_the_same_every_time_and_a_short_stream_is_the_start_of_a_long_one(
        self, data: EventFiles, tmp_path: Path
    ) -> None:
        again = prepare(tmp_path, 2 * PER_FILE, events_per_file=PER_FILE)
        other = prepare(tmp_path, PER_FILE, events_per_file=PER_FILE, seed=7)
        for stream in ("person", "auction", "bid"):
            wanted = pl.read_parquet(data.first(2).paths(stream))
            assert pl.read_parquet(again.paths(stream)).equals(wanted)
            if stream != "person":
                assert not pl.read_parquet(other.paths(stream)).equals(wanted.head(other.rows(stream)))

    def test_closing_rows_come_last_and_match_nothing(self, data: EventFiles) -> None:
        bid, auction = (pl.read_parquet(data.closing(stream)) for stream in ("bid", "auction"))
        assert bid.height == auction.height == 1
        assert bid["auction"][0] != auction["id"][0] and max(bid["auction"][0], auction["id"][0]) < 1000
        last = pl.read_parquet(data.paths("bid")[-1])["ts"][-1]
        assert (bid["ts"][0] - last).total_seconds() >= 3600

    def test_written_once_and_again_if_incomplete(self, tmp_path: Path) -> None:
        told: list[tuple[int, int]] = []

        def write() -> EventFiles:
            return prepare(tmp_path, 3000, events_per_file=1000, progress=lambda *at: told.append(at))

        written = write()
        assert told == [(1, 3), (2, 3), (3, 3)]
        write()
        assert len(told) == 3
        (written.folder / "complete.json").unlink()
        write()
        assert len(told) == 6

    def test_names_of_the_first_files(self, data: EventFiles) -> None:
        assert data.glob() == "*.parquet"
        assert data.first(2).glob() == "{part-00000.parquet,part-00001.parquet,closing.parquet}"
        assert data.first(2).events == 2 * PER_FILE

    def test_odd_sizes_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(OptionError):
            prepare(tmp_path, 100, events_per_file=75)


def test_golden_answers_are_those_of_polars(data: EventFiles) -> None:
    bids, auctions = (pl.read_parquet(data.paths(stream)) for stream in ("bid", "auction"))
    windows = bids.group_by(pl.col("ts").dt.truncate("10s"), "auction").agg(
        pl.len().alias("count"), pl.col("price").max().alias("max"), pl.col("price").sum().alias("sum")
    )
    found = golden(W1, data)
    assert found.answers == {"rows": windows.height} | {name: windows[name].sum() for name in ("count", "max", "sum")}
    assert found.rows == bids.height and found.cpu_s > 0
    pairs = bids.join(auctions, left_on="auction", right_on="id").filter(
        (pl.col("ts") - pl.col("ts_right")).is_between(pl.duration(seconds=0), pl.duration(seconds=10))
    )
    wanted = {"rows": pairs.height, "price": pairs["price"].sum(), "category": pairs["category"].sum()}
    assert golden(W2, data).answers == wanted


def test_unknown_workload() -> None:
    with pytest.raises(OptionError, match="unknown workload 'w9'"):
        named("w9")


GOLDEN = Golden(7000, {"rows": 7, "count": 70, "max": 3, "sum": 9}, 0.5, 1.0)


class Fake:
    def __init__(self, name: str, cpu_s: float, log: list[str] | None = None, **wrong: int) -> None:
        self.name, self._cpu_s, self._log, self._wrong = name, cpu_s, log, wrong

    def run(self, workload: Workload, data: EventFiles, options: RunOptions) -> Measurement:
        if self._log is not None:
            self._log.append(self.name)
        batches = [Batch(1000, float(n), n + 1.0, 10 * n, self._cpu_s / 2) for n in range(4)] + [Batch(1, 4.0, 4.1, 1)]
        cpu_s = {"driver": 0.1 * self._cpu_s, "jvm": 0.9 * self._cpu_s}
        return Measurement(2000, 2.0, cpu_s, GOLDEN.answers | self._wrong, batches, "default store")


class TestContest:
    OPTIONS = RunOptions(warm_up=2)

    def test_ratio_and_json(self, data: EventFiles) -> None:
        contestants = [Fake("millstream", 1.0), Fake("spark, RocksDB", 4.0), Fake("spark, default store", 2.0)]
        made = compete(W1, data, contestants, GOLDEN, self.OPTIONS).to_json()
        assert made["name"] == "w1"
        assert made["ratio"] == pytest.approx(2.0)
        assert made["millstream_rows_per_cpu_s"] == pytest.approx(2000)
        assert made["spark_rows_per_cpu_s"] == pytest.approx(1000)
        assert made["duckdb_rows_per_cpu_s"] == 7000 and made["duckdb_rows_per_s"] == 14000
        assert made["answers"] == GOLDEN.answers
        assert set(made["contestants"]) == {contestant.name for contestant in contestants}
        json.dumps(made)

    def test_spark_alone_has_no_ratio(self, data: EventFiles) -> None:
        made = compete(W1, data, [Fake("spark", 1.0)], GOLDEN, self.OPTIONS).to_json()
        assert made["ratio"] is None and made["millstream_rows_per_cpu_s"] is None

    def test_wrong_answers_are_refused(self, data: EventFiles) -> None:
        with pytest.raises(WrongAnswer, match="w1, millstream: wrong answers: max 4, not 3"):
            compete(W1, data, [Fake("millstream", 0.1, max=4)], GOLDEN, self.OPTIONS)

    def test_missing_answers_are_refused(self, data: EventFiles) -> None:
        class Silent(Fake):
            def run(self, workload: Workload, data: EventFiles, options: RunOptions) -> Measurement:
                return replace(super().run(workload, data, options), answers={})

        with pytest.raises(WrongAnswer, match="rows None, not 7"):
            compete(W1, data, [Silent("millstream", 0.1)], GOLDEN, self.OPTIONS)

    def test_by_turns(self, data: EventFiles) -> None:
        log: list[str] = []
        result = compete(
            W1, data, [Fake("millstream", 1.0, log), Fake("spark", 1.0, log)], GOLDEN, self.OPTIONS, rounds=3
        )
        assert log == ["millstream", "spark", "spark", "millstream", "millstream", "spark"]
        assert [len(measurements) for measurements in result.rounds.values()] == [3, 3]

    def test_nothing_left_after_the_warm_up(self, data: EventFiles) -> None:
        with pytest.raises(OptionError, match="leaves nothing to measure"):
            compete(W1, data, [], GOLDEN, RunOptions(warm_up=4))

    def test_command(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        pytest.importorskip("matplotlib")
        small = partial(prepare, events_per_file=PER_FILE)
        monkeypatch.setattr("millstream_bench.spark.throughput.run.prepare", small)
        monkeypatch.setattr("millstream_bench.spark.throughput.run.golden", lambda *_, **__: GOLDEN)
        contestants = [Fake("millstream", 1.0), Fake("spark", 3.0)]
        target = tmp_path / "deep" / "result.json"
        run(["w1"], json_file=target, out=tmp_path, data=tmp_path, events=200_000, warm_up=1, contestants=contestants)
        (made,) = json.loads(target.read_text())
        assert made["name"] == "w1" and made["ratio"] == pytest.approx(3.0) and made["events"] == 200_000
        assert {path.name for path in tmp_path.glob("*.png")} == {"spark_throughput.png", "spark_state.png"}
        assert "3.00 × Spark's" in capsys.readouterr().out


class TestSubject:
    """A process that is measured from outside."""

    @pytest.fixture
    def module(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))

        def make(text: str) -> str:
            (tmp_path / "subject_in_test.py").write_text(text)
            return "subject_in_test"

        return make

    def test_steady_state(self, module: Callable[[str], str]) -> None:
        name = module(
            "import json, sys, time\n"
            "task = json.load(open(sys.argv[1]))\n"
            "batches = []\n"
            "for number in range(4):\n"
            "    started, spent = time.time(), time.process_time()\n"
            "    while time.process_time() - spent < 0.2: pass\n"
            "    batch = {'rows': task['rows'], 'started': started, 'ended': time.time(), 'state_rows': number}\n"
            "    batches.append(batch)\n"
            "batches.append({'rows': 1, 'started': time.time(), 'ended': time.time(), 'state_rows': 0})\n"
            "json.dump({'answers': {'rows': 5}, 'batches': batches}, open(sys.argv[2], 'w'))\n"
        )
        found = measure(name, {"rows": 100}, warm_up=2, note="x")
        assert found.rows == 200 and found.answers == {"rows": 5} and found.note == "x"
        assert 0.1 < sum(found.cpu_s.values()) < 1.2
        assert [batch.state_rows for batch in found.batches] == [0, 1, 2, 3, 0]

    def test_a_failure_is_told(self, module: Callable[[str], str]) -> None:
        with pytest.raises(SubjectFailed, match="no such luck"):
            measure(module("raise SystemExit('no such luck')"), {}, warm_up=0)


class TestSparkSide:
    def test_answers_are_summed_over_batches(self) -> None:
        progress: list[dict[str, Any]] = [
            {"observedMetrics": {"answers": {"rows": 2, "max": 7}}},
            {"observedMetrics": {"answers": {"rows": 0, "max": None}}},
            {"observedMetrics": {}},
            {"observedMetrics": {"answers": {"rows": 1, "max": 5}}},
        ]
        assert native._answers(progress, ["rows", "max"]) == {"rows": 3, "max": 12}

    def test_batch(self) -> None:
        report = {
            "timestamp": "2026-01-01T00:00:00.500Z",
            "numInputRows": 9,
            "durationMs": {"triggerExecution": 250},
            "stateOperators": [{"numRowsTotal": 3}, {"numRowsTotal": 4}],
        }
        assert native._batch(report) == {
            "rows": 9, "started": 1767225600.5, "ended": 1767225600.75, "state_rows": 7,
        }  # fmt: skip

    @pytest.mark.parametrize("slower", [2.0, 5.0])
    def test_the_faster_store_counts(self, data: EventFiles, monkeypatch: pytest.MonkeyPatch, slower: float) -> None:
        log: list[tuple[str, int]] = []

        def fake(self: native.SparkOperators, workload: Workload, data: EventFiles, options: RunOptions) -> Measurement:
            log.append((self.store, data.files))
            return Measurement(100, 1.0, {"jvm": 1.0 if self.store == "RocksDB" else slower}, {}, note=self.store)

        monkeypatch.setattr(native.SparkOperators, "run", fake)
        contestant = native.FasterStore(files=4)
        for _ in range(2):
            assert contestant.run(W1, data, RunOptions(warm_up=2)).note == "RocksDB"
        whole = [("RocksDB", 8)] if slower > native.CLOSE else [("default store", 8), ("RocksDB", 8)]
        assert log == [("default store", 4), ("RocksDB", 4), *whole, *whole]
