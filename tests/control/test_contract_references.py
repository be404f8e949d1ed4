"""REFERENCES against running queries: only the primary key of the stream that is named bounds a join."""

from __future__ import annotations

from pathlib import Path

import pytest

import millstream as ms
from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.errors import BindError

STREAMS = (
    "CREATE STREAM auctions (id BIGINT, premium BIGINT) PRIMARY KEY (id)",
    "CREATE STREAM premium (id BIGINT, premium BIGINT) PRIMARY KEY (id)",
    "CREATE STREAM bids (auction BIGINT {}, price BIGINT)",
    "CREATE STREAM closed_auctions (id BIGINT) CLOSES bids (auction) BY (id)",
)
REFERENCES = "REFERENCES auctions (id)"
FILTERED = "(SELECT id AS n FROM auctions WHERE premium = 1)"


def run(query: str, references: str) -> tuple[str, int]:
    """Return the contract, and the tuples held after every auction has come and closed."""
    mill = LocalMill(Options(contracts="off"))
    for statement in STREAMS:
        mill.execute(statement.format(references))
    contract = mill.execute(f"EXPLAIN CONTRACT {query}")
    mill.add_query("q", query)
    mill.insert("bids", [(n, 1) for n in range(60)])
    mill.insert("auctions", [(n, n % 2) for n in range(60)])
    mill.insert("premium", [(n, 1) for n in range(0, 60, 2)])
    mill.batch()
    mill.insert("closed_auctions", [(n,) for n in range(60)])
    mill.batch()
    return contract, sum(node.state + node.buffered for graph in mill.statistics("q") for node in graph.values())


@pytest.mark.parametrize(("side", "key"), [("auctions", "id"), (FILTERED, "n")])
def test_a_join_with_the_stream_that_is_named_is_bounded(side: str, key: str) -> None:
    """A condition drops tuples, but not the punctuation of their keys."""
    contract, held = run(f"SELECT b.price FROM {side} a JOIN bids b ON a.{key} = b.auction", REFERENCES)
    assert "BOUNDED by auctions PRIMARY KEY (id) and bids auction REFERENCES auctions (id)" in contract
    assert contract.endswith("\ncontract: bounded") and held == 0


@pytest.mark.parametrize(("side", "references"), [("premium", REFERENCES), ("premium", ""), ("auctions", "")])
def test_a_join_with_another_stream_is_refused(side: str, references: str) -> None:
    contract, held = run(f"SELECT b.price FROM {side} a JOIN bids b ON a.id = b.auction", references)
    assert contract.endswith("\ncontract: unbounded: 1 part")
    assert f"declare auction REFERENCES {side} (id) on bids" in contract
    assert held == (30 if side == "premium" else 0)


def test_it_is_kept_over_a_restart_and_by_what_it_names(tmp_path: Path) -> None:
    join = "EXPLAIN CONTRACT SELECT b.price FROM auctions a JOIN bids b ON a.id = b.auction"
    with ms.connect(local=True, checkpoint=tmp_path) as mill:
        for statement in STREAMS:
            mill.sql(statement.format(REFERENCES))
        contract = str(mill.sql(join))
    with ms.connect(local=True, checkpoint=tmp_path) as mill:
        assert str(mill.sql(join)) == contract and "contract: bounded" in contract
        mill.sql("DROP STREAM closed_auctions")
        with pytest.raises(BindError, match="M2019: stream 'auctions' is referenced by stream 'bids'"):
            mill.sql("DROP STREAM auctions")
        mill.sql("DROP STREAM bids")
        mill.sql("DROP STREAM auctions")
