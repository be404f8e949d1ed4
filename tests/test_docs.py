"""The documentation agrees with the repository: transcripts pass, links and anchors resolve, what is named exists."""

import re
import tomllib
from pathlib import Path

import pytest

from millstream.control.mill import LocalMill
from millstream.control.observe import metrics
from millstream.ingest.paged import open_paged
from millstream.lang import ast, parse
from millstream.testing import Variant, run_text
from millstream_demo import auction
from tests.docs.blocks import FENCED, PAGES, Block, blocks, name_of
from tests.paths import DOCS, ROOT

LINK = re.compile(r"\]\(([^)#:\s]*)(?:#([^)\s]+))?\)")
NAMED = re.compile(r"`([A-Za-z_][\w.]*)`\s*\(\[[^\]]*\]\(([^)]+\.py)\)\)")


@pytest.mark.parametrize("block", blocks("transcript"), ids=str)
def test_transcripts_in_the_docs(block: Block) -> None:
    for variant in (Variant(), Variant(cut="random:1", shards=2), Variant(restart=True, cut="2")):
        outcome = run_text(block.text, variant)
        assert outcome.passed, "\n".join(outcome.failures)


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.transcript")), ids=lambda path: path.stem)
def test_example_transcripts(path: Path) -> None:
    for variant in (Variant(), Variant(cut="random:1", shards=3)):
        outcome = run_text(path.read_text(), variant)
        assert outcome.passed, "\n".join(outcome.failures)


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


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, by the rules of GitHub."""
    titles = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.replace("`", "").lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_and_anchors_resolve(page: Path) -> None:
    for target, anchor in LINK.findall(prose(page)):
        path = (page.parent / target).resolve() if target else page
        assert path.exists() and path.is_relative_to(ROOT), target
        assert not anchor or path.suffix != ".md" or anchor in anchors(path), f"{target}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_is_named_with_its_file_is_there(page: Path) -> None:
    """After `name` ([file](link)) the file defines every part of the name."""
    for name, file in NAMED.findall(prose(page)):
        text = (page.parent / file).read_text(encoding="utf-8")
        for part in name.removesuffix(".py").split("."):
            defined = rf"^\s*(def|class) {part}\b|^\s*{part}\b( =|:)|self\.{part}\b|\b{part} = "
            assert re.search(defined, text, re.MULTILINE), f"{name} in {file}"


def test_the_layers_are_those_that_lint_checks() -> None:
    (rules, *_) = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (block,) = (block for block in blocks() if block.text.startswith("millstream_bench\n"))
    shown = [line.partition("  ")[0] for line in block.text.splitlines()]
    assert shown == [layer.replace("millstream.", "") for layer in rules["layers"]]


def test_metrics_that_the_docs_name_exist() -> None:
    known = Path(str(metrics.__file__)).read_text(encoding="utf-8")
    for page in PAGES:
        for name in re.findall(r"\bmillstream_([a-z_]+)\b", page.read_text(encoding="utf-8")):
            assert name in ("bench", "demo") or f'"{name.removesuffix("_total")}"' in known, (name, page)


def test_the_demo_says_what_the_readme_shows() -> None:
    """The figures are those of one run; the words are the program's."""
    said = re.sub(r"\s+", " ", Path(str(auction.__file__)).read_text(encoding="utf-8"))
    (block,) = (block for block in blocks() if block.page == "README.md" and "open auctions  in state" in block.text)
    assert re.split(r"\s{2,}", block.text.splitlines()[2].strip()) == list(auction.COLUMNS)
    for line in block.text.splitlines():
        if not re.match(r"[\d\s,]*$|\s*second", line):
            assert line.rstrip(";") in said, line


def test_every_error_code_is_documented() -> None:
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "bench" / "millstream_bench").rglob("*.py")]
    used = {code for path in files for code in re.findall(r'"(M\d{4})"', path.read_text())}
    listed = set(re.findall(r"\bM\d{4}\b", (DOCS / "errors.md").read_text()))
    assert used - listed == set() and listed - used == set()
    rows = re.findall(r"^\| (M\d{4})", (DOCS / "errors.md").read_text(), re.MULTILINE)
    assert rows == sorted(rows)


def test_the_program_in_the_description_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", (ROOT / "PACKAGE.md").read_text(encoding="utf-8"), re.DOTALL)
    exec(program.replace("ms.connect()", "ms.connect(local=True)"), {})
    assert capsys.readouterr().out == "[(1, 2, 15.0)]\n"
