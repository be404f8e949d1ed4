"""No rule changes what a query computes: random queries on random data, before and after, against the reference."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.logical.explain import explain
from millstream.optimizer import RULES, optimize
from millstream.optimizer.context import Context
from tests.logical.sample import bind, sample_catalog
from tests.reference.meaning.relation import Row, Rows
from tests.reference.plan import run
from tests.tries import tries

CATALOG = sample_catalog()


class Queries:
    """Draws a query over the streams a, b, c and the table sites."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def pick(self, *choices: str) -> str:
        return self.draw.choice(choices)

    def condition(self, *names: str) -> str:
        one, other = self.pick(*names), self.pick(*names)
        number = self.draw.randrange(4)
        return self.pick(
            f"{one} > {number}",
            f"{number} >= {one}",
            f"{one} = {number}",
            f"{one} IN ({number}, 1, NULL)",
            f"{one} < {other} + 1",
            f"{one} IS NOT NULL",
            f"NOT ({one} = {number} AND {other} > 0)",
            f"COALESCE({one}, 1) <> {number} OR {other} = 2",
            f"ABS({one}) + {other} > {number}",
            f"{one} BETWEEN {number} AND {number} + 1",
        )

    def where(self, *names: str) -> str:
        found = [self.condition(*names) for _ in range(self.draw.randrange(3))]
        return f" WHERE {' AND '.join(f'({c})' for c in found)}" if found else ""

    def source(self, depth: int = 0) -> str:
        """A relation with columns ts, k, v."""
        stream = self.pick("a", "b", "c")
        if depth > 1:
            return stream
        return self.pick(
            stream,
            stream,
            f"(SELECT ts, k, v FROM {self.source(depth + 1)}{self.where('k', 'v', 'ts')})",
            f"(SELECT ts, k, v + 1 AS v FROM {self.source(depth + 1)})",
            f"(SELECT ts, k, v FROM a UNION ALL SELECT ts, v AS k, k AS v FROM b{self.where('k', 'v')})",
            f"(SELECT DISTINCT ts, k, v FROM {self.source(depth + 1)})",
            f"(SELECT window_end AS ts, k, SUM(v) AS v FROM {self.source(depth + 1)} x [RANGE 4 SLIDE 2] GROUP BY k)",
            "(SELECT x.ts AS ts, x.k, y.v FROM a [RANGE 3] x, b y WHERE x.k = y.k AND x.v > y.v)",
            f"(SELECT ts, k, {self.running('a')} AS v FROM a)",
        )

    def running(self, stream: str) -> str:
        """A running aggregate over a stream, in which tuples have a definite order."""
        call = self.pick("SUM(v)", "COUNT(*)", "MAX(v)", f"AVG({stream}.v + 1)", "FIRST(v)", "LAG(v)", "MEDIAN(v)")
        frames = ("ROWS 1 PRECEDING", "RANGE 2 PRECEDING", "UNBOUNDED PRECEDING")
        return f"{call} OVER ({self.pick('', 'PARTITION BY k ')}{self.pick(*frames)})"

    def window(self) -> str:
        return self.pick("", " [RANGE 3]", " [RANGE 5]", " [ROWS 1]", " [ROWS 2]", " [ROWS 0]", " [NOW]")

    def windows(self) -> tuple[str, str]:
        one, other = self.window(), self.window()
        return one, " [ROWS 1]" if one == other == " [ROWS 0]" else other  # two of no rows are refused

    def query(self) -> str:
        names = ("x.k", "y.k", "x.v", "y.v", "x.ts", "y.ts")
        match self.draw.randrange(8):
            case 0:
                return f"SELECT k, v, k + v AS z FROM {self.source()} x{self.where('k', 'v', 'ts')}"
            case 1:
                keys = self.pick("x.k = y.k", "x.k = y.v", "x.k = y.k AND x.v = y.v", "x.v <= y.v")
                more = self.where(*names).replace(" WHERE ", " AND ")
                windows = self.windows()
                sides = f"{self.source()} x{windows[0]}, {self.source()} y{windows[1]}"
                return f"SELECT x.v, y.v, y.k FROM {sides} WHERE {keys}{more}"
            case 2:
                call = self.pick("COUNT(*)", "SUM(v)", "MIN(v)", "MAX(v)", "AVG(v)", "MAX(v) - MIN(v)", "SUM(v + 1)")
                window = self.pick("[RANGE 4 SLIDE 2]", "[RANGE 3 SLIDE 2]", "[RANGE 4]", "[RANGE 2 SLIDE 3]", "")
                having = self.pick("", " HAVING k > 0", " HAVING COUNT(*) > 1 AND k < 2")
                source = f"{self.source()} x {window}{self.where('k', 'v')}"
                return f"SELECT k, {call} AS z FROM {source} GROUP BY k{having}"
            case 3:
                outer = self.pick("JOIN", "LEFT JOIN")
                where = self.where("x.k", "x.v", "sites.k")
                return f"SELECT x.v, city FROM {self.source()} x {outer} sites ON x.k = sites.k{where}"
            case 4:
                mode = self.pick("RECENT", "CHRONICLE")
                more = self.where(*names).replace(" WHERE ", " AND ")
                keys = self.pick("", " AND x.k = y.k")
                inner = f"SELECT x.v AS p, y.v AS q, y.k FROM a x, b y WHERE SEQ(x, y) MODE {mode}{keys}{more}"
                return f"SELECT p, q FROM ({inner}) z{self.where('p', 'q', 'k')}"
            case 5:
                more = self.where(*names, "z.k", "z.v").replace(" WHERE ", " AND ")
                sides = f"a [RANGE 3] x, {self.source()} y [RANGE 4], c z"
                return f"SELECT x.v, y.v, z.ts FROM {sides} WHERE x.k = y.k AND y.k = z.k{more}"
            case 6:
                inner = f"SELECT ts, k, v, {self.running('b')} AS p, {self.running('b')} AS q FROM b"
                return f"SELECT k, p, q FROM ({inner}) z{self.where('p', 'q', 'k', 'v')}"
            case _:
                inner = f"SELECT x.k, y.v FROM {self.source()} x, b y WHERE x.k = y.k"
                return f"SELECT DISTINCT k, v FROM ({inner}) z{self.where('k', 'v')}"


