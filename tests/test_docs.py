"""What the documentation shows is what happens: every transcript in it passes, every example runs, every link leads."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from millstream.control.mill import LocalMill
from millstream.ingest.paged import open_paged
from millstream.lang import ast, parse
from millstream.testing import Variant, run_text
from tests.paths import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHOWN = [
    pytest.param(match[1], id=f"{page.stem}-{number}")
    for page in PAGES
    for number, match in enumerate(re.finditer(r"```transcript\n(.*?)```", page.read_text(), re.DOTALL), 1)
]
PROGRAMS = sorted((ROOT / "examples").glob("*.py"))
ON_SPARK = [path for path in PROGRAMS if "ms.connect(" in path.read_text()]
needs_spark = pytest.mark.skipif("MILLSTREAM_SPARK_EXAMPLES" not in os.environ, reason="starts Spark: set the variable")


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


def run_program(text: str) -> str:
    """What a program prints, in a process of its own: it starts and stops Spark."""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return done.stdout


@pytest.mark.parametrize("text", SHOWN)
def test_transcripts_in_the_docs(text: str) -> None:
    for variant in (Variant(), Variant(cut="random:1", shards=2), Variant(restart=True, cut="2")):
        outcome = run_text(text, variant)
        assert outcome.passed, "\n".join(outcome.failures)


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.transcript")), ids=lambda path: path.stem)
def test_example_transcripts(path: Path) -> None:
    for variant in (Variant(), Variant(cut="random:1", shards=3)):
        outcome = run_text(path.read_text(), variant)
        assert outcome.passed, "\n".join(outcome.failures)


@pytest.mark.parametrize("path", [path for path in PROGRAMS if path not in ON_SPARK], ids=lambda path: path.stem)
def test_example_programs(path: Path) -> None:
    runpy.run_path(str(path), run_name="__main__")


@needs_spark
@pytest.mark.parametrize("path", ON_SPARK, ids=lambda path: path.stem)
def test_example_programs_on_spark(path: Path) -> None:
    assert run_program(path.read_text()) == "[(1, 2, 15.0)]\n1\n"


@needs_spark
def test_the_page_on_python_is_a_program() -> None:
    said = run_program("\n".join(python_blocks(ROOT / "docs" / "python.md")))
    assert "['[1, *, *]']" in said and "True\n5\n" in said and " |-- value: long" in said


def test_the_readme_shows_the_example() -> None:
    (shown,) = python_blocks(ROOT / "README.md")
    assert shown in (ROOT / "examples" / "spark_quickstart.py").read_text()


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.sql")), ids=lambda path: path.stem)
def test_example_statements_are_understood(path: Path) -> None:
    mill = LocalMill()
    for statement in parse(path.read_text()):
        if isinstance(statement, ast.CreateQuery):
            mill.plan(statement.select)
        else:
            mill.execute(statement.text)
    for stream in mill.catalog.streams:
        open_paged(stream.name, stream.schema, stream.options, [])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_every_error_code_is_documented() -> None:
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "bench" / "millstream_bench").rglob("*.py")]
    used = {code for path in files for code in re.findall(r'"(M\d{4})"', path.read_text())}
    listed = set(re.findall(r"\bM\d{4}\b", (ROOT / "docs" / "errors.md").read_text()))
    assert used - listed == set() and listed - used == set()
