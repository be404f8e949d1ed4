"""The benchmark of feedback on tiny streams: answers are checked, the savings are there, everything is shown."""

from dataclasses import asdict, replace
from pathlib import Path

import polars as pl
import pytest

from millstream_bench.feedback import data, page
from millstream_bench.feedback.levels import levels
from millstream_bench.feedback.overhead import SAME, interval, overhead
from millstream_bench.feedback.plots import draw_all
from millstream_bench.feedback.queries import OVERHEAD
from millstream_bench.feedback.resources import resources
from millstream_bench.feedback.run import EXPERIMENTS, ON_SPARK
from millstream_bench.feedback.sending import sending
from millstream_bench.feedback.sizes import QUICK
from millstream_bench.feedback.utility import useful, utility
from millstream_bench.suite.report import Finding
from tests.tries import sometimes

TINY = replace(
    QUICK,
    broad_hours=2,
    broad_minutes=60,
    hours=2,
    pairs=1,
    steady_hours=1,
    chains=(1, 2),
    messages=40,
    chain_rounds=1,
    minutes=4,
    budget=300,
    loops=1,
)


@pytest.fixture(scope="module")
def findings() -> dict[str, Finding]:
    return {made.name: made for made in (run(TINY) for run in (overhead, sending, utility, levels, resources))}


@sometimes(1, 5)
@pytest.mark.xdist_group("feedback bench")  # they share a run
class TestRun:
    def test_everything_is_shown(self, findings: dict[str, Finding], tmp_path: Path) -> None:
        assert {*findings} == {*EXPERIMENTS}
        assert {*page.WRITERS} == {*EXPERIMENTS, *ON_SPARK}
        written = page.sections({name: asdict(made) | {"sizes": asdict(TINY)} for name, made in findings.items()})
        assert {*written} == {*EXPERIMENTS} and all("|---|" in text for text in written.values())
        assert [path.stem for path in draw_all(findings, tmp_path)] == [f"feedback_{name}" for name in EXPERIMENTS]
        assert all(path.stat().st_size > 1000 for path in tmp_path.glob("*.png"))
        apart = draw_all({"levels_on_spark": findings["levels"]}, tmp_path)
        assert [path.stem for path in apart] == ["feedback_levels_on_spark"]  # that in process is still there

    def test_feedback_makes_less_work_more_useful(self, findings: dict[str, Finding]) -> None:
        union, paced, told = (findings["utility"].numbers[row[0]] for row in findings["utility"].rows)
        assert union["useful"] < paced["useful"] == told["useful"] == 1
        assert told["worked"] < paced["worked"] == union["worked"] and paced["estimated"] < told["estimated"]
        assert 0.5 < findings["utility"].numbers["avoided"] <= findings["utility"].numbers["avoidable"]

    def test_what_is_disclaimed_is_not_read(self, findings: dict[str, Finding]) -> None:
        none, *_, source = findings["levels"].rows
        assert none[1] == 54_000 and source[1] < none[1] and source[4] < none[4]
        assert all(numbers["tuples"]["on"] < numbers["tuples"]["off"] / 20
                   for numbers in findings["resources"].numbers.values())  # fmt: skip

    def test_the_copy_without_feedback_computes_the_same(self, findings: dict[str, Finding]) -> None:
        made = findings["overhead"]
        assert [row[1] for row in made.rows] == [SAME] * 3 and {*made.numbers} == {*OVERHEAD}


def test_the_data() -> None:
    sensors, dirty, probes = data.sensors(1), data.sensors(1, dirty=True), data.probes(1)
    assert (sensors.height, probes.height, data.locations().height) == (27_000, 600, 150)
    assert sensors["ts"].is_sorted() and probes["ts"].is_sorted()
    assert (dirty["speed"] == -1).sum() == 13_500 and (sensors["speed"] < 0).sum() == 0


def test_the_interval_of_a_median() -> None:
    assert interval([3.0, 1.0, 2.0]) == (1.0, 3.0) and interval([float(n) for n in range(20)]) == (5.0, 14.0)


def test_rows_that_are_of_use() -> None:
    times = data.START + pl.Series([0, 400, 100, 99]) * pl.duration(seconds=1)
    assert useful(pl.select(times).to_series()) == 3
