"""`millstream bench` and `millstream soak`: the commands of this package."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from millstream.errors import OptionError


class BenchGroup(TyperGroup):
    """`bench w1 w2` is short for `bench spark w1 w2`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        return super().resolve_command(ctx, ["spark", *args] if args[0] in ("w1", "w2") else args)


bench = typer.Typer(
    cls=BenchGroup,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Measure; tables on the terminal, JSON and PNG on disk.",
)
soak = typer.Typer(add_completion=False, rich_markup_mode=None)
console = Console(highlight=False, soft_wrap=True)

EXTRAS = ("duckdb",)
"""Packages that benchmarks need and Millstream does not."""


@bench.callback()
def check_extras() -> None:
    """Measure; tables on the terminal, JSON and PNG on disk."""
    missing = [name for name in EXTRAS if find_spec(name) is None]
    if missing:
        hint = "in a checkout of Millstream: pip install ./bench"
        raise OptionError("M6061", f"benchmarks need {' and '.join(missing)}, not installed", hint=hint)


Out = Annotated[Path, typer.Option("--out", help="folder for JSON and PNG")]


@bench.command("engine")
def bench_engine(
    out: Out = Path("bench/results"),
    quick: Annotated[bool, typer.Option("--quick", help="shorter runs")] = False,
) -> None:
    """Scheduling and timestamp experiments in virtual time."""
    from millstream_bench.engine.run import run

    run(out, quick=quick)


@bench.command("core")
def bench_core(
    out: Out = Path("bench/results"),
    events: Annotated[int, typer.Option(min=1000, help="auction events to generate")] = 2_000_000,
) -> None:
    """The in-process engine against the same computation in Polars over the whole input."""
    from millstream_bench.core.run import run

    run(out, events=events)


@bench.command("spark")
def bench_spark(
    names: Annotated[list[str], typer.Argument(help="w1 (tumbling aggregate), w2 (interval join)")],
    json_file: Annotated[Path | None, typer.Option("--json", help="file for the figures")] = None,
    out: Out = Path("bench/results"),
    data: Annotated[Path | None, typer.Option(help="folder for the events")] = None,
    events: Annotated[int, typer.Option(min=1_000_000, help="Nexmark events")] = 20_000_000,
    warm_up: Annotated[int, typer.Option(min=1, help="batches before the measurement")] = 12,
    rounds: Annotated[int, typer.Option(min=1, help="rounds per contestant")] = 1,
) -> None:
    """Millstream and Spark's own operators on the same files (`bench w1 w2` for short)."""
    from millstream_bench.spark.throughput.run import run

    run(names, json_file=json_file, out=out, data=data, events=events, warm_up=warm_up, rounds=rounds)


@bench.command("latency")
def bench_latency(
    json_file: Annotated[Path | None, typer.Option("--json", help="file for the figures")] = None,
    out: Out = Path("bench/results"),
    seconds: Annotated[float, typer.Option(min=5, help="seconds at each rate")] = 20,
) -> None:
    """From arrival to result at 1 k, 10 k and 50 k rows a second, beside Spark's own operators."""
    from millstream_bench.spark.latency.run import run

    run(out=out, json_file=json_file, seconds=seconds)


@bench.command("idle")
def bench_idle(
    json_file: Annotated[Path | None, typer.Option("--json", help="file for the figures")] = None,
    out: Out = Path("bench/results"),
    seconds: Annotated[float, typer.Option(min=2, help="seconds per case")] = 20,
) -> None:
    """Time that results on Spark wait for a nearly silent stream, by way of promising time."""
    from millstream_bench.spark.idle.run import run

    run(out=out, json_file=json_file, seconds=seconds)


@bench.command("state")
def bench_state(
    json_file: Annotated[Path | None, typer.Option("--json", help="file for the figures")] = None,
    out: Out = Path("bench/results"),
    spark: Annotated[bool, typer.Option(help="on Spark too, not only the shards alone")] = True,
) -> None:
    """Cost of a batch as the state grows and the input stays the same."""
    from millstream_bench.spark.state.run import run

    run(out=out, json_file=json_file, spark=spark)


