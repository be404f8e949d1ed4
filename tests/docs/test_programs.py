"""The programs of the documentation run as printed, and print what their comments say."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import millstream
from millstream.control.observe import metrics
from tests.docs.blocks import PAGES, blocks, blocks_of, check, name_of
from tests.docs.programs import program_of, run_program
from tests.docs.shown import UNCHECKED, engine_mill
from tests.paths import DOCS, ROOT
from tests.test_registries import shown as shown_package

PROGRAMS = sorted((ROOT / "examples").glob("*.py"))
ON_SPARK = [path for path in PROGRAMS if "ms.connect(" in path.read_text()]
ONLY_ON_SPARK = "docs/python.md"
PACKAGED = {code for page in ("sources.md", "sinks.md", "engine.md") for code in shown_package(page)[1].values()}
"""Modules that tests/test_registries.py installs."""
needs_spark = pytest.mark.skipif(
    "MILLSTREAM_SPARK_EXAMPLES" not in os.environ, reason="starts Spark; make test sets the variable"
)


def programs() -> list[Path]:
    """The pages with Python that runs without Spark and is not the business of another test."""
    found = {block.page for block in blocks("python") if block.text not in PACKAGED}
    found -= {ONLY_ON_SPARK, *(entry.page for entry in UNCHECKED if entry.has == "")}
    return [page for page in PAGES if name_of(page) in found]


@pytest.mark.parametrize("page", programs(), ids=name_of)
def test_pages(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A page's Python is one program. Where it connects to Spark, it runs in this process instead."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(millstream, "connect", partial(millstream.connect, local=True))
    serve = metrics.serve
    monkeypatch.setattr(metrics, "serve", lambda mill, port: serve(mill, 0))  # the page's port may be taken
    names: dict[str, Any] = {"mill": engine_mill()} if page == DOCS / "engine.md" else {}
    for block in blocks_of(page):
        if block.kind == "python" and block.text not in PACKAGED:
            names = run_program(block.text, **names)
        elif block.kind == "output" and block.follows is not None and block.follows.kind == "python":
            check(block, block.text, capsys.readouterr().out)


@needs_spark
@pytest.mark.xdist_group("spark")  # one session at a time
def test_spark() -> None:
    """All programs that need Spark, in one process of their own."""
    command = [sys.executable, "-m", "tests.docs.programs", *map(str, ON_SPARK), str(ROOT / ONLY_ON_SPARK)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert " |-- timestamp: timestamp" in done.stdout


@pytest.mark.parametrize("path", [path for path in PROGRAMS if path not in ON_SPARK], ids=lambda path: path.stem)
def test_examples(path: Path) -> None:
    runpy.run_path(str(path), run_name="__main__")


def test_the_readme_shows_the_example() -> None:
    assert program_of(ROOT / "README.md") in (ROOT / "examples" / "spark_quickstart.py").read_text()


def test_the_page_on_other_engines_shows_the_programs_of_the_benchmark() -> None:
    shown = [block.text for block in blocks("python") if "(StatefulProcessor)" in block.text]
    program = (ROOT / "bench/millstream_bench/aggregates/spark/by_hand.py").read_text(encoding="utf-8")
    assert len(shown) == 2 and all(text in program for text in shown)