def stream(draw: random.Random) -> Rows:
    size = draw.randrange(7)
    times = sorted(draw.randrange(9) for _ in range(size))

    def row(ts: int) -> Row:
        k, v = (draw.choice((0, 1, 2, None)) for _ in range(2))
        return {"ts": ts, "k": k, "v": v, "note": "n"}

    return [(row(ts), ts) for ts in times]


def table(draw: random.Random) -> list[Row]:
    return [{"k": draw.choice((0, 1, 2, None)), "city": draw.choice("xy"), "open": True} for _ in range(3)]


def bag(rows: Rows) -> Counter[Any]:
    return Counter((tuple(row.values()), ts) for row, ts in rows)


@settings(max_examples=tries(200))
@given(st.integers(0, 2**40))
def test_optimizing_keeps_the_result(seed: int) -> None:
    text = Queries(seed).query()
    plan = bind(text, CATALOG)
    made = optimize(plan, CATALOG)
    assert made.schema.attributes == plan.schema.attributes
    again = optimize(made, CATALOG)
    draw = random.Random(seed + 1)
    for _ in range(4):
        streams, tables = {name: stream(draw) for name in "abc"}, {"sites": table(draw)}
        expected = bag(run(plan, streams, tables))
        for after in (made, again):
            assert bag(run(after, streams, tables)) == expected, f"{text}\n{explain(plan)}\n{explain(after)}"


@pytest.mark.parametrize("rule", dict.fromkeys(RULES), ids=lambda rule: rule.__name__)
def test_each_rule_alone_keeps_the_result(rule: Any) -> None:
    for seed in range(40):
        plan = bind(Queries(seed).query(), CATALOG)
        made = rule(plan, Context(CATALOG))
        draw = random.Random(seed)
        streams, tables = {name: stream(draw) for name in "abc"}, {"sites": table(draw)}
        assert bag(run(plan, streams, tables)) == bag(run(made, streams, tables))
