"""AVG, MAX and SUM as built-in functions, in SQL (on columns and compiled) and in Python: all have the results of one
brute-force computation, over every frame, with ties, at any cut, on any number of shards, restarted.

With NULLs the user's versions ignore them: such a tuple repeats the last result of its partition, and never expires.
Built-in functions agree with that where a tuple has a value.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from millstream.config import Options
from millstream.control.mill import LocalMill
from millstream.logical.bind import over as binding
from millstream.runtime.over import row_frames
from tests.tries import tries

IN_SQL = """
CREATE AGGREGATE sql_avg(Next Real) : Real
{ TABLE state(tsum Real, cnt Int);
  INITIALIZE: { INSERT INTO state VALUES (Next, 1); }
  ITERATE:    { UPDATE state SET tsum = tsum + Next, cnt = cnt + 1; }
  TERMINATE:  { INSERT INTO RETURN SELECT tsum / cnt FROM state; } } IGNORE NULLS
CREATE WINDOW AGGREGATE sql_avg(Next Real) : Real
{ TABLE state(tsum Real, cnt Int); TABLE inwindow(wnext Real);
  INITIALIZE: { INSERT INTO state VALUES (Next, 1); INSERT INTO RETURN VALUES (Next); }
  ITERATE:    { UPDATE state SET tsum = tsum + Next, cnt = cnt + 1; INSERT INTO RETURN SELECT tsum / cnt FROM state; }
  EXPIRE:     { UPDATE state SET cnt = cnt - 1, tsum = tsum - oldest().wnext;
                INSERT INTO RETURN SELECT tsum / cnt FROM state WHERE cnt > 0; } } IGNORE NULLS

CREATE AGGREGATE sql_sum(Next Real) : Real
{ TABLE state(s Real);
  INITIALIZE: { INSERT INTO state VALUES (Next); }
  ITERATE:    { UPDATE state SET s = s + Next; }
  TERMINATE:  { INSERT INTO RETURN SELECT s FROM state; } } IGNORE NULLS
CREATE ALGEBRAIC WINDOW AGGREGATE sql_sum(Next Real) : Real
{ TABLE state(s Real, n Int); TABLE inwindow(wnext Real);
  INITIALIZE: { INSERT INTO state VALUES (Next, 1); INSERT INTO RETURN VALUES (Next); }
  ITERATE:    { UPDATE state SET s = s + Next, n = n + 1; INSERT INTO RETURN SELECT s FROM state; }
  EXPIRE:     { UPDATE state SET s = s - Next, n = n - 1;
                INSERT INTO RETURN SELECT s FROM state WHERE n > 0; } } IGNORE NULLS

CREATE AGGREGATE sql_max(Next Real) : Real
{ TABLE state(m Real);
  INITIALIZE: { INSERT INTO state VALUES (Next); }
  ITERATE:    { UPDATE state SET m = Next WHERE Next > m; }
  TERMINATE:  { INSERT INTO RETURN SELECT m FROM state; } } IGNORE NULLS
CREATE ALGEBRAIC WINDOW AGGREGATE sql_max(Next Real) : Real
{ TABLE inwindow(wnext Real);
  INITIALIZE: ITERATE: { INSERT INTO RETURN SELECT max(wnext) FROM inwindow; }
  EXPIRE: { INSERT INTO RETURN SELECT wnext FROM (SELECT wnext FROM inwindow LIMIT 1000 OFFSET 1) later
              ORDER BY wnext DESC LIMIT 1; } } IGNORE NULLS

CREATE AGGREGATE naive_avg(Next Real) : Real
{ TABLE state(tsum Real, cnt Int);
  INITIALIZE: { INSERT INTO state VALUES (Next, 1); }
  ITERATE:    { UPDATE state SET tsum = tsum + Next, cnt = cnt + 1; }
  TERMINATE:  { INSERT INTO RETURN SELECT tsum / cnt FROM state; } } IGNORE NULLS
