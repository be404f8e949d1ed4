"""EXPLAIN at both stages, against golden files.

A file in `tests/golden` starts with the query; below stand the plans. To add one, write the query and run the tests
with MILLSTREAM_UPDATE_GOLDEN=1; do the same after a change that is meant to change plans, and read the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from millstream.logical.explain import explain
from millstream.optimizer import optimize
from tests.logical.sample import GOLDEN, bind, sample_catalog

FILES = sorted(GOLDEN.glob("*.plan.txt"))
UPDATE = "MILLSTREAM_UPDATE_GOLDEN"


def rendered(query: str) -> str:
    catalog = sample_catalog()
    plan = bind(query, catalog)
    return f"{query}\n\nLOGICAL\n{explain(plan)}\n\nOPTIMIZED\n{explain(optimize(plan, catalog))}\n"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name.removesuffix(".plan.txt"))
def test_golden(path: Path) -> None:
    held = path.read_text(encoding="utf-8")
    made = rendered(held.split("\n\nLOGICAL\n")[0].strip())
    if os.environ.get(UPDATE):
        path.write_text(made, encoding="utf-8")
    assert made == path.read_text(encoding="utf-8"), f"set {UPDATE}=1 if the change is meant"


def test_there_are_golden_plans() -> None:
    assert len(FILES) >= 15
