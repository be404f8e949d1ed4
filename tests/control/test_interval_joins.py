"""Joins of two to four streams on keys and bounds of their times: the results satisfy the conditions, whatever windows
the optimizer derives, and the state is empty when time has passed."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.config import Options
from millstream.control.mill import LocalMill
from tests.tries import tries

END = 10_000
Tuple = tuple[int, int, int]
"""Key, time, and a unique number."""
Row = tuple[Tuple | None, ...]


class Case:
    """A join of several streams; a range of time relates each one to an earlier one."""

    def __init__(self, seed: int, kind: str) -> None:
        self.draw, self.kind = random.Random(seed), kind
        self.names = "abcd"[: self.draw.randint(2, 4)]
        self.steps = [
            (self.draw.randrange(place), self.draw.choice([-2, 0, 3]), self.draw.choice([3, 5, 9]))
            for place in range(1, len(self.names))
        ]
        """For each stream after the first: the earlier stream, and the least and greatest time difference to it."""

    @property
    def query(self) -> str:
        text = self.names[0]
        for own, (earlier, low, high) in zip(self.names[1:], self.steps, strict=True):
            other = self.names[earlier]
            bounds = f"{own}.ts BETWEEN {other}.ts + {low} AND {other}.ts + {high}"
            text += f" {self.kind} JOIN {own} ON {own}.k = {other}.k AND {bounds}"
        return f"SELECT {', '.join(f'{name}.v AS {name}' for name in self.names)} FROM {text}"

    def results(self, streams: dict[str, list[Tuple]]) -> Counter[tuple[int | None, ...]]:
        rows: list[Row] = [(first,) for first in streams[self.names[0]]]
        for own, (earlier, low, high) in zip(self.names[1:], self.steps, strict=True):
            longer: list[Row] = []
            for row in rows:
                known = row[earlier]
                found = [t for t in streams[own] if known and t[0] == known[0] and low <= t[1] - known[1] <= high]
                longer += [(*row, partner) for partner in found or ([None] if self.kind == "LEFT" else [])]
            rows = longer
        return Counter(tuple(None if part is None else part[2] for part in row) for row in rows)


@pytest.mark.parametrize("kind", ["INNER", "LEFT"])
@settings(max_examples=tries(25))
@given(st.integers(0, 2**40), st.sampled_from([1, 3]), st.booleans())
def test_conditions_on_time_select_results_and_bound_state(kind: str, seed: int, shards: int, ordered: bool) -> None:
    case = Case(seed, kind)
    draw, streams = case.draw, {name: list[Tuple]() for name in case.names}
    mill = LocalMill(Options(shards=shards))
    for name in case.names:
        clause = "" if ordered else " PUNCTUATED ON (ts +)"
        mill.execute(f"CREATE STREAM {name} (k BIGINT, ts BIGINT, v BIGINT) ORDER BY ts{clause}")
    mill.add_query("q", case.query)
    now = dict.fromkeys(case.names, 0)
    for number in range(draw.randrange(40)):
        name = draw.choice(case.names)
        now[name] += draw.choice([0, 1, 2])
        late = 0 if ordered else draw.randrange(3)
        streams[name].append((draw.randrange(2), max(now[name] - late, 0), number))
        mill.insert(name, streams[name][-1:])
        if draw.random() < 0.3:
            mill.punctuate(name, f"[ts < {max(now[name] - 3, 0)}]")
        if draw.random() < 0.5:
            mill.batch()
    for name in case.names:
        mill.punctuate(name, f"[ts < {END}]")
    mill.batch()
    assert Counter(mill.take_rows("q").rows()) == case.results(streams), case.query
    assert mill.state_rows("q") == 0, case.query
