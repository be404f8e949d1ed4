"""The fenced blocks of the documentation, and what each of them is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.paths import DOCS, ROOT

PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
FENCED = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
STATEMENT = re.compile(r"(CREATE|DROP|EXPLAIN|SELECT|SET|SHOW) ")


@dataclass(frozen=True)
class Block:
    """A fenced block: its page relative to the repository, its info string and its text.

    `follows`: the block directly before it, with nothing between them but a blank line.
    """

    page: str
    line: int
    info: str
    text: str
    follows: Block | None = None

    @property
    def kind(self) -> str:
        """Its info string, or what an untagged block is by its first words."""
        if self.info:
            return self.info
        if STATEMENT.match(self.text):
            return "session"
        if re.match(r"make |\.venv/bin/", self.text):
            return "shell"
        if re.match(r"M\d{4}: ", self.text):
            return "error"
        if self.follows is not None and self.follows.kind in ("sql", "session", "python"):
            return "output"
        return "text"

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(*kinds: str) -> list[Block]:
    """The blocks of all pages, or those of some kinds."""
    return [block for page in PAGES for block in blocks_of(page) if not kinds or block.kind in kinds]


def blocks_of(page: Path) -> Iterator[Block]:
    text, last, end = page.read_text(encoding="utf-8"), None, 0
    for found in FENCED.finditer(text):
        follows = last if text[end : found.start()].strip() == "" else None
        line = text[: found.start()].count("\n") + 1
        last = Block(name_of(page), line, found[1], found[2], follows)
        end = found.end()
        yield last


def check(block: Block, shown: str, printed: str) -> None:
    """Compare what a block shows with what is printed. A line with an ellipsis alone stands for any number of lines.

    With MILLSTREAM_UPDATE_GOLDEN set, what is shown without an ellipsis is rewritten.
    """
    printed = "\n".join(line.rstrip() for line in printed.strip("\n").splitlines()) + "\n"
    parts = shown.split("…\n")
    if len(parts) == 1 and os.environ.get("MILLSTREAM_UPDATE_GOLDEN"):
        _replace(block, shown, printed)
    elif len(parts) == 1:
        assert shown == printed, f"{block} is\n{printed}"
    else:
        place = 0
        for part in parts:
            assert part in printed[place:], f"{block}: {part}is not in\n{printed}"
            place = printed.index(part, place) + len(part)


def _replace(block: Block, shown: str, printed: str) -> None:
    page = ROOT / block.page
    text = page.read_text(encoding="utf-8")
    old = f"```{block.info}\n{block.text}```"
    new = block.text.replace(shown, printed) if shown else printed
    assert text.count(old) == 1, f"{block}: another test has rewritten it"
    page.write_text(text.replace(old, f"```{block.info}\n{new}```"), encoding="utf-8")
