"""The command line.

| exit status | |
|---|---|
| 0 | all streams have ended, or `--seconds` have passed |
| 1 | a query failed while it ran; a transcript failed |
| 2 | a mistake in the command, the statements or the options |
| 3 | the run has ended, and rows wait for a sink that fails |
| 130, 143 | stopped by Ctrl-C (SIGINT), by SIGTERM |

An error is one message, never a stack trace.
"""

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
from millstream.collection import importing
from millstream.control.observe.log_file import LOG, check_format, logging_to
from millstream.control.stopping import Stopped, end_jvm, stopping
from millstream.errors import MillstreamError, OptionError, did_you_mean, on_command_line
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
    absent = typer.Typer(add_completion=False, rich_markup_mode=None)

    @absent.command(name, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
    def refuse() -> None:
        """Not installed: part of the package millstream-bench."""
        detail = "It is part of the package millstream-bench."
        hint = "in a checkout of Millstream: pip install ./bench"
        raise OptionError("M6061", f"'millstream {name}' is not installed", detail=detail, hint=hint)

    return absent


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,  # the brackets of a pattern are no markup
    help="Millstream: a data stream management system.",
)
console = Console(highlight=False, soft_wrap=True)


def _print_version(wanted: bool) -> None:
    if wanted:
        console.print(f"millstream {__version__}")
        raise typer.Exit


Version = Annotated[
    bool, typer.Option("--version", help="print the version and exit", callback=_print_version, is_eager=True)
]


Functions = Annotated[
    list[str] | None, typer.Option(help="module whose Python functions the statements call; may be repeated")
]


def _load(modules: list[str] | None) -> None:
    from millstream.algebra.python.library import load_module

    for module in modules or ():
        load_module(module)


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
    functions: Functions = None,
) -> None:
    """Run transcripts."""
    from millstream.testing.runner import Outcome, Variant, check_cut, run_paths

    if on not in ("local", "spark"):
        raise OptionError("M6022", f"transcripts cannot run on '{on}'", hint="--on local or --on spark")
    _load(functions)
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
    log: Annotated[Path | None, typer.Option(help="file for messages, Spark's warnings and errors included")] = None,
    log_format: Annotated[str, typer.Option(help="format of the log: text or json")] = "text",
    metrics_port: Annotated[int | None, typer.Option(help="port for Prometheus metrics")] = None,
    keep: Annotated[bool, typer.Option("--keep", help="run the checkpoint's statements where FILE differs")] = False,
    replace: Annotated[bool, typer.Option("--replace", help="drop what differs from FILE, and start it anew")] = False,
    functions: Functions = None,
) -> None:
    """Run a file of statements, on Spark or with --local in this process, until its sources end, Ctrl-C or SIGTERM."""
    if local and master is not None:
        raise OptionError("M6052", "--local and --master", hint="--local runs without Spark")
    if keep and replace:
        raise OptionError("M6052", "--keep and --replace", hint="--keep goes on with the old statements")
    options: dict[str, Any] = {"checkpoint": checkpoint, "seconds": seconds, "port": metrics_port}
    options["differing"] = "keep" if keep else "replace" if replace else "refuse"
    if shards is not None:
        options["shards"] = shards
    text = _read(file)
    _load(functions)
    with on_command_line(), stopping() as stop, logging_to(log, check_format(log_format)):
        try:
            with importing():
                from millstream.control.runner import run_file

            run_file(text, console, local=local, master=master, log=log, log_format=log_format, stop=stop, **options)
        except Stopped as stopped:
            if not stopped.told:
                console.print("stopped" if stop.started else "stopped while it was starting")
            LOG.info("stopped by %s", stopped.name)
            end_jvm(in_use=True)  # a session that was only starting is not stopped
            raise
        except MillstreamError as error:
            LOG.error("%s", error)
            raise
        except Exception:
            LOG.exception("internal error")
            raise
        finally:
            end_jvm()


@app.command()
def feedback(
    query: Annotated[str, typer.Argument(help="the query")],
    text: Annotated[str, typer.Argument(help="'~[…]', '?[…]' or '![…]', a pattern over its columns")],
    checkpoint: Annotated[Path, typer.Option(help="the checkpoint of the running process")],
    seconds: Annotated[float, typer.Option(min=0, help="wait for the answer at most so long")] = 10,
) -> None:
    """Tell a query of a running `millstream run FILE --checkpoint DIR` which rows are not wanted, or wanted first.

    The pattern is over the columns of the query, by name or by position:

    '~[district = 3]'  rows that match are not emitted any more, and the work for them is saved

    '?[district in {1, 2}]'  rows that match are emitted first

    '![district = 1]'  results so far are emitted now, if the query has a column finality

    Example: millstream feedback speeds '~[district < 9]' --checkpoint state

    It waits until the query has accepted the feedback. `millstream docs feedback` has the rest.
    """
    _tell(checkpoint, query, text, seconds)


