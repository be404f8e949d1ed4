"""Aggregates that are hard to get right, each twice: as a SQL body, and in plain Python over lists.

The second form has `window`, a list of tuples, and methods for the blocks, each of which returns a list of rows. It
never shares code with the compiler of bodies.
"""

from __future__ import annotations

from typing import Any

Row = tuple[Any, ...]


class Body:
    """`window` holds the tuples in the window, the oldest first; a body may remove some."""

    window: list[Row]

    def initialize(self, x: Any) -> list[Row]:
        return self.iterate(x)

    def iterate(self, x: Any) -> list[Row]:
        raise NotImplementedError

    def expire(self, x: Any) -> list[Row]:
        return []

    def terminate(self) -> list[Row]:
        return []


def known(values: list[Any]) -> list[Any]:
    return [value for value in values if value is not None]


def remainder(x: int) -> int:
    """`x % 2` of SQL, with the sign of x."""
    return -(-x % 2) if x < 0 else x % 2


class Keeper(Body):
    """Deletes every tuple that is not greater than the new one, the new one too if it is odd."""

    SQL = """CREATE WINDOW AGGREGATE agg(x BIGINT) : BIGINT { TABLE inwindow(w BIGINT);
      INITIALIZE: ITERATE: {
        DELETE FROM inwindow WHERE w < x; DELETE FROM inwindow WHERE w = x AND x % 2 = 1;
        INSERT INTO RETURN SELECT COUNT(*) FROM inwindow; }
      EXPIRE: { INSERT INTO RETURN SELECT COUNT(*) + 100 FROM inwindow; } }"""

    def iterate(self, x: Any) -> list[Row]:
        self.window[:] = [w for w in self.window if not (w[0] is not None and x is not None and w[0] < x)]
        odd = x is not None and remainder(x) == 1
        self.window[:] = [w for w in self.window if not (odd and w[0] == x)]
        return [(len(self.window),)]

    def expire(self, x: Any) -> list[Row]:
        return [(len(self.window) + 100,)]


class Echo(Body):
    """EXPIRE inserts a row for each tuple that is left, and one of its own."""

    SQL = """CREATE WINDOW AGGREGATE agg(x BIGINT) : BIGINT { TABLE inwindow(w BIGINT);
      INITIALIZE: ITERATE: { INSERT INTO RETURN VALUES (x), (oldest()); }
      EXPIRE: { INSERT INTO RETURN SELECT w FROM inwindow; INSERT INTO RETURN VALUES (x + 1000) WHERE x > 1; } }"""

    def iterate(self, x: Any) -> list[Row]:
        return [(x,), (self.window[0][0],)]

    def expire(self, x: Any) -> list[Row]:
        return [*self.window, *([(x + 1000,)] if x is not None and x > 1 else [])]


class Once(Body):
    """Several events in one block, and a table that grows and is emptied."""

    SQL = """CREATE WINDOW AGGREGATE agg(x BIGINT) : BIGINT { TABLE seen(v BIGINT); TABLE inwindow(w BIGINT);
      INITIALIZE: ITERATE: EXPIRE: {
        INSERT INTO seen VALUES (x);
        DELETE FROM seen WHERE (SELECT COUNT(*) FROM seen) > 4;
        INSERT INTO RETURN SELECT COUNT(*) * 1000 + COUNT(DISTINCT v) FROM seen; } }"""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def iterate(self, x: Any) -> list[Row]:
        self.seen.append(x)
        if len(self.seen) > 4:
            self.seen.clear()
        return [(len(self.seen) * 1000 + len({*known(self.seen)}),)]

    expire = iterate


