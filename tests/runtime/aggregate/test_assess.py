"""Early values are paired with final ones, and predict final ones, as an obvious reference does it one by one."""

from __future__ import annotations

import math
from statistics import mean, stdev
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from millstream.algebra.early import ESTIMATES, Prod
from millstream.algebra.schema import TS, Schema
from millstream.algebra.student import reach
from millstream.algebra.types import MICROS, Type
from millstream.algebra.windower import tumbling
from millstream.runtime.aggregate.assess import Assess
from millstream.runtime.aggregate.estimates import PRIOR
from millstream.runtime.aggregate.history import HOURLY, LEAST, PAIRS, History
from millstream.runtime.engine.statistics import Counters
from millstream.runtime.operator.contract import Input
from tests.tries import tries

RANGE = 20
COLUMNS = (("window_end", Type.BIGINT), ("k", Type.BIGINT), ("v", Type.DOUBLE), ("n", Type.BIGINT), ("s", Type.DOUBLE))
SCHEMA = Schema.of(*COLUMNS, *((name, Type.DOUBLE) for name in ESTIMATES))


Pair = tuple[float, float, float, float]
"""The share, the early value, the number of values in it, the final value."""


def t(freedom: int) -> float:
    return float(pl.select(reach(pl.lit(freedom))).item())


class Reference:
    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.pending: dict[tuple[int, int | None], dict[int, tuple[float, float, float]]] = {}
        self.pairs: dict[tuple[int | None, int], list[Pair]] = {}
        self.all: list[float] = []
        self.last: list[float] = []

    def early(self, time: int, end: int, k: int | None, v: float, n: int, s: float | None) -> list[float | None]:
        share = min(max((time - (end - RANGE)) / RANGE, 0.0), 1.0)
        part = math.floor(share * 20 + 1e-9)
        found = self.estimate(v, n, s, share, self.pairs.get((k, part), [])[-PAIRS:])
        held = self.pending.setdefault((end, k), {})
        held.pop(part, None)
        held[part] = (share, v, v if self.kind == "count" else n)
        return [*found, share]

    def final(self, end: int, k: int | None, v: float) -> None:
        answers = self.pending.pop((end, k), {})
        for part, (share, early, n) in answers.items():
            self.pairs.setdefault((k, part), []).append((share, early, n, v))
            self.all.append(100 * (abs(v) - abs(v - early)) / abs(v) if v else 100.0 * (early == 0))
        self.last += self.all[-1:] if answers else []

    def estimate(
        self, v: float, n: float, s: float | None, c: float, pairs: list[Pair]
    ) -> tuple[float | None, float | None, float | None]:
        if self.kind in ("max", "min"):
            return self.extreme(v, pairs)
        enough = len(pairs) >= LEAST
        if self.kind == "avg":
            scaled = [(f - e) * math.sqrt(m) for _, e, m, f in pairs]
            half = few(scaled, None if s is None else s * s * (1 - c))
            if enough:
                half = t(len(pairs)) * math.sqrt(mean(d * d for d in scaled) * (1 + 1 / len(pairs)))
            return (
                v,
                None if half is None else v - half / math.sqrt(n),
                None if half is None else v + half / math.sqrt(n),
            )
        n = v if self.kind == "count" else n
        if c == 0:
            return None, None, None
        squares = v if self.kind == "count" else (n - 1) * (s or 0.0) ** 2 + v * v / n
        rises = all(e >= 0 and f >= e for _, e, _, f in pairs) and (self.kind == "count" or bool(pairs))
        if rises and v > 0:
            ratios = [math.sqrt(m) * (math.sqrt(f * share / e) - 1) for share, e, m, f in pairs if e > 0]
            middle, half = interval(ratios, ratios, (1 - c) / 4 * n * squares / v**2)
            found = [v / c * max(0.0, 1 + (middle + x) / math.sqrt(n)) ** 2 for x in (0, -half, half)]
        else:
            moved = [(f - e) / math.sqrt(max(m, 1)) for _, e, m, f in pairs]
            beyond = [(f - e / share) / math.sqrt(max(m, 1)) for share, e, m, f in pairs if share]
            middle, half = interval(moved, beyond, squares / max(n, 1) * (1 - c) / c**2)
            found = [(v if enough else v / c) + (middle + x) * math.sqrt(max(n, 1)) for x in (0, -half, half)]
        if self.kind == "count" or (rises and enough):
            found = [max(x, v) for x in found]
        return found[0], found[1], found[2]

    def extreme(self, v: float, pairs: list[Pair]) -> tuple[float, float | None, float | None]:
        sign = 1 if self.kind == "max" else -1
        moved = v
        if len(pairs) >= 9:
            if all(sign * x < 0 for x in (v, *(x for _, e, _, f in pairs for x in (e, f)))):
                moved = v * ninth_tenth(sorted((f / e for _, e, _, f in pairs), reverse=True))
            else:
                moved += ninth_tenth(sorted((f - e for _, e, _, f in pairs), reverse=sign < 0))
        open_end = moved if len(pairs) >= 9 else None
        return (v, v, open_end) if sign > 0 else (v, open_end, v)


