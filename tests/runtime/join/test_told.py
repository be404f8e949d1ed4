"""Keys that a join tells its inputs: sets, what is not told, how many, and when it considers nothing."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from millstream.algebra.arrays import Mask
from millstream.algebra.punctuation.pattern import Pattern
from millstream.algebra.punctuation.punctuations import Punctuations
from millstream.algebra.punctuation.restriction import below, equal
from millstream.runtime.join import told
from millstream.runtime.join.told import ToldKeys


def closing(*values: int) -> Punctuations:
    return Punctuations.from_column("k", "=", pl.Series(values, dtype=pl.Int64))


def none_closed(_: int, on_keys: Punctuations) -> Mask:
    return np.zeros(len(on_keys), dtype=np.bool_)


def all_closed(_: int, on_keys: Punctuations) -> Mask:
    return np.ones(len(on_keys), dtype=np.bool_)


def two() -> ToldKeys:
    return ToldKeys([{"k": "k"}, {"k": "id"}], [True, True])


def said(keys: ToldKeys) -> list[tuple[int, str]]:
    return [(side, str(message)) for side, message in keys.take()]


def test_values_of_all_steps_are_one_set() -> None:
    keys = two()
    keys.add(0, closing(1, 2), none_closed)
    assert said(keys) == [(1, "~[id {1, 2}]")] and said(keys) == []
    keys.add(0, closing(2, 5), none_closed)
    keys.add(0, Punctuations.of([Pattern.of(k=below(0))]), none_closed)
    assert said(keys) == [(1, "~[id < 0]"), (1, "~[id {1, 2, 5}]")]
    assert all(message.relayed for _, message in keys.take())  # type: ignore[attr-defined]


def test_what_an_input_has_closed_itself_is_not_told() -> None:
    keys = two()
    keys.add(0, closing(1), all_closed)
    assert said(keys) == []
    keys.add(0, closing(2, 3), none_closed)
    keys.add(1, closing(2), all_closed)
    keys.add(0, closing(4), none_closed)
    assert said(keys) == [(1, "~[id {3, 4}]")]


def test_an_input_that_must_not_omit_tuples_is_told_nothing() -> None:
    keys = ToldKeys([{"k": "k"}, {"k": "id"}], [True, False])
    keys.add(0, closing(1), none_closed)
    assert said(keys) == []
    keys.add(1, closing(1), none_closed)
    assert said(keys) == [(0, "~[k = 1]")]


def test_several_columns() -> None:
    keys = ToldKeys([{"k": "k", "j": "j"}, {"k": "id", "j": "n"}], [True, True])
    keys.add(0, Punctuations.of([Pattern.of(k=equal(1), j=equal(n)) for n in range(40)]), none_closed)
    found = said(keys)
    assert len(found) == told.MOST_COMPOUND and found[-1] == (1, "~[id = 1, n = 39]")


def test_there_is_a_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(told, "MOST", 3)
    keys = two()
    keys.add(0, closing(1, 2, 3, 4), none_closed)
    assert said(keys) == [(1, "~[id {2, 3, 4}]")]
    keys.add(0, closing(5), none_closed)
    assert said(keys) == []
    keys.add(1, closing(3), all_closed)
    keys.add(0, closing(6), none_closed)
    restored = two()
    restored.restore(keys.to_value())
    assert said(keys) == [(1, "~[id {2, 4, 6}]")]
    restored.add(0, closing(7), none_closed)
    assert said(restored) == []


def test_it_sleeps_if_there_is_never_news(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(told, "FUTILE", 4)
    monkeypatch.setattr(told, "ASLEEP", 3)
    keys = two()
    keys.add(0, closing(1, 2, 3, 4, 5), all_closed)
    keys.add(0, closing(6, 7, 8), none_closed)
    assert said(keys) == []
    keys.add(0, closing(9), none_closed)
    assert said(keys) == [(1, "~[id = 9]")]
