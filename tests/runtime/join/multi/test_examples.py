"""The multi-join, step by step: the worked examples of punctuated window joins, keys of all kinds."""

from __future__ import annotations

from typing import Any

import pytest

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.punctuation.restriction import equal
from millstream.algebra.schema import TS, Attribute, Schema, TimeKind
from millstream.algebra.types import Type
from millstream.algebra.window import Window
from millstream.runtime.join.multi.multi_join import MultiJoin
from millstream.runtime.operator.contract import Input, Output
from tests.runtime.driving import Row, frame
from tests.runtime.join.multi.test_multi_join import ALIASES, OTHERS, SCHEMAS, UNBOUNDED, join, stored


class Script:
    """Feeds a merging join one element at a time; everything that comes is processed at once, as in a global order."""

    def __init__(self, *made: int | Window) -> None:
        kept = tuple(Window(range=window) if isinstance(window, int) else window for window in made)
        self.operator = join(kept, True)
        self.tags: dict[int, str] = {}

    def tuple(self, port: int, time: int, key: int, tag: int) -> tuple[list[tuple[int, ...]], list[str]]:
        row = {"k": key, OTHERS[port]: tag, "ts": time, TS: time}
        return self._step(port, time, Input(frame(SCHEMAS[port], [row]), None, time))

    def close(self, port: int, time: int, key: int) -> tuple[list[tuple[int, ...]], list[str]]:
        return self._step(port, time, Input(None, Punctuations.of([Pattern.of(k=equal(key))]), time))

    def _step(self, port: int, time: int, given: Input) -> tuple[list[tuple[int, ...]], list[str]]:
        n = self.operator.arity
        return self.read(self.operator.process([given if i == port else Input(bound=time) for i in range(n)]))

    def read(self, out: Output) -> tuple[list[tuple[int, ...]], list[str]]:
        columns = [f"{ALIASES[i]}.{OTHERS[i]}" for i in range(self.operator.arity)]
        rows = [] if out.rows is None else sorted(out.rows.select(columns).rows())
        return rows, [] if out.punctuations is None else [str(p) for p in out.punctuations.patterns()]

    def held(self, port: int) -> list[int]:
        return [row[OTHERS[port]] for row in stored(self.operator, port)]


CLOSED_8 = ["[a.k = 8]"]


def test_t4_three_way() -> None:
    """W = (10, 10, 10). Tags: a1 = 11, b1 = 21, b2 = 22, c1 = 31, c2 = 32, ..."""
    script = Script(10, 10, 10)
    assert script.tuple(0, 1, 8, 11) == ([], [])
    assert script.tuple(1, 2, 8, 21) == ([], [])
    assert script.tuple(2, 3, 8, 31) == ([(11, 21, 31)], [])
    assert script.close(0, 4, 8) == ([], [])
    assert [script.held(i) for i in range(3)] == [[11], [21], [31]]  # one punctuation alone purges nothing
    assert script.tuple(1, 5, 8, 22) == ([(11, 22, 31)], [])
    assert script.held(1) == [21, 22]
    assert script.close(1, 6, 8) == ([], [])
    assert [script.held(i) for i in range(3)] == [[11], [21, 22], []]  # two of three: c1 goes
    assert script.tuple(2, 7, 8, 32) == ([(11, 21, 32), (11, 22, 32)], [])
    assert script.held(2) == []
    assert script.tuple(0, 11, 7, 12) == ([], [])  # 1 + 10 = 11 is still in the window
    assert script.tuple(0, 12, 5, 13) == ([], CLOSED_8)
    assert [script.held(i) for i in range(3)] == [[12, 13], [], []]  # purge and drop
    assert script.tuple(2, 13, 8, 33) == ([], [])
    assert script.held(2) == []
    assert script.close(2, 14, 8) == ([], [])


@pytest.mark.parametrize(("time", "out"), [(10, []), (11, CLOSED_8)])
def test_t4_brought_forward(time: int, out: list[str]) -> None:
    """W = (20, 5, 10): the first punctuation could go out after 21, the second brings it forward to after 10."""
    script = Script(20, 5, 10)
    script.tuple(0, 1, 8, 11)
    script.tuple(1, 2, 8, 21)
    assert script.tuple(2, 3, 8, 31) == ([(11, 21, 31)], [])
    assert script.close(0, 4, 8) == ([], [])
    assert script.tuple(1, 5, 8, 22) == ([(11, 22, 31)], [])
    assert script.close(1, 6, 8) == ([], [])
    assert script.tuple(0, time, 5, 12) == ([], out)
    assert script.held(0) == ([11, 12] if not out else [12])


def test_r6_the_first_tuple_of_a_stream_finds_its_results() -> None:
    script = Script(10, 10, 10)
    found = [script.tuple(0, 1, 8, 11), script.tuple(1, 2, 8, 21), script.tuple(2, 3, 8, 31), script.tuple(2, 4, 8, 32)]
    assert [rows for rows, _ in found] == [[], [], [(11, 21, 31)], [(11, 21, 32)]]


