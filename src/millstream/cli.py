"""The command line. Every mistake of a user ends in one clear message and exit status 2, never in a stack trace."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from millstream.demo import Demo
from millstream.errors import MillstreamError


class BenchGroup(TyperGroup):
    """`bench w1 w2` is short for `bench spark w1 w2`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        return super().resolve_command(ctx, ["spark", *args] if args[0] in ("w1", "w2") else args)


app = typer.Typer(add_completion=False, no_args_is_help=True, help="Millstream: a data stream management system.")
bench = typer.Typer(cls=BenchGroup, no_args_is_help=True, help="Measure; tables on the terminal, JSON and PNG on disk.")
app.add_typer(bench, name="bench")
console = Console(highlight=False, soft_wrap=True)

Out = Annotated[Path, typer.Option("--out", help="folder for JSON and PNG")]


@app.command()
def test(
    paths: Annotated[list[Path], typer.Argument(help="*.transcript files, or folders of them")],
    on: Annotated[str, typer.Option(help="local, or spark")] = "local",
    shards: Annotated[int, typer.Option(min=1, help="parts of the key space")] = 1,
    cut: Annotated[str, typer.Option(help="elements per micro-batch: N, or random:SEED")] = "",
    restart: Annotated[bool, typer.Option("--restart", help="resume from a checkpoint after every batch")] = False,
) -> None:
    """Run transcripts."""
    from millstream.errors import OptionError
    from millstream.testing.runner import Outcome, Variant, check_cut, run_paths

    if on not in ("local", "spark"):
        raise OptionError("M6022", f"transcripts cannot run on '{on}'", hint="--on local, or --on spark")
    variant = Variant(shards=shards, cut=check_cut(cut), restart=restart)

    def report(outcome: Outcome) -> None:
        mark = "[green]ok[/]    " if outcome.passed else "[red]FAILED[/]"
        console.print(f"{mark} {outcome.name}")
        for failure in outcome.failures:
            console.print(f"       {failure}", markup=False)

    if on == "spark":
        from millstream.control.spark.session import start_session
        from millstream.testing.spark import run_paths_on_spark

        spark = start_session()
        try:
            outcomes = run_paths_on_spark(spark, paths, variant, report)
        finally:
            spark.stop()
    else:
        outcomes = run_paths(paths, variant, report)
    failed = sum(not outcome.passed for outcome in outcomes)
    console.print(f"{len(outcomes) - failed} passed, {failed} failed")
    raise typer.Exit(1 if failed else 0)


@app.command()
def run(
    file: Annotated[Path, typer.Argument(help="a file of statements")],
    local: Annotated[bool, typer.Option("--local", help="in this process, without Spark and Java")] = False,
    master: Annotated[str | None, typer.Option(help="where Spark runs: local[*] (the default), spark://…")] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="folder to keep state in, and to resume from")] = None,
    shards: Annotated[int | None, typer.Option(min=1, help="parts of the key space; as many as cores")] = None,
    seconds: Annotated[float | None, typer.Option(min=0, help="stop after so many seconds")] = None,
    log: Annotated[Path | None, typer.Option(help="file for what Spark has to say")] = None,
    metrics_port: Annotated[int | None, typer.Option(help="serve metrics for Prometheus here")] = None,
) -> None:
    """Run a file of statements, on Spark unless it is to be local, until its sources end, or Ctrl-C."""
    from millstream.control.runner import run_file
    from millstream.errors import OptionError

    if local and master is not None:
        raise OptionError("M6052", "--local and --master", hint="--local runs without Spark")
    given: dict[str, Any] = {} if shards is None else {"shards": shards}
    given |= {"checkpoint": checkpoint, "seconds": seconds, "log": log, "port": metrics_port}
    run_file(_read(file), console, local=local, master=master or "local[*]", **given)


@app.command()
def prepare() -> None:
    """Archive the classes of Spark's JVM, so that it starts some seconds faster. Once for each environment."""
    from millstream.control.spark.class_archive import prepare as write

    with console.status("running a query to see which classes it needs"):
        made = write()
    console.print(f"{made.stat().st_size / 1e6:.0f} MB in {made}", markup=False)


@app.command()
def soak(
    kills: Annotated[int, typer.Option(min=1, help="how often, of each kind")] = 20,
    what: Annotated[list[str] | None, typer.Option(help="driver, worker or cluster; again for another one")] = None,
    seconds: Annotated[float, typer.Option(min=10, help="a run that takes longer has failed")] = 300,
    seed: Annotated[int, typer.Option(help="another seed chooses other moments")] = 0,
    folder: Annotated[Path, typer.Option(help="for checkpoints and results")] = Path("results/soak"),
) -> None:
    """Kill a join on Spark at random moments and compare what it writes with an undisturbed run."""
    from millstream.testing.soak import run_soak

    said = lambda line: console.print(line, markup=False)  # noqa: E731
    raise typer.Exit(0 if run_soak(what, kills, folder, said, seed=seed, seconds=seconds) else 1)