class Nested(Body):
    """Subqueries in subqueries, with names of the query around them."""

    SQL = """CREATE WINDOW AGGREGATE agg(x BIGINT) : BIGINT { TABLE inwindow(w BIGINT);
      INITIALIZE: ITERATE: { INSERT INTO RETURN
        SELECT (SELECT COUNT(*) FROM inwindow b WHERE b.w > a.w
                AND NOT EXISTS (SELECT c.w FROM inwindow c WHERE c.w > b.w AND c.w < x))
        FROM inwindow a WHERE a.w IN (SELECT MIN(d.w) FROM inwindow d) LIMIT 1; } }"""

    def iterate(self, x: Any) -> list[Row]:
        values = [w for (w,) in self.window]
        least = min(known(values), default=None)

        def above(a: Any) -> int:
            def blocked(b: Any) -> bool:
                return any(c is not None and x is not None and c > b and c < x for c in values)

            return sum(b is not None and b > a and not blocked(b) for b in values)

        return [(above(a),) for a in values if a is not None and a == least][:1]


class Ordered(Body):
    """ORDER BY with ties and NULLs, LIMIT and OFFSET."""

    SQL = """CREATE WINDOW AGGREGATE agg(x BIGINT) : BIGINT { TABLE inwindow(w BIGINT);
      INITIALIZE: ITERATE: { INSERT INTO RETURN SELECT w FROM inwindow ORDER BY w DESC LIMIT 2 OFFSET 1; }
      EXPIRE: { INSERT INTO RETURN SELECT w FROM inwindow WHERE w <> x OR x IS NULL ORDER BY w LIMIT 1; } }"""

    def iterate(self, x: Any) -> list[Row]:
        return sorted(self.window, key=lambda w: (w[0] is None, -(w[0] or 0)))[1:3]

    def expire(self, x: Any) -> list[Row]:
        kept = [w for w in self.window if x is None or (w[0] is not None and w[0] != x)]
        return sorted(kept, key=lambda w: (w[0] is None, w[0] or 0))[:1]


class Joined(Body):
    """A local table joined with the window, LEFT JOIN and GROUP BY."""

    SQL = """CREATE WINDOW AGGREGATE agg(x BIGINT) : BIGINT { TABLE hits(v BIGINT, n BIGINT); TABLE inwindow(w BIGINT);
      INITIALIZE: ITERATE: {
        UPDATE hits SET n = n + 1 WHERE v = x;
        INSERT INTO hits VALUES (x, 1) WHERE NOT EXISTS (SELECT v FROM hits WHERE v = x);
        INSERT INTO RETURN SELECT SUM(q.n) FROM
          (SELECT h.v AS v, h.n AS n, COUNT(i.w) AS c FROM hits h LEFT JOIN inwindow i ON i.w = h.v GROUP BY h.v, h.n) q
          WHERE q.c = 0 HAVING COUNT(*) > 0; }
      EXPIRE: { DELETE FROM hits WHERE v = x AND n > 2; } }"""

    def __init__(self) -> None:
        self.hits: list[list[Any]] = []

    def iterate(self, x: Any) -> list[Row]:
        found = [hit for hit in self.hits if x is not None and hit[0] == x]
        for hit in found:
            hit[1] += 1
        if not found:
            self.hits.append([x, 1])
        counts: dict[Row, int] = {}
        for v, n in self.hits:
            counts[v, n] = counts.get((v, n), 0) + sum(v is not None and w == v for (w,) in self.window)
        zero = [n for (v, n), count in counts.items() if count == 0]
        return [(sum(zero),)] if zero else []

    def expire(self, x: Any) -> list[Row]:
        self.hits = [hit for hit in self.hits if not (x is not None and hit[0] == x and hit[1] > 2)]
        return []


