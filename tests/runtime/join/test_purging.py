"""Joins that purge late, count stored tuples, spill, and emit punctuation on request: worked examples."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.punctuation.restriction import below, equal, one_of
from millstream.algebra.schema import FOREVER, NEVER, TS, Attribute, Schema, TimeKind
from millstream.algebra.types import Type
from millstream.algebra.window import Window
from millstream.join_rules import Component, Event, Rule
from millstream.runtime.join.events.punctuation_index import Counted
from millstream.runtime.join.settings import JoinSettings
from millstream.runtime.join.window_join import WindowJoin
from millstream.runtime.operator.contract import Input, Output
from tests.runtime.driving import frame

AUCTION = Schema.of(("item", Type.BIGINT), ("seller", Type.VARCHAR))
BID = Schema.of(("item", Type.BIGINT), ("bidder", Type.VARCHAR), ("price", Type.BIGINT))
SIDES = (AUCTION, BID)
RESULT = Schema(
    tuple(Attribute(f"{p}.{a.name}", a.type) for p, s in zip("ab", SIDES, strict=True) for a in s), TimeKind.EXTERNAL
)
UNBOUNDED = (Window(), Window())


class Auctions:
    """A join of auctions and bids, one element at a time, at a time of its own."""

    def __init__(self, made: JoinSettings | None = None, windows: tuple[Window, Window] = UNBOUNDED) -> None:
        merges = not windows[0].unbounded
        self.join = WindowJoin(AUCTION, BID, RESULT, (("item", "item"),), None, *windows, merges=merges)
        self.join.configure(made or JoinSettings())
        self.time = 0

    def __call__(self, side: int, *values: Any, time: int | None = None) -> Output:
        self.time = self.time + 1 if time is None else time
        rows = frame(SIDES[side], [dict(zip(SIDES[side].names, values, strict=True)) | {TS: self.time}])
        return self._step(side, rows, None)

    def closes(self, side: int, *items: int, time: int | None = None) -> Output:
        self.time = self.time + 1 if time is None else time
        return self._step(side, None, Punctuations.of([Pattern.of(item=equal(item)) for item in items]))

    def empty(self) -> Output:
        return self.join.process([Input(), Input()])

    def _step(self, side: int, rows: pl.DataFrame | None, told: Punctuations | None) -> Output:
        bounds = [self.time if self.join.merges else NEVER] * 2
        inputs = [Input(None, None, bound) for bound in bounds]
        inputs[side] = Input(rows, told, bounds[side])
        return self.join.process(inputs)

    def state(self) -> tuple[list[int], list[int]]:
        left, right = (self.join.tables()[name].frame() for name in ("left", "right"))
        return left["a.item"].to_list(), right["b.item"].to_list()


def told(output: Output) -> list[int]:
    if output.punctuations is None:
        return []
    for pattern in output.punctuations.patterns():
        assert pattern.attributes == {"a.item"}
    return [pattern.get("a.item").values[0] for pattern in output.punctuations.patterns()]


def counts(join: WindowJoin) -> dict[Pattern, int]:
    """The counts that an eager index of the left side holds for each waiting punctuation."""
    pending = join._sides[0]._pending
    if not isinstance(pending, Counted):
        return {}
    return dict(zip(pending.to_value().patterns(), pending._counts.tolist(), strict=True))


def results(output: Output) -> list[tuple[Any, ...]]:
    return [] if output.rows is None else output.rows.select(RESULT.names).rows()


@pytest.mark.parametrize("index", ["eager", "lazy"])
@pytest.mark.parametrize("threshold", [1, 2])
def test_worked_example_t1(threshold: int, index: Any) -> None:
    play = Auctions(JoinSettings(purge_threshold=threshold, index=index))
    first, second = Pattern.of({"a.item": equal(180)}), Pattern.of({"a.item": equal(182)})
    assert results(play(0, 180, "s1")) == []
    assert told(play.closes(0, 180)) == []
    assert play.state() == ([180], [])
    assert counts(play.join) == ({first: 1} if index == "eager" else {})
    assert results(play(1, 180, "b1", 10)) == [(180, "s1", 180, "b1", 10)]
    assert results(play(1, 180, "b2", 12)) == [(180, "s1", 180, "b2", 12)]
    assert play.state() == ([180], [])
    assert results(play(1, 182, "b3", 5)) == []
    assert play.state() == ([180], [182])
    assert told(play.closes(1, 180)) == [180]
    assert play.state() == ([], [182])
    assert results(play(0, 182, "s3")) == [(182, "s3", 182, "b3", 5)]
    assert play.state() == ([182], [182])
    assert told(play.closes(0, 182)) == []
    assert play.state() == ([182], [] if threshold == 1 else [182])
    assert counts(play.join) == ({second: 1} if index == "eager" else {})
    assert told(play.closes(1, 182)) == [182]
    assert play.state() == ([], [])


TEN = (Window(range=10), Window(range=10))


@pytest.mark.parametrize("index", ["eager", "lazy"])
def test_worked_example_t3(index: Any) -> None:
    play = Auctions(JoinSettings(index=index), TEN)
    assert results(play(0, 8, "a1", time=1)) == []
    assert results(play(1, 8, "b1", 0, time=2)) == [(8, "a1", 8, "b1", 0)]
    assert results(play(1, 9, "b2", 0, time=3)) == []
    assert play.state() == ([8], [8, 9])
    assert told(play.closes(0, 9, time=4)) == [9]
    assert play.state() == ([8], [8])
    assert results(play(1, 9, "b3", 0, time=5)) == [] and play.join._sides[1].dropped == 1
    assert told(play.closes(0, 8, time=6)) == []
    assert play.state() == ([8], [])
    assert results(play(1, 8, "b4", 0, time=7)) == [(8, "a1", 8, "b4", 0)]
    assert play.state() == ([8], [])
    at_the_edge = play(1, 8, "b5", 0, time=11)
    assert results(at_the_edge) == [(8, "a1", 8, "b5", 0)] and told(at_the_edge) == []
    assert told(play(1, 7, "b6", 0, time=12)) == [8]
    assert results(play(1, 8, "b7", 0, time=13)) == [] and play.join._sides[1].dropped == 2
    assert told(play.closes(1, 8, time=14)) == []
    assert told(play.closes(0, 3, time=15)) == [3]
    assert told(play.closes(1, 3, time=16)) == []
    assert play.state() == ([], [7])


@pytest.mark.parametrize(
    ("last", "first_closed", "second_closed", "out"),
    [
        pytest.param(None, 5, 9, 5, id="1: the first side never had the value"),
        pytest.param(1, 15, 30, 15, id="2a: it had left its window"),
        pytest.param(1, 4, 30, 12, id="2b: window-assisted, as soon as time is above T + W"),
        pytest.param(1, 11, 30, 12, id="2b: at the edge"),
        pytest.param(1, 4, 9, 9, id="2c: closed by both sides before"),
        pytest.param(1, 4, 11, 11, id="2c: at the edge"),
    ],
)
@pytest.mark.parametrize("index", ["eager", "lazy"])
def test_when_a_value_is_emitted(last: int | None, first_closed: int, second_closed: int, out: int, index: Any) -> None:
    """The cases of window-assisted propagation; another value of the second side tells the time."""
    play = Auctions(JoinSettings(index=index), TEN)
    went: list[tuple[int, int]] = []
    for time in range(1, 40):
        if time == last:
            play(0, 5, "a", time=time)
        made = [play(1, 1000 + time, "tick", 0, time=time)]
        if time == first_closed:
            made.append(play.closes(0, 5, time=time))
        if time == second_closed:
            made.append(play.closes(1, 5, time=time))
        went += [(time, item) for output in made for item in told(output)]
    assert went == [(out, 5)]


def test_pushed_by_count() -> None:
    play = Auctions(JoinSettings(propagation="count", propagation_count=3))
    assert [told(play.closes(0, item)) for item in range(7)] == [[], [], [0, 1, 2], [], [], [3, 4, 5], []]
    done = play.join.process([Input(bound=FOREVER), Input(bound=FOREVER)])
    assert told(done) == [6]


def test_pushed_by_time() -> None:
    made = JoinSettings(propagation="time", propagation_period=10)
    play = Auctions(made, (Window(range=100), Window(range=100)))
    said = {time: told(play.closes(0, time, time=time)) for time in (3, 8, 12, 14, 29, 30)}
    assert said == {3: [], 8: [], 12: [3, 8, 12], 14: [], 29: [14, 29], 30: [30]}


def test_pulled() -> None:
    play = Auctions(JoinSettings(propagation="request"))
    play(0, 1, "s")
    assert told(play.closes(0, 1, 2)) == [] and not play.join.unfinished()
    play.join.request_punctuation()
    assert play.join.unfinished()
    assert told(play.empty()) == [2] and not play.join.unfinished()
    assert told(play.closes(1, 1)) == [] and told(play.empty()) == []
    play.join.request_punctuation()
    assert told(play.empty()) == [1]


def test_settings_take_effect_while_the_join_runs() -> None:
    play = Auctions(JoinSettings(purge_threshold=100, propagation="request"))
    play(0, 1, "s")
    play.closes(1, 1)
    assert play.state() == ([1], [])
    play.join.configure(JoinSettings(index="eager"))
    assert play.join.unfinished()
    assert told(play.empty()) == [1] and play.state() == ([], [])
    assert told(play.closes(0, 2)) == [2] and not play.join.unfinished()


def test_listeners_can_be_changed_while_the_join_runs() -> None:
    play = Auctions()
    purge_when_asked = Rule(
        Event.PROPAGATE_REQUEST, (Component.STATE_PURGE, Component.INDEX_BUILD, Component.PROPAGATION)
    )
    play.join.configure(JoinSettings(listeners=str(purge_when_asked)))
    play(0, 1, "s")
    assert told(play.closes(1, 1)) == [] and play.state() == ([1], [])
    assert told(play.closes(0, 1)) == []
    play.join.request_punctuation()
    assert told(play.empty()) == [1] and play.state() == ([], [])
    play.join.configure(JoinSettings())
    assert told(play.closes(0, 4)) == [4]


def test_the_index_counts_a_tuple_for_every_punctuation_that_it_matches() -> None:
    play = Auctions(JoinSettings(index="eager"))
    for item in (1, 1, 2):
        play(0, item, "s")
    patterns = [Pattern.of(item=equal(1)), Pattern.of(item=below(2)), Pattern.of(item=one_of([1, 2, 3]))]
    play.join.process([Input(None, Punctuations.of(patterns)), Input()])
    assert list(counts(play.join).values()) == [2, 2, 3]
    assert told(play.closes(1, 2)) == [2]
    assert list(counts(play.join).values()) == [2, 2, 2]
    out = play.closes(1, 1).punctuations
    assert out is not None and len(out) == 3
    assert play.join.state_rows() == 0


def test_the_operator_says_that_it_is_not_done() -> None:
    play = Auctions(JoinSettings(memory_limit=1))
    play(0, 1, "s")
    assert play.state() == ([], []) and play.join.state_rows() == 1
    assert not play.join.unfinished()
    assert results(play(1, 1, "b", 2)) == []
    assert play.join.unfinished()
    assert results(play.empty()) == [(1, "s", 1, "b", 2)]
    assert not play.join.unfinished() and play.empty().rows is None


def test_closed_tuples_meet_their_partners_on_disk_before_punctuation_goes_out() -> None:
    play = Auctions(JoinSettings(memory_limit=1))
    play(0, 1, "s")
    play.join.configure(JoinSettings(memory_limit=10_000, activation=1000))
    assert told(play.closes(0, 1)) == []
    assert results(play(1, 1, "b", 2)) == []  # not stored, but its partner is on disk
    assert play.join.state_rows() == 2
    assert not play.join.unfinished()
    out = play.closes(1, 1)
    assert results(out) == [(1, "s", 1, "b", 2)] and told(out) == [1]
    assert play.join.state_rows() == 0
