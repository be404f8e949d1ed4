"""Tables of findings on the terminal."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from millstream_bench.suite.report import Finding, show


@pytest.mark.parametrize("width", [40, 80, 160])
def test_no_number_is_cut(width: int) -> None:
    columns = tuple(f"column {number}" for number in range(30))
    rows = [(f"way {row}", *(1_234_567 + number for number in range(29))) for row in range(3)]
    finding = Finding("wide", "a wide table", "", columns, rows, ["a note"])
    out = StringIO()
    show(finding, Console(file=out, width=width, highlight=False, soft_wrap=True))
    assert "…" not in out.getvalue()
    (line,) = (line for line in out.getvalue().splitlines() if line.strip().startswith("way 1"))
    assert line.split()[2:] == [f"{1_234_567 + number:,}" for number in range(29)]