class Emptied(Body):
    """The body empties its own window: nothing expires, and oldest() is NULL."""

    SQL = """CREATE WINDOW AGGREGATE agg(x BIGINT) : BIGINT { TABLE inwindow(w BIGINT);
      INITIALIZE: { INSERT INTO RETURN VALUES (oldest()); }
      ITERATE: { DELETE FROM inwindow WHERE x = 2; INSERT INTO RETURN VALUES (oldest()); }
      EXPIRE: { INSERT INTO RETURN SELECT COUNT(*) - 1 FROM inwindow; } }"""

    def initialize(self, x: Any) -> list[Row]:
        return [self.window[0]]

    def iterate(self, x: Any) -> list[Row]:
        if x == 2:
            self.window.clear()
        return [self.window[0] if self.window else (None,)]

    def expire(self, x: Any) -> list[Row]:
        return [(len(self.window) - 1,)]


class Swapped(Body):
    """Assignments see the row before the statement; a statement sees the tables before it."""

    SQL = """CREATE WINDOW AGGREGATE agg(x BIGINT) : BIGINT { TABLE st(a BIGINT, b BIGINT); TABLE inwindow(w BIGINT);
      INITIALIZE: { INSERT INTO st VALUES (x, 0); INSERT INTO RETURN SELECT a * 10 + b FROM st; }
      ITERATE: { UPDATE st SET a = b, b = a; UPDATE st SET a = a + x WHERE x > 0;
                 INSERT INTO st SELECT a, b FROM st WHERE (SELECT COUNT(*) FROM st) < 3 AND x = 3;
                 INSERT INTO RETURN SELECT a * 10 + b FROM st; }
      EXPIRE: { UPDATE st SET b = b - 1; DELETE FROM st WHERE b < -3; } }"""

    def __init__(self) -> None:
        self.rows: list[list[Any]] = []

    def _shown(self) -> list[Row]:
        return [(None if a is None or b is None else a * 10 + b,) for a, b in self.rows]

    def initialize(self, x: Any) -> list[Row]:
        self.rows.append([x, 0])
        return self._shown()

    def iterate(self, x: Any) -> list[Row]:
        self.rows = [[b, a] for a, b in self.rows]
        if x is not None and x > 0:
            self.rows = [[None if a is None else a + x, b] for a, b in self.rows]
        if x == 3 and len(self.rows) < 3:
            self.rows += [[*row] for row in self.rows]
        return self._shown()

    def expire(self, x: Any) -> list[Row]:
        self.rows = [[a, None if b is None else b - 1] for a, b in self.rows]
        self.rows = [row for row in self.rows if not (row[1] is not None and row[1] < -3)]
        return []


class Blocking(Body):
    """A base version with rows from ITERATE and from TERMINATE, which changes the state."""

    SQL = """CREATE AGGREGATE agg(x BIGINT) : BIGINT { TABLE st(n BIGINT, s BIGINT);
      INITIALIZE: { INSERT INTO st VALUES (1, COALESCE(x, 0)); }
      ITERATE: { UPDATE st SET n = n + 1, s = s + COALESCE(x, 0);
                 INSERT INTO RETURN SELECT s FROM st WHERE n % 3 = 0; }
      TERMINATE: { UPDATE st SET s = s + 100; INSERT INTO RETURN SELECT s * 10 + n FROM st; } }"""
    BASE = True

    def initialize(self, x: Any) -> list[Row]:
        self.n, self.s = 1, x or 0
        return []

    def iterate(self, x: Any) -> list[Row]:
        self.n, self.s = self.n + 1, self.s + (x or 0)
        return [(self.s,)] if self.n % 3 == 0 else []

    def terminate(self) -> list[Row]:
        self.s += 100
        return [(self.s * 10 + self.n,)]


class Silent(Body):
    """A base version that may return nothing, or several rows of a table of many."""

    SQL = """CREATE AGGREGATE agg(x BIGINT) : BIGINT { TABLE st(v BIGINT);
      INITIALIZE: ITERATE: { INSERT INTO st VALUES (x); DELETE FROM st WHERE v < x - 2; }
      TERMINATE: { INSERT INTO RETURN SELECT v + 1 FROM st WHERE v >= 2
                   UNION ALL SELECT SUM(v) FROM st HAVING COUNT(v) > 2; } }"""
    BASE = True

    def __init__(self) -> None:
        self.rows: list[Any] = []

    def iterate(self, x: Any) -> list[Row]:
        self.rows.append(x)
        self.rows = [v for v in self.rows if not (v is not None and x is not None and v < x - 2)]
        return []

    def terminate(self) -> list[Row]:
        held = known(self.rows)
        return [*((v + 1,) for v in held if v >= 2), *([(sum(held),)] if len(held) > 2 else [])]


