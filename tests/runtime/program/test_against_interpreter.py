"""Compiled bodies against their interpreter: the rows that they return, the tables that they leave, their errors."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.program.call import ProgramCall
from millstream.algebra.program.program import Program
from millstream.control.mill import LocalMill
from millstream.errors import OutOfRange
from millstream.runtime.program.compile import compiled
from tests.reference.program import Interpreter
from tests.tries import tries

BODIES = {
    # several rows of a key, NULL keys, a query that reads the table it inserts into
    "shared": """
CREATE AGGREGATE shared(x BIGINT, y BIGINT) : (k BIGINT, n BIGINT)
{ TABLE counts(k BIGINT, n BIGINT); TABLE wanted(k BIGINT);
  INITIALIZE: ITERATE: {
    INSERT INTO wanted VALUES (x), (y), (x % 3);
    UPDATE counts SET n = n + 1 WHERE k IN (SELECT k FROM wanted);
    INSERT INTO counts SELECT k, 1 FROM wanted WHERE NOT EXISTS (SELECT 1 FROM counts c WHERE c.k = wanted.k);
    UPDATE counts SET k = k + 1 WHERE n > 4 AND k = y;
    DELETE FROM counts WHERE n > 6 AND k IN (SELECT k FROM wanted);
    INSERT INTO RETURN SELECT c.k, c.n FROM counts c WHERE c.k IN (SELECT k FROM wanted);
    INSERT INTO RETURN SELECT w.k, 0 FROM wanted w WHERE EXISTS (SELECT 1 FROM counts c WHERE c.k = x % 5);
    INSERT INTO RETURN SELECT COUNT(*), MAX(n) FROM counts WHERE k IN (SELECT k FROM wanted);
    DELETE FROM wanted; } }""",
    # each row sees the others as they were before the statement
    "before": """
CREATE AGGREGATE before(x BIGINT, y BIGINT) : (a BIGINT, b BIGINT)
{ TABLE t(a BIGINT, b BIGINT);
  INITIALIZE: { INSERT INTO t VALUES (1, x % 1000), (2, y % 1000), (3, 0), (1, 5); }
  ITERATE: {
    UPDATE t SET b = (SELECT SUM(o.b) FROM t o WHERE o.a < t.a) % 1000 WHERE a > 1;
    UPDATE t SET a = b % 4, b = a WHERE b = x;
    INSERT INTO t SELECT a, y % 1000 FROM t WHERE a = y % 4 AND (SELECT COUNT(*) FROM t o) < 12;
    INSERT INTO RETURN SELECT a, b FROM t ORDER BY a DESC LIMIT 5; } }""",
    # ranges that grow, and values that do not fit
    "growing": """
CREATE AGGREGATE growing(x BIGINT, y BIGINT) : (a BIGINT, b BIGINT)
{ TABLE factors(f BIGINT, shift BIGINT, made BIGINT); TABLE state(p BIGINT);
  INITIALIZE: { INSERT INTO factors VALUES (31, 7, 0), (40503, -977, 0); INSERT INTO state VALUES (2); }
  ITERATE: {
    UPDATE factors SET made = (x % 1000003 * f + shift) % 1021 - made;
    UPDATE factors SET f = f + y WHERE made = y;
    UPDATE state SET p = p * 3 WHERE x > 0;
    INSERT INTO RETURN SELECT made, f * 2 FROM factors; INSERT INTO RETURN SELECT p, p - 1 FROM state; } }
IGNORE NULLS""",
}
VALUES = st.none() | st.integers(-5, 9) | st.sampled_from([1 << 62, -(1 << 63), 123456789])
TUPLES = st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=45)


@cache
def program(name: str, call: str, window: str) -> Program:
    mill = LocalMill()
    mill.execute("SET contracts = 'off'; CREATE STREAM s (ts BIGINT NOT NULL, x BIGINT, y BIGINT) ORDER BY ts")
    if name in BODIES:
        mill.execute(BODIES[name])
    mill.add_query("q", f"SELECT {call} OVER ({window}) AS r FROM s")
    calls = (call for node in mill.queries["q"].plan.walk() for call in getattr(node, "calls", ()))
    found = next(call for call in calls if isinstance(call, ProgramCall))
    return found.program


def outcome(run: Any, row: tuple[Any, ...]) -> Any:
    try:
        return [*run(*row)]
    except OutOfRange:
        return OutOfRange


@pytest.mark.parametrize("name", BODIES)
@settings(max_examples=tries(150), deadline=None)
@given(TUPLES)
def test_bodies(name: str, tuples: list[tuple[Any, Any]]) -> None:
    body = program(name, f"{name}(x, y)", "ROWS UNBOUNDED PRECEDING")
    fast, slow, started = compiled(body)(), Interpreter(body), False
    for row in tuples:
        if body.ignore_nulls and None in row:
            continue
        found = outcome(fast.iterate if started else fast.initialize, row)
        assert found == outcome(lambda *arguments: slow.take(arguments), row)
        if found is OutOfRange:
            return
        assert fast.save() == {table.name: slow.tables[table.name] for table in body.tables}
        again = compiled(body)()
        again.load(fast.save())
        fast, started = again, True


@settings(max_examples=tries(60), deadline=None)
@given(st.lists(st.integers(-5, 9) | st.sampled_from([1 << 62, -(1 << 63)]), max_size=40), st.integers(1, 6))
def test_counters_of_a_window(items: list[int], size: int) -> None:
    body = program("approx_frequency", "approx_frequency(x)", "ROWS 9 PRECEDING")
    fast, slow = compiled(body)(), Interpreter(body)
    for at, item in enumerate(items):
        if at >= size:
            assert [*fast.expire(items[at - size])] == slow.expire((items[at - size],))
        assert [*(fast.iterate if at else fast.initialize)(item)] == slow.take((item,))
        assert fast.save() == {table.name: slow.tables[table.name] for table in body.tables}
