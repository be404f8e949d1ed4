"""The page on adding an operator adds two: in a copy of the repository its blocks become files, and the tests pass."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import Block, blocks_of, check
from tests.paths import DOCS, ROOT
from tests.tries import chosen

PAGE = DOCS / "adding-an-operator.md"
TRANSCRIPTS = [f"tests/transcripts/language/{stem}.transcript" for stem in ("changes", "records")]
EXPLAIN = "import sys; from millstream.control.mill import LocalMill; print(LocalMill().execute(sys.stdin.read()))"


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("copy")
    for part in ("src", "tests", "docs", "pyproject.toml"):
        target = made / part
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, target, ignore=shutil.ignore_patterns("__pycache__", "*.png", "*.egg-info"))
        else:
            shutil.copy(ROOT / part, target)
    for block in blocks_of(PAGE):
        if " file=" in block.info:
            put(block, made)
    return made


def put(block: Block, folder: Path) -> None:
    """Write a block to its file, or insert it before or after the first line that begins as its info string says."""
    found = re.fullmatch(r"\w+ file=(\S+)(?: (before|after)=(.+))?", block.info)
    assert found is not None, block
    path, where, line = folder / found[1], found[2], found[3]
    if where is None:
        assert not path.exists(), path
        path.write_text(block.text, encoding="utf-8")
        return
    text = path.read_text(encoding="utf-8")
    places = [place for place in re.finditer(r"^.*\n", text, re.MULTILINE) if place[0].startswith(line)]
    assert places, f"{block}: {line}"
    place = places[0].start() if where == "before" else places[0].end()
    path.write_text(text[:place] + block.text + text[place:], encoding="utf-8")


def run(folder: Path, *arguments: str, text: str = "") -> str:
    environment = os.environ | {"PYTHONPATH": f"{folder / 'src'}{os.pathsep}{folder}"}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_its_tests_pass(copy: Path) -> None:
    run(
        copy,
        "-m",
        "pytest",
        "-q",
        "tests/runtime/test_changes.py",
        "tests/runtime/test_records.py",
        "tests/test_every_node.py",
    )


@pytest.mark.parametrize(
    "variant", chosen([(), ("--shards", "3", "--cut", "random:7"), ("--cut", "2", "--restart")], 3)
)
def test_its_transcript_passes(copy: Path, variant: tuple[str, ...]) -> None:
    assert "2 passed, 0 failed" in run(copy, "-m", "millstream", "test", *TRANSCRIPTS, *variant)


def test_few_files_change_besides_its_own() -> None:
    """An operator with state, an answer to prods and a report needs at most 8 files in `src` besides its own."""
    changed = {block.info for block in blocks_of(PAGE) if re.search(r" file=src/\S+ (before|after)=", block.info)}
    assert len({info.split()[1] for info in changed}) <= 8


def test_its_contract_is_checked(copy: Path) -> None:
    statements, shown = (block for block in blocks_of(PAGE) if block.kind in ("sql", "output"))
    check(shown, shown.text, run(copy, "-c", EXPLAIN, text=statements.text))
