"""Compiled bodies against their interpreter: the rows that they return, the tables that they leave, their errors."""

from __future__ import annotations

from collections import Counter
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
    # a condition that may fail to fit
    "late": """
CREATE AGGREGATE late(x BIGINT, y BIGINT) : (a BIGINT)
{ TABLE t(v BIGINT, w BIGINT); TABLE clock(c BIGINT);
  INITIALIZE: { INSERT INTO clock VALUES (1); }
  ITERATE: {
    DELETE FROM t WHERE v <= (SELECT c FROM clock) - x; DELETE FROM t WHERE (SELECT c FROM clock) - x < w;
    INSERT INTO t VALUES (x % 9, y % 9) WHERE y > 0; INSERT INTO RETURN SELECT v FROM t ORDER BY v LIMIT 2; } }
IGNORE NULLS""",
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
    # tables with a fixed number of rows: constants, values that are changed always and sometimes, joins with each other
    "fixed": """
CREATE AGGREGATE fixed(x BIGINT, y BIGINT) : (a BIGINT, b BIGINT)
{ TABLE f(a BIGINT, b BIGINT, c BIGINT); TABLE g(a BIGINT, d BIGINT); TABLE one(n BIGINT, m BIGINT);
  TABLE seen(k BIGINT, n BIGINT);
  INITIALIZE: { INSERT INTO one VALUES (0, y);
    INSERT INTO f VALUES (0, 3, x), (1, 2, NULL), (2, 2, y % 7); INSERT INTO g VALUES (1, x), (2, 5), (2, x % 3);
    INSERT INTO RETURN SELECT a, c FROM f; }
  ITERATE: {
    UPDATE one SET n = n + 1, m = n; UPDATE one SET m = x WHERE y > 2;
    UPDATE f SET c = x % 10 + a * b; UPDATE f SET c = y % 10, b = c WHERE c > 4 AND a < (SELECT n FROM one);
    UPDATE g SET d = (SELECT MAX(f.c) FROM f WHERE f.a = g.a)
      WHERE EXISTS (SELECT 1 FROM seen s WHERE s.k = g.a + x % 2);
    INSERT INTO seen SELECT f.c, g.d FROM f, g WHERE f.a = g.a AND (SELECT COUNT(*) FROM seen s) < 20;
    UPDATE seen SET n = n + 1 WHERE k IN (SELECT c FROM f);
    INSERT INTO RETURN SELECT k, n FROM seen WHERE k IN (SELECT c FROM f);
    INSERT INTO RETURN SELECT f.c, g.d FROM f LEFT JOIN g ON g.a = f.a AND g.d > 0;
    INSERT INTO RETURN SELECT f.c, one.m FROM f LEFT JOIN one ON one.n = f.a;
    INSERT INTO RETURN SELECT c, b FROM f ORDER BY c, b LIMIT 2;
    INSERT INTO RETURN SELECT b, COUNT(*) FROM f GROUP BY b;
    INSERT INTO RETURN SELECT MIN(c), SUM(b) FROM f WHERE c <> (SELECT m FROM one); } }""",
    # rows found by one key alone, of which several may have the same
    "keyed": """
CREATE AGGREGATE keyed(x BIGINT, y BIGINT) : (a BIGINT, b BIGINT)
{ TABLE t(k BIGINT, n BIGINT, v BIGINT); TABLE these(k BIGINT);
  INITIALIZE: { INSERT INTO these VALUES (x % 5), (y % 5); INSERT INTO t SELECT k, 1, x FROM these; }
  ITERATE: {
    UPDATE these SET k = x % 5 WHERE k > 1; UPDATE these SET k = y % 5 WHERE k < 2;
    INSERT INTO t VALUES (x % 5, 0, y) WHERE y > 2;
    UPDATE t SET n = n + 1 WHERE k IN (SELECT k FROM these);
    INSERT INTO t SELECT k, 1, x FROM these WHERE NOT EXISTS (SELECT 1 FROM t o WHERE o.k = these.k);
    INSERT INTO RETURN SELECT n, v FROM t WHERE k = y % 5;
    INSERT INTO RETURN SELECT MIN(n), COUNT(*) FROM t WHERE k IN (SELECT k FROM these);
    DELETE FROM t WHERE k = x % 5 AND n = 3; DELETE FROM t WHERE n > 4 AND k IN (SELECT k FROM these);
    INSERT INTO RETURN SELECT MAX(v), SUM(n) FROM t WHERE k = x % 5 AND n < 3; } }
IGNORE NULLS""",
    # bounds of columns that have a sorted index, the first row in an order
    "bounds": """
CREATE AGGREGATE bounds(x BIGINT, y BIGINT) : (a BIGINT, b BIGINT)
{ TABLE t(v BIGINT, n BIGINT, w BIGINT); TABLE clock(c BIGINT);
  INITIALIZE: { INSERT INTO clock VALUES (0); INSERT INTO t VALUES (x, 0, y); }
  ITERATE: {
    UPDATE clock SET c = c + 1;
    DELETE FROM t WHERE v <= (SELECT c FROM clock) - y % 100 - 6; DELETE FROM t WHERE 7 < w;
    INSERT INTO t VALUES (x, 1, y), (y, 2, x % 4);
    UPDATE t SET n = n + 1 WHERE v > x; UPDATE t SET n = n + v % 9 WHERE (SELECT c FROM clock) >= v;
    INSERT INTO RETURN SELECT COUNT(*), SUM(n) FROM t WHERE v >= y;
    INSERT INTO RETURN SELECT MIN(n), MAX(w) FROM t WHERE w < x;
    INSERT INTO RETURN VALUES ((SELECT n FROM t ORDER BY v LIMIT 1), (SELECT v FROM t ORDER BY w DESC LIMIT 1)); } }""",
    # EXISTS as a lookup, tables that are empty at times, what is the same for all rows of a loop, groups
    "joined": """
CREATE AGGREGATE joined(x BIGINT, y BIGINT) : (a BIGINT, b BIGINT, c BIGINT)
{ TABLE t(k BIGINT, n BIGINT); TABLE o(k BIGINT, m BIGINT); TABLE one(p BIGINT, q BIGINT);
  INITIALIZE: { INSERT INTO one VALUES (1, x); INSERT INTO t VALUES (x, 1), (y, 2); }
  ITERATE: {
    UPDATE one SET p = p + 1, q = y;
    INSERT INTO o SELECT x, p FROM one WHERE y > 3;
    UPDATE t SET n = n + (SELECT p FROM one) * 2 WHERE EXISTS (SELECT 1 FROM o WHERE o.k = t.k);
    UPDATE t SET n = n + 1 WHERE k > (SELECT q FROM one);
    INSERT INTO RETURN SELECT t.k, MIN(o.m), COUNT(*) FROM t, o WHERE t.n > o.m - 9 GROUP BY t.k;
    INSERT INTO RETURN SELECT n % 2, MAX(k), COUNT(k) FROM t GROUP BY n % 2 HAVING COUNT(*) > 1;
    INSERT INTO RETURN SELECT n % 2, k % 3, SUM(n) FROM t GROUP BY n % 2, k % 3;
    INSERT INTO RETURN SELECT COUNT(*), MAX(t.k % 99 + o.k % 9), MIN(DISTINCT o.m) FROM t, o
      WHERE t.k % 99 - (SELECT q FROM one) % 9 < 3;
    DELETE FROM t WHERE EXISTS (SELECT 1 FROM o WHERE t.k = o.k) AND n > 9;
    INSERT INTO t VALUES (x, 1), (y % 3, NULL);
    DELETE FROM o WHERE m < (SELECT p FROM one) - 2; } }""",
    # ranges of a key, EXISTS from the other table, the least and the greatest row, values of one row
    "ranges": """
CREATE AGGREGATE ranges(x BIGINT, y BIGINT) : (a BIGINT, b BIGINT, c BIGINT)
{ TABLE t(k BIGINT, v BIGINT, n BIGINT); TABLE p(k BIGINT, w BIGINT, m BIGINT); TABLE one(q BIGINT);
  INITIALIZE: { INSERT INTO one VALUES (0); INSERT INTO t VALUES (x % 3, y, 0); INSERT INTO p VALUES (y % 3, x, 1); }
  ITERATE: {
    UPDATE one SET q = q + 1;
    INSERT INTO t VALUES (x % 3, y, 0), (y % 3, x, 1); INSERT INTO p VALUES (x % 3, y % 5, y) WHERE x > 3;
    UPDATE t SET n = n + 1 WHERE k = y % 3 AND v > x; UPDATE t SET n = n + 1 WHERE y >= v AND k = x % 3 AND n < 4;
    UPDATE t SET n = n + 2 WHERE EXISTS (SELECT 1 FROM p WHERE p.k = t.k AND p.w > t.v) AND n > 1;
    INSERT INTO RETURN SELECT MIN(v), MIN(v), MIN(v) FROM t WHERE n > 1;
    INSERT INTO RETURN SELECT MAX(v), COUNT(*), SUM(n) FROM t WHERE k = x % 3;
    INSERT INTO RETURN VALUES ((SELECT MAX(v) FROM t WHERE k = y % 3 AND n < 5), (SELECT MIN(v) FROM t WHERE v >= 3),
      (SELECT MAX(o.v) FROM t o, p WHERE o.k = p.k AND o.v < p.w));
    INSERT INTO RETURN SELECT p.k, (SELECT MAX(t.v) FROM t WHERE t.k = p.k AND t.v <= p.w), p.m FROM p
      WHERE EXISTS (SELECT 1 FROM t WHERE t.k = p.k AND t.v > p.w AND t.n > 0);
    INSERT INTO RETURN SELECT COALESCE((SELECT SUM(n) FROM t WHERE t.k = q % 3), 0) + q, 0, 0 FROM one;
    INSERT INTO RETURN SELECT q, ABS(MIN(v) % 7) - 9, SIGN(MAX(v)) FROM t, one GROUP BY q;
    DELETE FROM t WHERE EXISTS (SELECT 1 FROM p WHERE t.v <= p.w AND p.k = t.k AND p.m < 3);
    DELETE FROM t WHERE k = x % 3 AND v < y AND n > 2; DELETE FROM p WHERE m > 4;
    INSERT INTO t SELECT k, (SELECT MAX(o.v) FROM t o WHERE o.k = p.k), m % 2 FROM p
      WHERE (SELECT COUNT(*) FROM t) < 20; } }""",
    # TERMINATE with the arguments of the last tuple, in queries inside of queries; divisors that are never zero
    "ending": """
CREATE AGGREGATE ending(x BIGINT, y BIGINT) : (a BIGINT, b BIGINT)
{ TABLE t(k BIGINT, n BIGINT); TABLE one(m BIGINT);
  INITIALIZE: { INSERT INTO one VALUES (0); INSERT INTO t VALUES (x % 3, y); }
  ITERATE: { INSERT INTO t VALUES (x % 3, y); UPDATE one SET m = m + 1 WHERE y > 1; }
  TERMINATE: {
    UPDATE t SET n = n % 100 + x % 7 WHERE k = y % 3;
    INSERT INTO RETURN SELECT COUNT(*), MAX(n) FROM t WHERE k = x % 3;
    INSERT INTO RETURN SELECT k, n + y % 9 FROM t
      WHERE n % 5 IN (SELECT m + x % 2 FROM one) AND EXISTS (SELECT 1 FROM t o WHERE o.k = y % 2);
    INSERT INTO RETURN VALUES (y, (SELECT MIN(n) FROM t WHERE n > x)) WHERE y > 3;
    INSERT INTO RETURN SELECT x % (m + 1), y % m FROM one;
    DELETE FROM t WHERE n > 20 AND k < x; } }""",
}
VALUES = st.none() | st.integers(-5, 9) | st.sampled_from([1 << 62, -(1 << 63), 123456789])
SMALL = ("late",)
"""Bodies with arithmetic that the interpreter does not check."""
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


