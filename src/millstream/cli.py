"""The command line. Every mistake of a user ends in one clear message and exit status 2, never in a stack trace."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from millstream.errors import MillstreamError

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Millstream: a data stream management system.")
bench = typer.Typer(no_args_is_help=True, help="Measure; tables on the terminal, JSON and PNG on disk.")
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

    if on != "local":
        raise OptionError("M6022", f"transcripts cannot run on '{on}' yet", hint="use --on local")
    variant = Variant(shards=shards, cut=check_cut(cut), restart=restart)

    def report(outcome: Outcome) -> None:
        mark = "[green]ok[/]    " if outcome.passed else "[red]FAILED[/]"
        console.print(f"{mark} {outcome.name}")
        for failure in outcome.failures:
            console.print(f"       {failure}", markup=False)

    outcomes = run_paths(paths, variant, report)
    failed = sum(not outcome.passed for outcome in outcomes)
    console.print(f"{len(outcomes) - failed} passed, {failed} failed")
    raise typer.Exit(1 if failed else 0)


@app.command()
def explain(
    file: Annotated[Path, typer.Argument(help="a file of statements")],
    stage: Annotated[str, typer.Option(help="logical, optimized or physical")] = "optimized",
) -> None:
    """Print the plan of every query in a file."""
    from millstream.control.mill import LocalMill
    from millstream.lang import ast, parse

    mill = LocalMill()
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


@app.command()
def demo() -> None:
    """Open auctions joined with their bids, on generated events."""
    from millstream.demo import run

    run(console)


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