@app.command()
def prod(
    query: Annotated[str, typer.Argument(help="the query")],
    checkpoint: Annotated[Path, typer.Option(help="the checkpoint of the running process")],
    text: Annotated[str, typer.Argument(help="'{…}', a pattern over its windows and groups")] = "{}",
    seconds: Annotated[float, typer.Option(min=0, help="wait for the answer at most so long")] = 10,
) -> None:
    """Ask a query of a running `millstream run --checkpoint` for its results so far. It emits them as early rows."""
    from millstream.algebra.early import check_braces

    check_braces(text)
    _tell(checkpoint, query, text, seconds)


def _tell(checkpoint: Path, query: str, text: str, seconds: float) -> None:
    """Send feedback, or a prod, to a query of another process, and print its warnings."""
    from millstream.control.mailbox import post

    warnings = post(checkpoint, query, text, seconds)
    console.print(f"query {query} accepted {text}", markup=False)
    for warning in warnings:
        Console(stderr=True, highlight=False, soft_wrap=True).print(warning, markup=False, style="yellow")


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
    stage: Annotated[str, typer.Option(help="logical, optimized, physical, contract or feedback")] = "optimized",
    shards: Annotated[int, typer.Option(min=1, help="number of shards, for the physical plan")] = os.cpu_count() or 1,
    functions: Functions = None,
    svg: Annotated[Path | None, typer.Option(help="a folder for a picture of each query's contract")] = None,
) -> None:
    """Print the plan of every query in a file, as Spark would run it."""
    from millstream.config import Options
    from millstream.control.mill.contracts import contract
    from millstream.control.mill.statements import check_stage, stem_of
    from millstream.control.rehearsal import Rehearsal
    from millstream.lang import ast, parse
    from millstream.logical.bind.table.relations import over_tables

    check_stage(stage)
    _load(functions)
    mill = Rehearsal(Options.read(shards=shards))
    of_queries = ast.AlterQuery | ast.Drop | ast.ExplainNamed | ast.FeedbackStatement | ast.SetOption
    for statement in parse(_read(file)):
        if isinstance(statement, ast.SelectStatement) and over_tables(statement.select, mill.catalog):
            console.print("-- query over tables: it runs once", markup=False)
        elif isinstance(statement, of_queries):
            mill.try_out([statement])
        elif isinstance(statement, ast.CreateQuery) and statement.name in mill.queries:
            mill.try_out([statement])  # IF NOT EXISTS, or a mistake
        elif isinstance(statement, ast.CreateQuery | ast.SelectStatement):
            if isinstance(statement, ast.CreateQuery):
                name, text = statement.name, statement.text
            else:
                name = mill.free_name(stem_of(statement.select))
                text = ast.query_text(name, statement, "now")
            console.print(f"-- {name}", markup=False)
            explained = ast.Explain(stage.upper(), statement, text=statement.text, **statement.place)
            console.print(mill.run([explained]), markup=False)
            plan = mill.plan(statement.select)
            if svg is not None:
                svg.mkdir(parents=True, exist_ok=True)
                picture = svg / f"{name}.svg"
                picture.write_text(contract(mill, plan).svg(), encoding="utf-8")
            mill.enter(name, text, plan, statement.select)
        else:
            mill.run([statement])


@app.command()
def docs(page: Annotated[str, typer.Argument(help="a page, such as language, or the code of an error")] = "") -> None:
    """List the pages of the documentation, or print one, or what the code of an error means."""
    folder = Path(__file__).parent / "docs"
    pages = {str(path.relative_to(folder).with_suffix("")): path for path in sorted(folder.rglob("*.md"))}
    name = page.removeprefix("docs/").removesuffix(".md")
    if not page:
        for name, path in pages.items():
            title = next((line for line in path.read_text("utf-8").splitlines() if line.startswith("# ")), "")
            console.print(f"{name:30} {title.removeprefix('# ')}", markup=False)
        console.print(f"The files are in {folder}", markup=False)
    elif name in pages:
        console.print(pages[name].read_text("utf-8"), markup=False)
    elif found := [line for line in pages["errors"].read_text("utf-8").splitlines() if line.startswith(f"| {page} |")]:
        console.print(found[0].strip("| ").replace(" | ", ": ", 1), markup=False)
    else:
        raise OptionError("M6002", f"page cannot be '{page}'", hint=did_you_mean(name, pages))


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
        sys.exit(error.status)
    except Stopped as stopped:
        sys.exit(stopped.status)
