"""What the documentation prints is what happens: statements run, plans and errors are as shown, commands exist."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer import Context
from typer.main import get_command

from millstream.cli import app
from millstream.control.mill import LocalMill
from millstream.runtime.engine import NodeStatistics
from tests.docs import shown
from tests.docs.blocks import PAGES, STATEMENT, Block, blocks, blocks_of, check, name_of
from tests.paths import DOCS, ROOT
from tests.test_registries import folder, installed  # noqa: F401 - fixtures

STATEMENTS = ("sql", "session", "output")
CHECKED = {*STATEMENTS, "transcript", "python", "shell"}
"""The kinds of blocks that a test runs, whatever page they are on."""


def test_every_block_is_checked() -> None:
    """A block of another kind is in `shown.PRODUCED` or, with a reason, in `shown.UNCHECKED`."""
    entries = [*shown.PRODUCED, *shown.UNCHECKED]
    unchecked = [str(block) for block in blocks() if block.kind not in CHECKED and not listed(block, entries)]
    unused = [str(entry) for entry in entries if not any(entry.finds(block) for block in blocks())]
    assert (unchecked, unused) == ([], [])


def listed(block: Block, entries: Sequence[shown.Entry]) -> bool:
    return any(entry.finds(block) for entry in entries)


# --- statements -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_statements(page: Path, installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    """A page's statements run in one mill, or in a new one where a block creates what exists already."""
    monkeypatch.chdir(installed)
    found = [block for block in blocks_of(page) if block.kind in STATEMENTS and not listed(block, shown.UNCHECKED)]
    mill, printed = None, ""
    for block in found:
        if block.kind == "output":
            if block.follows is not None and block.follows.kind != "python":
                check(block, block.text, printed)
            continue
        for statements, output in steps(block):
            created = re.findall(r"CREATE \w+ (\w+)", statements)
            if mill is None or any(name in mill.catalog or name in mill.queries for name in created):
                mill = assumed(page, installed)
            printed = mill.execute(statements)
            if output:
                check(block, output, printed)


def steps(block: Block) -> Iterator[tuple[str, str]]:
    """The statements of a block, each run of them with the output that the block shows for it."""
    if block.kind == "sql":
        yield block.text, ""
        return
    paragraphs = block.text.split("\n\n")
    while paragraphs:
        statements, output = paragraphs.pop(0), []
        while paragraphs and not STATEMENT.match(paragraphs[0]):
            output.append(paragraphs.pop(0))
        yield statements, "\n\n".join(output).rstrip("\n") + "\n" if output else ""


def assumed(page: Path, folder_: Path) -> LocalMill:
    """A mill with what the page takes for granted."""
    data = folder_ / "data" / "bids"
    data.mkdir(parents=True, exist_ok=True)
    rows = pl.DataFrame({"auction": [1], "bidder": [2], "price": [3.0], "ts": [0]})
    rows.with_columns(pl.col("ts").cast(pl.Datetime("us"))).write_parquet(data / "1.parquet")
    mill = LocalMill()
    mill.execute(shown.ASSUMED.get(name_of(page), ""))
    return mill


@pytest.mark.parametrize("entry", shown.PRODUCED, ids=str)
def test_texts(entry: shown.Produced, tmp_path: Path) -> None:
    for block in blocks():
        if entry.finds(block):
            check(block, block.text, entry.produce(tmp_path))


def test_the_table_of_statistics() -> None:
    """The page on the engine shows what it says of four tuples on one stream and one on the other."""
    mill, page = shown.engine_mill(), DOCS / "engine.md"
    mill.insert("fast", [(1, 5), (2, 6), (0, 7), (200, 8)])
    mill.insert("slow", [(1, 6)])
    mill.batch()
    head, line = "| name | tuples in | out | selectivity | buffered |", "|---|---|---|---|---|"
    printed = "\n".join([head, line, *map(row_of, mill.statistics("merged")[0].values())])
    text = page.read_text(encoding="utf-8")
    (table,) = re.findall(rf"{re.escape(head)}(?:\n\|.*)+", text)
    if os.environ.get("MILLSTREAM_UPDATE_GOLDEN"):
        page.write_text(text.replace(table, printed), encoding="utf-8")
    else:
        assert table == printed


def row_of(node: NodeStatistics) -> str:
    taken = "" if node.kind == "source" else str(node.tuples_in)
    emitted = "" if node.kind == "sink" else str(node.tuples_out)
    share = f"{node.tuples_out / node.tuples_in:.3g}" if taken and emitted else ""
    return f"| `{node.name}` | {taken} | {emitted} | {share} | {node.buffered} |"


# --- commands ---------------------------------------------------------------------------------------------------------

TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
COMMANDS = get_command(app)


def resolved(words: list[str]) -> tuple[Any, list[str]]:
    """The command that some words call, and its arguments."""
    command = COMMANDS
    while hasattr(command, "resolve_command") and words:
        _, command, words = command.resolve_command(Context(command), words)
    return command, words


@pytest.mark.parametrize("block", blocks("shell"), ids=str)
def test_commands(block: Block) -> None:
    for line in block.text.splitlines():
        program, *arguments = shlex.split(line, comments=True)
        for argument in arguments:
            assert not re.match(r"(examples|tests|docs|bench|scripts)/", argument) or (ROOT / argument).exists(), line
        if program == "make":
            assert set(arguments) <= TARGETS, line
        elif program == ".venv/bin/millstream":
            command, rest = resolved(arguments)
            command.make_context(line, rest)
        else:
            assert program == ".venv/bin/python", line


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_in_the_text(page: Path) -> None:
    """A command named in a sentence exists, and so do its options."""
    for program, rest in re.findall(r"`(make|millstream) ([a-z][^`]*)`", page.read_text(encoding="utf-8")):
        name, *words = rest.split()
        if program == "make":
            assert name in TARGETS, rest
            continue
        command, _ = resolved([name, *words])
        options = {option for parameter in command.params for option in parameter.opts}
        given = {word.strip("[]").split("=")[0] for word in words if word.strip("[").startswith("--")}
        assert given <= options, rest
