"""The command line. A mistake of the user ends with one message and exit status 2, never with a stack trace."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup
from typer.main import get_command

from millstream import __version__
from millstream.demo import Demo
from millstream.errors import MillstreamError, OptionError
from millstream.registry import Registry

COMMANDS: Registry[typer.Typer] = Registry("millstream.commands", {}, fits=lambda thing: isinstance(thing, typer.Typer))
"""Commands of other packages."""
BENCH = ("bench", "soak")
"""Commands of millstream-bench, which are listed even if it is not installed."""


class Commands(TyperGroup):
    """The commands below, and those of other packages, which are imported when they are used."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *sorted({*COMMANDS.names(), *BENCH})]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        found = super().get_command(ctx, cmd_name)
        if found is None and (other := COMMANDS.get(cmd_name)):
            found = get_command(other)
            found.name = cmd_name
        if found is None and cmd_name in BENCH:
            found = get_command(_not_installed(cmd_name))
        return found


def _not_installed(name: str) -> typer.Typer:
    """A stand-in for a command whose package is missing: it accepts any arguments and raises M6061."""
    absent = typer.Typer(add_completion=False)

    @absent.command(name, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
    def refuse() -> None:
        """Not installed: part of the package millstream-bench."""
        detail = "It is part of the package millstream-bench."
        hint = "in a checkout of Millstream: pip install ./bench"
        raise OptionError("M6061", f"'millstream {name}' is not installed", detail=detail, hint=hint)

    return absent


app = typer.Typer(
    cls=Commands, add_completion=False, no_args_is_help=True, help="Millstream: a data stream management system."
)
console = Console(highlight=False, soft_wrap=True)


def _print_version(wanted: bool) -> None:
    if wanted:
        console.print(f"millstream {__version__}")
        raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", help="print the version and exit", callback=_print_version, is_eager=True)
]


@app.callback()
def options(version: Version = False) -> None:
    """Millstream: a data stream management system."""


@app.command()
def test(
    paths: Annotated[list[Path], typer.Argument(help="*.transcript files, or folders of them")],
    on: Annotated[str, typer.Option(help="local or spark")] = "local",
    shards: Annotated[int, typer.Option(min=1, help="number of shards")] = 1,
    cut: Annotated[str, typer.Option(help="elements per batch: N, or random:SEED")] = "",
    restart: Annotated[bool, typer.Option("--restart", help="restart from the checkpoint after every batch")] = False,
) -> None:
    """Run transcripts."""
    from millstream.testing.runner import Outcome, Variant, check_cut, run_paths

    if on not in ("local", "spark"):
        raise OptionError("M6022", f"transcripts cannot run on '{on}'", hint="--on local or --on spark")
    variant = Variant(shards=shards, cut=check_cut(cut), restart=restart)

    def report(outcome: Outcome) -> None:
        result = "[green]ok[/]    " if outcome.passed else "[red]FAILED[/]"
        console.print(f"{result} {outcome.name}")
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
    local: Annotated[bool, typer.Option("--local", help="run in this process, without Spark and Java")] = False,
    master: Annotated[str | None, typer.Option(help="Spark master: local[*] (the default), spark://…")] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="folder that keeps the state, to resume from")] = None,
    shards: Annotated[int | None, typer.Option(min=1, help="number of shards; default on Spark: cores")] = None,
    seconds: Annotated[float | None, typer.Option(min=0, help="stop after this many seconds")] = None,
    log: Annotated[Path | None, typer.Option(help="file for Spark's messages")] = None,
    metrics_port: Annotated[int | None, typer.Option(help="port for Prometheus metrics")] = None,
) -> None:
    """Run a file of statements, on Spark or with --local in this process, until its sources end, or Ctrl-C."""
    from millstream.control.runner import run_file

    if local and master is not None:
        raise OptionError("M6052", "--local and --master", hint="--local runs without Spark")
    options: dict[str, Any] = {"checkpoint": checkpoint, "seconds": seconds, "log": log, "port": metrics_port}
    if shards is not None:
        options["shards"] = shards
    run_file(_read(file), console, local=local, master=master, **options)


@app.command()
def prepare() -> None:
    """Archive the classes of Spark's JVM, which then starts some seconds faster. Run it once per environment."""
    from millstream.control.spark.class_archive import prepare as write

    with console.status("running a query to find the classes it needs"):
        archive = write()
    console.print(f"{archive.stat().st_size / 1e6:.0f} MB in {archive}", markup=False)


@app.command()
def explain(
    file: Annotated[Path, typer.Argument(help="a file of statements")],
    stage: Annotated[str, typer.Option(help="logical, optimized, physical or contract")] = "optimized",
    shards: Annotated[int, typer.Option(min=1, help="number of shards, for the physical plan")] = os.cpu_count() or 1,
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


@app.command()
def demo(
    name: Annotated[Demo, typer.Argument(help="the demo")] = Demo.AUCTION,
    seconds: Annotated[float, typer.Option(min=1, help="approximate duration; 15 s of data at least")] = 55,
) -> None:
    """Run a demo on Spark: its statements, results and state, second by second. Takes about a minute."""
    from millstream.demo import run

    run(console, name, seconds)


def _read(file: Path) -> str:
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
