"""Pairs that a join looks at: what is near in time, not all pairs of equal keys; and the results stay the same."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest

from millstream.algebra.schema import TS, Schema, TimeKind
from millstream.algebra.types import Type
from millstream.algebra.window import Window
from millstream.runtime.join import index, stretches
from millstream.runtime.join.kernel import JoinKernel
from millstream.runtime.join.window_join import WindowJoin
from millstream.runtime.operator.contract import Input
from tests.runtime.join import test_outer_join as outer
from tests.runtime.join import test_window_join as inner
from tests.runtime.join.disk import test_window_join_disk as on_disk
from tests.tries import rotated

GAP = 1000
"""Time between two tuples of a stream."""


@contextmanager
def limits(crowded: int, few_pairs: int, most_pairs: int) -> Iterator[None]:
    with (
        patch.object(stretches, "CROWDED", crowded),
        patch.object(stretches, "AT_LEAST", 0),
        patch.object(stretches, "MOST_PAIRS", most_pairs),
        patch.object(index, "FEW_PAIRS", few_pairs),
    ):
        yield


def by_time() -> Any:
    """Few tuples take the ways of many: partners are searched by time, and pairs built in portions."""
    return limits(0, 0, 3)


class Looked:
    """Counts the pairs that a kernel looks at, and the rows that it joins."""

    def __init__(self) -> None:
        self.pairs = self.rows = self.largest = 0

    def __enter__(self) -> Looked:
        find, live = JoinKernel.candidates, JoinKernel.live

        def joined(kernel: JoinKernel, left: pl.DataFrame, right: pl.DataFrame, **how: bool) -> Any:
            self.rows += left.height + right.height
            return find(kernel, left, right, **how)

        def seen(kernel: JoinKernel, left: Any, right: Any, rows: Any, times: Any) -> Any:
            self.pairs += len(rows[0])
            self.largest = max(self.largest, len(rows[0]))
            return live(kernel, left, right, rows, times)

        self._patches = [patch.object(JoinKernel, "candidates", joined), patch.object(JoinKernel, "live", seen)]
        for each in self._patches:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._patches:
            each.stop()


KEYS = {
    "one": lambda draw, rows: np.zeros(rows, dtype=np.int64),
    "few": lambda draw, rows: draw.integers(0, 10, rows),
    "many": lambda draw, rows: draw.integers(0, 1000, rows),
    "most": lambda draw, rows: draw.integers(0, 100_000, rows),
    "skewed": lambda draw, rows: np.minimum(draw.pareto(1.0, rows).astype(np.int64), 1 << 16),
}
TYPES = {"near": Type.BIGINT, "apart": Type.BIGINT, "text": Type.VARCHAR, "two": Type.BIGINT, "none": Type.BIGINT}


def run(
    rows: int, keys: str, kind: str, window: int, *, in_order: bool, steps: int = 2, other: int = -1, burst: int = 1
) -> list[tuple[Any, ...]]:
    """Run a join of streams of `rows` tuples a step on each side; returns its results in order. `other`: the window of
    the right side, if it differs; `burst`: how many tuples come at about one time."""
    side = Schema.of(("k", TYPES[kind]), ("j", Type.BIGINT), ("ts", Type.BIGINT), kind=TimeKind.EXTERNAL, time="ts")
    names = Schema.of(*((f"{p}.{a.name}", a.type) for p in "ab" for a in side))
    on = {"none": (), "two": (("k", "k"), ("j", "j"))}.get(kind, (("k", "k"),))
    kept = Window(window * GAP)
    join = WindowJoin(side, side, names, on, None, kept, kept if other < 0 else Window(other * GAP), merges=in_order)
    draw = np.random.default_rng(7)
    results: list[tuple[Any, ...]] = []
    for step in range(steps):
        inputs = []
        for _ in range(2):
            stamps = np.arange(step * rows, (step + 1) * rows) // burst * burst * GAP + draw.integers(0, GAP, rows)
            if not in_order:
                stamps = draw.permutation(stamps)
            values = KEYS[keys](draw, rows)
            column = pl.Series(values * (1 << 40) if kind == "apart" else values)
            frame = {"k": column.cast(pl.String) if kind == "text" else column, "j": values % 3, "ts": stamps}
            inputs.append(Input(pl.DataFrame({**frame, TS: stamps}), None, (step + 1) * rows * GAP))
        made = join.process(inputs).rows
        results += [] if made is None else made.rows()
    return results


@pytest.mark.parametrize(
    ("case", "rows"),
    rotated(itertools.product(KEYS, TYPES, (True, False)), [100, 1_000, 5_000, 10_000], keep=1),
)
def test_they_follow_rows_and_results(case: tuple[str, str, bool], rows: int) -> None:
    keys, kind, in_order = case
    with Looked() as looked:
        results = run(rows, keys, kind, 5, in_order=in_order)
    assert looked.rows >= 4 * rows
    # Each of the at most two joins of a step may look at a few pairs more where counting them costs more.
    few = 2 * 2 * min(index.FEW_PAIRS + stretches.AT_LEAST, 4 * rows * rows)
    assert looked.pairs <= len(results) + stretches.CROWDED * looked.rows + few


def test_a_step_of_20_000_tuples_of_few_keys() -> None:
    """All pairs of equal keys would be ten million and more a step."""
    with Looked() as looked:
        results = run(10_000, "few", "near", 100, in_order=True)
    assert len(results) > 200_000
    assert looked.pairs <= len(results) + stretches.CROWDED * looked.rows + 4 * stretches.AT_LEAST < 1_000_000


@pytest.mark.parametrize("in_order", [True, False], ids=["merging", "on arrival"])
@pytest.mark.parametrize(("window", "other"), [(0, 5), (5, 0), (0, 0), (1, 200)])
@pytest.mark.parametrize("burst", [1, 50, 1_000])
def test_bursts_and_bounds_on_one_side(window: int, other: int, burst: int, in_order: bool) -> None:
    """`a.ts BETWEEN b.ts - 5 AND b.ts` has one window of no length; in a burst all tuples have about one time."""
    with Looked() as looked:
        results = run(5_000, "few", "near", window, in_order=in_order, other=other, burst=burst)
    assert looked.pairs <= len(results) + stretches.CROWDED * looked.rows + 4 * stretches.AT_LEAST


def test_wide_windows_are_looked_at_in_portions() -> None:
    with limits(4, 0, 10_000), Looked() as looked:
        results = run(1_000, "few", "near", 1_000, in_order=True)
    assert len(results) > 200_000 and looked.largest <= 10_000


@pytest.mark.parametrize(
    ("case", "window"), rotated(itertools.product(["one", "few", "skewed"], TYPES, (True, False)), [0, 3, 50], keep=1)
)
def test_results_and_their_order_are_those_of_all_pairs(case: tuple[str, str, bool], window: int) -> None:
    keys, kind, in_order = case
    with limits(1 << 40, 1 << 40, 1 << 40):
        wanted = run(200, keys, kind, window, in_order=in_order, steps=3)
    with by_time():
        assert run(200, keys, kind, window, in_order=in_order, steps=3) == wanted


@pytest.mark.parametrize(
    "against_reference",
    [
        inner.test_merging,
        inner.test_on_arrival,
        inner.test_punctuation_on_key_and_time,
        inner.test_a_restored_join_goes_on_as_if_nothing_had_happened,
        outer.test_merging,
        outer.test_on_arrival,
        on_disk.test_windows,
        on_disk.test_outer_joins,
    ],
    ids=lambda test: f"{test.__module__.rpartition('.')[2]}.{test.__name__}",
)
def test_joins_by_time_against_their_reference(against_reference: Callable[[], None]) -> None:
    with by_time():
        against_reference()
