"""Steps with few keys and short windows: the join looks at what is near in time, not at all pairs of equal keys."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest

from millstream.algebra.schema import TS, Schema, TimeKind
from millstream.algebra.types import Type
from millstream.algebra.window import Window
from millstream.runtime.join import index as join_index
from millstream.runtime.join import kernel as join_kernel
from millstream.runtime.join.window_join import WindowJoin
from millstream.runtime.operator.contract import Input


@pytest.mark.parametrize("keys", [(("k", "k"),), ()])
@pytest.mark.parametrize("windows", [(5, 3), (0, 0), (40, 0)])
def test_few_keys_and_short_windows_are_met_in_slices(
    monkeypatch: pytest.MonkeyPatch, keys: tuple[tuple[str, str], ...], windows: tuple[int, int]
) -> None:
    side = Schema.of(("k", Type.BIGINT), ("ts", Type.BIGINT), kind=TimeKind.EXTERNAL, time="ts")
    names = [("a.k", Type.BIGINT), ("a.ts", Type.BIGINT), ("b.k", Type.BIGINT), ("b.ts", Type.BIGINT)]
    asked: list[int] = []
    match = join_index.Equality.match

    def watched(self, left, right, **how):
        found = match(self, left, right, **how)
        asked.append(len(found[0]))
        return found

    monkeypatch.setattr(join_index.Equality, "match", watched)

    def run(most: int) -> list[tuple[int, ...]]:
        monkeypatch.setattr(join_kernel, "MOST_PAIRS", most)
        join = WindowJoin(
            side, side, Schema.of(*names), keys, None, Window(windows[0]), Window(windows[1]), merges=True
        )
        random = np.random.default_rng(3)
        rows = []
        for start in (0, 60):
            stamps = [np.sort(random.integers(start, start + 60, 50)) for _ in range(2)]
            pages = [pl.DataFrame({"k": random.integers(0, 2, 50), "ts": s, TS: s}) for s in stamps]
            made = join.process([Input(page, None, int(s[-1])) for page, s in zip(pages, stamps, strict=True)]).rows
            rows += [] if made is None else made.rows()
        return rows

    whole = run(1 << 30)
    largest = max(asked)
    asked.clear()
    assert Counter(run(40)) == Counter(whole) and whole
    assert max(asked) < largest / 3