"""


class Sum:
    def initialize(self, x: float) -> None:
        self.total = x

    def iterate(self, x: float) -> None:
        self.total += x

    def expire(self, x: float) -> None:
        self.total -= x

    def terminate(self) -> float:
        return self.total


class Average:
    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def iterate(self, x: float) -> None:
        self.total, self.count = self.total + x, self.count + 1

    def expire(self, x: float) -> None:
        self.total, self.count = self.total - x, self.count - 1

    def terminate(self) -> float:
        return self.total / self.count


class Highest:
    """Without `expire`: computed anew for each frame."""

    def __init__(self) -> None:
        self.top: float | None = None

    def iterate(self, x: float) -> None:
        self.top = x if self.top is None else max(self.top, x)

    def terminate(self) -> float | None:
        return self.top


Function = Callable[[list[float]], float]
MEANT: dict[str, Function] = {"avg": lambda v: sum(v) / len(v), "sum": sum, "max": max}
VERSIONS = {
    "avg": ["sql_avg", "naive_avg", "python_avg"],
    "sum": ["sql_sum", "python_sum"],
    "max": ["sql_max", "python_max", "window_max"],
}
PYTHON: dict[str, type] = {"python_avg": Average, "python_sum": Sum, "python_max": Highest}


class Frame(NamedTuple):
    unit: str
    size: int | None
    slide: int | None = None
    active: bool = False

    def __str__(self) -> str:
        size = "UNBOUNDED" if self.size is None else self.size
        slide = "" if self.slide is None else f" SLIDE {self.slide}"
        return f"{self.unit} {size} PRECEDING{slide}{' ACTIVE EXPIRATION' if self.active else ''}"


FRAMES = [
    Frame("ROWS", 0),
    Frame("ROWS", 3),
    Frame("RANGE", 0),
    Frame("RANGE", 4),
    Frame("RANGE", None),
    Frame("ROWS", 3, 2),
    Frame("ROWS", 5, 4),
    Frame("ROWS", 1, 3),
    Frame("ROWS", 2, 3),
    Frame("RANGE", 6, 2),
    Frame("RANGE", 5, 3),
    Frame("RANGE", 2, 5),
    Frame("RANGE", 4, 4),
    Frame("RANGE", 0, active=True),
    Frame("RANGE", 3, active=True),
]
Tuple = tuple[int, int, float | None]
"""Time, partition, value."""


def brute_force(rows: list[Tuple], frame: Frame, by: bool, function: Function) -> Iterator[Any]:
    """Time, partition, value and result of each row that is emitted, from the definitions and the whole history."""
    ordered = sorted(rows, key=lambda row: row[0])
    for group in {row[1] for row in rows} if by else {None}:
        own = [row for row in ordered if group in (None, row[1])]
        yield from (with_expiries if frame.active else emitted)(own, frame, function)


def emitted(own: list[Tuple], frame: Frame, function: Function) -> list[Any]:
    """The results of one partition."""
    results, last = [], None
    for n, (ts, k, v) in enumerate(own):
        if v is not None:
            last = function([w for _, _, w in inside(own, n, frame) if w is not None])
        results.append((ts, k, v, last))
    if frame.slide is None:
        return results
    if frame.unit == "ROWS":
        return results[frame.slide - 1 :: frame.slide]
    return [*{row[0] // frame.slide: row for row in results}.values()]


def inside(own: list[Tuple], n: int, frame: Frame) -> list[Tuple]:
    """The tuples of the frame that ends with the n-th."""
    if frame.size is None:
        return own[: n + 1]
    if frame.unit == "ROWS":
        return own[max(0, n - frame.size) : n + 1]
    return [row for row in own[: n + 1] if row[0] >= own[n][0] - frame.size]


def with_expiries(own: list[Tuple], frame: Frame, function: Function) -> Iterator[Any]:
    """The results of one partition of an active frame, whose tuples leave after those of the same time have come."""
    assert frame.size is not None
    known = [(ts, 0, n) for n, (ts, _, _) in enumerate(own)]
    known += [(ts + frame.size, 1, n) for n, (ts, _, v) in enumerate(own) if v is not None]
    window: dict[int, float] = {}
    last: float | None = None
    for time, leaves, n in sorted(known):
        _, k, v = own[n]
        if leaves:
            del window[n]
            if not window:
                continue  # no row, and the last result stays
            last = function([*window.values()])
        elif v is not None:
            window[n] = v
            last = function([*window.values()])
        yield time, k, v, last


def stream(seed: int, nulls: bool, late: int) -> list[Tuple]:
    """Tuples with ties, at most `late` out of order."""
    draw, rows, now = random.Random(seed), list[Tuple](), 0
    for _ in range(draw.choice([2, 8, 25])):
        now += draw.choice([0, 0, 1, 1, 2, 8])
        value = None if nulls and draw.random() < 0.3 else draw.choice([-2.0, 0.5, 3.0, 3.0, 40.0])
        rows.append((now - draw.randint(0, late), draw.choice([1, 1, 2]), value))
    return rows


def found_of(mill: LocalMill, queries: list[str], rows: list[Tuple], seed: int) -> dict[str, Counter[Any]]:
    """The rows of each query; the stream is cut at random, and the mill restarted now and then."""
    found: dict[str, Counter[Any]] = {name: Counter() for name in queries}
    draw = random.Random(seed)

    def taken() -> None:
        mill.batch()
        for name in queries:
            found[name].update(map(rounded, mill.take_rows(name).rows()))

    for row in rows:
        mill.insert("s", [row])
        if draw.random() < 0.3:
            taken()
            mill = mill.restarted() if draw.random() < 0.3 else mill
    mill.feed_line("s", "[*, *, *]")
    taken()
    return found


def rounded(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(round(value, 6) if isinstance(value, float) else value for value in row)


@pytest.mark.parametrize("compiled", [False, True], ids=["on columns", "compiled"])
@settings(max_examples=tries(120), deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(
    name=st.sampled_from(list(MEANT)),
    frame=st.sampled_from(FRAMES),
    by=st.booleans(),
    late=st.sampled_from([0, 3]),
    nulls=st.booleans(),
    seed=st.integers(0, 1_000_000),
    shards=st.sampled_from([1, 2, 3]),
    page=st.sampled_from([1, 3, 8192]),
    few=st.sampled_from([0, 64]),
)
def test_all_versions_agree(
    compiled: bool,
    name: str,
    frame: Frame,
    by: bool,
    late: int,
    nulls: bool,
    seed: int,
    shards: int,
    page: int,
    few: int,
) -> None:
    mill = LocalMill(Options(shards=shards, page_rows=page, contracts="off"))
    order = f"WATERMARK FOR ts AS ts - {late}" if late else ""
    mill.execute(f"CREATE STREAM s (ts BIGINT, k BIGINT, v DOUBLE) ORDER BY ts {order}")
    mill.execute(IN_SQL)
    for own, code in PYTHON.items():
        mill.aggregate(code, name=own, arguments=["DOUBLE"], returns="DOUBLE", ignore_nulls=True)
    over = f"OVER ({'PARTITION BY k ' if by else ''}{frame})"
    # window_max deletes the tuples that cannot become the greatest: these do not expire
    versions = [each for each in VERSIONS[name] if not (frame.active and each == "window_max")]
    with patch.object(binding, "recognised", (lambda *_: None) if compiled else binding.recognised):
        for version in [*versions, name]:
            mill.add_query(version, f"SELECT ts, k, v, {version}(v) {over} AS r FROM s")
        # two aggregates that share a window
        both = f"SELECT ts, k, v, python_avg(v) {over}, python_{name}(v) {over} AS r FROM s"
        mill.add_query("both", both)
    rows = stream(seed, nulls, late)
    meant = Counter(map(rounded, brute_force(rows, frame, by, MEANT[name])))
    with patch.object(row_frames, "FEW", few):
        found = found_of(mill, [*versions, name, "both"], rows, seed)
    for version in versions:
        assert found[version] == meant, version
    shared: Counter[Any] = Counter()
    for (*columns, _, result), count in found["both"].items():
        shared[*columns, result] += count
    assert shared == meant
    if nulls and frame.active:
        return  # a tuple with a NULL is in the frame of a built-in function, and leaves it
    assert known(found[name]) == known(meant)


def known(rows: Counter[Any]) -> Counter[Any]:
    """The rows whose value is not NULL."""
    return Counter({row: count for row, count in rows.items() if row[2] is not None})
