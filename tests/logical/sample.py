"""A catalog to bind against, and the queries that several tests share."""

from __future__ import annotations

from millstream.lang import ast, parse, parse_one
from millstream.lang.aggregate.ast import CreateAggregate
from millstream.lang.table.ast import CreateView, Write
from millstream.logical.bind import bind_aggregate, bind_derived, bind_select, bind_stream, bind_table
from millstream.logical.bind.table.relations import over_tables
from millstream.logical.catalog import Catalog
from millstream.logical.contract.explain import written
from millstream.logical.contract.offers import Declarations
from millstream.logical.contract.query_contract import contract_of
from millstream.logical.nodes.table_write import TableWrite
from millstream.logical.plan import Plan
from tests.paths import GOLDEN

SCHEMA = """
CREATE STREAM bids (auction BIGINT, bidder BIGINT, price DOUBLE, ts TIMESTAMP)
    ORDER BY ts WATERMARK FOR ts AS ts - INTERVAL '5' SECOND PUNCTUATED ON (auction #);
CREATE STREAM auctions (id BIGINT PRIMARY KEY, seller BIGINT, category INT, name VARCHAR, ts TIMESTAMP) ORDER BY ts;
CREATE STREAM s (ts BIGINT, sensor BIGINT, volume BIGINT)
    ORDER BY ts PUNCTUATED ON (ts +) PUNCTUATED ON (ts +, sensor #);
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
        declare(statement, catalog)
    return catalog


def declare(statement: ast.Statement, catalog: Catalog) -> None:
    """Add what a CREATE statement declares; other statements declare nothing."""
    match statement:
        case ast.CreateStream():
            catalog.add_stream(bind_stream(statement, catalog))
        case ast.CreateTable():
            catalog.add_table(bind_table(statement, catalog))
        case ast.CreateDerivedStream():
            derived = bind_derived(statement, catalog)
            catalog.add_derived(statement.name, derived.plan, derived.bad)
        case CreateView() if over_tables(statement.select, catalog):
            catalog.add_view(statement.name, statement.select)
        case CreateView():
            catalog.add_derived(statement.name, bind_select(statement.select, catalog))
        case ast.SelectStatement(select=Write() as write) | ast.CreateQuery(select=Write() as write):
            if write.source is not None and not over_tables(write, catalog):
                plan = bind_select(write, catalog)
                assert isinstance(plan, TableWrite)
                catalog.add_writer(plan)
        case CreateAggregate():
            catalog.add_aggregate(bind_aggregate(statement, catalog))


def bind(query: str, catalog: Catalog | None = None) -> Plan:
    statement = parse_one(query)
    assert isinstance(statement, ast.SelectStatement)
    return bind_select(statement.select, catalog or sample_catalog())


QUERIES = tuple(path.read_text(encoding="utf-8").split("\n\n")[0] for path in sorted(GOLDEN.glob("*.plan.txt")))


def explain_contract(plan: Plan, catalog: Catalog) -> str:
    """The contract of a plan as text."""
    return written(contract_of(plan, Declarations.of(catalog, "demand")))
