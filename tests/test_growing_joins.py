"""The page on joins with growing state shows the output of `EXPLAIN CONTRACT`."""

import os
import re

import pytest

from millstream.control.mill import LocalMill
from tests.paths import DOCS

PAGE = DOCS / "growing-joins.md"
SHOWN = re.compile(r"```\n(CREATE [^`]*?;\nEXPLAIN CONTRACT [^`]*?;\n)\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize(("number", "verdict"), [(0, "contract: unbounded: 2 parts\n"), (1, "contract: bounded\n")])
def test_contracts_on_the_page(number: int, verdict: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    found = list(SHOWN.finditer(text))[number]
    said = LocalMill().execute(found[1]) + "\n"
    if os.environ.get("MILLSTREAM_UPDATE_GOLDEN"):
        PAGE.write_text(text[: found.start(2)] + said + text[found.end(2) :], encoding="utf-8")
    else:
        assert found[2] == said and said.endswith(verdict)