def same_tables(fast: Any, slow: Interpreter) -> bool:
    """Compare tables, those that are found by a key alone in any order."""
    found = fast.save()
    return all(
        Counter(found[name]) == Counter(rows) if name in fast.KEYED else found[name] == rows
        for name, rows in slow.tables.items()
        if name in found
    ) and {*found} <= {*slow.tables, ""}  # the last arguments have no name


@pytest.mark.parametrize("name", BODIES)
@settings(max_examples=tries(150), deadline=None)
@given(TUPLES)
def test_bodies(name: str, tuples: list[tuple[Any, Any]]) -> None:
    body = program(name, f"{name}(x, y)", "ROWS UNBOUNDED PRECEDING")
    fast, slow, started = compiled(body)(), Interpreter(body), False
    for row in tuples:
        if (body.ignore_nulls and None in row) or (name in SMALL and max(map(abs, row)) > 99):
            continue
        found = outcome(fast.iterate if started else fast.initialize, row)
        assert found == outcome(lambda *arguments: slow.take(arguments), row)
        if found is OutOfRange:
            return
        assert same_tables(fast, slow)
        again = compiled(body)()
        again.load(fast.save())
        fast, started = again, True
        if body.terminate:
            ended = outcome(fast.terminate, ())
            assert ended == outcome(slow.terminate, ())
            if ended is OutOfRange:
                return
            assert same_tables(fast, slow)