class Ending(Body):
    """TERMINATE uses the argument of the last tuple, and changes the state by it."""

    SQL = """CREATE AGGREGATE agg(x BIGINT) : BIGINT { TABLE st(v BIGINT);
      INITIALIZE: ITERATE: { INSERT INTO st VALUES (x); }
      TERMINATE: { INSERT INTO RETURN SELECT COUNT(*) * 10 + COALESCE(x, 7) FROM st WHERE v = x OR x IS NULL;
                   DELETE FROM st WHERE v < x; } }"""
    BASE = True

    def __init__(self) -> None:
        self.rows: list[Any] = []

    def iterate(self, x: Any) -> list[Row]:
        self.rows.append(x)
        self.last = x
        return []

    def terminate(self) -> list[Row]:
        x = self.last
        count = len(self.rows) if x is None else self.rows.count(x)
        self.rows = [v for v in self.rows if not (v is not None and x is not None and v < x)]
        return [(count * 10 + (7 if x is None else x),)]


class Called(Body):
    """Calls the base version of another aggregate over a subquery of its window, grouped."""

    SQL = """CREATE AGGREGATE inner_agg(y BIGINT) : BIGINT { TABLE st(m BIGINT);
        INITIALIZE: { INSERT INTO st VALUES (y); } ITERATE: { UPDATE st SET m = m * 2 + y; }
        TERMINATE: { INSERT INTO RETURN SELECT m FROM st WHERE m > 0; } } IGNORE NULLS;
      CREATE WINDOW AGGREGATE agg(x BIGINT) : BIGINT { TABLE inwindow(w BIGINT);
        INITIALIZE: ITERATE: { INSERT INTO RETURN SELECT inner_agg(w) FROM inwindow GROUP BY w % 2 ORDER BY 1; } }"""

    def iterate(self, x: Any) -> list[Row]:
        found = []
        for key in (-1, 0, 1):
            state: Any = None
            for w in (w for (w,) in self.window if w is not None and remainder(w) == key):
                state = w if state is None else state * 2 + w
            if state is not None and state > 0:
                found.append((state,))
        return sorted(found)


class Delayed(Body):
    """Uses oldest() in EXPIRE and in conditions; returns the tuple after the one that leaves."""

    SQL = """CREATE WINDOW AGGREGATE agg(x BIGINT) : BIGINT { TABLE gone(n BIGINT); TABLE inwindow(w BIGINT);
      INITIALIZE: { INSERT INTO gone VALUES (0); }
      ITERATE: { INSERT INTO RETURN SELECT n FROM gone WHERE x >= oldest(); }
      EXPIRE: { UPDATE gone SET n = n + 1 WHERE oldest() = x OR x IS NULL;
                INSERT INTO RETURN SELECT w * 10 FROM inwindow LIMIT 1 OFFSET 1; } }"""

    def initialize(self, x: Any) -> list[Row]:
        self.n = 0
        return []

    def iterate(self, x: Any) -> list[Row]:
        first = self.window[0][0]
        return [(self.n,)] if x is not None and first is not None and x >= first else []

    def expire(self, x: Any) -> list[Row]:
        self.n += 1
        return [(None if w is None else w * 10,) for (w,) in self.window[1:2]]


BODIES: list[type[Body]] = [
    Keeper, Echo, Once, Nested, Ordered, Joined, Emptied, Swapped, Blocking, Silent, Ending, Called,
    Delayed,
]  # fmt: skip
