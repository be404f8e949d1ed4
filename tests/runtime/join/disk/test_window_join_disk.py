"""Joins with windows and outer joins that keep most of their state on disk have the same answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.algebra.schema import FOREVER, TS
from millstream.algebra.window import Window
from millstream.runtime.join.settings import JoinSettings
from millstream.runtime.operator.contract import Input
from tests.runtime.driving import bag
from tests.runtime.join import test_outer_join as outer
from tests.runtime.join.test_settings import Driver, end, plans, ranges, spilling
from tests.runtime.join.test_window_join import KEYS, RESIDUAL, SCHEMAS, feed, join, reference
from tests.runtime.ports import arrivals, cuts, steps
from tests.tries import tries

undisturbed = plans.map(lambda plan: [action for action in plan if action[0] != "configure"])
one_or_both = st.one_of(
    st.tuples(ranges, ranges), st.tuples(ranges, st.just(Window())), st.tuples(st.just(Window()), ranges)
)


@settings(max_examples=tries(80))
@given(
    arrivals(ordered=True, size=40),
    cuts,
    st.sampled_from([None, RESIDUAL]),
    one_or_both,
    st.booleans(),
    spilling,
    undisturbed,
)
def test_windows(given: Any, cut: Any, residual: Any, windows: Any, merges: bool, first: Any, plan: Any) -> None:
    driver = Driver(lambda: join(KEYS["one"], residual, windows, merges=merges), plan)
    driver.act("configure", first)
    model = reference(KEYS["one"], residual, windows)
    for step in steps(given, SCHEMAS, merges, None):
        feed(model, step, merges)
    for step in steps(given, SCHEMAS, merges, None, cut):
        driver.run([step])
        assert driver.join._owed_since == FOREVER  # nothing is ever owed
    if merges:
        times = [row[TS] for row in driver.trace.rows]
        assert times == sorted(times)
    end(driver, model)


@settings(max_examples=tries(60))
@given(
    arrivals(ordered=True, size=40),
    cuts,
    outer.kinds,
    outer.residuals,
    st.tuples(outer.windows, outer.windows),
    st.booleans(),
    spilling,
    undisturbed,
)
def test_outer_joins(
    given: Any, cut: Any, kept: Any, residual: Any, windows: Any, merges: bool, first: Any, plan: Any
) -> None:
    driver = Driver(lambda: outer.join(kept, KEYS["one"], residual, windows, merges), plan)
    driver.act("configure", first)
    model = outer.reference(kept, KEYS["one"], residual, windows)
    for step in steps(outer.ended(given), SCHEMAS, merges, None, cut):
        outer.feed(model, step, merges)
        driver.run([step])
        assert bag(driver.trace.rows) <= bag(model.out_rows + model.padded)  # nothing too early, nothing twice
    driver.act("configure", replace(driver.settings, propagation="eager", purge_threshold=1))
    driver.step([Input(bound=FOREVER), Input(bound=FOREVER)])
    assert bag(driver.trace.rows) == bag(model.out_rows + model.padded)
    assert not any(len(table) for table in driver.join.tables().values())


@settings(max_examples=tries(40))
@given(arrivals(ordered=True, size=40, silent=False), cuts, outer.kinds, outer.residuals, one_or_both)
def test_outer_joins_with_windows_pad_as_early(given: Any, cut: Any, kept: Any, residual: Any, windows: Any) -> None:
    operator, model = (made(kept, KEYS["one"], residual, windows) for made in (_merging, outer.reference))
    operator.configure(JoinSettings(memory_limit=1))
    watched = outer.Watched(operator)
    for step in steps(outer.ended(given), SCHEMAS, True, None, cut):
        outer.feed(model, step, True)
        watched.process(step)
        assert bag(watched.trace.rows) == bag(model.out_rows + model.padded)
        assert operator.state_rows() == sum(map(len, model.stored))


def _merging(kept: Any, keys: Any, residual: Any, windows: Any) -> Any:
    return outer.join(kept, keys, residual, windows, True)
