"""Joins that purge late, count stored tuples, spill, and emit punctuation on request: same results in all settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.punctuation.restriction import equal
from millstream.algebra.schema import FOREVER, NEVER, TS
from millstream.algebra.values import decode, encode
from millstream.algebra.window import Window
from millstream.runtime.join.settings import JoinSettings
from millstream.runtime.join.window_join import WindowJoin
from millstream.runtime.operator.contract import Input
from millstream.runtime.state.table import Changes, StateTable
from tests.runtime.driving import Trace, bag
from tests.runtime.join.test_window_join import KEYS, RESIDUAL, SCHEMAS, feed, join, reference
from tests.runtime.ports import Step, arrivals, covered, cuts, steps
from tests.tries import tries

UNBOUNDED = (Window(), Window())
made_settings = st.builds(
    JoinSettings,
    purge_threshold=st.integers(1, 4),
    index=st.sampled_from(["eager", "lazy"]),
    propagation=st.sampled_from(["eager", "eager", "count", "time", "request"]),
    propagation_count=st.integers(1, 3),
    propagation_period=st.integers(1, 5),
    memory_limit=st.sampled_from([0, 1, 60, 200, 500]),
    activation=st.integers(1, 6),
)
spilling = made_settings.map(lambda made: replace(made, memory_limit=max(1, made.memory_limit)))


@dataclass
class Stored:
    """A state store: what it has been told of one table."""

    segments: dict[int, pl.DataFrame] = field(default_factory=dict)
    gone: dict[int, list[Any]] = field(default_factory=dict)

    def take(self, changes: Changes) -> None:
        for key in changes.dropped:
            self.segments.pop(key, None)
            self.gone.pop(key, None)
        for key, segment in changes.put.items():
            self.segments[key] = segment
            self.gone.pop(key, None)
        for key, places in changes.gone.items():
            self.gone.setdefault(key, []).append(places)

    def give(self, table: StateTable) -> None:
        table.restore(self.segments, {key: np.concatenate(parts) for key, parts in self.gone.items()})


class Driver:
    """Runs a join step by step; now and then it is given other settings, is saved, or is taken back from a store."""

    def __init__(self, make: Any, plan: Sequence[tuple[str, Any]]) -> None:
        self.make, self.plan, self.trace = make, plan, Trace()
        self.join: WindowJoin = make()
        self.stores: dict[str, Stored] = {}
        self.bound = NEVER
        self.settings = JoinSettings()
        self.spilled = 0

    def run(self, made: Sequence[Step]) -> None:
        for number, step in enumerate(made):
            if self.plan:
                self.act(*self.plan[number % len(self.plan)])
            self.step([portion.input(schema) for portion, schema in zip(step, SCHEMAS, strict=True)])

    def step(self, inputs: Sequence[Input]) -> None:
        output = self.join.process(inputs)
        if output.rows is not None:
            assert output.rows[TS].min() >= self.bound  # type: ignore[operator]
        self.trace.take(output)
        self.bound = max(self.bound, self.join.output_bound([offer.bound for offer in inputs]))
        self.spilled = max(self.spilled, len(self.join.tables().get("left_disk", ())))

    def act(self, what: str, value: Any) -> None:
        match what:
            case "configure":
                self.settings = value
                self.join.configure(value)
            case "pause":
                self.step([Input(bound=bound) for bound in self.join._registers.bounds])
            case "request":
                self.join.request_punctuation()
            case "save":
                self.save()
            case "restore":
                self.restore(stored=value)

    def save(self) -> None:
        for name, table in self.join.tables().items():
            self.stores.setdefault(name, Stored()).take(table.changes())

    def restore(self, *, stored: bool) -> None:
        before = self.join
        if stored:
            self.save()
        self.join = self.make()
        self.join.configure(self.settings)
        for name, table in self.join.tables().items():
            if stored:
                self.stores[name].give(table)
            else:
                table.replace(before.tables()[name].frame())
        if not stored:
            self.stores = {}
        self.join.restore_scalars(decode(encode(before.scalars())))
        assert self.join.state_rows() == before.state_rows()


plans = st.lists(
    st.one_of(
        st.tuples(st.just("configure"), made_settings),
        st.tuples(st.sampled_from(["pause", "pause", "request", "save", "nothing"]), st.none()),
        st.tuples(st.just("restore"), st.booleans()),
    ),
    max_size=6,
)
ranges = st.integers(0, 5).map(lambda n: Window(range=n))
some_windows = st.one_of(st.just(UNBOUNDED), st.just(UNBOUNDED), st.tuples(ranges, ranges))


def check(given_arrivals: Any, cut: Any, keys: Any, residual: Any, windows: Any, first: Any, plan: Any) -> Driver:
    driver = Driver(lambda: join(keys, residual, windows, merges=False), plan)
    driver.act("configure", first)
    model = reference(keys, residual, windows)
    for step in steps(given_arrivals, SCHEMAS, False, None):
        feed(model, step, False)
    driver.run(list(steps(given_arrivals, SCHEMAS, False, None, cut)))
    return end(driver, model)


def end(driver: Driver, model: Any) -> Driver:
    """Let out what may go, compare, and close everything."""
    extra = Pattern.of(k=equal(77))
    driver.act("configure", replace(driver.settings, propagation="eager", purge_threshold=1))
    driver.step([Input(None, Punctuations.of([extra])), Input()])
    driver.step([Input(), Input()])
    told = [pattern for pattern in driver.trace.punctuations if pattern != Pattern.of({"a.k": equal(77)})]
    assert max(Counter(told).values(), default=1) == 1, told
    assert all(covered(pattern, told) for pattern in model.out_patterns), (told, model.out_patterns)
    assert all(covered(pattern, model.out_patterns) for pattern in told), (told, model.out_patterns)
    everything = Punctuations.of([Pattern()])
    driver.step([Input(None, everything), Input(None, everything)])
    assert driver.join.state_rows() == 0
    driver.step([Input(bound=FOREVER), Input(bound=FOREVER)])
    assert bag(driver.trace.rows) == bag(model.out_rows)
    assert Pattern() in driver.trace.punctuations
    return driver


@settings(max_examples=tries(60))
@given(
    arrivals(ordered=False),
    cuts,
    st.sampled_from(["one", "one", "two"]).map(KEYS.__getitem__),
    st.sampled_from([None, RESIDUAL]),
    some_windows,
    made_settings,
    plans,
)
def test_the_same_answers_under_any_settings(
    given: Any, cut: Any, keys: Any, residual: Any, windows: Any, first: Any, plan: Any
) -> None:
    check(given, cut, keys, residual, windows, first, plan)


@settings(max_examples=tries(60))
@given(arrivals(ordered=False, size=40, silent=False), cuts, spilling, plans)
def test_the_same_answers_from_disk(given: Any, cut: Any, first: Any, plan: Any) -> None:
    check(given, cut, KEYS["one"], None, UNBOUNDED, first, [step for step in plan if step[0] != "configure"])