@app.command()
def explain(
    file: Annotated[Path, typer.Argument(help="a file of statements")],
    stage: Annotated[str, typer.Option(help="logical, optimized, physical or contract")] = "optimized",
    shards: Annotated[int, typer.Option(min=1, help="parts of the key space, for physical")] = os.cpu_count() or 1,
) -> None:
    """Print the plan of every query in a file, as Spark would run it."""
    from millstream.config import Options
    from millstream.control.mill import LocalMill
    from millstream.lang import ast, parse

    mill = LocalMill(Options(shards=shards))
    for statement in parse(_read(file)):
        if isinstance(statement, ast.CreateQuery | ast.SelectStatement):
            name = getattr(statement, "name", "")
            console.print(f"-- {name}" if name else "-- query", markup=False)
            console.print(mill.execute(f"EXPLAIN {stage} {statement.text}"), markup=False)
        else:
            mill.execute(statement.text)


@bench.command("engine")
def bench_engine(
    out: Out = Path("bench/results"),
    quick: Annotated[bool, typer.Option("--quick", help="shorter runs")] = False,
) -> None:
    """Scheduling and timestamp experiments in virtual time."""
    from millstream.bench.engine import run

    run(out, quick=quick)


@bench.command("core")
def bench_core(
    out: Out = Path("bench/results"),
    events: Annotated[int, typer.Option(min=1000, help="auction events to generate")] = 2_000_000,
) -> None:
    """The in-process engine against the same computation in Polars over the whole input."""
    from millstream.bench.core import run

    run(out, events=events)


@bench.command("spark")
def bench_spark(
    names: Annotated[list[str], typer.Argument(help="w1 (tumbling aggregate), w2 (interval join)")],
    json_file: Annotated[Path | None, typer.Option("--json", help="file for the figures")] = None,
    out: Out = Path("bench/results"),
    data: Annotated[Path | None, typer.Option(help="folder for the events")] = None,
    events: Annotated[int, typer.Option(min=1_000_000, help="Nexmark events")] = 20_000_000,
    warm_up: Annotated[int, typer.Option(min=1, help="batches that are not measured")] = 12,
    rounds: Annotated[int, typer.Option(min=1, help="how often each runs")] = 1,
) -> None:
    """Millstream and Spark's own operators on the same files (`bench w1 w2` for short)."""
    from millstream.bench.spark.run import run

    run(names, json_file=json_file, out=out, data=data, events=events, warm_up=warm_up, rounds=rounds)


@bench.command("latency")
def bench_latency(
    json_file: Annotated[Path | None, typer.Option("--json", help="file for the figures")] = None,
    out: Out = Path("bench/results"),
    seconds: Annotated[float, typer.Option(min=5, help="how long each rate is kept up")] = 20,
) -> None:
    """From arrival to result at 1 k, 10 k and 50 k rows a second, beside Spark's own operators."""
    from millstream.bench.spark.latency import run

    run(out=out, json_file=json_file, seconds=seconds)


@bench.command("idle")
def bench_idle(
    json_file: Annotated[Path | None, typer.Option("--json", help="file for the figures")] = None,
    out: Out = Path("bench/results"),
    seconds: Annotated[float, typer.Option(min=2, help="how long each case is measured")] = 20,
) -> None:
    """How long results on Spark wait for a nearly silent stream, by the way of promising time."""
    from millstream.bench.spark.idle import run

    run(out=out, json_file=json_file, seconds=seconds)


@bench.command("state")
def bench_state(
    json_file: Annotated[Path | None, typer.Option("--json", help="file for the figures")] = None,
    out: Out = Path("bench/results"),
    spark: Annotated[bool, typer.Option(help="on Spark too, not only the shards alone")] = True,
) -> None:
    """What a batch costs when the input stays the same and the state grows."""
    from millstream.bench.spark.state import run

    run(out=out, json_file=json_file, spark=spark)


@bench.command("joins")
def bench_joins(
    names: Annotated[list[str] | None, typer.Argument(help="experiments; all of them if none is named")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="file for the figures")] = None,
    out: Out = Path("bench/results"),
    quick: Annotated[bool, typer.Option("--quick", help="tiny streams, to see that it works")] = False,
    spark: Annotated[bool, typer.Option(help="on Spark too: open auctions against its own join")] = True,
) -> None:
    """Joins that purge against joins that do not: state, speed, memory, several streams, on disk."""
    from millstream.bench.joins.run import run

    run(out=out, json_file=json_file, names=names or (), quick=quick, spark=spark)


@app.command()
def demo(
    name: Annotated[Demo, typer.Argument(help="what to show")] = Demo.AUCTION,
    seconds: Annotated[float, typer.Option(min=1, help="how long it takes, about; ten seconds of data at least")] = 55,
) -> None:
    """Show what Millstream does, on Spark: statements, results and state as they come. Takes about a minute."""
    from millstream.demo import run

    run(console, name, seconds)


def _read(file: Path) -> str:
    from millstream.errors import OptionError

    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise OptionError("M6021", f"cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise OptionError("M6021", f"cannot read {file}: it is not UTF-8 text") from error


def main() -> None:
    try:
        app()
    except MillstreamError as error:
        Console(stderr=True, highlight=False, soft_wrap=True).print(str(error), markup=False, style="red")
        sys.exit(2)
