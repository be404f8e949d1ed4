"""What the documentation shows is what happens: every transcript in it passes, every example runs, every link leads."""

import re
import runpy
from pathlib import Path

import pytest

from millstream.testing import Variant, run_text

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHOWN = [
    pytest.param(match[1], id=f"{page.stem}-{number}")
    for page in PAGES
    for number, match in enumerate(re.finditer(r"```transcript\n(.*?)```", page.read_text(), re.DOTALL), 1)
]


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


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_example_programs(path: Path) -> None:
    runpy.run_path(str(path), run_name="__main__")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_every_error_code_is_documented() -> None:
    used = {code for path in (ROOT / "src").rglob("*.py") for code in re.findall(r'"(M\d{4})"', path.read_text())}
    listed = set(re.findall(r"\bM\d{4}\b", (ROOT / "docs" / "errors.md").read_text()))
    assert used - listed == set() and listed - used == set()
