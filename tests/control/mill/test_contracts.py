"""Contracts in use: the value, the picture, enforcement, and advice by the rows at hand."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

import millstream as ms
from millstream.cli import app
from millstream.errors import MillstreamError, PlanError

STREAMS = """
CREATE STREAM auctions (id BIGINT, seller VARCHAR) PRIMARY KEY (id);
CREATE STREAM bids (auction BIGINT, price DOUBLE) PUNCTUATED ON (auction #);
"""
JOIN = "SELECT b.auction, b.price, a.seller FROM bids b JOIN auctions a ON b.auction = a.id"
GROUPS = "SELECT auction, COUNT(*) AS n FROM bids GROUP BY auction"


@pytest.fixture
def mill() -> Iterator[ms.Connection]:
    with ms.connect(local=True) as connection:
        connection.sql(STREAMS)
        yield connection


def test_the_contract_is_a_value(mill: ms.Connection) -> None:
    query = mill.sql(JOIN)
    found = query.contract()
    assert not found.bounded and [part.name for part in found.unbounded] == ["left b"]
    assert [str(each) for each in found.alternatives] == [
        "declare PUNCTUATED ON (id #) on auctions",
        "declare auction REFERENCES auctions (id) on bids",
    ]
    assert str(found) == str(query.explain("contract"))
    groups = mill.sql(GROUPS).start(name="groups").contract()
    assert groups.bounded and groups.relies_on == ("bids PUNCTUATED ON (auction #)",)
    assert [str(template) for template in groups.feedback] == ["(auction #)"]
    assert json.loads(json.dumps(groups.to_dict()))["bounded"] is True
    assert str(groups) == str(mill.sql("EXPLAIN CONTRACT groups"))


def test_the_picture(mill: ms.Connection, tmp_path: Path) -> None:
    for text, bad in ((JOIN, True), (GROUPS, False)):
        picture = mill.sql(text).contract().svg()
        ElementTree.fromstring(picture)
        assert ("UNBOUNDED" in picture) is bad and ("stroke-dasharray" in picture) is bad
    file = tmp_path / "queries.sql"
    file.write_text(f"{STREAMS} CREATE QUERY joined AS {JOIN}; {GROUPS};")
    ran = CliRunner().invoke(app, ["explain", str(file), "--stage", "contract", "--svg", str(tmp_path / "svg")])
    assert ran.exit_code == 0, ran.output
    assert sorted(path.name for path in (tmp_path / "svg").iterdir()) == ["joined.svg", "query_1.svg"]


def test_enforcement_refuses_with_the_explanation(mill: ms.Connection) -> None:
    mill.sql("SET contracts = 'enforce'")
    with pytest.raises(PlanError) as refused:
        mill.sql(f"CREATE QUERY joined AS {JOIN}")
    assert str(refused.value).splitlines() == [
        "M3033: query 'joined' is refused: its state can grow for ever (line 1, column 1)",
        "  left b of #3 WindowJoin: auctions PRIMARY KEY (id) closes only values that come",
        "  no accordance: #3 WindowJoin has no contract for what it gets from #2 Scan ((id #) of values that came, "
        "time when asked)",
        "  hint: declare PUNCTUATED ON (id #) on auctions, or add a ROWS window to b; SET contracts = 'warn' starts it "
        "nevertheless",
    ]
    with pytest.raises(MillstreamError, match="M2092"):
        mill.query("joined")
    mill.sql(f"CREATE QUERY groups AS {GROUPS}")
    mill.sql("SET contracts = 'warn'")
    mill.sql(f"CREATE QUERY joined AS {JOIN}")


def test_a_restart_does_not_refuse_what_runs(tmp_path: Path) -> None:
    with ms.connect(local=True, checkpoint=tmp_path) as mill:
        mill.sql(f"{STREAMS} SET contracts = 'off'; CREATE QUERY joined AS {JOIN}; SET contracts = 'enforce'")
    with ms.connect(local=True, checkpoint=tmp_path) as mill:
        assert mill.query("joined").running


def test_rows_at_hand_suggest_what_could_be_derived(tmp_path: Path) -> None:
    (tmp_path / "o").mkdir()
    (tmp_path / "o" / "a.csv").write_text("id,customer\n1,7\n2,5\n3,7\n")
    source = f"WITH (connector = 'csv', path = '{tmp_path}/o')"
    with ms.connect(local=True) as mill:
        mill.sql(f"CREATE STREAM orders (id BIGINT, customer BIGINT) {source}")
        found = mill.sql("SELECT id, COUNT(*) AS n FROM orders GROUP BY id").contract()
        assert [str(each) for each in found.alternatives] == [
            "declare PRIMARY KEY (id) on orders (the 3 rows at hand obey it)"
        ]
        assert not mill.sql("SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer").contract().alternatives
        mill.sql(f"CREATE STREAM more (id BIGINT, customer BIGINT) {source}")
        joined = mill.sql("SELECT a.customer FROM orders a JOIN more b ON a.id = b.id").contract()
        assert [str(each) for each in joined.alternatives] == [
            "declare ASCENDING (id) on orders and ASCENDING (id) on more (the 3 rows at hand obey it)"
        ]
