"""Joins that purge, measured on tiny streams: the streams are what they say, the answers agree, everything is shown."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from millstream.algebra.schema import TS
from millstream.control.mill import LocalMill
from millstream.errors import OptionError
from millstream_bench.joins import drive, streams
from millstream_bench.joins import run as bench
from millstream_bench.joins.on_disk import KINDS, perform
from millstream_bench.joins.open import mill as open_mill
from millstream_bench.joins.open import run as open_auctions
from millstream_bench.joins.open.auctions import tables, write
from millstream_bench.joins.several import Case, cases, with_droppable
from millstream_bench.joins.sizes import FULL, QUICK
from millstream_bench.joins.trees import named, planted, run_tree, shapes, together, written
from millstream_bench.spark.measurement import Batch, Measurement
from tests.tries import sometimes

PARTS = {name: name for name in bench.EXPERIMENTS if name not in ("several", "on_disk")}


class TestStreams:
    @pytest.mark.parametrize("made", [streams.in_step(5000, 10, width=20), streams.apart(5000, (10, 30), width=20)])
    def test_they_keep_their_promises(self, made: list[streams.Punctuated]) -> None:
        for own in made:
            times, keys = (own.rows[name].to_numpy() for name in (TS, "k"))
            assert (np.diff(times) >= 0).all() and (np.diff(own.closed_at) >= 0).all()
            shut = np.full(keys.max() + 1, np.iinfo(np.int64).max)
            shut[own.closed[own.closed <= keys.max()]] = own.closed_at[own.closed <= keys.max()]
            assert (times <= shut[keys]).all()

    def test_rates(self) -> None:
        made = streams.in_step(50_000, 10, width=20)
        assert [len(own.closed) / 5000 for own in made] == pytest.approx([1, 1], abs=0.1)
        assert made[0].end / (50_000 * streams.GAP) == pytest.approx(1, abs=0.05)

    def test_steps_have_everything_once(self) -> None:
        made = streams.in_step(3000, 10, width=20)
        cut = streams.steps(made, 100 * streams.GAP, punctuated=[True, False], timed=True)
        for number, own in enumerate(made):
            rows = [step[number].rows for step in cut]
            assert pl.concat([part for part in rows if part is not None]).equals(own.rows)
            for step in cut:
                found = step[number].rows
                assert found is None or found[TS].max() < step[number].bound  # type: ignore[operator]
        told = [len(step[0].punctuations) for step in cut if step[0].punctuations is not None]
        assert sum(told) == (made[0].closed_at < len(cut) * 100 * streams.GAP).sum()
        assert all(step[1].punctuations is None for step in cut)


class TestAnswers:
    def test_the_plain_join_is_that_of_polars(self) -> None:
        made = streams.in_step(2000, 10, width=20)
        trace = drive.run(drive.plain(), streams.steps(made, 100 * streams.GAP, punctuated=False))
        pairs = made[0].rows.rename({"v": "a.v"}).join(made[1].rows.rename({"v": "b.v"}), on="k")
        assert trace.answer == (pairs.height, drive.product_sum(pairs)) and trace.state[-1] == 4000

    def test_the_plain_window_join_is_that_of_polars(self) -> None:
        made = streams.in_step(2000, 10, width=20)
        window = 50 * streams.GAP
        trace = drive.run(drive.plain(window), streams.steps(made, 100 * streams.GAP, timed=True))
        pairs = made[0].rows.rename({"v": "a.v"}).join(made[1].rows.rename({"v": "b.v"}), on="k")
        near = pairs.filter((pl.col(TS) - pl.col(f"{TS}_right")).abs() <= window)
        assert trace.answer == (near.height, drive.product_sum(near)) and near.height < pairs.height

    def test_other_answers_are_refused(self) -> None:
        with pytest.raises(drive.WrongAnswer, match="the answers differ"):
            drive.same("x", {"a": drive.Trace(results=[1]), "b": drive.Trace(results=[2])})

    def test_purging_loses_nothing_and_keeps_little(self) -> None:
        made = streams.in_step(20_000, 10, width=20)
        aware, unaware = (
            drive.run(drive.pjoin(), streams.steps(made, 500 * streams.GAP, punctuated=heard))
            for heard in (True, False)
        )
        drive.same("x", {"aware": aware, "unaware": unaware})
        assert unaware.state[-1] == 40_000 and max(aware.state) < 1_000


class TestSeveral:
    def test_trees(self) -> None:
        assert [written(shape) for shape in shapes(3)] == ["(0 ⋈ 1) ⋈ 2", "(1 ⋈ 2) ⋈ 0"]
        assert len(planted(shapes(4)[-1], 5).joins) == 3

    @pytest.mark.parametrize("count", [3, 4])
    def test_one_operator_and_all_trees_agree(self, count: int) -> None:
        made = streams.in_step(300, 5, width=10, streams=count)
        cut = [named(step) for step in streams.steps(made, 30 * streams.GAP, timed=True)]
        window = 60 * streams.GAP
        traces = {written(shape): run_tree(shape, window, cut) for shape in shapes(count)}
        traces["one operator"] = drive.run(together(count, window), cut)
        rows, _ = drive.same("x", traces)
        assert rows > 100

    def test_droppable_tuples(self) -> None:
        made, share = with_droppable(Case(4, 5, 100, 20, droppable=True))
        assert share == pytest.approx(0.4, abs=0.02)
        first, *others = made
        last = dict(first.rows.group_by("k").agg(pl.col(TS).max()).iter_rows())
        shut = dict(zip(first.closed.tolist(), first.closed_at.tolist(), strict=True))
        gone = 0
        for own in others:
            for key, _, at in own.rows.iter_rows():
                gone += key in shut and at >= shut[key] and at > last.get(key, -(1 << 62)) + 10_000_000
        assert gone / (4 * first.rows.height) == pytest.approx(share, abs=0.02)

    def test_cases_have_names_of_their_own(self) -> None:
        assert len({case.name for case in cases(FULL)}) == len(cases(FULL)) == 8


@pytest.mark.parametrize("kind", KINDS)
def test_on_disk(kind: str) -> None:
    limited, free = perform(kind, 3_000, 100_000), perform(kind, 3_000, 0)
    assert limited["answer"] == free["answer"] and limited["held"] >= 2_500
    assert limited["memory"] < 200_000 < free["memory"]


class TestOpenAuctions:
    def test_the_data_are_what_they_say(self) -> None:
        frames, longest = tables(100_000)
        bids = frames["bid"].join(frames["auction"], left_on="auction", right_on="id", suffix="_opened")
        assert bids.height == frames["bid"].height and longest <= 120_000_000
        life = bids["ts"] - bids["ts_opened"]
        assert (life >= 0).all() and (life <= longest).all()
        closed = bids.join(frames["closed"], left_on="auction", right_on="id", suffix="_closed")
        assert (closed["ts"] < closed["ts_closed"]).all()

    def test_files_and_answers(self, tmp_path: Path) -> None:
        data = write(tmp_path, 60_000, 20_000)
        frames, _ = tables(60_000)
        for stream, frame in frames.items():
            read = [pl.read_parquet(path) for path in data.paths(stream)]
            assert sum(part.height for part in read) == frame.height and len(read) == 3
            assert all(a["ts"].max() < b["ts"].min() for a, b in pairwise(read))  # type: ignore[operator]
        assert open_auctions.golden(data)["rows"] == frames["bid"].height
        assert data.first(1).glob() == "{part-00000.parquet}"

    def test_the_query_is_understood_and_bounded(self, tmp_path: Path) -> None:
        mill = LocalMill()
        for statement in open_mill.statements(dict.fromkeys(open_mill.STREAMS, tmp_path), 2):
            mill.execute(statement)
        said = mill.execute(f"EXPLAIN CONTRACT {open_mill.QUERY}")
        assert said.endswith("contract: bounded")

    def test_what_is_reported(self, tmp_path: Path) -> None:
        data = write(tmp_path, 30_000, 10_000)
        batches = [Batch(10, float(t), t + 1.0, state) for t, state in enumerate((5, 6, 7, 8))]
        fast, slow = (Measurement(20, 2.0, {"jvm": cpu}, {"rows": 3}, batches) for cpu in (1.0, 3.0))
        made = open_auctions.finding(data, {"Millstream": fast, "Spark": slow}, {"rows": 3}, 2)
        assert made.numbers["ratio"] == pytest.approx(3) and made.numbers["state_ratio"] == 1
        assert made.curves["Spark"]["state"] == [5, 6, 7, 8]


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    out = tmp_path_factory.mktemp("joins")
    return out, bench.run(out=out, names=list(PARTS), quick=True, spark=False)


@sometimes(3, 5)
@pytest.mark.xdist_group("joins")  # they share a run
class TestRun:
    def test_everything_is_shown(self, quick: tuple[Path, dict[str, Any]]) -> None:
        out, made = quick
        assert list(made) == list(PARTS) and made == json.loads((out / "joins.json").read_text())
        for finding in made.values():
            assert finding["rows"] and all(len(row) == len(finding["columns"]) for row in finding["rows"])
        for name in ("state", "purging", "windows", "intervals"):
            assert (out / f"joins_{name}.png").stat().st_size > 1000

    def test_state_follows_punctuation(self, quick: tuple[Path, dict[str, Any]]) -> None:
        _, made = quick
        assert made["growth"]["numbers"]["state_share"] < 0.2
        by_rate = [row[1] for row in made["state_by_rate"]["rows"]]
        assert by_rate == sorted(by_rate)
        lazy = [row[1] for row in made["thresholds"]["rows"]]
        assert lazy == sorted(lazy)
        delays = list(made["early_punctuation"]["numbers"].values())
        assert delays[0] < delays[1]

    def test_unknown_experiments_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(OptionError, match="unknown experiment 'grwth'"):
            bench.run(out=tmp_path, names=["grwth"])

    def test_quick_is_small(self) -> None:
        assert QUICK.long * 10 < FULL.long and QUICK.events * 10 < FULL.events
