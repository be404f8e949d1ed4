"""Tables that streams write against their reference: at any cut, on any number of shards, restarted."""

from __future__ import annotations

from collections import Counter
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.logical.nodes.table_write import TableWrite
from millstream.runtime.join import written_join
from tests.reference import plan as reference
from tests.reference.written_table import written
from tests.tries import tries

STREAMS = """
CREATE STREAM a (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts;
CREATE STREAM b (k BIGINT, v BIGINT, ts BIGINT) WATERMARK FOR ts AS ts - 3;
CREATE STREAM r (k BIGINT, v BIGINT, ts BIGINT) ORDER BY ts;
"""
KEYED = "CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)"
SPREAD = f"{KEYED} WITH (partitioned = true)"
BAG = "CREATE TABLE t (k BIGINT, v BIGINT)"
CASES: dict[str, tuple[str, list[str]]] = {
    "inserts": (
        BAG,
        ["INSERT INTO t SELECT k, v FROM a WHERE k < 90", "INSERT INTO t (k) SELECT v FROM b WHERE k < 90"],
    ),
    "upserts": (
        KEYED,
        [
            "INSERT INTO t SELECT k, v FROM a WHERE k < 90 ON CONFLICT DO UPDATE SET v = t.v * 2 + excluded.v",
            "INSERT INTO t SELECT k, 7 FROM b WHERE k < 90 ON CONFLICT DO NOTHING",
        ],
    ),
    "spread upserts": (
        SPREAD,
        [
            "INSERT INTO t SELECT k, v FROM a WHERE k < 90 ON CONFLICT DO UPDATE SET v = t.v * 2 + excluded.v",
            "INSERT INTO t SELECT k, 7 FROM b WHERE k < 90 ON CONFLICT DO NOTHING",
        ],
    ),
    "spread": (
        SPREAD,
        [
            "INSERT INTO t SELECT k, v FROM a WHERE k < 90",
            "DELETE FROM t USING b WHERE t.k = b.v AND b.k > 0",
            "UPDATE t SET v = t.v + a.v FROM a WHERE t.k = a.k AND a.v < 90",
        ],
    ),
    "refused": (KEYED, ["INSERT INTO t SELECT k, v FROM a WHERE k < 90", "DELETE FROM t USING b WHERE t.k = b.v"]),
    "all": (
        BAG,
        [
            "INSERT INTO t SELECT k, v FROM a WHERE k < 90",
            "UPDATE t SET v = t.v + b.v FROM b WHERE t.k = b.k",
            "DELETE FROM t USING a WHERE t.k = a.v AND t.v > 2",
            "UPDATE t SET v = (SELECT COUNT(*) FROM t u WHERE u.k = t.k) FROM b WHERE b.v = 1 AND t.k <> b.k",
        ],
    ),
}
READERS = [
    "SELECT r.ts, r.k, t.v FROM r JOIN t ON r.k = t.k",
    "SELECT r.ts, r.k, t.v FROM r LEFT JOIN t ON r.k = t.k AND t.v > r.v",
    "SELECT r.ts, t.k, t.v FROM r, t WHERE r.v > 1",
]
END = 1000
small = st.one_of(st.integers(0, 3), st.none())
tuples = st.lists(st.tuples(small, small, st.integers(0, 8)), max_size=12)
STEP = st.tuples(st.sampled_from("abr"), st.integers(1, 3))


def in_order(rows: list[tuple[Any, ...]], late: int = 0) -> list[tuple[Any, ...]]:
    """The rows by time, each at most `disorder` older than those before it."""
    return sorted(rows, key=lambda row: row[2] + (late * (row[0] or 0)) % 3)


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=tries(25), deadline=None)
@given(
    rows=st.fixed_dictionaries({"a": tuples, "b": tuples, "r": tuples}),
    order=st.lists(STEP, min_size=4, max_size=16),
    shards=st.sampled_from([1, 3]),
    restarts=st.booleans(),
    initial=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=2, unique_by=lambda row: row[0]),
    strategy=st.sampled_from(["dfs", "bfs", "batch:2"]),
    stretch=st.sampled_from([2, written_join.STRETCH]),
)
def test_every_reader_sees_the_writes_before_it(
    case: str, rows: Any, order: Any, shards: int, restarts: bool, initial: Any, strategy: str, stretch: int
) -> None:
    with patch.multiple(written_join, STRETCH=stretch, VERSIONS=1):
        check(case, rows, order, shards, restarts, initial, strategy)


def check(case: str, rows: Any, order: Any, shards: int, restarts: bool, initial: Any, strategy: str) -> None:
    table, statements = CASES[case]
    given = {name: in_order(own, late=name == "b") for name, own in rows.items()}
    ends = {name: (99, 99, END + 10 * (name != "r")) for name in given}
    mill = LocalMill(Options.read(shards=shards, contracts="off", strategy=strategy))
    mill.execute(f"{STREAMS}; {table}")
    mill.insert("t", initial)
    for number, statement in enumerate(statements):
        mill.execute(f"CREATE QUERY w{number} AS {statement}")
    readers = READERS[:2] if "partitioned" in table else READERS
    for number, query in enumerate(readers):
        mill.execute(f"CREATE QUERY q{number} AS {query}")
    plans = {name: query.plan for name, query in mill.queries.items()}
    found: dict[str, list[tuple[Any, ...]]] = {f"q{number}": [] for number in range(len(readers))}
    places = dict.fromkeys(given, 0)

    def take() -> None:
        for name, taken in found.items():
            taken += mill.take_rows(name).rows()

    for name, count in order:
        mill.insert(name, given[name][places[name] : places[name] + count])
        places[name] += count
        mill.batch()
        if restarts:
            take()
            mill = mill.restarted()
    for name, own in given.items():
        mill.insert(name, own[places[name] :])
        mill.insert(name, [ends[name]])
        mill.batch()
    take()
    held = Counter(mill.written.select(select("SELECT k, v FROM t")).rows())
    streams = {name: as_rows([*own, ends[name]]) for name, own in given.items()}
    start = [{"k": k, "v": v} for k, v in initial]
    writers = [plan for plan in plans.values() if isinstance(plan, TableWrite)]
    taken = [(plan.program, reference.run(plan.input, streams, {})) for plan in writers]
    history, refused = written(("k", "v"), start, taken)
    assert held == Counter((row["k"], row["v"]) for row in (history[-1][1] if history else start))
    assert mill.counts("t")["bad"] == refused
    for number in range(len(readers)):
        meant = reference.run(plans[f"q{number}"], streams, {"t": start}, {"t": history})
        expected = Counter(tuple(row.values()) for row, ts in meant if ts < END)
        assert Counter(row for row in found[f"q{number}"] if row[0] < END) == expected
    mill.close()


def as_rows(rows: list[tuple[Any, ...]]) -> reference.Rows:
    """As the source admits them."""
    return [({"k": k, "v": v, "ts": ts}, ts) for k, v, ts in rows]


def select(text: str) -> Any:
    from millstream.lang import ast, parse_one

    statement = parse_one(text)
    assert isinstance(statement, ast.SelectStatement)
    return statement.select
