"""The figures of the page on benchmarks are those of the JSON beside its pictures.

After `millstream bench aggregates` and `make bench-peers`, copy `aggregates.json` and `aggregates_*.png` to
docs/benchmarks and run this test with MILLSTREAM_UPDATE_GOLDEN set. The same with `millstream bench feedback` and
`millstream bench prodding`.
"""

from __future__ import annotations

import json
import os
import re

import pytest

from millstream_bench.aggregates import page as aggregates
from millstream_bench.feedback import page as feedback
from millstream_bench.prodding import page as prodding
from tests.paths import DOCS

PAGE = DOCS / "benchmarks.md"
MISSING = "Not measured yet."
SUITES = {"aggregates": aggregates, "feedback": feedback, "prodding": prodding}


@pytest.mark.parametrize("suite", SUITES)
def test_tables_are_those_of_the_results(suite: str) -> None:
    page = SUITES[suite]
    marked = re.compile(rf"<!-- {suite}: (\w+) -->\n(.*?)<!-- end -->", re.DOTALL)
    written = page.sections(json.loads((DOCS / "benchmarks" / f"{suite}.json").read_text(encoding="utf-8")))
    text = PAGE.read_text(encoding="utf-8")
    assert {found[1] for found in marked.finditer(text)} == set(page.WRITERS)
    meant = marked.sub(
        lambda found: f"<!-- {suite}: {found[1]} -->\n{written.get(found[1], MISSING)}\n<!-- end -->", text
    )
    if os.environ.get("MILLSTREAM_UPDATE_GOLDEN"):
        PAGE.write_text(meant, encoding="utf-8")
    else:
        assert text == meant


def test_every_picture_is_shown() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"(benchmarks/{path.name})" in text for path in (DOCS / "benchmarks").glob("*.png"))
