"""Queries that are added and dropped at any time, equal ones and others: each has the answer that it has alone.

A query alone is run twice: in a mill that is fed from the beginning and runs no other query, and in a new mill that is
fed only the tuples that the streams accept after the query was added. A query that shares what an equal one holds has
the rows that this one emits from then on.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.config import Options
from millstream.control.mill import LocalMill
from tests.tries import tries

STREAMS = """
CREATE STREAM s (ts BIGINT, k BIGINT, v BIGINT) ORDER BY ts;
CREATE STREAM t (ts BIGINT, k BIGINT, v BIGINT) ORDER BY ts;
CREATE STREAM sums AS SELECT window_end AS e, k, SUM(v) AS total FROM s [RANGE 4] GROUP BY k;
"""
QUERIES = (
    "SELECT window_end, k, SUM(v) AS total FROM s [RANGE 4] GROUP BY k",
    "SELECT window_end, k, COUNT(*) AS n FROM s [RANGE 8 SLIDE 4] WHERE v > 1 GROUP BY k",
    "SELECT k, v FROM s WHERE v > 1",
    "SELECT DISTINCT k, v FROM s",
    "SELECT s.k, s.v, t.v AS w FROM s [RANGE 6] s, t [RANGE 3] t WHERE s.k = t.k",
    "SELECT s.k, s.v, t.v AS w FROM s [ROWS 2] s, t [ROWS 1] t WHERE s.k = t.k",
    "SELECT total, COUNT(*) AS n FROM sums [RANGE 8 ON e] GROUP BY total",
    "SELECT window_end, COUNT(*) AS n FROM (SELECT k FROM s UNION ALL SELECT k FROM t) u [RANGE 4]",
    "SELECT k, SUM(v) OVER (PARTITION BY k ROWS 2 PRECEDING) AS total FROM s",
    "SELECT k, COUNT(*) OVER (PARTITION BY k RANGE 3 PRECEDING) AS n FROM s",
    "SELECT s.k, s.v, t.v AS w FROM s [RANGE 4] s LEFT JOIN t [RANGE 4] t ON s.k = t.k",
    "SELECT s.k, s.v, t.v AS w FROM s, t WHERE SEQ(s, t) MODE RECENT AND s.k = t.k",
    "SELECT s.k, s.v, t.v AS w FROM s, t WHERE SEQ(s, t) MODE CHRONICLE AND s.k = t.k",
    "SELECT e, k, total FROM sums WHERE total > 2",
)
ROW = st.tuples(st.sampled_from("st"), st.integers(0, 3), st.integers(1, 2), st.integers(1, 3))
"""A stream, a step of its time (0 to 2, or 3: a late tuple), a key and a value."""
STEPS = st.lists(
    st.one_of(
        st.lists(ROW, min_size=1, max_size=5),
        st.tuples(st.just("add"), st.integers(0, len(QUERIES) - 1), st.sampled_from(["now", "now", "shared"])),
        st.tuples(st.just("drop"), st.integers(0, 9)),
        st.just("restart"),
    ),
    min_size=4,
    max_size=16,
)
END = 1000


@dataclass
class Life:
    """A query from the step after which it was added to the step before which it was dropped. `origin`: the step after
    which its operators were; it is another one if they are shared."""

    name: str
    text: str
    added: int
    origin: int
    dropped: int | None = None
    rows: Counter[Any] = field(default_factory=Counter)


@dataclass
class Script:
    """The steps with the times of their tuples: lists of (stream, tuple, whether it is accepted)."""

    steps: list[Any]

    @classmethod
    def of(cls, drawn: list[Any]) -> Script:
        newest, made = {"s": 0, "t": 0}, []
        for step in drawn:
            if not isinstance(step, list):
                made.append(step)
                continue
            fed = []
            for stream, by, key, value in step:
                low = newest[stream]
                ts = low - 1 if by == 3 and low else low + by
                fed.append((stream, (ts, key, value), ts >= newest[stream]))
                newest[stream] = max(ts, newest[stream])
            made.append(fed)
        end = [("s", (END, 0, 0), True), ("t", (END, 0, 0), True)]
        return cls([*made, end])


class Run:
    def __init__(self, script: Script, shards: int, strategy: str = "dfs") -> None:
        self.script = script
        self.mill = LocalMill(Options.read(shards=shards, strategy=strategy))
        self.mill.execute(STREAMS)

    def feed(self, step: list[Any], *, late: bool = True) -> None:
        for stream, row, accepted in step:
            if accepted or late:
                self.mill.insert(stream, [row])
        self.mill.batch()

    def take(self, life: Life) -> None:
        life.rows.update(self.mill.take_rows(life.name).rows())

    def together(self) -> list[Life]:
        lives: list[Life] = []
        for number, step in enumerate(self.script.steps):
            running = [life for life in lives if life.dropped is None]
            match step:
                case list():
                    self.feed(step)
                case "restart":
                    for life in running:
                        self.take(life)
                    self.mill = self.mill.restarted()
                case ("add", int(which), str(how)):
                    equal = [life.origin for life in running if life.text == QUERIES[which] and how == "shared"]
                    lives.append(Life(f"q{number}", QUERIES[which], number, [*equal, number][0]))
                    self.mill.add_query(lives[-1].name, lives[-1].text, how)
                case ("drop", int(which)) if running:
                    life = running[which % len(running)]
                    self.take(life)
                    life.dropped = number
                    self.mill.execute(f"DROP QUERY {life.name}")
        for life in lives:
            if life.dropped is None:
                self.take(life)
        return lives

    def alone(self, life: Life, *, afresh: bool) -> Counter[Any]:
        found = Life(life.name, life.text, life.added, life.origin)
        for number, step in enumerate(self.script.steps[: life.dropped]):
            if number == life.origin:
                self.mill.add_query(life.name, life.text)
            if number == life.added:
                self.mill.take_rows(life.name)
            if isinstance(step, list) and (number > life.origin or not afresh):
                self.feed(step, late=not afresh)
        self.take(found)
        return found.rows


@given(STEPS, st.sampled_from([1, 3]), st.sampled_from(["dfs", "bfs", "batch:2"]))
@settings(max_examples=tries(60), deadline=None)
def test_each_query_has_the_answer_that_it_has_alone(drawn: list[Any], shards: int, strategy: str) -> None:
    script = Script.of(drawn)
    for life in Run(script, shards, strategy).together():
        alone = Run(script, shards).alone(life, afresh=False)
        assert life.rows == alone, f"{life.name}: {life.text}"
        if life.dropped is None:
            assert alone == Run(script, 1).alone(life, afresh=True), f"{life.name}: {life.text}"


HALF: list[Any] = [("s", 1, 1, 2), ("t", 1, 1, 3), ("s", 1, 2, 3), ("t", 0, 2, 1), ("s", 1, 1, 1)]
"""Tuples that fill half a window, and half of what joins and sequences hold."""


@pytest.mark.parametrize("restart", [False, True], ids=["", "restarted"])
@pytest.mark.parametrize("which", range(len(QUERIES)), ids=QUERIES.__getitem__)
def test_an_equal_query_takes_over_nothing(which: int, restart: bool) -> None:
    """The second query is added in the middle of everything that the first one holds; then the first is dropped."""
    again = ["restart"] if restart else []
    steps = [("add", which, "now"), HALF, *again, ("add", which, "now"), HALF, *again, ("drop", 0), HALF, HALF]
    script = Script.of(steps)
    first, second = Run(script, 2).together()
    assert first.rows == Run(script, 2).alone(first, afresh=False)
    assert second.rows == Run(script, 1).alone(second, afresh=True)


@pytest.mark.parametrize("which", range(len(QUERIES)), ids=QUERIES.__getitem__)
def test_a_query_that_shares_goes_on_with_what_the_other_holds(which: int) -> None:
    script = Script.of([("add", which, "now"), HALF, ("add", which, "shared"), HALF, ("drop", 0), HALF, HALF])
    first, second = Run(script, 2).together()
    assert second.origin == first.added and second.rows == Run(script, 2).alone(second, afresh=False)
