"""Joins whose condition links nothing: which are refused (mistakes.txt has their messages) and which are meant."""

from __future__ import annotations

from pathlib import Path

import pytest

import millstream as ms
from millstream.control.mill import LocalMill
from millstream.errors import PlanError
from millstream.logical.bind import query as binding

STREAMS = """
CREATE STREAM s (k BIGINT, v DOUBLE, ts TIMESTAMP) ORDER BY ts;
CREATE STREAM t (k BIGINT, w DOUBLE, ts TIMESTAMP) ORDER BY ts;
CREATE TABLE names (k BIGINT, name VARCHAR)
"""

MEANT = [
    "s, t",
    "s CROSS JOIN t",
    "s JOIN t ON true",
    "s JOIN t ON 1 = 1",
    "s LEFT JOIN t ON true AND s.v > 5",
    "s LEFT JOIN t ON true",
    "s JOIN t ON t.w > 5 WHERE s.k = t.k",
    "s JOIN t ON s.k + t.k > 5",
    "s JOIN t ON s.v > 1 JOIN s b ON b.k = t.k AND b.k = s.k",
    "s JOIN t ON s.k > 1 WHERE SEQ(s, t) MODE RECENT",
    "s JOIN names ON names.k = 5",
    "s JOIN t USING (k)",
]
MISTAKEN = ["s JOIN names ON s.k = 5", "s LEFT JOIN names ON s.k = s.k", "s JOIN t ON s.v > 1 JOIN s b ON b.k = t.k"]


@pytest.fixture
def mill() -> LocalMill:
    made = LocalMill()
    made.execute(STREAMS)
    return made


@pytest.mark.parametrize("sources", MEANT)
def test_a_product_that_is_meant_is_planned(mill: LocalMill, sources: str) -> None:
    assert "Scan s" in mill.execute(f"EXPLAIN SELECT s.v FROM {sources}")


@pytest.mark.parametrize("sources", MISTAKEN)
def test_a_condition_on_one_side_is_refused(mill: LocalMill, sources: str) -> None:
    with pytest.raises(PlanError, match="M3040"):
        mill.execute(f"CREATE STREAM d AS SELECT s.v FROM {sources}")


def test_an_unbounded_product_warns(mill: LocalMill, caplog: pytest.LogCaptureFixture) -> None:
    mill.add_query("q", "SELECT s.v FROM s, t WHERE s.v > 1")
    assert "M3030" in caplog.text and "hint: link the two sides by a condition, or add a window to s" in caplog.text


def test_a_checkpoint_with_such_a_query_still_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was accepted once is not refused later."""
    text = "CREATE QUERY q AS SELECT s.v FROM s [ROWS 1], t [ROWS 1] WHERE s.k = s.k"
    with monkeypatch.context() as before, ms.connect(local=True, checkpoint=tmp_path) as mill:
        before.setattr(binding, "check_linked", lambda *_: None)
        mill.sql(STREAMS)
        mill.sql(text)
    with ms.connect(local=True, checkpoint=tmp_path) as mill:
        assert [query.name for query in mill.queries] == ["q"]
        with pytest.raises(PlanError, match="M3040"):
            mill.sql(text.replace("q AS", "other AS"))
