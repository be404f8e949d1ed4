"""A catalog to bind against, and the queries that several tests share."""

from __future__ import annotations

from millstream.lang import ast, parse, parse_one
from millstream.logical.binder import bind_select, bind_stream, bind_table
from millstream.logical.catalog import Catalog
from millstream.logical.plan import Plan

SCHEMA = """
CREATE STREAM bids (auction BIGINT, bidder BIGINT, price DOUBLE, ts TIMESTAMP)
    ORDER BY ts WATERMARK FOR ts AS ts - INTERVAL '5' SECOND PUNCTUATED ON (auction #);
CREATE STREAM auctions (id BIGINT PRIMARY KEY, seller BIGINT, category INT, name VARCHAR, ts TIMESTAMP) ORDER BY ts;
CREATE STREAM s (ts BIGINT, sensor BIGINT, volume BIGINT) ORDER BY ts PUNCTUATED ON (ts +) PUNCTUATED ON (ts +, sensor #);
CREATE STREAM a (ts BIGINT, k BIGINT, v BIGINT, note VARCHAR) ORDER BY ts;
CREATE STREAM b (ts BIGINT, k BIGINT, v BIGINT, note VARCHAR) ORDER BY ts;
CREATE STREAM c (ts BIGINT, k BIGINT, v BIGINT, note VARCHAR) ORDER BY ts;
CREATE STREAM entered (k BIGINT, v DOUBLE) ORDER BY current_time;
CREATE STREAM loose (k BIGINT, v DOUBLE, at TIMESTAMP, number INT);
CREATE TABLE sites (k BIGINT, city VARCHAR, open BOOLEAN);
CREATE STREAM big AS SELECT ts, sensor, volume FROM s WHERE volume > 100;
"""


def sample_catalog() -> Catalog:
    return catalog_of(SCHEMA)


def catalog_of(script: str) -> Catalog:
    catalog = Catalog()
    for statement in parse(script):
        match statement:
            case ast.CreateStream():
                catalog.add_stream(bind_stream(statement, catalog))
            case ast.CreateTable():
                catalog.add_table(bind_table(statement, catalog))
            case ast.CreateDerivedStream():
                catalog.add_derived(statement.name, bind_select(statement.select, catalog))
    return catalog


def bind(query: str, catalog: Catalog | None = None) -> Plan:
    statement = parse_one(query)
    assert isinstance(statement, ast.SelectStatement)
    return bind_select(statement.select, catalog or sample_catalog())


QUERIES = (
    "SELECT * FROM bids",
    "SELECT auction, price * 2 AS doubled, ts FROM bids WHERE price > 5 AND auction IN (1, 2, 3)",
    "SELECT window_end, sensor, SUM(volume) AS total FROM s [RANGE 60 SLIDE 20] GROUP BY sensor",
    "SELECT SUM(volume) FROM s WINDOW [RANGE=60s, SLIDE=20s]",
    "SELECT window_start, COUNT(*) AS n FROM TABLE(HOP(TABLE bids, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '10' SECOND)) GROUP BY window_start, window_end HAVING n > 3",
    "SELECT x.price, y.seller FROM bids x [RANGE 10 SECONDS], auctions y [RANGE 5 SECONDS] WHERE x.auction = y.id AND x.price > 5 AND y.category = 3",
    "SELECT y.id, x.price FROM auctions y JOIN bids x ON y.id = x.auction AND x.ts BETWEEN y.ts AND y.ts + INTERVAL '10' SECOND",
    "SELECT a.v, b.v, c.v FROM a [RANGE 5], b [RANGE 6], c [RANGE 7] WHERE a.k = b.k AND b.k = c.k AND a.v + c.v > 4",
    "SELECT a.v, city FROM sites, a WHERE a.k = sites.k AND open",
    "SELECT * FROM a LEFT JOIN sites USING (k) WHERE city IS NULL",
    "SELECT a.v, b.v FROM a, b WHERE SEQ(a, b) MODE CHRONICLE AND a.k = b.k AND b.v > 3",
    "SELECT k, current_time FROM entered WHERE current_time > '2024-01-01'",
    "SELECT DISTINCT k FROM (SELECT k, v FROM a UNION ALL SELECT k, v FROM b WHERE v > 3) u WHERE u.k < 5",
    "SELECT window_end, MAX(total) FROM (SELECT window_end, sensor, SUM(volume) AS total FROM s [RANGE 60 SLIDE 20] GROUP BY sensor) q GROUP BY window_end",
    "SELECT sensor, CASE WHEN volume > 200 THEN 'huge' ELSE 'big' END AS size FROM big",
    "SELECT b.k, COUNT(*), AVG(a.v) FROM a, b [ROWS 3] WHERE a.k = b.k AND b.v = 1 GROUP BY b.k",
)
