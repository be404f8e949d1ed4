"""EXPLAIN PHYSICAL, against golden files; MILLSTREAM_UPDATE_GOLDEN=1 rewrites them."""

import os

import pytest

from millstream.config import Options
from millstream.control.mill import LocalMill
from tests.paths import GOLDEN

STREAMS = """
CREATE STREAM bids (auction BIGINT, price DOUBLE, ts TIMESTAMP) ORDER BY ts;
CREATE STREAM auctions (id BIGINT, seller VARCHAR, ts TIMESTAMP) ORDER BY ts;
"""
QUERIES = {
    "window_join": (
        "SELECT b.price, a.seller FROM bids [RANGE 10 SECONDS] b, auctions [RANGE 10 SECONDS] a "
        "WHERE b.auction = a.id AND b.price > 5",
        Options(shards=4),
    ),
    "rows_join": (
        "SELECT b.price, a.seller FROM bids [ROWS 100] b, auctions [RANGE 10 SECONDS] a WHERE b.auction = a.id",
        Options(shards=4),
    ),
    "paned": ("SELECT window_end, COUNT(*) AS n FROM bids [RANGE 60 SECONDS SLIDE 20 SECONDS]", Options(shards=4)),
    "union": (
        "SELECT auction FROM bids WHERE price > 5 UNION ALL SELECT id FROM auctions",
        Options(strategy="bfs"),
    ),
}


@pytest.mark.parametrize("name", sorted(QUERIES))
def test_physical(name: str) -> None:
    query, options = QUERIES[name]
    mill = LocalMill(options)
    mill.execute(STREAMS)
    text = mill.execute(f"EXPLAIN PHYSICAL {query}") + "\n"
    path = GOLDEN / f"{name}.physical.txt"
    if os.environ.get("MILLSTREAM_UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()
