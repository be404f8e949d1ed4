"""No rule changes what a query with outer joins computes: random ones on random data, before and after."""

from __future__ import annotations

import random
from collections import Counter

import duckdb
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.logical.explain import explain
from millstream.logical.nodes.outer_join import OuterJoin
from millstream.optimizer import RULES, optimize
from millstream.optimizer.context import Context
from tests.logical.sample import bind
from tests.optimizer.test_meaning import CATALOG, Queries, bag, stream, table
from tests.reference.plan import run
from tests.tries import tries


class OuterQueries(Queries):
    def __init__(self, seed: int, windows: bool = True) -> None:
        super().__init__(seed)
        self.windows = windows

    def window(self) -> str:
        return self.pick("", " [RANGE 3]", " [NOW]", " [RANGE 2]") if self.windows else ""

    def join(self, left: str, right: str) -> str:
        keys = self.pick(f"{left}.k = {right}.k", f"{left}.k = {right}.v", f"{left}.v <= {right}.v", "TRUE")
        columns = [f"{alias}.{name}" for alias in (left, right) for name in ("k", "v", "ts")]
        return f"{keys}{self.where(*columns).replace(' WHERE ', ' AND ')}"

    def query(self) -> str:
        source = self.pick("b", "(SELECT ts, k, v FROM b WHERE v > 0)", "(SELECT ts, k, v + 1 AS v FROM b)")
        aliases, text = ["x"], f"a x{self.window()}"
        for relation, alias in ((source, "y"), ("c", "z"), ("a", "w"))[: self.draw.randrange(1, 4)]:
            kind = self.pick("LEFT", "RIGHT", "FULL", "INNER")
            text += f" {kind} JOIN {relation} {alias}{self.window()} ON {self.join(self.pick(*aliases), alias)}"
            aliases.append(alias)
        names = [f"{alias}.{name}" for alias in aliases for name in ("k", "v", "ts")]
        select = self.pick("x.v, y.v, y.k", "COALESCE(x.k, y.k) AS k, y.ts", ", ".join(f"{a}.v" for a in aliases))
        return f"SELECT {select} FROM {text}{self.where(*names)}"


@settings(max_examples=tries(40))
@given(st.integers(0), st.integers(0))
def test_against_the_reference(query_seed: int, data_seed: int) -> None:
    text = OuterQueries(query_seed).query()
    plan = bind(text)
    draw = random.Random(data_seed)
    streams = {name: stream(draw) for name in "abc"}
    tables = {"sites": table(draw)}
    expected = bag(run(plan, streams, tables))
    context = Context(CATALOG)
    for rule in RULES:
        plan = rule(plan, context)
        assert bag(run(plan, streams, tables)) == expected, f"{text}\n{rule.__name__}\n{explain(plan)}"
    assert plan == optimize(bind(text), CATALOG)


@settings(max_examples=tries(40))
@given(st.integers(0), st.integers(0))
def test_against_another_database(query_seed: int, data_seed: int) -> None:
    """Over streams that have ended, a query without windows means what it means over tables."""
    text = OuterQueries(query_seed, windows=False).query()
    draw = random.Random(data_seed)
    streams = {name: stream(draw) for name in "abc"}
    with duckdb.connect() as database:
        for name, rows in streams.items():
            written = [f"({row['ts']}, {row['k']}, {row['v']})".replace("None", "NULL") for row, _ in rows]
            database.execute(f"CREATE TABLE {name} (ts BIGINT, k BIGINT, v BIGINT)")
            if written:
                database.execute(f"INSERT INTO {name} VALUES {', '.join(written)}")
        expected = Counter(database.execute(text).fetchall())
    found = Counter(tuple(row.values()) for row, _ in run(bind(text), streams, {}))
    assert found == expected, text


def test_the_queries_have_outer_joins() -> None:
    plans = [bind(OuterQueries(seed).query()) for seed in range(50)]
    found = {node.kept for plan in plans for node in plan.walk() if isinstance(node, OuterJoin)}
    assert found == {"LEFT", "RIGHT", "FULL"}
