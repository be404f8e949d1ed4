"""The same aggregates, written in several ways.

| | |
|---|---|
| `sql_…` | a body of SQL that runs on columns |
| `loop_…` | one that is compiled to a loop over tuples: the needless condition keeps it from columns |
| `own_…` | a loop, and a window of its own instead of `inwindow` and EXPIRE |
| `naive_…` | a loop that reads the whole window for each tuple |
| `python_…` | a class |
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Any

import polars as pl

MEAN = """
CREATE WINDOW AGGREGATE {name}(next DOUBLE) : DOUBLE
{{ TABLE state(total DOUBLE, cnt INT); TABLE inwindow(w DOUBLE);
  INITIALIZE: {{ INSERT INTO state VALUES (next, 1); INSERT INTO RETURN VALUES (next); }}
  ITERATE:    {{ UPDATE state SET total = total + next, cnt = cnt + 1;
                INSERT INTO RETURN SELECT total / cnt FROM state {condition}; }}
  EXPIRE:     {{ UPDATE state SET total = total - oldest().w, cnt = cnt - 1; }} }}
"""
NAIVE_MEAN = """
CREATE WINDOW AGGREGATE naive_mean(next DOUBLE) : DOUBLE
{ TABLE inwindow(w DOUBLE);
  INITIALIZE: ITERATE: { INSERT INTO RETURN SELECT AVG(w) FROM inwindow; } }
"""
OWN_MEAN = """
CREATE AGGREGATE own_mean(next DOUBLE, size INT) : DOUBLE
{ TABLE state(seq INT, total DOUBLE, cnt INT); TABLE kept(seq INT, v DOUBLE);
  INITIALIZE: { INSERT INTO state VALUES (1, next, 1); INSERT INTO kept VALUES (1, next);
                INSERT INTO RETURN VALUES (next); }
  ITERATE:    { UPDATE state SET seq = seq + 1, total = total + next, cnt = cnt + 1;
                INSERT INTO kept SELECT seq, next FROM state;
                UPDATE state SET total = total - (SELECT v FROM kept WHERE kept.seq = state.seq - size), cnt = cnt - 1
                  WHERE seq > size;
                DELETE FROM kept WHERE seq = (SELECT s.seq - size FROM state s);
                INSERT INTO RETURN SELECT total / cnt FROM state; } }
"""
SUM = """
CREATE WINDOW AGGREGATE {name}(next DOUBLE) : DOUBLE
{{ TABLE state(total DOUBLE); TABLE inwindow(w DOUBLE);
  INITIALIZE: {{ INSERT INTO state VALUES (next); INSERT INTO RETURN VALUES (next); }}
  ITERATE:    {{ UPDATE state SET total = total + next; INSERT INTO RETURN SELECT total FROM state {condition}; }}
  EXPIRE:     {{ UPDATE state SET total = total - oldest().w; }} }}
"""
BASE_SUM = """
CREATE AGGREGATE {name}(next DOUBLE) : DOUBLE
{{ TABLE state(total DOUBLE);
  INITIALIZE: {{ INSERT INTO state VALUES (next); }}
  ITERATE:    {{ UPDATE state SET total = total + next; }}
  TERMINATE:  {{ INSERT INTO RETURN SELECT total FROM state {condition}; }} }}
"""
MAX = """
CREATE WINDOW AGGREGATE sql_max(next DOUBLE) : DOUBLE
{ TABLE inwindow(w DOUBLE);
  INITIALIZE: { INSERT INTO RETURN VALUES (next); }
  ITERATE:    { DELETE FROM inwindow WHERE w < next; INSERT INTO RETURN VALUES (oldest()); }
  EXPIRE:     { } }
"""
_PRIMES = (1009, 1013, 1019, 1021)
_COUNTS = (f"(SELECT COUNT(*) FROM inwindow WHERE w % {prime} = item % {prime})" for prime in _PRIMES)
NAIVE_FREQUENCY = f"""
CREATE WINDOW AGGREGATE naive_frequency(item BIGINT) : BIGINT
{{ TABLE inwindow(w BIGINT);
  INITIALIZE: ITERATE: {{ INSERT INTO RETURN VALUES (LEAST({", ".join(_COUNTS)})); }} }}
"""
_NEEDLESS = "WHERE total IS NOT NULL"
STATEMENTS = (
    MEAN.format(name="sql_mean", condition=""),
    MEAN.format(name="loop_mean", condition=_NEEDLESS),
    OWN_MEAN,
    NAIVE_MEAN,
    SUM.format(name="sql_sum", condition=""),
    SUM.format(name="loop_sum", condition=_NEEDLESS),
    SUM.replace("WINDOW", "ALGEBRAIC WINDOW").format(name="pane_sum", condition=_NEEDLESS),
    BASE_SUM.format(name="pane_sum", condition=_NEEDLESS),
    MAX,
    NAIVE_FREQUENCY,
)


class Mean:
    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def iterate(self, x: float) -> None:
        self.total, self.count = self.total + x, self.count + 1

    def expire(self, x: float) -> None:
        self.total, self.count = self.total - x, self.count - 1

    def terminate(self) -> float:
        return self.total / self.count


class Sum:
    def __init__(self) -> None:
        self.total = 0.0

    def iterate(self, x: float) -> None:
        self.total += x

    def expire(self, x: float) -> None:
        self.total -= x

    def terminate(self) -> float:
        return self.total


class Max:
    def __init__(self) -> None:
        self.values: list[float] = []

    def iterate(self, x: float) -> None:
        insort(self.values, x)

    def expire(self, x: float) -> None:
        del self.values[bisect_left(self.values, x)]

    def terminate(self) -> float:
        return self.values[-1]


class Frequency:
    def __init__(self) -> None:
        self.counters: dict[int, int] = {}

    def places(self, item: int) -> list[int]:
        return [h * 2048 + item % prime for h, prime in enumerate(_PRIMES)]

    def iterate(self, item: int) -> int:
        counters, places = self.counters, self.places(item)
        for place in places:
            counters[place] = counters.get(place, 0) + 1
        return min(counters[place] for place in places)

    def expire(self, item: int) -> None:
        for place in self.places(item):
            self.counters[place] -= 1


class Ewma:
    """Whole columns of a partition at a time."""

    def __init__(self) -> None:
        self.last: float | None = None

    def iterate(self, x: pl.Series) -> pl.Series:
        before = pl.Series([x[0] if self.last is None else self.last])
        values = pl.concat([before, x]).ewm_mean(alpha=0.1, adjust=False)[1:]
        self.last = values[-1]
        return values


CLASSES: dict[str, tuple[type, dict[str, Any]]] = {
    "python_mean": (Mean, {}),
    "python_sum": (Sum, {}),
    "python_max": (Max, {}),
    "python_frequency": (Frequency, {}),
    "python_ewma": (Ewma, {"arguments": ["DOUBLE"], "returns": "DOUBLE"}),
}
