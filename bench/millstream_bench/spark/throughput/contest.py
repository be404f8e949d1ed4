"""Run the contestants by turns over the same files, refuse wrong answers, and compare the rest.

Every round runs all contestants, every other one in the opposite order. A contestant's figure is the median over the
rounds; `ratio` is Millstream's rows per CPU-second over those of the fastest Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from millstream_bench.spark.measurement import Contestant, Measurement, RunOptions
from millstream_bench.spark.throughput.data import EventFiles
from millstream_bench.spark.throughput.golden import Golden
from millstream_bench.spark.throughput.workloads import Workload

MILLSTREAM, SPARK = "millstream", "spark"

Tell = Callable[[str], None]
"""Called with the name of the next run."""


class WrongAnswer(AssertionError):
    """A contestant's answers differ from DuckDB's, so its speed means nothing."""


@dataclass(slots=True)
class Result:
    """One workload, measured."""

    workload: Workload
    events: int
    options: RunOptions
    golden: Golden
    rounds: dict[str, list[Measurement]] = field(default_factory=dict)
    """By contestant."""

    def figure(self, family: str, quantity: str) -> float | None:
        """The best median of `rows_per_cpu_s` or `rows_per_s` among contestants whose names begin with `family`."""
        medians = [self.median(name, quantity) for name in self.rounds if name.startswith(family)]
        return max(medians, default=None)

    def median(self, name: str, quantity: str) -> float:
        return float(median(getattr(measurement, quantity) for measurement in self.rounds[name]))

    @property
    def ratio(self) -> float | None:
        ours, theirs = self.figure(MILLSTREAM, "rows_per_cpu_s"), self.figure(SPARK, "rows_per_cpu_s")
        return ours / theirs if ours and theirs else None

    def typical(self, name: str) -> Measurement:
        """The round whose rows per CPU-second are nearest to the median."""
        middle = self.median(name, "rows_per_cpu_s")
        return min(self.rounds[name], key=lambda measurement: abs(measurement.rows_per_cpu_s - middle))

    def to_json(self) -> dict[str, Any]:
        golden = self.golden
        return {
            "name": self.workload.name,
            "title": self.workload.title,
            "ratio": self.ratio,
            "millstream_rows_per_cpu_s": self.figure(MILLSTREAM, "rows_per_cpu_s"),
            "spark_rows_per_cpu_s": self.figure(SPARK, "rows_per_cpu_s"),
            "duckdb_rows_per_cpu_s": golden.rows / golden.cpu_s,
            "millstream_rows_per_s": self.figure(MILLSTREAM, "rows_per_s"),
            "spark_rows_per_s": self.figure(SPARK, "rows_per_s"),
            "duckdb_rows_per_s": golden.rows / golden.wall_s,
            "events": self.events,
            "rows": golden.rows,
            "answers": golden.answers,
            **asdict(self.options),
            "contestants": {name: [_round(one) for one in made] for name, made in self.rounds.items()},
        }


def compete(
    workload: Workload,
    data: EventFiles,
    contestants: Sequence[Contestant],
    golden: Golden,
    options: RunOptions,
    *,
    rounds: int = 1,
    tell: Tell = lambda _: None,
) -> Result:
    """Run all contestants `rounds` times and check each answer."""
    options.check(data)
    result = Result(workload, data.events, options, golden, {contestant.name: [] for contestant in contestants})
    for number in range(rounds):
        for contestant in contestants if number % 2 == 0 else reversed(contestants):
            tell(f"{workload.name}: {contestant.name}" + (f", round {number + 1}" if rounds > 1 else ""))
            measurement = contestant.run(workload, data, options)
            check(workload, contestant.name, golden.answers, measurement.answers)
            result.rounds[contestant.name].append(measurement)
    return result


def check(workload: Workload, name: str, wanted: dict[str, int], found: dict[str, int]) -> None:
    differing = [f"{key} {found.get(key)}, not {value}" for key, value in wanted.items() if found.get(key) != value]
    if differing:
        raise WrongAnswer(f"{workload.name}, {name}: wrong answers: {'; '.join(differing)}")


def _round(measurement: Measurement) -> dict[str, Any]:
    speeds = {"rows_per_s": measurement.rows_per_s, "rows_per_cpu_s": measurement.rows_per_cpu_s}
    return speeds | asdict(measurement)