def test_a_bound_that_does_not_fit_is_found_where_the_table_has_rows() -> None:
    fast = compiled(program("late", "late(x, y)", "ROWS UNBOUNDED PRECEDING"))()
    fast.initialize(0, 0)
    fast.iterate(-(1 << 63), 0)
    fast.iterate(-(1 << 63), 1)
    with pytest.raises(OutOfRange):
        fast.iterate(-(1 << 63), 0)


WINDOWS = {
    "approx_frequency(x)": (),
    "approx_distinct(x)": (),
    "approx_quantile(x, 0.4)": (0.4,),
    "priority_sample(x, 3)": (3,),
}


@pytest.mark.parametrize("call", WINDOWS)
@settings(max_examples=tries(60), deadline=None)
@given(st.lists(st.integers(-5, 9) | st.sampled_from([1 << 62, -(1 << 63)]), max_size=40), st.integers(1, 6))
def test_sketches_of_a_window(call: str, items: list[int], size: int) -> None:
    body = program("library", call, "ROWS 9 PRECEDING")
    rows = [(float(item), *WINDOWS[call]) if WINDOWS[call] else (item,) for item in items]
    fast, slow, quiet = compiled(body)(), Interpreter(body), compiled(body)()
    for at, row in enumerate(rows):
        if at >= size:
            gone = rows[at - size]
            assert [*fast.expire(*gone)] == slow.expire(gone)
            assert not quiet.leave(*gone) and quiet.save() == fast.save()
        assert [*(fast.iterate if at else fast.initialize)(*row)] == slow.take(row)
        assert same_tables(fast, slow)
        quiet.load(fast.save()) if at == 0 else quiet.iterate(*row)


@settings(max_examples=tries(60), deadline=None)
@given(st.lists(st.integers(0, 1), max_size=60), st.integers(1, 20))
def test_ones(bits: list[int], size: int) -> None:
    body = program("library", "approx_ones(x, 9)", "ROWS UNBOUNDED PRECEDING")
    fast, slow = compiled(body)(), Interpreter(body)
    for at, bit in enumerate(bits):
        assert [*(fast.iterate if at else fast.initialize)(bit, size)] == slow.take((bit, size))
        assert same_tables(fast, slow)