@bench.command("joins")
def bench_joins(
    names: Annotated[list[str] | None, typer.Argument(help="experiments; all of them if none is named")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="file for the figures")] = None,
    out: Out = Path("bench/results"),
    quick: Annotated[bool, typer.Option("--quick", help="tiny streams, as a check that it runs")] = False,
    spark: Annotated[bool, typer.Option(help="on Spark too: open auctions against its own join")] = True,
) -> None:
    """Joins that purge against joins that do not: state, speed, memory, several streams, on disk."""
    from millstream_bench.joins.run import run

    run(out=out, json_file=json_file, names=names or (), quick=quick, spark=spark)


@bench.command("aggregates")
def bench_aggregates(
    names: Annotated[list[str] | None, typer.Argument(help="experiments; all of them if none is named")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="file for the figures")] = None,
    out: Out = Path("bench/results"),
    quick: Annotated[bool, typer.Option("--quick", help="tiny streams, as a check that it runs")] = False,
    spark: Annotated[bool, typer.Option(help="on Spark too: windows against transformWithStateInPandas")] = True,
) -> None:
    """Aggregates by window and slide, in SQL and Python; denoising; windows on Spark against state by hand."""
    from millstream_bench.aggregates.run import run

    run(out=out, json_file=json_file, names=names or (), quick=quick, spark=spark)


@bench.command("feedback")
def bench_feedback(
    names: Annotated[list[str] | None, typer.Argument(help="experiments; all of them if none is named")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="file for the figures")] = None,
    out: Out = Path("bench/results"),
    quick: Annotated[bool, typer.Option("--quick", help="tiny streams, as a check that it runs")] = False,
    spark: Annotated[bool, typer.Option(help="on Spark too")] = True,
    baseline: Annotated[Path | None, typer.Option(help="a checkout of the version before feedback")] = None,
) -> None:
    """Feedback: its overhead if none is sent, the cost of sending it, and what it saves."""
    import os

    from millstream_bench.feedback.run import run
    from millstream_bench.feedback.subject import BASELINE

    if baseline is not None:
        if not (baseline / "src" / "millstream").is_dir():
            raise OptionError("M6021", f"no checkout of Millstream: {baseline}")
        os.environ[BASELINE] = str(baseline)
    run(out=out, json_file=json_file, names=names or (), quick=quick, spark=spark)


@bench.command("prodding")
def bench_prodding(
    names: Annotated[list[str] | None, typer.Argument(help="experiments; all of them if none is named")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="file for the figures")] = None,
    out: Out = Path("bench/results"),
    quick: Annotated[bool, typer.Option("--quick", help="tiny streams, as a check that it runs")] = False,
    spark: Annotated[bool, typer.Option(help="on Spark too")] = True,
) -> None:
    """Early answers: accuracy and latency by aggressiveness, delays, bursts, overhead on final results."""
    from millstream_bench.prodding.run import run

    run(out=out, json_file=json_file, names=names or (), quick=quick, spark=spark)


@soak.command()
def run_soak(
    kills: Annotated[int, typer.Option(min=1, help="kills of each kind; disturbances of the mixture")] = 20,
    what: Annotated[
        list[str] | None,
        typer.Option(help="driver, worker, cluster (all three by default), mixture, memory or damage; may be repeated"),
    ] = None,
    seconds: Annotated[float, typer.Option(min=10, help="time limit of a run")] = 300,
    minutes: Annotated[int, typer.Option(min=4, help="length of `memory`, on Spark and again in process")] = 30,
    seed: Annotated[int, typer.Option(help="seed of the random moments")] = 0,
    folder: Annotated[Path, typer.Option(help="folder for checkpoints and results")] = Path("results/soak"),
) -> None:
    """Disturb queries on Spark at random moments and compare what they write with an undisturbed run."""
    from millstream_bench.soak.run import run_soak as run

    said = lambda line: console.print(line, markup=False)  # noqa: E731
    raise typer.Exit(0 if run(what, kills, folder, said, seed=seed, seconds=seconds, minutes=minutes) else 1)