def few(residuals: list[float], model: float | None) -> float | None:
    """The reach of few residuals about 0, with the variance of random arrivals."""
    k = len(residuals) + (PRIOR if model is not None else 0)
    return t(k) * math.sqrt((sum(d * d for d in residuals) + PRIOR * (model or 0.0)) / k) if k else None


def interval(many: list[float], own: list[float], model: float) -> tuple[float, float]:
    if len(many) >= LEAST:
        return mean(many), t(len(many) - 1) * stdev(many) * math.sqrt(1 + 1 / len(many))
    return 0.0, few(own, model) or 0.0


def ninth_tenth(values: list[float]) -> float:
    """The value at place 0.9 (k + 1), counted from 1, of k values."""
    whole, tenths = divmod(9 * (len(values) + 1), 10)
    below, above = values[whole - 1], values[min(whole, len(values) - 1)]
    return below + tenths / 10 * (above - below)


def close(found: Any, expected: Any) -> bool:
    if found is None or expected is None:
        return found is expected
    return math.isclose(found, expected, rel_tol=1e-6, abs_tol=1e-6)


TIMES = st.sampled_from([16, 16, 8, 0, 22])
VALUES = st.tuples(st.integers(0, 12), st.integers(1, 5), st.sampled_from([None, 0.5, 2.0]))

MANY = [([(16, (4 + i % 3, 3, 0.5)), (8, (i % 4, 2, None))], 1, ((7 * i) % 5, 1, None)) for i in range(14)]
"""Windows of one group, enough for a history."""


@given(
    st.sampled_from(["count", "sum", "avg", "max", "min"]),
    st.lists(
        st.tuples(st.lists(st.tuples(TIMES, VALUES), max_size=2), st.sampled_from([1, 1, None]), VALUES),
        min_size=1,
        max_size=20,
    ),
    st.integers(-3, 6),
)
@example("count", MANY, 0)
@example("sum", MANY, 0)
@example("avg", MANY, 0)
@example("max", MANY, 0)
@example("max", MANY, -9)
@settings(max_examples=tries(25))
def test_against_the_reference(kind: str, windows: list[Any], lift: int) -> None:
    """Windows of a few groups, each answered at some times and then final; values may fall unless they are counts."""
    operator = Assess(SCHEMA, ("window_end", "k"), "v", kind, tumbling(RANGE), ("n", "s"), estimates=True)
    reference = Reference(kind)
    for number, (answers, k, (last, _, _)) in enumerate(windows):
        end = (number + 1) * RANGE
        highest = 0
        for at, (v, n, s) in sorted(answers, key=lambda answer: answer[0]):
            value = float(v if kind == "count" else v - 3)
            highest = max(highest, v)
            time = end - RANGE + at
            rows = frame([(end, k, value, n, s)])
            found = operator.early([rows], Prod("p", time=time))
            assert found is not None
            expected = reference.early(time, end, k, value, n, s)
            assert all(map(close, found.select(ESTIMATES).row(0), expected)), (found, expected)
        final = float(highest + last if kind == "count" else last + lift)
        out = operator.process([Input(frame([(end, k, final, 1, None)]))])
        assert out.rows is not None and out.rows.select(ESTIMATES).row(0) == (final, final, final, 1.0)
        reference.final(end, k, final)
    _, found = operator.summary(Counters())
    assert found.all.count == len(reference.all) and found.last.count == len(reference.last)
    assert close(found.all.total, sum(reference.all))
    assert close(found.all.worst, min(reference.all, default=None))
    assert close(found.last.total, sum(reference.last))
    assert not len(operator.tables()["answers"])


def frame(rows: list[Any]) -> pl.DataFrame:
    types = {name: SCHEMA.polars[name] for name, _ in COLUMNS}
    return pl.DataFrame([(*row, 0) for row in rows], schema={**types, TS: pl.Int64}, orient="row")


@pytest.mark.parametrize("days, expected", [(1, 60), (2, 24)])
def test_the_same_hour_of_several_days(days: int, expected: int) -> None:
    """Windows of five minutes: with two days of history those of the same hour count, else the last ones."""
    slide = 300 * MICROS
    history = History({}, slide, hourly=True)
    ends = [slide * (i + 1) for i in range(288 * days)]
    types = list(history.table.schema)
    pairs = pl.DataFrame(
        {"__end": ends, "__bin": [16] * len(ends), "__share": 0.8, "__early": 4.0, "__final": 5.0, "__count": 1.0}
    )
    history.add(pairs.cast({"__bin": pl.Int32}).select(types), ends[-1])
    asked = pl.DataFrame({"__end": [288 * days * slide + 9 * 3600 * MICROS], "__bin": [16]}).cast({"__bin": pl.Int32})
    found = history.for_rows(asked, ends[-1])
    assert found.height == expected <= max(PAIRS, HOURLY)
    hours = set((found["__end"] - 1) // (3600 * MICROS) % 24)
    assert hours == ({8} if days > 1 else {19, 20, 21, 22, 23})