@pytest.mark.parametrize("n", [2, 3])
def test_t6_purged_tuples_keep_their_place(n: int) -> None:
    """C = 10: after b12 the window is b3..b12 without the purged b4 and b7."""
    script = Script(*[Window(rows=10)] * n)
    for number in range(1, 13):
        script.tuple(1, number, 99 if number in (4, 7) else 1, number)
        if number in (4, 7):
            for port in range(n):
                if port != 1 and number == 4:
                    script.close(port, number, 99)
    assert script.held(1) == [3, 5, 6, 8, 9, 10, 11, 12]
    for port in range(2, n):
        script.tuple(port, 13, 1, 100)
    rows, _ = script.tuple(0, 14, 1, 50)
    assert [row[1] for row in rows] == [3, 5, 6, 8, 9, 10, 11, 12]


def test_dropped_tuples_count_in_windows_of_rows() -> None:
    script = Script(Window(rows=2), Window(rows=2), 50)
    script.close(2, 0, 8)  # S3 has closed 8 and holds none: every tuple with 8 is dropped
    script.tuple(0, 1, 1, 11)
    script.tuple(1, 2, 1, 21)
    script.tuple(1, 3, 8, 22)
    script.tuple(0, 4, 8, 12)
    assert [script.held(0), script.held(1)] == [[11], [21]]
    assert script.tuple(2, 5, 1, 31) == ([(11, 21, 31)], [])
    script.tuple(1, 6, 8, 23)
    assert script.tuple(2, 7, 1, 32) == ([], [])  # b1 is the third last of its stream now


@pytest.mark.parametrize(
    ("window", "last", "expected"),
    [(10, None, 20), (10, 5, 20), (10, 15, 26), (30, 19, 40)],
    ids=["1", "2a", "2b", "2c"],
)
def test_t7_when_a_punctuation_goes_out(window: int, last: int | None, expected: int) -> None:
    """S1 closes a value at 20, S2 at 40. Case 2b is due once 15 + 10 has passed."""
    script = Script(window, 10)
    out: list[int] = []
    for time in range(45):
        if time == last:
            script.tuple(0, time, 8, 11)
        for port, closes in ((0, 20), (1, 40)):
            if time == closes and script.close(port, time, 8)[1]:
                out.append(time)
        if script.tuple(1, time, 7, time)[1]:
            out.append(time)
    assert out == [expected]


def test_a_tuple_without_a_partner_leaves_when_that_input_has_passed() -> None:
    operator = join((Window(range=5), Window(range=5), Window(range=5)), False)
    row: Row = {"k": 1, "w": 1, "ts": 1, TS: 1}
    operator.process([Input(frame(SCHEMAS[0], [row])), Input(), Input()])
    operator.process([Input(), Input(bound=6), Input()])
    assert operator.state_rows() == 1
    operator.process([Input(), Input(bound=7), Input()])
    assert operator.state_rows() == 0


def test_progress_is_that_of_the_slowest_input() -> None:
    operator = join((Window(range=5),) * 3, True)
    told = [Input(punctuations=Punctuations.of((), time), bound=time) for time in (7, 9, 8)]
    assert operator.process([told[0], told[1], Input()]).punctuations is None
    out = operator.process([Input(bound=7), Input(bound=9), told[2]])
    assert out.punctuations is not None and out.punctuations.progress == 7 and not len(out.punctuations)


@pytest.mark.parametrize("kind", ["text", "far apart", "two columns", "mixed"])
def test_keys_of_all_kinds(kind: str) -> None:
    types = [Type.BIGINT, Type.BIGINT, Type.BIGINT]
    values: list[Any] = [1, 2, 1 << 60]
    if kind == "text":
        types, values = [Type.VARCHAR] * 3, ["p", "q", "r"]
    elif kind == "mixed":
        types = [Type.INT, Type.BIGINT, Type.DOUBLE]
        values = [1, 2, 3]
    schemas = [Schema.of(("k", t), ("m", Type.BIGINT), kind=TimeKind.EXTERNAL) for t in types]
    made = Schema(
        tuple(Attribute(f"{alias}.{a.name}", a.type) for alias, s in zip("abc", schemas, strict=True) for a in s)
    )
    keys = [("k", "m") if kind == "two columns" else ("k",)] * 3
    operator = MultiJoin(schemas, made, keys, (UNBOUNDED,) * 3)

    def rows(port: int, *pairs: tuple[Any, int]) -> Input:
        given = [{"k": k, "m": m, TS: 0} for k, m in pairs]
        if kind == "mixed" and port == 2:
            given = [row | {"k": None if row["k"] is None else float(row["k"])} for row in given]
        return Input(frame(schemas[port], given))

    first, second, third = values
    operator.process([rows(0, (first, 1), (second, 1), (None, 1), (third, 2)), Input(), Input()])
    operator.process([Input(), rows(1, (second, 1), (first, 2), (third, 2)), Input()])
    out = operator.process([Input(), Input(), rows(2, (first, 1), (None, 1), (third, 2))])
    assert out.rows is not None
    wanted = {(third, 2)} if kind == "two columns" else {(first, 1), (third, 2)}
    assert set(out.rows.select("a.k", "c.m").rows()) == wanted
    assert operator.state_rows() == 3 + 3 + 2
